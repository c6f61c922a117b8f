package cluster

import (
	"sync"
	"time"
)

// afterwards is what is done to a cluster some time later: each thing on a
// goroutine of its own, unless the cluster is closed before. The zero value is
// ready.
type afterwards struct {
	mu     sync.Mutex
	closed bool
	timers map[*time.Timer]bool // that have not fired
	work   sync.WaitGroup       // what they stand for
}

// do does something after a time. fn must not call close.
func (a *afterwards) do(d time.Duration, fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if a.timers == nil {
		a.timers = map[*time.Timer]bool{}
	}
	a.work.Add(1)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		defer a.work.Done()
		a.mu.Lock()
		delete(a.timers, t)
		closed := a.closed
		a.mu.Unlock()
		if !closed {
			fn()
		}
	})
	a.timers[t] = true
}

// close waits for what has begun. What has not never will.
func (a *afterwards) close() {
	a.mu.Lock()
	a.closed = true
	for t := range a.timers {
		if t.Stop() {
			a.work.Done()
		}
	}
	a.timers = nil
	a.mu.Unlock()
	a.work.Wait()
}
