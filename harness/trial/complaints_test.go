package trial

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// What users of other tools complained about, each with what must not happen
// here.

// TestB01EachTrialIsWrittenAtOnce (sharkdp/hyperfine#306): results were written
// at the end only, and a target that cannot be written was found out last.
//
// Fails if AppendTrial is called after the last trial instead of after each,
// or if Begin does not create the run folder.
func TestB01EachTrialIsWrittenAtOnce(t *testing.T) {
	c := begin(t, "0", "1")
	w := &atEachBegin{dir: c.Folder.Dir()}
	c.Watch = w
	if err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, lines := range w.lines {
		if lines != n {
			t.Errorf("when trial %d began, %d lines were on disk", n+1, lines)
		}
	}

	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := spec.Parse("fake.toml", "/dir", []byte(fakeHead+quickSteps), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(plan.Input{Files: []*spec.File{f}})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Session{Out: filepath.Join(file, "runs"), Plan: p, Self: exe}).Begin(time.Now()); !errors.Is(err, ErrRefused) {
		t.Errorf("a run into a file begins: %v", err)
	}
}

// atEachBegin counts the lines of trials.jsonl whenever a trial begins.
type atEachBegin struct {
	watch
	dir   string
	lines []int
}

func (w *atEachBegin) Begin(result.Slot, string, int, int) {
	b, err := os.ReadFile(filepath.Join(w.dir, "trials.jsonl"))
	if err != nil {
		panic(err)
	}
	w.lines = append(w.lines, strings.Count(string(b), "\n"))
}

// TestB03CtrlCStopsTheWholeRun (distributed-system-analysis/pbench#1642): Ctrl-C
// ended one iteration, and the matrix went on.
//
// Fails if all does not look at the context before each slot.
func TestB03CtrlCStopsTheWholeRun(t *testing.T) {
	c := begin(t, "0", "2")
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &cancelAtStep{cancel: cancel}
	c.Watch = w
	if err := c.Execute(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("error %v", err)
	}
	l, err := result.Load(c.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(w.begun) != 1 || len(l.Lines) != 1 || l.Lines[0].Outcome != result.TrialInterrupted || l.Run.State != result.Interrupted || len(l.Missing) != 12 {
		t.Errorf("%d trials begun, lines %+v, state %s, %d missing", len(w.begun), l.Lines, l.Run.State, len(l.Missing))
	}
}

type cancelAtStep struct {
	watch
	cancel context.CancelCauseFunc
}

func (w *cancelAtStep) Phase(string) { w.cancel(ErrInterrupted) }

// TestB28ClockStartsAtTheFault (Nexmark V2): the clock of the recovery started
// when the client had returned from its submission, and went in steps of 3 s.
//
// Fails if Measure counts from the end of Inject, from the job's start, or from
// anything that is not the fault's own event.
func TestB28ClockStartsAtTheFault(t *testing.T) {
	f := &targettest.Target{Bytes: 1 << 20, Drain: 3 * time.Second, Path: "downstream"}
	play(t, f, rescaleSteps, func(tr *result.Trial, log *timeline.Log) {
		var fault, running time.Duration
		for _, e := range log.Events() {
			switch {
			case e.Kind == timeline.Fault:
				fault = e.T
			case e.Kind == timeline.TaskState && e.State == "RUNNING":
				running = e.T
			}
		}
		near(t, tr.Metrics, "time_to_running_s", (running - fault).Seconds())
		if tr.Faults[0].T0Us != fault.Microseconds() || fault == 0 {
			t.Errorf("t0 is %d us, the fault came at %s", tr.Faults[0].T0Us, fault)
		}
	})
	for _, m := range result.Metrics() {
		if m.Resolution <= 0 {
			t.Errorf("%s has no resolution", m.Name)
		}
	}
}

// TestB29NoMetricWithoutItsEvents (apache/flink-benchmarks#34): a benchmark of
// checkpoints timed the submission of the job.
//
// Fails if Measure takes a completed checkpoint of before the fault, or one that
// a task of the new execution did not acknowledge.
func TestB29NoMetricWithoutItsEvents(t *testing.T) {
	f := &targettest.Target{Bytes: 1 << 20, Drain: 30 * time.Second, Path: "downstream"}
	steps := strings.Replace(rescaleSteps, "running = true, first-checkpoint = true, drained = true", "running = true", 1)
	play(t, f, steps, func(tr *result.Trial, log *timeline.Log) {
		complete := 0
		for _, e := range log.Events() {
			if e.Kind == timeline.CheckpointCompleted && e.T.Microseconds() > tr.Faults[0].T0Us && e.T < log.Now() {
				complete++
			}
		}
		if _, there := tr.Metrics["time_to_drained_s"]; there {
			t.Error("drained is measured although nothing was drained")
		}
		if _, there := tr.Metrics["time_to_first_checkpoint_s"]; there && complete == 0 {
			t.Error("a first checkpoint is measured although none completed")
		}
	})
}

// TestB30EveryWaitEnds (apache/flink-benchmarks#32): a benchmark waited for
// back-pressure for ever.
//
// Fails if a wait without a time-out of its own has none.
func TestB30EveryWaitEnds(t *testing.T) {
	for _, condition := range []string{"checkpoints = 1000000", `in-flight = "1300 KiB"`, "records = 1000000000", "first-checkpoint = true"} {
		steps := strings.Replace(rescaleSteps, `checkpoints = 2, in-flight = "1 MiB"`, condition, 1)
		f := &targettest.Target{Bytes: 1 << 20, OnFault: func(*targettest.Job) bool { return true }}
		if condition == "first-checkpoint = true" {
			steps = strings.Replace(rescaleSteps, "running = true, first-checkpoint = true, drained = true", condition, 1)
			f.Mute = true
		}
		play(t, f, steps, func(tr *result.Trial, _ *timeline.Log) {
			if tr.Outcome != result.Timeout || tr.Phase == "" || len(tr.Metrics) > 0 {
				t.Errorf("%s: %s in %q: %s, metrics %v", condition, tr.Outcome, tr.Phase, tr.Reason, tr.Metrics)
			}
		})
	}
}
