package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// seat is where the leader of a cluster sits, as the supervisor knows it. Who
// needs a leader waits here. The zero value is an empty one; its lock is a leaf.
type seat[L comparable] struct {
	mu      sync.Mutex
	epoch   int64 // of the newest leader, also when it is gone
	leader  L     // zero: nobody
	closed  bool
	changed chan struct{} // closed when there is something new; nil: nobody waits
}

// take seats the leader of an epoch; false: a newer one has been there.
func (s *seat[L]) take(epoch int64, leader L) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch <= s.epoch || s.closed {
		return false
	}
	s.epoch, s.leader = epoch, leader
	s.tell()
	return true
}

// leave empties the seat if this one sits there.
func (s *seat[L]) leave(leader L) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader == leader {
		var nobody L
		s.leader = nobody
	}
}

// close empties it for ever.
func (s *seat[L]) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var nobody L
	s.leader, s.closed = nobody, true
	s.tell()
}

// tell needs the lock.
func (s *seat[L]) tell() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// now is the leader, or zero, and the newest epoch.
func (s *seat[L]) now() (leader L, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader, s.epoch
}

var (
	errClusterClosed = errors.New("the cluster is closed")
	errJobEnded      = errors.New("the job has ended")
)

// await waits for a leader of a later epoch.
func (s *seat[L]) await(ctx context.Context, above int64) (L, int64, error) {
	return s.wait(ctx, above, nil)
}

// awaitFor waits for a leader as long as its job has not ended.
func (s *seat[L]) awaitFor(ctx context.Context, job *outcome) (L, error) {
	leader, _, err := s.wait(ctx, 0, job.Done())
	if why := job.Err(); errors.Is(err, errJobEnded) && why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return leader, err
}

func (s *seat[L]) wait(ctx context.Context, above int64, over <-chan struct{}) (leader L, epoch int64, err error) {
	var nobody L
	for {
		s.mu.Lock()
		leader, epoch = s.leader, s.epoch
		closed := s.closed
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		switch {
		case closed:
			return nobody, 0, errClusterClosed
		case leader != nobody && epoch > above:
			return leader, epoch, nil
		}
		select {
		case <-changed:
		case <-over:
			return nobody, 0, errJobEnded
		case <-ctx.Done():
			return nobody, 0, fmt.Errorf("no master leads: %w", context.Cause(ctx))
		}
	}
}
