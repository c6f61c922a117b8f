package joblog

import (
	"context"
	"math/bits"
	"runtime"
	"sync"
	"time"
)

// backend is what differs between the stores. All methods are called on the
// writer's goroutine.
type backend interface {
	append(queued)
	endBatch()
	tick()
	sync()
	// waiting is the number of events that were taken from the queue and cannot
	// be written.
	waiting() int
}

type queued struct {
	Entry
	number uint64
}

// gap is a finished task that is not durable yet.
type gap struct {
	number uint64
	since  time.Time
}

// writer owns the queue and the goroutine.
type writer struct {
	cfg Config
	b   backend

	mu struct {
		sync.Mutex
		queue   []queued
		taken   int // events that the writer has and the backend has not
		gaps    []gap
		stats   Stats
		syncing bool
		closed  bool
		changed chan struct{} // closed and replaced when Durable grows or the writer ends
	}
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	pressed chan struct{} // stats.Pressure has changed
	told    chan struct{} // closed when nobody tells of it any more
}

func (w *writer) prepare(cfg Config, b backend) {
	w.cfg, w.b = cfg, b
	w.wake, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w.mu.changed = make(chan struct{})
	w.pressed, w.told = make(chan struct{}, 1), make(chan struct{})
}

// Append implements Store.
func (w *writer) Append(e Entry) uint64 {
	begin := time.Now()
	w.mu.Lock()
	w.mu.stats.Events++
	n := w.mu.stats.Events
	w.mu.queue = append(w.mu.queue, queued{e, n})
	if e.Event.Kind() == KindVertexFinished {
		w.mu.gaps = append(w.mu.gaps, gap{n, begin})
	}
	w.pressLocked() // the writer may hang in a call to the disk
	took := time.Since(begin)
	s := &w.mu.stats
	s.HookTime += took
	s.HookMax = max(s.HookMax, took)
	s.HookCounts[min(bits.Len64(uint64(took/time.Microsecond)), len(s.HookCounts)-1)]++
	w.mu.Unlock()
	w.poke()
	return n
}

func (w *writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Sync implements Store.
func (w *writer) Sync(ctx context.Context) error {
	w.mu.Lock()
	target := w.mu.stats.Events
	w.mu.syncing = true
	w.mu.Unlock()
	w.poke()
	for {
		w.mu.Lock()
		durable, closed, changed := w.mu.stats.Durable, w.mu.closed, w.mu.changed
		w.mu.Unlock()
		switch {
		case durable >= target:
			return nil
		case closed:
			return errClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stats implements Store.
func (w *writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.mu.stats
	s.Backlog = w.backlogLocked()
	s.GapTasks = len(w.mu.gaps)
	if len(w.mu.gaps) > 0 {
		s.GapSince = w.mu.gaps[0].since
	}
	return s
}

// count changes the statistics.
func (w *writer) count(f func(*Stats)) {
	w.mu.Lock()
	f(&w.mu.stats)
	w.mu.Unlock()
}

// durable tells everybody that events up to a number are durable.
func (w *writer) durable(number uint64) {
	w.mu.Lock()
	if number <= w.mu.stats.Durable {
		w.mu.Unlock()
		return
	}
	w.mu.stats.Durable = number
	i := 0
	for i < len(w.mu.gaps) && w.mu.gaps[i].number <= number {
		i++
	}
	w.mu.gaps = w.mu.gaps[i:]
	close(w.mu.changed)
	w.mu.changed = make(chan struct{})
	w.mu.Unlock()
	if w.cfg.Durable != nil {
		w.cfg.Durable(number)
	}
}

func (w *writer) run() {
	defer close(w.done)
	go w.tell()
	// The thread's clock tells what logging costs. It is not given back to the
	// pool before the writer ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timer := time.NewTicker(w.cfg.FlushInterval)
	defer timer.Stop()
	cpu := threadCPU()
	for {
		var ticked, stopping bool
		select {
		case <-w.wake:
		case <-timer.C:
			ticked = true
		case <-w.stop:
			stopping = true
		}
		begin := time.Now()
		w.step(ticked, stopping)
		w.count(func(s *Stats) {
			s.WriterBusy += time.Since(begin)
			s.WriterCPU = threadCPU() - cpu
		})
		if stopping {
			return
		}
	}
}

// step writes what is queued.
func (w *writer) step(ticked, stopping bool) {
	w.mu.Lock()
	batch, syncing := w.mu.queue, w.mu.syncing
	w.mu.queue, w.mu.syncing = nil, false
	w.mu.taken = len(batch)
	w.mu.Unlock()
	for i, q := range batch {
		w.b.append(q)
		if i&0x3ff == 0x3ff {
			w.pressure(len(batch) - i - 1)
		}
	}
	if len(batch) > 0 {
		w.b.endBatch()
	}
	if ticked {
		w.b.tick()
	}
	if syncing || stopping {
		w.b.sync()
	}
	w.pressure(0)
}

// pressure takes how much of the backlog is where.
func (w *writer) pressure(taken int) {
	waiting := w.b.waiting()
	w.mu.Lock()
	w.mu.stats.Backlog, w.mu.taken = waiting, taken
	w.pressLocked()
	w.mu.Unlock()
}

func (w *writer) backlogLocked() int { return w.mu.stats.Backlog + w.mu.taken + len(w.mu.queue) }

// pressLocked compares the backlog with its bound; pressure ends at half of it, so
// that it does not flicker.
func (w *writer) pressLocked() {
	n, was := w.backlogLocked(), w.mu.stats.Pressure
	is := n > w.cfg.MaxBacklog || was && n > w.cfg.MaxBacklog/2
	if is == was {
		return
	}
	w.mu.stats.Pressure = is
	select {
	case w.pressed <- struct{}{}:
	default:
	}
}

// tell is the goroutine that tells of pressure: the writer cannot while it hangs,
// and who appends holds locks of its own.
func (w *writer) tell() {
	defer close(w.told)
	last := false
	for {
		select {
		case <-w.pressed:
		case <-w.stop:
			return
		}
		w.mu.Lock()
		is := w.mu.stats.Pressure
		w.mu.Unlock()
		if is != last && w.cfg.Pressure != nil {
			w.cfg.Pressure(is)
		}
		last = is
	}
}

// end stops the goroutine after it has written everything, or after a time-out;
// then it is left behind. It tells which, and whether that had been done before.
func (w *writer) end(limit time.Duration) (ended, again bool) {
	w.mu.Lock()
	if w.mu.closed {
		w.mu.Unlock()
		return false, true
	}
	w.mu.closed = true
	w.mu.Unlock()
	close(w.stop)
	<-w.told
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ended = true
	select {
	case <-w.done:
	case <-timer.C:
		ended = false
	}
	w.mu.Lock()
	close(w.mu.changed)
	w.mu.changed = make(chan struct{})
	w.mu.Unlock()
	return ended, false
}
