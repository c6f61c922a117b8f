package targettest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

const batchHead = `
schema = 1
name = "job"
[cluster]
target = %q
workers = 2
slots-per-worker = 2
network-memory = "32 MiB"
buffer-size = "4 KiB"
[workload]
mode = "batch"
parallelism = 4
max-parallelism = 16
`

// BatchWorkload is Workload of a batch job on four slots.
func BatchWorkload(t testing.TB, name string, lines ...string) *spec.Workload {
	t.Helper()
	return workload(t, fmt.Sprintf(batchHead, name), lines)
}

// stages is a job of three stages of six tasks, of which the last two take their
// time.
func stages(sink string, recovery bool) []string {
	return []string{
		"numbers sequence 6 records = 1200, keys = 60, splits = 12", "slow keyed-sum 6 cost = \"1ms\"", "out " + sink + " 6 cost = \"500us\"",
		"numbers hash slow", "slow rebalance out",
		fmt.Sprintf("options.\"execution.batch.job-recovery.enabled\"=%t", recovery), "options.\"job-event.store.write-buffer.flush-interval\"=10ms",
		"options.\"execution.batch.job-recovery.previous-worker.recovery.timeout\"=2s",
	}
}

// batchFaults strikes when something of the second stage has finished. Whatever
// is lost, the output is exact, and the timeline says what became of it.
func batchFaults(t *testing.T, sut target.Target) {
	type strike struct {
		name     string
		recovery bool
		sink     string
		faults   []target.Fault
		again    bool // the second strikes when the next master leads
	}
	kill := target.Fault{Kind: "kill-jobmanager", DownFor: 50 * time.Millisecond}
	for _, c := range []strike{
		{"master, log", true, "verify-sink", []target.Fault{kill}, false},
		{"master, log, files", true, "file-sink", []target.Fault{kill}, false},
		{"master, no log", false, "verify-sink", []target.Fault{kill}, false},
		{"master, no log, files", false, "file-sink", []target.Fault{kill}, false},
		{"worker", true, "file-sink", []target.Fault{{Kind: "kill-worker", Worker: 0, ReplaceAfter: 50 * time.Millisecond}}, false},
		{"worker, not replaced", true, "file-sink", []target.Fault{{Kind: "kill-worker", Worker: 0, ReplaceAfter: -1}}, false},
		{"partition", false, "verify-sink", []target.Fault{{Kind: "drop-partition", Vertex: "numbers", Subtask: 1}}, false},
		{"task", false, "verify-sink", []target.Fault{{Kind: "fail-task", Vertex: "slow"}}, false},
		{"master twice", true, "file-sink", []target.Fault{kill, kill}, true},
		{"worker and master", true, "file-sink", []target.Fault{{Kind: "kill-worker", Worker: 1, ReplaceAfter: 50 * time.Millisecond}, kill}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, sut, BatchWorkload(t, sut.Name(), stages(c.sink, c.recovery)...))
			s.awaitTask("slow", "FINISHED")
			var t0 time.Duration
			for i, f := range c.faults {
				if i > 0 && c.again {
					s.awaitSince(timeline.MasterElected, t0)
				}
				f.Step = fmt.Sprint("strike", i)
				if f.Kind == "fail-task" {
					f.Subtask = s.up(f.Vertex)
				}
				var err error
				if t0, err = s.job.Inject(s.ctx, f); err != nil {
					t.Fatalf("%s: %v", f.Kind, err)
				}
			}
			out := s.prove(1200)
			s.aftermath(c.faults[len(c.faults)-1].Kind, t0, c.recovery, c.again)
			if c.recovery && (out.Batch == nil || out.Batch.EventLogBytes == nil || *out.Batch.EventLogBytes == 0) {
				t.Errorf("figures %+v", out.Batch)
			}
		})
	}
}

// awaitTask waits until a task of a vertex is in a state.
func (s *session) awaitTask(vertex, state string) {
	s.t.Helper()
	for {
		if e := s.await(timeline.TaskState); e.Vertex == vertex && e.State == state {
			return
		}
	}
}

// up is a subtask of a vertex that runs.
func (s *session) up(vertex string) (subtask int) {
	s.t.Helper()
	running := map[int]bool{}
	for _, e := range s.log.Sorted() {
		if e.Kind == timeline.TaskState && e.Vertex == vertex {
			running[e.Subtask] = e.State == "RUNNING"
		}
	}
	for i := range len(running) {
		if running[i] {
			return i
		}
	}
	s.t.Fatalf("no task of %s runs", vertex)
	return 0
}

// aftermath looks for what a fault must leave in the timeline: the harness knows
// nothing else. Workers may not have joined yet a master that dies early.
//
// Fails if workers do not tell that they have lost their master, or if the supervisor
// does not.
func (s *session) aftermath(kind string, t0 time.Duration, recovery, early bool) {
	s.t.Helper()
	count := map[timeline.Kind]int{}
	ran, finished, missed, ended, suspended := false, false, false, false, 0
	for _, e := range s.log.Sorted() {
		if e.T < t0 {
			continue
		}
		if e.Kind == timeline.MasterElected {
			count[timeline.EventReplayed] = 0 // one before that died may have had time for it
			missed = missed || suspended > 0
		}
		count[e.Kind]++
		switch {
		case e.Kind == timeline.TaskState && e.State == "RUNNING":
			ran = ran || count[timeline.MasterElected] > 0 || kind != "kill-jobmanager"
		case e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Records == timeline.None:
			s.t.Errorf("a task finished without saying what it consumed: %+v", e)
		case e.Kind == timeline.JobState && e.State == "FINISHED":
			finished = true
		case e.Kind == timeline.JobState && e.State == timeline.Suspended && strings.HasPrefix(e.Detail, timeline.Supervisor):
			ended = true
		case e.Kind == timeline.JobState && e.State == timeline.Suspended:
			suspended++
		}
	}
	if !ran || !finished {
		s.t.Errorf("a task ran after the fault: %t; the job finished: %t", ran, finished)
	}
	switch {
	case kind == "kill-jobmanager" && count[timeline.MasterElected] == 0:
		s.t.Error("no master was elected")
	case kind == "kill-jobmanager" && !early && !missed:
		s.t.Error("no worker missed its master before the next one led")
	case kind == "kill-jobmanager" && !ended:
		s.t.Error("the supervisor did not see the master end")
	case kind != "kill-jobmanager" && suspended > 0:
		s.t.Error("a worker has lost a master that lives")
	case kind == "kill-jobmanager" && recovery != (count[timeline.EventReplayed] == 1):
		s.t.Errorf("the log was replayed %d times; job recovery %t", count[timeline.EventReplayed], recovery)
	case kind == "kill-worker" && count[timeline.WorkerLost] == 0:
		s.t.Error("nobody missed the worker")
	case kind == "drop-partition" && count[timeline.PartitionLost] == 0:
		s.t.Error("nobody missed the partition")
	}
}
