package buffer

import (
	"fmt"
	"sync"
)

// Global is the network memory of one worker.
type Global struct {
	size  int
	total int

	mu struct {
		sync.Mutex
		free     []*Segment
		made     int
		used     int
		reserved int // sum of the minimums of all open pools
		owed     int // segments that pools below their minimum may still claim
		peak     int
		pools    int
		waiters  []*Local
	}
}

// NewGlobal returns a pool of total segments of size bytes each.
func NewGlobal(size, total int) *Global { return &Global{size: size, total: total} }

// SegmentSize is the size in bytes of every segment.
func (g *Global) SegmentSize() int { return g.size }

// Total is the number of segments that may exist.
func (g *Global) Total() int { return g.total }

// InsufficientError says that the minimums of all pools exceed the memory.
type InsufficientError struct {
	Pool                    string
	Needed, Reserved, Total int // segments
	SegmentSize             int // bytes
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("insufficient network memory: %s needs %d buffers of %d bytes, %d of %d are reserved by others; raise cluster.network-memory to at least %d bytes per worker",
		e.Pool, e.Needed, e.SegmentSize, e.Reserved, e.Total, (e.Needed+e.Reserved)*e.SegmentSize)
}

// Local is a share of the global pool.
type Local struct {
	g         *Global
	name      string
	min, max  int
	overdraft int

	// under g.mu
	used      int
	waitLimit int  // > 0: the pool waits for used to fall below this
	queued    bool // in the global queue: memory is short, not the pool's maximum
	closed    bool
	notify    func()
}

// NewLocal makes a pool that can always have min segments and never more than
// max, or max+overdraft by RequestOverdraft. notify is called, outside of all
// locks, when a pool that was refused could get a segment again.
func (g *Global) NewLocal(name string, min, max, overdraft int, notify func()) (*Local, error) {
	if max < min {
		max = min
	}
	l := &Local{g: g, name: name, min: min, max: max, overdraft: overdraft, notify: notify}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Segments that pools hold above their minimum come back; what counts is
	// that the sum of the minimums fits.
	if reserved := g.mu.reserved; reserved+min > g.total {
		return nil, &InsufficientError{Pool: name, Needed: min, Reserved: reserved, Total: g.total, SegmentSize: g.size}
	}
	g.mu.owed += min
	g.mu.pools++
	g.mu.reserved += min
	return l, nil
}

// TryRequest returns a segment with one reference, or nil; then notify will be
// called when it is worth trying again.
func (l *Local) TryRequest() *Segment { return l.request(l.max, true) }

// RequestOverdraft is TryRequest that may exceed the maximum, so that a record
// in processing can be finished.
func (l *Local) RequestOverdraft() *Segment { return l.request(l.max+l.overdraft, true) }

// Poll is TryRequest without a later notification.
func (l *Local) Poll() *Segment { return l.request(l.max, false) }

func (l *Local) request(limit int, wait bool) *Segment {
	g := l.g
	g.mu.Lock()
	if l.closed || !l.grantable(limit) {
		if wait && !l.closed {
			l.waitLimit = max(l.waitLimit, limit)
			if l.used < limit && !l.queued {
				l.queued = true
				g.mu.waiters = append(g.mu.waiters, l)
			}
		}
		g.mu.Unlock()
		return nil
	}
	if l.used < l.min {
		g.mu.owed--
	}
	l.used++
	g.mu.used++
	g.mu.peak = max(g.mu.peak, g.mu.used)
	var s *Segment
	if n := len(g.mu.free); n > 0 {
		s = g.mu.free[n-1]
		g.mu.free = g.mu.free[:n-1]
		g.mu.Unlock()
	} else {
		g.mu.made++
		g.mu.Unlock()
		s = &Segment{mem: make([]byte, g.size)}
	}
	s.pool = l
	s.refs.Store(1)
	return s
}

// grantable: REQUIRES g.mu held.
func (l *Local) grantable(limit int) bool {
	if l.used >= limit {
		return false
	}
	return l.used < l.min || l.g.total-l.g.mu.used > l.g.mu.owed
}

func (l *Local) put(s *Segment) {
	g := l.g
	g.mu.Lock()
	l.used--
	g.mu.used--
	if !l.closed && l.used < l.min {
		g.mu.owed++
	}
	g.mu.free = append(g.mu.free, s)
	var wake []func()
	if l.waitLimit > 0 && !l.queued && l.used < l.waitLimit {
		// It waited for its own maximum; now it may have to wait for memory.
		l.queued = true
		g.mu.waiters = append(g.mu.waiters, l)
	}
	if len(g.mu.waiters) > 0 {
		wake = g.wakeLocked()
	}
	g.mu.Unlock()
	for _, w := range wake {
		w()
	}
}

// wakeLocked takes the waiters that can be served now out of the queue. All of
// them are woken, not just as many as there are segments: one that no longer
// wants its segment would otherwise keep the others asleep.
func (g *Global) wakeLocked() (wake []func()) {
	kept := g.mu.waiters[:0]
	for _, w := range g.mu.waiters {
		switch {
		case w.closed:
			w.queued, w.waitLimit = false, 0
		case w.grantable(w.waitLimit):
			w.queued, w.waitLimit = false, 0
			if w.notify != nil {
				wake = append(wake, w.notify)
			}
		case w.used >= w.waitLimit:
			w.queued = false // its own put brings it back
		default:
			kept = append(kept, w)
		}
	}
	clear(g.mu.waiters[len(kept):])
	g.mu.waiters = kept
	return wake
}

// Used is the number of segments that the pool has handed out.
func (l *Local) Used() int {
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	return l.used
}

// Max is the pool's maximum without overdraft.
func (l *Local) Max() int { return l.max }

// Close gives up the pool's guarantee. Segments that are still out may come
// back later.
func (l *Local) Close() {
	g := l.g
	g.mu.Lock()
	if l.closed {
		g.mu.Unlock()
		return
	}
	l.closed = true
	if l.used < l.min {
		g.mu.owed -= l.min - l.used
	}
	g.mu.reserved -= l.min
	g.mu.pools--
	wake := g.wakeLocked()
	g.mu.Unlock()
	for _, w := range wake {
		w()
	}
}

// Stats is a snapshot of a global pool.
type Stats struct {
	Used, Peak, Made, Pools, Waiters int
}

// Stats tells how the memory is used; everything is zero again, but for Made
// and Peak, when all pools are closed and all segments released.
func (g *Global) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{Used: g.mu.used, Peak: g.mu.peak, Made: g.mu.made, Pools: g.mu.pools, Waiters: len(g.mu.waiters)}
}
