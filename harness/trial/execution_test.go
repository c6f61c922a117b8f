package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
)

// play runs a scenario against a fake target on virtual time.
func play(t *testing.T, f *targettest.Target, steps string, check func(tr *result.Trial, log *timeline.Log), sets ...string) {
	t.Helper()
	playText(t, f, fakeHead+steps, check, sets...)
}

// playText is play of a whole workload file.
func playText(t *testing.T, f *targettest.Target, text string, check func(tr *result.Trial, log *timeline.Log), sets ...string) {
	t.Helper()
	playWhole(t, f, text, func(tr *result.Trial, log *timeline.Log, _ string) { check(tr, log) }, sets...)
}

// playLogged shows what the trial says to a person.
func playLogged(t *testing.T, f *targettest.Target, text string, check func(tr *result.Trial, said string)) {
	t.Helper()
	playWhole(t, f, text, func(tr *result.Trial, _ *timeline.Log, said string) { check(tr, said) })
}

func playWhole(t *testing.T, f *targettest.Target, text string, check func(tr *result.Trial, log *timeline.Log, said string), sets ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := fakeFile(text, sets...)
		if err != nil {
			t.Fatal(err)
		}
		log := timeline.New()
		var stderr bytes.Buffer
		tr := Execution{Workload: w, Target: f, Block: 3, Folder: t.TempDir(), Log: log, Stderr: &stderr}.Run(t.Context())
		check(tr, log, stderr.String())
		if f.SlowClose > 0 {
			<-time.After(3 * closeTimeout) // until the cluster has stopped after all
		}
	})
}

const rescaleSteps = `
[[scenario.step]]
name = "fill"
wait = { checkpoints = 2, in-flight = "1 MiB" }
[[scenario.step]]
name = "rescale"
do = "rescale"
parallelism = { out = 3 }
[[scenario.step]]
wait = { running = true, first-checkpoint = true, drained = true }
`

func near(t *testing.T, metrics map[string]float64, name string, want float64) {
	t.Helper()
	got, ok := metrics[name]
	if !ok {
		t.Errorf("%s is absent", name)
	} else if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}

func TestRescale(t *testing.T) {
	f := &targettest.Target{Bytes: 1 << 20, Drain: 3 * time.Second, Path: "downstream", Output: &target.Output{Proved: true, Received: 250, Expected: 250, Digest: "d", ExpectedDigest: "d"}}
	play(t, f, rescaleSteps, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK || tr.Phase != "" || tr.Reason != "" {
			t.Fatalf("outcome %s in %q: %s", tr.Outcome, tr.Phase, tr.Reason)
		}
		m := tr.Metrics
		near(t, m, "detect_s", 0.005)
		near(t, m, "time_to_deploying_s", 0.005)
		near(t, m, "time_to_initializing_s", 0.005)
		near(t, m, "time_to_running_s", 0.015)
		near(t, m, "time_to_first_output_s", 0.015)
		near(t, m, "time_to_first_checkpoint_trigger_s", 0.015)
		near(t, m, "time_to_first_checkpoint_s", 0.035)
		near(t, m, "time_to_drained_s", 3.015)
		near(t, m, "restored_inflight_bytes", 1<<20)
		near(t, m, "restored_bytes", 2<<20)
		near(t, m, "spilled_bytes", 0)
		near(t, m, "inflight_inflation", 1)
		near(t, m, "reprocessed_records", 350) // 6 checkpoints of 100 arrivals
		if tr.RecoveryPath != "downstream" || tr.Faults[0].RecoveryPath != "downstream" {
			t.Errorf("recovery path %q", tr.RecoveryPath)
		}
		if len(tr.Faults) != 1 || tr.Faults[0].Name != "rescale" || tr.Faults[0].Kind != "rescale" {
			t.Errorf("faults %+v", tr.Faults)
		}
		// The first of the two reports before the fault speaks of the time before it.
		near(t, m, "throughput_records_per_s", 1000)
		if tr.Correctness == nil || !tr.Correctness.Right() || tr.Correctness.Expected != 250 {
			t.Errorf("correctness %+v", tr.Correctness)
		}
		if tr.Options["execution.checkpointing.interval"] != "1s" {
			t.Errorf("options %v", tr.Options)
		}
		if *tr.Resources.NetBytes != 77 {
			t.Errorf("resources %+v", tr.Resources)
		}
		events := log.Events()
		if got := tr.Faults[0].T0Us; !hasFaultAt(events, got) {
			t.Errorf("t0 %d is no fault event", got)
		}
	})
}

