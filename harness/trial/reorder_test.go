package trial

import (
	"slices"
	"testing"
	"time"

	"benchrun/runtime/timeline"
)

// Events of several processes come out in the order of their stamps, each
// once, however they come in; a very late one does not go back. Fails if next
// forgets the sort, hands out what is newer than asked, or drops what it holds.
func TestReorder(t *testing.T) {
	log := timeline.New()
	come := func(stamps ...time.Duration) {
		var es []timeline.Event
		for _, s := range stamps {
			e := timeline.Of(timeline.JobState)
			e.T = s
			es = append(es, e)
		}
		log.Merge(es, 0)
	}
	r := reorder{log: log}
	check := func(until time.Duration, want ...time.Duration) {
		t.Helper()
		var got []time.Duration
		for _, e := range r.next(until) {
			got = append(got, e.T)
		}
		if !slices.Equal(got, want) {
			t.Errorf("until %d: %v, want %v", until, got, want)
		}
	}
	come(10, 30)
	come(5, 20)
	check(20, 5, 10, 20)
	come(15, 25)
	check(27, 20, 25)
	check(27)
	come(40)
	check(100, 30, 40)
}
