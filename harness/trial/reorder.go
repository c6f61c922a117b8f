package trial

import (
	"cmp"
	"slices"
	"time"

	"benchrun/runtime/timeline"
)

// reorderWindow is how long an event of one process waits for older ones of
// others before it is written.
const reorderWindow = 500 * time.Millisecond

// reorder hands out a log's events in the order of their stamps. An event that
// comes later than the window, because its process was stopped, gets the stamp
// of the last one handed out: a file of events is in order. Metrics are
// computed over the log itself.
type reorder struct {
	log  *timeline.Log
	read int
	held []timeline.Event
	last time.Duration
}

// next takes what has come and returns what is not newer than a moment.
func (r *reorder) next(until time.Duration) []timeline.Event {
	came := r.log.From(r.read)
	r.read += len(came)
	r.held = append(r.held, came...)
	slices.SortStableFunc(r.held, func(a, b timeline.Event) int { return cmp.Compare(a.T, b.T) })
	n := 0
	for n < len(r.held) && r.held[n].T <= until {
		r.held[n].T = max(r.held[n].T, r.last)
		r.last = r.held[n].T
		n++
	}
	out := slices.Clone(r.held[:n])
	r.held = append(r.held[:0], r.held[n:]...)
	return out
}