func hasFaultAt(events []timeline.Event, us int64) bool {
	for _, e := range events {
		if e.Kind == timeline.Fault && e.T.Microseconds() == us {
			return true
		}
	}
	return false
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		f       *targettest.Target
		steps   string
		sets    []string
		outcome result.Outcome
		phase   string
		reason  string
	}{
		{"step timeout", &targettest.Target{}, `
[[scenario.step]]
name = "fill"
wait = { checkpoints = 5, in-flight = "1 MiB", timeout = "3s" }
`, nil, result.Timeout, "fill", "after 3s still missing: checkpoints (3 of 5), in-flight (0B of 1MiB)"},
		{"trial timeout", &targettest.Target{}, rescaleSteps, []string{"run.trial-timeout=2s", `scenario.step.fill.wait.checkpoints=50`}, result.Timeout, "fill", "the trial-timeout of 2s passed"},
		{"no restart", &targettest.Target{Bytes: 1 << 20, Mute: true}, rescaleSteps, nil, result.Timeout, "step-3", "running (no restart was seen since the fault)"},
		{"start fails", &targettest.Target{Startup: errors.New("no sockets")}, rescaleSteps, nil, result.Failed, "start", "no sockets"},
		{"unsupported", &targettest.Target{Startup: fmt.Errorf("rescale: %w", target.ErrUnsupported)}, rescaleSteps, nil, result.Unsupported, "start", "not supported"},
		{"lost", &targettest.Target{Bytes: 1 << 20, Output: &target.Output{Proved: true, Received: 9, Expected: 10, Lost: 1, Digest: "a", ExpectedDigest: "b"}}, rescaleSteps, nil,
			result.Incorrect, "finish", "10 records expected, 9 received, 1 lost, 0 duplicated; the digest is a, not b"},
		{"files left", &targettest.Target{Bytes: 1 << 20, Output: &target.Output{Wrong: []string{".part-x was left behind"}}}, rescaleSteps, nil, result.Incorrect, "finish", "wrong output: .part-x was left behind"},
		{"nothing", &targettest.Target{Bytes: 1 << 20, Output: &target.Output{Proved: true}}, rescaleSteps, nil, result.Failed, "finish", "produced nothing"},
		{"misconfigured", &targettest.Target{Bytes: 1 << 20, Options: map[string]any{"execution.checkpointing.unaligned.enabled": false}}, rescaleSteps, nil,
			result.Misconfigured, "finish", "execution.checkpointing.unaligned.enabled is false, not true"},
		{"not reported", &targettest.Target{Bytes: 1 << 20, Options: map[string]any{"execution.checkpointing.interval": nil}}, rescaleSteps, nil,
			result.Misconfigured, "finish", "execution.checkpointing.interval is not reported"},
		{"job dies", &targettest.Target{Bytes: 1 << 20, OnFault: func(j *targettest.Job) bool { j.End(errors.New("no restarts left")); return true }}, rescaleSteps, nil,
			result.Failed, "step-3", "the job failed: no restarts left"},
		{"job ends early", &targettest.Target{Bytes: 1 << 20, OnFault: func(j *targettest.Job) bool { j.End(nil); return true }}, rescaleSteps, nil,
			result.Failed, "step-3", "the job ended before"},
		{"close hangs", &targettest.Target{Bytes: 1 << 20, SlowClose: 2 * closeTimeout}, rescaleSteps, nil, result.Failed, "", "did not stop within 10s"},
		{"moment never comes", &targettest.Target{Bytes: 1 << 20}, rescaleSteps + `
[[scenario.step]]
name = "again"
do = "fail-task"
vertex = "out"
when = { during-recovery = true, timeout = "2s" }
`, nil, result.Timeout, "again", "no recovery is under way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, c.f, c.steps, func(tr *result.Trial, _ *timeline.Log) {
				if tr.Outcome != c.outcome || tr.Phase != c.phase || !strings.Contains(tr.Reason, c.reason) {
					t.Errorf("%s in %q: %s\nwant %s in %q: %s", tr.Outcome, tr.Phase, tr.Reason, c.outcome, c.phase, c.reason)
				}
				if len(tr.Metrics) > 0 || len(tr.Faults) > 0 {
					t.Errorf("a trial that is %s has metrics %v", tr.Outcome, tr.Metrics)
				}
			}, c.sets...)
		})
	}
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := fakeWorkload(rescaleSteps, "scenario.step.fill.wait.checkpoints=50")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(ErrInterrupted) })
		tr := Execution{Workload: w, Target: &targettest.Target{}, Folder: t.TempDir(), Log: timeline.New(), Stderr: &bytes.Buffer{}}.Run(ctx)
		if tr.Outcome != result.TrialInterrupted || tr.Phase != "fill" || tr.Reason != "interrupted" || tr.WallS != 1.5 {
			t.Errorf("%s in %q after %v s: %s", tr.Outcome, tr.Phase, tr.WallS, tr.Reason)
		}
	})
}

