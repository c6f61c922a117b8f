package worker

import (
	"sync"
	"sync/atomic"
	"time"
)

// freezer holds up everything that calls pause.
type freezer struct {
	frozen atomic.Bool
	mu     sync.Mutex
	cond   *sync.Cond
	timer  *time.Timer
}

func (f *freezer) init() { f.cond = sync.NewCond(&f.mu) }

// pause blocks while the worker is frozen.
func (f *freezer) pause() {
	if !f.frozen.Load() {
		return
	}
	f.mu.Lock()
	for f.frozen.Load() {
		f.cond.Wait()
	}
	f.mu.Unlock()
}

func (f *freezer) freeze(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen.Store(true)
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = time.AfterFunc(d, f.thaw)
}

func (f *freezer) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen.Store(false)
	f.cond.Broadcast()
}
