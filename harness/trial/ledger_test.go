package trial

import (
	"testing"
	"time"

	"benchrun/runtime/timeline"
)

// A worker is taken for dead and comes back, and the next master goes on with its
// attempt, which runs or has finished meanwhile: the work counts from its end on.
//
// Fails if an attempt that has failed is forgotten, or if it counts when it is adopted.
func TestLedgerOfAnAttemptThatComesBack(t *testing.T) {
	at := func(ms int, state, detail string) timeline.Event {
		e := timeline.Task(timeline.TaskState, "numbers", 0, 0)
		e.T, e.State, e.Detail = time.Duration(ms)*time.Millisecond, state, detail
		if state == "FINISHED" {
			e.Records, e.Bytes = 100, 1000
		}
		return e
	}
	before := []timeline.Event{at(0, "DEPLOYING", "worker-0"), at(1, "RUNNING", "worker-0"), at(500, "FAILED", "worker-0")}
	for name, after := range map[string][]timeline.Event{
		"running":  {at(900, "RUNNING", "adopted"), at(1000, "FINISHED", "worker-0")},
		"finished": {at(1000, "FINISHED", "worker-0")},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(append(before[:len(before):len(before)], after...), nil)
			for ms, want := range map[time.Duration]int64{999: 0, 1000: 100, 2000: 100} {
				if w := l.work(ms * time.Millisecond); w != want {
					t.Errorf("useful work at %d ms is %d records, not %d", ms, w, want)
				}
			}
			if n := len(l.attempts); n != 1 || l.attempts[0].broken >= 0 {
				t.Errorf("%d attempts, broken at %v", n, l.attempts[0].broken)
			}
		})
	}
}
