package trial

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"

	"pgregory.net/rapid"
)

const batchHead = `schema = 1
name = "fake"
[cluster]
target = "process"
workers = 2
slots-per-worker = 2
[options]
"execution.batch.job-recovery.enabled" = true
[workload]
mode = "batch"
parallelism = 4
[[workload.vertex]]
id = "numbers"
operator = "sequence"
params = { records = 100 }
[[workload.vertex]]
id = "sum"
operator = "count-by-key"
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "sum"
partitioner = "hash"
[[workload.edge]]
from = "sum"
to = "out"
partitioner = "rebalance"
`

// playBatch runs a scenario of a batch job on virtual time: three waves of four
// tasks, a second each.
func playBatch(t *testing.T, f *targettest.Target, steps string, check func(tr *result.Trial, log *timeline.Log), sets ...string) {
	t.Helper()
	playText(t, f, batchHead+steps, check, sets...)
}

const killSteps = `
[[scenario.step]]
wait = { progress = 0.6 }
[[scenario.step]]
wait = { elapsed = "500ms" }
[[scenario.step]]
name = "kill"
do = "kill-jobmanager"
down-for = "200ms"
[[scenario.step]]
wait = { running = true }
`

func TestBatchWithoutFault(t *testing.T) {
	kib, zero := int64(1024), int64(0)
	f := &targettest.Target{Batch: targettest.Batch{Figures: &target.BatchFigures{
		HookTime: 3 * time.Millisecond, WriterCPU: 3 * time.Millisecond, EventLogBytes: &kib, LeftoverBytes: &zero,
	}}}
	playBatch(t, f, "", func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || tr.RecoveryPath != "" || len(tr.Faults) != 0 {
			t.Fatalf("%s: %s %+v", tr.Outcome, tr.Reason, tr.Faults)
		}
		near(t, tr.Metrics, "makespan_s", 3)
		near(t, tr.Metrics, "wasted_bytes", 0)
		near(t, tr.Metrics, "leftover_bytes", 0)
		near(t, tr.Metrics, "event_log_bytes", 1024)
		if v := tr.Metrics["recording_overhead"]; v <= 0 || v > 0.002 {
			t.Errorf("recording_overhead = %v", v)
		}
		if _, ok := tr.Metrics["throughput_records_per_s"]; ok || len(tr.Metrics) != 5 {
			t.Errorf("metrics %v", tr.Metrics)
		}
	})
}

// What a worker had left nobody knows that did not say so: there is no number, and the
// log of the trial names the worker.
//
// Fails if the reason is not told.
func TestLeftoversThatNobodyKnows(t *testing.T) {
	f := &targettest.Target{Batch: targettest.Batch{Figures: &target.BatchFigures{Unheard: []string{"worker-1"}}}}
	playLogged(t, f, batchHead, func(tr *result.Trial, log string) {
		if v, ok := tr.Metrics["leftover_bytes"]; ok || tr.Outcome != result.OK {
			t.Errorf("%s: %s; leftover_bytes = %v", tr.Outcome, tr.Reason, v)
		}
		if want := "leftover_bytes is not known: nobody has said what is left in the folder of worker-1"; !strings.Contains(log, want) {
			t.Errorf("the log does not say that %s:\n%s", want, log)
		}
	})
}

// The lines of a log are in order, also those that tell of earlier moments.
//
// Fails if lacks begins its line with an earlier moment (three seconds before).
func TestLinesOfTheLogAreInOrder(t *testing.T) {
	f := &targettest.Target{Batch: targettest.Batch{Figures: &target.BatchFigures{Unheard: []string{"worker-1"}}}}
	playLogged(t, f, batchHead+killSteps, func(tr *result.Trial, log string) {
		last, stamped := -1.0, 0
		for line := range strings.Lines(log) {
			var at float64
			if _, err := fmt.Sscanf(line, "%f s  ", &at); err != nil {
				continue
			}
			if stamped++; at < last {
				t.Errorf("%q comes after %.3f s", line, last)
			}
			last = at
		}
		for _, want := range []string{"kill-jobmanager down for 200ms (t0 ", "leftover_bytes is not known"} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in the %d lines of\n%s", want, stamped, log)
			}
		}
	})
}

