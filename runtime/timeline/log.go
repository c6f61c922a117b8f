package timeline

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// DefaultLimit bounds a log to about 200 MB of events.
const DefaultLimit = 1 << 20

// Log is an append-only, ordered list of events with one monotonic origin.
type Log struct {
	origin time.Time
	limit  int

	mu struct {
		sync.Mutex
		events  []Event
		dropped int
		changed chan struct{} // closed and replaced when events are added while somebody waits
		waiting bool
	}
}

// New returns an empty log whose origin is now.
func New() *Log { return NewAt(time.Now()) }

// NewAt returns an empty log with the given origin, which must carry a
// monotonic reading.
func NewAt(origin time.Time) *Log {
	l := &Log{origin: origin, limit: DefaultLimit}
	l.mu.changed = make(chan struct{})
	return l
}

// Origin is the instant to which every stamp is relative.
func (l *Log) Origin() time.Time { return l.origin }

// Now is the current time on the log's clock.
func (l *Log) Now() time.Duration { return time.Since(l.origin) }

// Add stamps an event with the current time, appends it and returns the stamp.
func (l *Log) Add(e Event) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.T = time.Since(l.origin)
	l.append(e)
	return e.T
}

// Merge appends events of another process, which stamped them on this log's
// clock, and counts what that process had to drop. They stand where they
// arrived; see Sorted.
func (l *Log) Merge(events []Event, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.dropped += dropped
	for _, e := range events {
		l.append(e)
	}
}

// append needs the lock.
func (l *Log) append(e Event) {
	if len(l.mu.events) < l.limit {
		l.mu.events = append(l.mu.events, e)
	} else {
		l.mu.dropped++
	}
	if l.mu.waiting {
		l.mu.waiting = false
		close(l.mu.changed)
		l.mu.changed = make(chan struct{})
	}
}

// Sorted returns all events so far in the order of their stamps; those of one
// writer with equal stamps stay in order.
func (l *Log) Sorted() []Event {
	events := slices.Clone(l.Events())
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.T, b.T) })
	return events
}

// Len is the number of events so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.events)
}

// Dropped is the number of events refused because the log was full.
func (l *Log) Dropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.dropped
}

// Events returns all events so far. The slice is shared and must not be
// changed; later additions do not touch it.
func (l *Log) Events() []Event { return l.From(0) }

// From returns the events from index i on; see Events.
func (l *Log) From(i int) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= len(l.mu.events) {
		return nil
	}
	return l.mu.events[i:len(l.mu.events):len(l.mu.events)]
}

// Wait blocks until the log holds more than n events or the context ends, and
// returns the events from index n on.
func (l *Log) Wait(ctx context.Context, n int) ([]Event, error) {
	for {
		l.mu.Lock()
		if len(l.mu.events) > n {
			es := l.mu.events[n:len(l.mu.events):len(l.mu.events)]
			l.mu.Unlock()
			return es, nil
		}
		l.mu.waiting = true
		changed := l.mu.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
