package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/options"
)

// leadershipCheck is how often a master looks whether it still leads.
const leadershipCheck = 50 * time.Millisecond

// masterNode is a process that leads, or waits to.
type masterNode struct {
	*node
	lead   *leadership
	sub    *submission
	values options.Values
	saving sync.Mutex // of the submission
}

// jobMaster is a master of either kind of job.
type jobMaster interface {
	Addr() string
	Done() <-chan struct{}
	Err() error
	Cancel()
	FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error
	Close()
}

// takeover is a master that has its job and has yet to begin.
type takeover struct {
	jobMaster
	begin func()
	// answer carries out a request that only this kind of job knows; false: nor
	// does it.
	answer func(what any, tell func(control.Told)) bool
}

// runMaster waits for the leadership, takes the job over from the state folder
// and runs it until it has to leave or another one leads.
func (n *node) runMaster() error {
	l, err := lead(n.ctx, n.State)
	if err != nil {
		if n.ctx.Err() != nil {
			return nil // it never got to lead
		}
		return n.stateUnread(0, err)
	}
	defer l.release()
	x := &masterNode{node: n, lead: l}
	n.log.Add(elected(fmt.Sprintf("%s epoch=%d", n.Name, l.epoch)))
	if x.sub, x.values, err = readSubmission(n.State, n.Cluster); err != nil {
		return n.stateUnread(l.epoch, err)
	}
	if _, err := plant(x.sub.Delays); err != nil {
		return err
	}
	if x.sub.Started == 0 {
		if err := x.save(func() { x.sub.Started = x.log.Now() }); err != nil {
			return err
		}
	}
	prepare := x.streaming
	if x.sub.Batch {
		prepare = x.batch
	}
	m, err := prepare()
	if err != nil {
		return n.stateUnread(l.epoch, err)
	}
	defer m.Close()
	n.answers(func(what any, tell func(control.Told)) bool { return x.answer(m, what, tell) })
	if err := l.publish(m.Addr()); err != nil {
		return err
	}
	n.conn.Send(control.Leading{Epoch: l.epoch, Addr: m.Addr(), Started: x.sub.Started})
	m.begin()
	return x.untilDeposed(m)
}

// stateUnread ends the job if an error is about the state folder. The end of the
// process must not be taken for the reason: it waits until it has to leave.
func (n *node) stateUnread(epoch int64, err error) error {
	if unread, ok := errors.AsType[*StateError](err); ok {
		n.pump.flush()
		n.conn.Send(control.JobEnded{Epoch: epoch, Error: unread.Error(), State: true})
		<-n.ctx.Done()
	}
	return err
}

// save changes the submission for masters to come.
func (x *masterNode) save(change func()) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	if err := x.lead.check(); err != nil {
		return err
	}
	change()
	return x.sub.write(x.State)
}

// answer carries out a request.
func (x *masterNode) answer(m *takeover, what any, tell func(control.Told)) bool {
	switch w := what.(type) {
	case control.CancelJob:
		m.Cancel()
		tell(control.Told{At: none})
	case control.FailSubtask:
		x.act(tell, func(stamp func()) error { return m.FailTask(x.ctx, w.Vertex, w.Subtask, w.Reason, stamp) })
	default:
		return m.answer(what, tell)
	}
	return true
}

// act answers when something has been done that takes its time. That calls stamp
// at the instant at which it acts.
func (x *masterNode) act(tell func(control.Told), fn func(stamp func()) error) {
	go func() {
		at := none
		err := fn(func() { at = x.log.Now() })
		tell(control.Told{At: at, Error: text(err)})
	}()
}

// untilDeposed tells the outcome of the job, and returns when the process is to
// end.
func (x *masterNode) untilDeposed(m jobMaster) error {
	t := time.NewTicker(leadershipCheck)
	defer t.Stop()
	done := m.Done()
	for {
		select {
		case <-done:
			done = nil
			x.pump.flush()
			x.conn.Send(control.JobEnded{Epoch: x.lead.epoch, Error: text(m.Err())})
		case <-t.C:
			if err := x.lead.check(); err != nil {
				return err
			}
		case <-x.ctx.Done():
			return nil
		}
	}
}
