package trial

import (
	"testing"
	"time"

	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// What the conditions of a batch job look at, event by event. A worker that is
// missed while no master leads is not the new master's doing.
//
// Fails if anything but an election ends the time without a master, or if the end of
// a task that had finished before is something that came of the recovery.
func TestBatchObserver(t *testing.T) {
	w, err := fakeFile(batchHead + killSteps)
	if err != nil {
		t.Fatal(err)
	}
	o := newObserver(w)
	at := time.Duration(0)
	see := func(k timeline.Kind, state string, running, recovering bool) {
		t.Helper()
		at += time.Millisecond
		e := timeline.Task(k, "sum", 1, 0)
		e.T, e.State = at, state
		o.add(e)
		if o.running() != running || o.recovering(1) != recovering {
			t.Errorf("after %s %s: running %t, recovering %t", k, state, o.running(), o.recovering(1))
		}
	}
	see(timeline.TaskState, "DEPLOYING", false, true)
	see(timeline.TaskState, "RUNNING", true, true)
	see(timeline.TaskState, "FINISHED", true, false)
	at += time.Millisecond
	o.fault(&spec.Do{Kind: "kill-jobmanager"}, at, true)
	see(timeline.WorkerLost, "", false, false)
	see(timeline.TaskState, "FAILED", false, false)
	see(timeline.TaskState, "RUNNING", false, false) // it does not know yet that nobody leads
	see(timeline.MasterElected, "", false, true)
	see(timeline.TaskState, "FINISHED", false, true) // it had, before the fault
	see(timeline.TaskState, "DEPLOYING", false, true)
	see(timeline.TaskState, "RUNNING", true, true)
	see(timeline.TaskState, "FINISHED", true, false)
	o.fault(&spec.Do{Kind: "kill-worker"}, at+1, true)
	see(timeline.TaskState, "RUNNING", false, false)
	see(timeline.WorkerLost, "", false, true)
	see(timeline.TaskState, "RUNNING", true, true)
}

// A random task of a batch job is one at which the fault finds something, also if
// the fault names an operator that is chained into it.
//
// Fails if the number that was drawn is taken as it is, or if tasks are looked up by
// the operator's name.
func TestRandomTaskOfBatch(t *testing.T) {
	w, err := fakeFile(batchHead + killSteps)
	if err != nil {
		t.Fatal(err)
	}
	w.Vertices = append(w.Vertices, spec.Vertex{ID: "next", Operator: "map", Kind: spec.Transform, Parallelism: w.Vertex("sum").Parallelism})
	w.Edges = append(w.Edges, spec.Edge{From: "sum", To: "next", Partitioner: "forward", Input: 1})
	for block := range 8 {
		e := execution{Execution: Execution{Workload: w, Block: block}, obs: newObserver(w)}
		e.obs.batch.finished[taskKey{"sum", 2}] = true
		e.obs.batch.running[taskKey{"sum", 1}] = true
		for kind, want := range map[string]int{"drop-partition": 2, "fail-task": 1} {
			for _, vertex := range []string{"sum", "next"} {
				if f := e.choose(spec.Step{Name: "x", Do: &spec.Do{Kind: kind, Vertex: vertex, Subtask: spec.Random}}); f.Subtask != want || f.Vertex != vertex {
					t.Errorf("block %d: %s of subtask %d of %s", block, kind, f.Subtask, f.Vertex)
				}
			}
		}
	}
}