// TestSecondFaultInRecovery places a fault in the middle of a recovery: what
// the first fault did not reach is absent.
func TestSecondFaultInRecovery(t *testing.T) {
	f := &targettest.Target{Bytes: 1 << 20, Drain: 10 * time.Second, Path: "during"}
	play(t, f, `
[[scenario.step]]
wait = { checkpoints = 1 }
[[scenario.step]]
name = "first"
do = "kill-worker"
replace-after = "1s"
[[scenario.step]]
name = "second"
do = "fail-task"
vertex = "out"
when = { restored = 0.5 }
[[scenario.step]]
wait = { drained = true }
`, func(tr *result.Trial, log *timeline.Log) {
		if tr.Outcome != result.OK {
			t.Fatalf("%s: %s", tr.Outcome, tr.Reason)
		}
		if len(tr.Faults) != 2 {
			t.Fatalf("faults %+v", tr.Faults)
		}
		first, second := tr.Faults[0], tr.Faults[1]
		if _, ok := first.Metrics["time_to_drained_s"]; ok {
			t.Error("the first fault is drained, though the second came before")
		}
		near(t, first.Metrics, "time_to_running_s", 0.015)
		near(t, second.Metrics, "time_to_drained_s", 10.015)
		if gap := time.Duration(second.T0Us-first.T0Us) * time.Microsecond; gap < 5015*time.Millisecond || gap > 5018*time.Millisecond {
			t.Errorf("half of it is restored after 5.015 s, the fault came after %v", gap)
		}
		if _, ok := tr.Metrics["reprocessed_records"]; ok {
			t.Error("reprocessed records cannot be told apart with two faults")
		}
		if second.RecoveryPath != "during" {
			t.Errorf("recovery path %q", second.RecoveryPath)
		}
	})
}

func TestCheckpointInProgress(t *testing.T) {
	f := &targettest.Target{}
	play(t, f, `
[[scenario.step]]
wait = { checkpoints = 1, elapsed = "3500ms" }
[[scenario.step]]
name = "kill"
do = "fail-task"
vertex = "out"
when = { checkpoint = "in-progress" }
[[scenario.step]]
wait = { running = true }
[[scenario.step]]
do = "cancel"
`, func(tr *result.Trial, _ *timeline.Log) {
		if tr.Outcome != result.OK {
			t.Fatalf("%s: %s", tr.Outcome, tr.Reason)
		}
		if got, want := tr.Faults[0].T0Us, int64(4010000); got != want {
			t.Errorf("t0 %d, want %d: when the fifth checkpoint is triggered", got, want)
		}
		if tr.Correctness != nil {
			t.Error("a canceled job proves nothing")
		}
		// Nothing was in flight: drained is running.
		near(t, tr.Metrics, "time_to_drained_s", tr.Metrics["time_to_running_s"])
		if tr.RecoveryPath != "none" {
			t.Errorf("recovery path %q", tr.RecoveryPath)
		}
	})
}