// A job that ends under a step that waits: the reason names the step and what it waited
// for.
//
// Fails if only the phase does.
func TestJobThatEndsUnderAStep(t *testing.T) {
	for name, x := range map[string]struct{ step, want string }{
		"wait": {`wait = { elapsed = "1h", timeout = "2h" }`, `the job ended before the step "late" was over, still missing: elapsed`},
		"moment": {"do = \"kill-jobmanager\"\ndown-for = \"1s\"\nwhen = { during-recovery = true }",
			`the job ended before the step "late" was over, before the moment for the fault had come: during-recovery: no recovery is under way`},
	} {
		t.Run(name, func(t *testing.T) {
			steps := `
[[scenario.step]]
wait = { progress = 0.3 }
[[scenario.step]]
do = "kill-jobmanager"
down-for = "200ms"
[[scenario.step]]
wait = { elapsed = "1500ms" }
[[scenario.step]]
name = "late"
` + x.step + "\n"
			playBatch(t, &targettest.Target{}, steps, func(tr *result.Trial, log *timeline.Log) {
				if tr.Outcome != result.Failed || tr.Phase != "late" || tr.Reason != x.want {
					t.Errorf("%s in %s: %s", tr.Outcome, tr.Phase, tr.Reason)
				}
			})
		})
	}
}

// A kill of the master in the third wave: two waves are kept, the third is lost.
//
// Fails if the time until somebody knew is counted twice, or if a running task
// that was lost counts as work done again.
func TestKillMasterOfBatch(t *testing.T) {
	playBatch(t, &targettest.Target{}, killSteps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || tr.RecoveryPath != result.RecoveryEventLog {
			t.Fatalf("%s %q: %s", tr.Outcome, tr.RecoveryPath, tr.Reason)
		}
		m := tr.Metrics
		near(t, m, "control_recovery_s", 0.231)
		near(t, m, "detect_s", 0.005)
		near(t, m, "recovery_elect_s", 0.195)
		near(t, m, "recovery_replay_s", 0.01)
		near(t, m, "recovery_wait_s", 0.02)
		near(t, m, "recovery_schedule_s", 0.001)
		near(t, m, "time_to_parity_s", 0.231)
		near(t, m, "reexecuted_fraction", 0)
		near(t, m, "avoidable_reexecuted_fraction", 0)
		near(t, m, "durability_gap_tasks", 0)
		near(t, m, "wasted_bytes", 0)
		if got := m["makespan_s"]; got < 3.731 || got > 3.76 { // the look at the counter takes a while
			t.Errorf("makespan_s = %v", got)
		}
	})
}

// Without job recovery all is done again, and nothing made that necessary.
//
// Fails if a task that ran again counts as avoidable only where a partition was
// lost, if parity is reached before the work is done, or if what no log should have
// kept counts as missing from it.
func TestKillMasterWithoutRecovery(t *testing.T) {
	playBatch(t, &targettest.Target{}, killSteps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || tr.RecoveryPath != result.RecoveryFull {
			t.Fatalf("%s %q: %s", tr.Outcome, tr.RecoveryPath, tr.Reason)
		}
		m := tr.Metrics
		near(t, m, "control_recovery_s", 0.201)
		near(t, m, "time_to_parity_s", 2.201)
		near(t, m, "reexecuted_fraction", 1)
		near(t, m, "avoidable_reexecuted_fraction", 1)
		near(t, m, "wasted_bytes", 8000)
		for _, absent := range []string{"recovery_replay_s", "recovery_wait_s", "event_log_bytes", "recording_overhead", "durability_gap_tasks"} {
			if _, ok := m[absent]; ok {
				t.Errorf("%s = %v", absent, m[absent])
			}
		}
	}, "options.execution.batch.job-recovery.enabled=false")
}

// The log misses two tasks that had finished.
//
// Fails if the tasks that were lost while they ran are in the gap.
func TestDurabilityGap(t *testing.T) {
	playBatch(t, &targettest.Target{Batch: targettest.Batch{Gap: 2}}, killSteps, func(tr *result.Trial, log *timeline.Log) {
		near(t, tr.Metrics, "reexecuted_fraction", 0.25)
		near(t, tr.Metrics, "avoidable_reexecuted_fraction", 0.25)
		near(t, tr.Metrics, "time_to_parity_s", 1.231)
		near(t, tr.Metrics, "durability_gap_tasks", 2)
	})
}

