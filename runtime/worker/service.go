package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/timeline"
)

// ErrStaleMaster means that a master's leadership is older than one that the
// worker has seen.
var ErrStaleMaster = errors.New("the master's leadership is over")

// fence keeps out the commands of masters that another one has followed.
type fence struct {
	mu    sync.Mutex
	epoch int64
}

// pass tells whether a leadership is not older than the newest one seen.
func (f *fence) pass(epoch int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch < f.epoch {
		return false
	}
	f.epoch = epoch
	return true
}

// newest is the newest leadership that has passed.
func (f *fence) newest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

// service is the work for one master: a control connection from hello to its
// end. Commands are carried out in order by the goroutine that reads them.
type service struct {
	h     *host
	epoch int64 // as the leader was found; an older master is refused
	conn  *control.Conn

	taken chan struct{} // closed at Welcome
	over  sync.Once
	lost  chan struct{} // closed when nothing more comes
	err   error         // then: why
	done  bool          // then: the job is over
}

func (h *host) service(epoch int64) *service {
	return &service{h: h, epoch: epoch, taken: make(chan struct{}), lost: make(chan struct{})}
}

// call connects with a master. Whoever calls closes the connection. newer, if
// there is one, tells whether another master leads: one that is stopped does not
// answer, and is not waited for then.
func (s *service) call(addr string, hello control.Hello, heartbeat time.Duration, newer func() bool) error {
	ctx, cancel := context.WithCancelCause(s.h.ctx)
	defer cancel(nil)
	if newer != nil {
		s.h.loops.Go(func() {
			check := time.NewTicker(leaderCheck)
			defer check.Stop()
			for {
				select {
				case <-check.C:
					if newer() {
						cancel(errOtherLeads)
						return
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	raw, err := s.h.network.Dial(ctx, addr)
	if err != nil {
		return fmt.Errorf("worker %s: master: %w", s.h.name, err)
	}
	attached := make(chan struct{}) // the master may hang up before NewConn returns
	s.conn = control.NewConn(raw, s.h.freezer.pause, func(m any) {
		<-attached
		s.receive(m)
	}, func(err error) {
		<-attached
		s.lose(err)
	})
	s.conn.Send(hello)
	s.h.loops.Go(func() { s.beat(heartbeat) })
	close(attached)
	return nil
}

func (s *service) close(reset bool) {
	if s.conn != nil {
		s.conn.Close(reset)
	}
}

func (s *service) lose(err error) {
	s.over.Do(func() {
		s.err = err
		close(s.lost)
	})
}

func (s *service) receive(m any) {
	switch m := m.(type) {
	case control.Welcome:
		select {
		case <-s.taken:
			return // one is enough
		default:
		}
		if m.Epoch < s.epoch || !s.h.fence.pass(m.Epoch) {
			s.lose(fmt.Errorf("%w: it is of epoch %d, and %d has been seen", ErrStaleMaster, m.Epoch, max(s.epoch, s.h.fence.newest())))
			return
		}
		s.h.kind.welcome(s, m)
		close(s.taken)
	case control.Command:
		select {
		case <-s.taken:
			if s.h.fence.pass(m.Leadership()) {
				s.h.kind.carryOut(s, m)
			}
		default: // whose it is is not known
		}
	}
}

// leaderCheck is how often a worker looks whether its master still leads.
const leaderCheck = 50 * time.Millisecond

// await waits for the welcome. newer, if there is one, tells whether another
// master leads.
func (s *service) await(addr string, newer func() bool) error {
	silence := time.NewTimer(control.HandshakeTimeout)
	defer silence.Stop()
	check := time.NewTicker(leaderCheck)
	defer check.Stop()
	for {
		select {
		case <-s.taken:
			return nil
		case <-s.lost:
			return fmt.Errorf("worker %s: the master did not let it in: %w", s.h.name, s.err)
		case <-silence.C:
			return fmt.Errorf("worker %s: the master at %s did not answer within %v", s.h.name, addr, control.HandshakeTimeout)
		case <-check.C:
			if newer != nil && newer() {
				return fmt.Errorf("worker %s: %w", s.h.name, errOtherLeads)
			}
		case <-s.h.ctx.Done():
			return errClosed
		}
	}
}

var errOtherLeads = errors.New("another master leads")

// masterLost says that a worker has noticed the loss of the master of an epoch.
func masterLost(worker string, epoch int64, why error) timeline.Event {
	e := timeline.Of(timeline.JobState)
	e.State = timeline.Suspended
	e.Detail, e.Reason = fmt.Sprintf("%s epoch=%d", worker, epoch), why.Error()
	return e
}

// beat tells the master that the worker lives, until nothing more comes.
func (s *service) beat(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.h.freezer.pause()
			s.conn.Send(control.Heartbeat{})
		case <-s.lost:
			return
		case <-s.h.ctx.Done():
			return
		}
	}
}