// TestRandomChoices: equal blocks draw alike whatever else differs, other
// blocks and steps do not.
func TestRandomChoices(t *testing.T) {
	const steps = `
[[scenario.step]]
wait = { running = true }
[[scenario.step]]
name = "kill"
repeat = 5
do = "fail-task"
vertex = "out"
[[scenario.step]]
wait = { running = true }
`
	draw := func(block int, sets ...string) string {
		f := &targettest.Target{}
		synctest.Test(t, func(t *testing.T) {
			w, err := fakeWorkload(steps, append(sets, "workload.vertex.out.parallelism=16")...)
			if err != nil {
				t.Fatal(err)
			}
			tr := Execution{Workload: w, Target: f, Block: block, Folder: t.TempDir(), Log: timeline.New(), Stderr: &bytes.Buffer{}}.Run(t.Context())
			if tr.Outcome != result.OK {
				t.Fatalf("%s: %s", tr.Outcome, tr.Reason)
			}
		})
		var out []string
		for _, x := range f.Faults() {
			out = append(out, fmt.Sprintf("%s:%d", x.Step, x.Subtask))
		}
		return strings.Join(out, " ")
	}
	a := draw(0)
	if b := draw(0, `options."execution.checkpointing.unaligned.recover-output-on-downstream.enabled"=true`); a != b {
		t.Errorf("two cells of a block draw %s and %s", a, b)
	}
	if b := draw(1); a == b {
		t.Errorf("two blocks draw alike: %s", a)
	}
	if b := draw(0, "run.seed=9"); a == b {
		t.Errorf("two seeds draw alike: %s", a)
	}
	if !strings.HasPrefix(a, "kill:") || !strings.Contains(a, "kill#5:") {
		t.Errorf("drew %s", a)
	}
}

func TestAlignedInFlightIsWhatIsQueued(t *testing.T) {
	play(t, &targettest.Target{}, `
[[scenario.step]]
name = "fill"
wait = { in-flight = "1 MiB" }
`, func(tr *result.Trial, _ *timeline.Log) {
		if tr.Outcome != result.OK {
			t.Errorf("%s: %s", tr.Outcome, tr.Reason)
		}
	}, `options."execution.checkpointing.unaligned.enabled"=false`)
}

func TestSavepointsAndStart(t *testing.T) {
	play(t, &targettest.Target{}, `
[[scenario.step]]
wait = { records = 300 }
[[scenario.step]]
do = "savepoint"
[[scenario.step]]
do = "stop-with-savepoint"
`, func(tr *result.Trial, _ *timeline.Log) {
		if tr.Outcome != result.OK || tr.Correctness != nil {
			t.Fatalf("%s: %s", tr.Outcome, tr.Reason)
		}
		if len(tr.Faults) != 1 || tr.Faults[0].Name != "start" || tr.Faults[0].T0Us != 0 {
			t.Errorf("faults %+v", tr.Faults)
		}
		near(t, tr.Metrics, "throughput_records_per_s", 1000)
	}, `options."execution.state-recovery.path"=/chk`)
}

// A full disk that nobody asked for makes a trial slow and not wrong: what it
// measured is the disk.
//
// Fails if starved does not look at the reasons of failed checkpoints, or looks
// at those that a fault has brought about.
func TestFullDiskIsNoMeasurement(t *testing.T) {
	for _, c := range []struct {
		windows []Window
		detail  string
		failed  bool
	}{
		{nil, "chk-3: write: no space left on device", true},
		{nil, "chk-3: declined", false},
		{[]Window{{Kind: "rescale"}}, "sync: no space left on device", true},
		{[]Window{{Kind: "fail-storage"}}, "write: no space left on device", false},
	} {
		e := &execution{Execution: Execution{Log: timeline.New()}, windows: c.windows}
		ev := timeline.Of(timeline.CheckpointFailed)
		ev.Reason, ev.Detail = "FINALIZE_CHECKPOINT_FAILURE", c.detail
		e.Log.Add(ev)
		if err := e.check(); (err != nil) != c.failed {
			t.Errorf("%q with %v: %v", c.detail, c.windows, err)
		}
	}
}