// A worker dies in the third wave with the output of half of the tasks.
//
// Fails if partition-lost is not looked at: then it was all avoidable.
func TestKillWorkerOfBatch(t *testing.T) {
	steps := `
[[scenario.step]]
wait = { progress = 0.6 }
[[scenario.step]]
name = "kill"
do = "kill-worker"
worker = 1
replace-after = "1s"
[[scenario.step]]
wait = { running = true }
`
	playBatch(t, &targettest.Target{}, steps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || tr.RecoveryPath != "" {
			t.Fatalf("%s %q: %s", tr.Outcome, tr.RecoveryPath, tr.Reason)
		}
		m := tr.Metrics
		near(t, m, "detect_s", 0.005)
		near(t, m, "reexecuted_fraction", 0.5)
		near(t, m, "avoidable_reexecuted_fraction", 0)
		near(t, m, "time_to_parity_s", 2.005)
		if _, ok := m["control_recovery_s"]; ok {
			t.Error("the master was not lost")
		}
	})
}

// A second kill while the new master replays.
//
// Fails if a recovery is under way already before the new master leads.
func TestKillDuringRecoveryOfBatch(t *testing.T) {
	steps := killSteps[:len(killSteps)-len("[[scenario.step]]\nwait = { running = true }\n")] + `
[[scenario.step]]
name = "again"
do = "kill-jobmanager"
down-for = "100ms"
when = { during-recovery = true }
[[scenario.step]]
wait = { running = true }
`
	playBatch(t, &targettest.Target{}, steps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || len(tr.Faults) != 2 {
			t.Fatalf("%s: %s %+v", tr.Outcome, tr.Reason, tr.Faults)
		}
		if gap := tr.Faults[1].T0Us - tr.Faults[0].T0Us; gap != 200_000 {
			t.Errorf("the second kill came %d us after the first", gap)
		}
		if _, ok := tr.Faults[1].Metrics["control_recovery_s"]; !ok {
			t.Errorf("metrics of the second: %v", tr.Faults[1].Metrics)
		}
	})
}

// Where a fault hits is drawn by the block, alike for all cells.
//
// Fails if the place depends on the cell, or is the same in every block.
func TestProgressOfARangeIsDrawn(t *testing.T) {
	f, err := spec.Parse("fake.toml", "/dir", []byte(batchHead+"[[scenario.step]]\nwait = { progress = [0.1, 0.9] }\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve("default")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for block := range 20 {
		e := execution{Execution: Execution{Workload: w, Block: block}}
		p := e.place(w.Steps[0]).Progress
		if again := e.place(w.Steps[0]).Progress; p != again || p < 0.1 || p > 0.9 {
			t.Errorf("block %d: %v, then %v", block, p, again)
		}
		seen[p] = true
	}
	if len(seen) < 15 {
		t.Errorf("only %d places in 20 blocks", len(seen))
	}
}

// A dropped partition is one of a task that has finished, drawn by the seed.
//
// Fails if the drawn subtask is taken although it has not finished.
func TestDropPartition(t *testing.T) {
	steps := `
[[scenario.step]]
wait = { progress = 0.3 }
[[scenario.step]]
name = "drop"
do = "drop-partition"
vertex = "numbers"
`
	f := &targettest.Target{}
	playBatch(t, f, steps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || len(f.Faults()) != 1 || f.Faults()[0].Vertex != "numbers" {
			t.Fatalf("%s: %s %+v", tr.Outcome, tr.Reason, f.Faults())
		}
		near(t, tr.Metrics, "reexecuted_fraction", 0.25)
		near(t, tr.Metrics, "avoidable_reexecuted_fraction", 0)
	})
	o := newObserver(&spec.Workload{Mode: spec.Batch})
	o.batch.finished[taskKey{"a", 2}] = true
	for first, want := range []int{2, 2, 2, 2} {
		if got := from(o.batch.finished, "a", first, 4); got != want {
			t.Errorf("from %d: %d", first, got)
		}
	}
}

