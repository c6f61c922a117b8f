package trial

import (
	"testing"
	"time"

	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// News of several processes overtake each other: what a worker did after the
// master had assigned the restore may be known before that. Fails if the
// restore makes the observer forget states and drains from after it.
func TestObserverOfSeveralProcesses(t *testing.T) {
	w, err := fakeWorkload("[[scenario.step]]\ndo = \"finish\"\n")
	if err != nil {
		t.Fatal(err)
	}
	states := func(o *observer, at time.Duration, attempt int, state string) {
		for _, v := range w.Vertices {
			for i := range v.Parallelism {
				e := timeline.Task(timeline.TaskState, v.ID, i, attempt)
				e.T, e.State = at, state
				o.add(e)
			}
		}
	}
	event := func(k timeline.Kind, at time.Duration) timeline.Event {
		e := timeline.Of(k)
		e.T = at
		return e
	}
	for _, late := range []bool{false, true} {
		o := newObserver(w)
		states(o, 10, 0, "RUNNING")
		o.fault(&spec.Do{Kind: "kill-jobmanager"}, 100, true)
		assigned := event(timeline.RestoreAssigned, 120)
		assigned.Checkpoint, assigned.Bytes = 3, 50
		elected := event(timeline.MasterElected, 110)
		if !late {
			o.add(elected)
			if o.running() {
				t.Error("running while the new master has started nothing")
			}
			o.add(assigned)
		}
		states(o, 130, 1000, "DEPLOYING")
		states(o, 140, 1000, "RUNNING")
		o.add(event(timeline.RestoreDrained, 150))
		if late {
			o.add(elected)
			o.add(assigned)
		}
		if !o.running() || !o.isDrained(1) || o.restored != 3 {
			t.Errorf("late: %t; running %t, drained %t, restored %d", late, o.running(), o.isDrained(1), o.restored)
		}
		// Another restore: what was drained before does not count for it.
		assigned.T = 200
		o.add(assigned)
		if o.running() || o.isDrained(1) {
			t.Error("running, or drained, before the next execution is deployed")
		}
	}
}
