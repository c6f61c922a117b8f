package timeline

import (
	"slices"
	"testing"
	"time"
)

// Fails if Sorted does not sort, is not stable, or sorts the log itself: then
// a reader that keeps an index would see events twice.
func TestMergedEventsAreSortedForMetrics(t *testing.T) {
	l := New()
	at := func(d time.Duration, detail string) Event {
		e := Of(TaskState)
		e.T, e.Detail = d, detail
		return e
	}
	l.Merge([]Event{at(30, "a"), at(10, "b")}, 0)
	l.Merge([]Event{at(10, "c"), at(20, "d")}, 2)
	details := func(events []Event) (out []string) {
		for _, e := range events {
			out = append(out, e.Detail)
		}
		return out
	}
	if got := details(l.Sorted()); !slices.Equal(got, []string{"b", "c", "d", "a"}) {
		t.Errorf("sorted: %q", got)
	}
	if got := details(l.Events()); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("as they came: %q", got)
	}
	if l.Dropped() != 2 {
		t.Errorf("%d dropped, not 2", l.Dropped())
	}
}