// TestLedger: whatever happens to attempts, useful work is what finished tasks
// consumed, each once, and never more than there is.
//
// Fails if an attempt counts although its task ran again, or if a loss is taken
// from the work at the fault itself; of parity, if a loss counts at its own moment,
// or is forgotten.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 5).Draw(t, "tasks")
		var events []timeline.Event
		var faults []time.Duration
		states := make([]string, tasks)
		attempts := make([]int, tasks)
		at := time.Duration(0)
		emit := func(i int, state string) {
			e := timeline.Task(timeline.TaskState, "a", i, attempts[i])
			e.T, e.State = at, state
			if state == "FINISHED" {
				e.Records, e.Bytes = int64(i+1), 10
			}
			events = append(events, e)
			states[i] = state
		}
		model := map[time.Duration]int64{} // work, by moment
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			at += time.Millisecond
			i := rapid.IntRange(0, tasks-1).Draw(t, "task")
			switch {
			case rapid.IntRange(0, 5).Draw(t, "fault") == 0:
				faults = append(faults, at)
			case states[i] == "DEPLOYING":
				emit(i, rapid.SampledFrom([]string{"FINISHED", "FAILED"}).Draw(t, "end"))
			default:
				if states[i] != "" {
					attempts[i]++
				}
				emit(i, "DEPLOYING")
			}
			sum := int64(0)
			for k, s := range states {
				if s == "FINISHED" {
					sum += int64(k + 1)
				}
			}
			model[at] = sum
		}
		l := newLedger(events, faults)
		if got := l.work(at + 1); got != model[at] {
			t.Fatalf("in the end %d, not %d", got, model[at])
		}
		for _, t0 := range faults {
			done, again := l.before(t0, math.MaxInt64)
			for _, a := range again {
				if !slices.Contains(done, a) {
					t.Fatalf("work that was not done is done again: %+v", a)
				}
			}
			if got := l.work(t0); got < model[t0]-sumOf(l, t0) || got > model[t0] {
				t.Fatalf("at %s: %d, the model says %d", t0, got, model[t0])
			}
			base := t0 + time.Duration(rapid.IntRange(0, 5).Draw(t, "later"))*time.Millisecond
			end := base + time.Duration(rapid.IntRange(0, 60).Draw(t, "end"))*time.Millisecond
			p, ok := l.parity(t0, base, end)
			if want, there := plainParity(l, t0, base, end); p != want || ok != there {
				t.Fatalf("parity after %s within %s and %s is at %s (%v), not at %s (%v)", t0, base, end, p, ok, want, there)
			}
		}
	})
}

// plainParity is what parity means, millisecond by millisecond.
func plainParity(l *ledger, t0, base, end time.Duration) (time.Duration, bool) {
	for t := base; t < end; t += time.Millisecond {
		kept := int64(0)
		for _, a := range l.attempts {
			if a.counts(t) && a.gone != t0 {
				kept += a.records
			}
		}
		if kept >= l.work(t0) {
			return t, true
		}
	}
	return 0, false
}

// sumOf is the work that an earlier fault is held to have taken along, although
// the task ran again only later.
func sumOf(l *ledger, t0 time.Duration) (sum int64) {
	for _, a := range l.attempts {
		if a.finished() && a.to <= t0 && a.gone >= 0 && a.gone < t0 {
			sum += a.records
		}
	}
	return sum
}

