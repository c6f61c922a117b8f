package trial

import (
	"errors"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
)

// A master that dies at once takes along what it said of the job; the time until
// the next one is a part of the makespan all the same.
//
// Fails if the first state of the job that a master tells is the beginning.
func TestMakespanCountsAnOutageAtTheBeginning(t *testing.T) {
	state := func(at time.Duration, s string) timeline.Event {
		e := timeline.Job(s, "")
		e.T = at * time.Millisecond
		return e
	}
	next := []timeline.Event{state(600, timeline.Suspended), state(700, "CREATED"), state(700, "RUNNING"), state(2000, "FINISHED")}
	for name, c := range map[string]struct {
		events     []timeline.Event
		begin, end time.Duration
	}{
		"its words are lost":     {append([]timeline.Event{state(100, timeline.Submitted)}, next...), 100, 2000},
		"its words are there":    {append([]timeline.Event{state(100, timeline.Submitted), state(150, "CREATED")}, next...), 100, 2000},
		"no submission noted":    {next, 40, 2000},
		"the job never ended":    {[]timeline.Event{state(100, timeline.Submitted), state(150, "CREATED")}, 100, -1},
		"nothing is known of it": {nil, 40, -1},
	} {
		begin, end := life(c.events, 40*time.Millisecond)
		if end >= 0 {
			end /= time.Millisecond
		}
		if begin/time.Millisecond != c.begin || end != c.end {
			t.Errorf("%s: from %v to %v, not from %v to %v", name, begin/time.Millisecond, end, c.begin, c.end)
		}
	}
}

// All tasks have finished when the next master leads: it has nothing to run, which is
// the best that can come of a recovery. What waits for the job to go on is content;
// there is no control recovery, and says so.
//
// Fails if such a wait asks for a running task, or for progress that the counter does
// not show, if a fault may hit a job that is over, if an end that is not a good one contents it, or if the outage then has no
// end (metrics: idle).
func TestNothingIsLeftToRun(t *testing.T) {
	steps := func(late string) string {
		kill, _, _ := strings.Cut(killSteps, "[[scenario.step]]\nwait = { running")
		return kill + `[[scenario.step]]
name = "late"
` + late + `
[[scenario.step]]
do = "finish"
`
	}
	for name, x := range map[string]struct {
		late string
		err  error
		want string // of the reason; empty: ok
	}{
		"running":          {"wait = { running = true }", nil, ""},
		"progress":         {"wait = { progress = 1.0 }", nil, ""},
		"something else":   {`wait = { running = true, elapsed = "1h", timeout = "2h" }`, nil, `the job ended before the step "late" was over, still missing: elapsed`},
		"it ended in ruin": {"wait = { running = true }", errors.New("ruin"), "the job failed: ruin"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &targettest.Target{Batch: targettest.Batch{Outlast: true, Err: x.err}}
			playBatch(t, f, steps(x.late), func(tr *result.Trial, log *timeline.Log) {
				if x.want != "" {
					if tr.Outcome != result.Failed || tr.Phase != "late" || tr.Reason != x.want {
						t.Errorf("%s in %s: %s", tr.Outcome, tr.Phase, tr.Reason)
					}
					return
				}
				if tr.Outcome != result.OK {
					t.Fatalf("%s in %s: %s", tr.Outcome, tr.Phase, tr.Reason)
				}
				if v, ok := tr.Metrics["control_recovery_s"]; ok {
					t.Errorf("control_recovery_s = %v although nothing ran", v)
				}
				if why := tr.Absent["control_recovery_s"]; why != "no task was left to run when the next master led" {
					t.Errorf("it is absent because %q", why)
				}
				near(t, tr.Metrics, "time_to_parity_s", 0.23) // down, replayed, inventory known
				near(t, tr.Metrics, "reexecuted_fraction", 0)
			})
		})
	}
}

// A fault that comes when the job is over disturbs nothing: the trial did not do what
// its scenario says.
//
// Fails if the fault is tried all the same.
func TestFaultAfterTheEndOfTheJob(t *testing.T) {
	steps := killSteps + `[[scenario.step]]
name = "late"
do = "kill-worker"
worker = 0
[[scenario.step]]
do = "finish"
`
	f := &targettest.Target{Batch: targettest.Batch{Outlast: true}}
	playBatch(t, f, steps, func(tr *result.Trial, log *timeline.Log) {
		want := `the job ended before the step "late" was over, and there is nothing left to disturb`
		if tr.Outcome != result.Failed || tr.Phase != "late" || tr.Reason != want {
			t.Errorf("%s in %s: %s", tr.Outcome, tr.Phase, tr.Reason)
		}
	})
}
