package trial

import (
	"testing"
	"time"

	"benchrun/runtime/timeline"
)

// Of three tasks that had finished and were given up with their worker, one has really
// gone, one comes back in time, and one too late.
//
// Fails if forced does not look at partition-kept: nothing would be avoidable; or if the
// observer does not, or takes what is too late for finished.
func TestOutputsThatComeBack(t *testing.T) {
	const ms = time.Millisecond
	var events []timeline.Event
	add := func(at time.Duration, kind timeline.Kind, vertex string, subtask, attempt int, state, reason string) {
		e := timeline.Task(kind, vertex, subtask, attempt)
		e.T, e.State, e.Reason, e.Records = at, state, reason, 100
		events = append(events, e)
	}
	run := func(from, to time.Duration, vertex string, subtask, attempt int) {
		add(from, timeline.TaskState, vertex, subtask, attempt, "DEPLOYING", "")
		add(from, timeline.TaskState, vertex, subtask, attempt, "RUNNING", "")
		add(to, timeline.TaskState, vertex, subtask, attempt, "FINISHED", "")
	}
	for i := range 3 {
		run(0, 100*ms, "a", i, 0)
	}
	for i := range 3 {
		add(200*ms, timeline.PartitionLost, "a", i, 0, "", "worker-lost")
	}
	add(210*ms, timeline.PartitionKept, "a", 1, 0, "", "")
	add(220*ms, timeline.PartitionKept, "a", 2, 0, "", timeline.TooLate)
	run(210*ms, 310*ms, "a", 0, 1)
	run(215*ms, 315*ms, "a", 2, 1)
	f := measureBatch(events, []Window{{Name: "lose", Kind: "kill-worker", T0: 190 * ms}}, consumers{"a": {"b"}}, true)
	near(t, f[0].Metrics, "reexecuted_fraction", 2.0/3)
	near(t, f[0].Metrics, "avoidable_reexecuted_fraction", 1.0/3)
	o := batchObserver{finished: map[taskKey]bool{}, running: map[taskKey]bool{}}
	for _, e := range events[:len(events)-6] {
		o.add(e)
	}
	if o.finished[taskKey{"a", 0}] || !o.finished[taskKey{"a", 1}] || o.finished[taskKey{"a", 2}] {
		t.Errorf("finished: %v", o.finished)
	}
}