// What a run expects of each trial is what all cells have: one that leaves the
// fault out has no times after it. Axes of the scenario are known as such.
//
// Fails if the first cell speaks for all.
func TestExpectedOfAllCells(t *testing.T) {
	head := strings.Replace(batchHead, `"execution.batch.job-recovery.enabled" = true`, `[matrix]
"execution.batch.job-recovery.enabled" = [true, false]
"scenario.step.kill.repeat" = [1, 0]`, 1)
	for repeats, want := range map[string][]string{"[1, 0]": {"makespan_s"}, "[0, 1]": {"makespan_s"}, "[1]": {"makespan_s", "control_recovery_s"}} {
		f, err := spec.Parse("fake.toml", "/dir", []byte(strings.Replace(head, "[1, 0]", repeats, 1)+killSteps), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(plan.Input{Files: []*spec.File{f}})
		if err != nil {
			t.Fatal(err)
		}
		w, err := describe(p, f)
		if err != nil || !slices.Equal(w.Expected, want) || w.Mode != "batch" || !slices.Equal(w.ScenarioAxes, []string{"repeat"}) {
			t.Errorf("%s: %v, %q %q %q", repeats, err, w.Expected, w.Mode, w.ScenarioAxes)
		}
	}
}

// TestPhasesAddUp: whatever comes when, and in whatever order, the phases of
// control recovery are its parts; where nobody noticed the loss before the next
// master led, those after its election.
//
// Fails if each phase is cut to microseconds by itself, is counted from the wrong
// end of the one before, or reaches beyond the first task that runs; if an election
// counts as notice.
func TestPhasesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string, from time.Duration) time.Duration {
			return from + time.Duration(rapid.IntRange(0, 50_000_000).Draw(t, name))
		}
		var events []timeline.Event
		add := func(at time.Duration, k timeline.Kind, state string) {
			e := timeline.Task(k, "a", 0, 1)
			e.T, e.State = at, state
			events = append(events, e)
		}
		const t0 = 100 * time.Millisecond
		elected, noticed := at("elected", t0), time.Duration(math.MaxInt64)
		if rapid.Bool().Draw(t, "noticed") {
			noticed = at("noticing", t0)
			add(noticed, timeline.JobState, timeline.Suspended)
		}
		add(elected, timeline.MasterElected, "")
		if rapid.Bool().Draw(t, "log") {
			add(at("replayed", elected), timeline.EventReplayed, "")
			add(at("ready", elected), timeline.JobState, "RUNNING")
		}
		add(at("running", elected), timeline.TaskState, "RUNNING")
		slices.SortStableFunc(events, func(a, b timeline.Event) int { return int(a.T - b.T) })
		m := measureBatch(events, []Window{{Name: "kill", Kind: "kill-jobmanager", T0: t0}}, nil, true)[0].Metrics
		sum := m["detect_s"]
		if _, ok := m["detect_s"]; !ok {
			sum = float64(elected.Microseconds()-t0.Microseconds()) / 1e6
		}
		for _, name := range []string{"detect_s", "recovery_elect_s"} {
			if _, ok := m[name]; ok != (noticed <= elected) {
				t.Fatalf("noticed at %v, elected at %v: %s is there: %t", noticed, elected, name, ok)
			}
		}
		for _, phase := range []string{"recovery_elect_s", "recovery_replay_s", "recovery_wait_s", "recovery_schedule_s"} {
			if m[phase] < 0 {
				t.Fatalf("%s = %v", phase, m[phase])
			}
			sum += m[phase]
		}
		if math.Abs(sum-m["control_recovery_s"]) > 1e-9 {
			t.Fatalf("the phases are %v together, the whole is %v: %v", sum, m["control_recovery_s"], m)
		}
	})
}

// A worker is lost with what it had made, and the master dies before anything could
// be made again: the work was never back, so how long that took and what was done
// again are absent. A loss that costs nothing was made good when it was known.
//
// Fails if nobody looks for losses that are open.
func TestParityAfterALossThatWasCutShort(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	event := func(at time.Duration, k timeline.Kind, state string, subtask int) timeline.Event {
		e := timeline.Task(k, "a", subtask, 0)
		e.T, e.State = at, state
		if state == "FINISHED" {
			e.Records = 100
		}
		return e
	}
	events := []timeline.Event{event(ms(0), timeline.TaskState, "RUNNING", 0), event(ms(50), timeline.TaskState, "FINISHED", 0)}
	lost := timeline.Of(timeline.WorkerLost)
	lost.T = ms(102)
	events = append(events, lost)
	end := event(ms(300), timeline.JobState, "FINISHED", 0)
	windows := []Window{{Name: "lose", Kind: "kill-worker", T0: ms(100)}, {Name: "kill", Kind: "kill-jobmanager", T0: ms(105)}}

	m := measureBatch(append(slices.Clone(events), end), windows, nil, true)[0].Metrics
	near(t, m, "time_to_parity_s", 0.002)

	gone := event(ms(103), timeline.PartitionLost, "", 0)
	m = measureBatch(append(slices.Clone(events), gone, end), windows, nil, true)[0].Metrics
	near(t, m, "detect_s", 0.002)
	for _, name := range []string{"time_to_parity_s", "reexecuted_fraction", "avoidable_reexecuted_fraction"} {
		if v, ok := m[name]; ok {
			t.Errorf("%s = %v", name, v)
		}
	}
}
