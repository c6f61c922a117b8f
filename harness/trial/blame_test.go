package trial

import (
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
)

// A job that fails in a loop: what it failed from is in the reason of the trial that
// ran out of time.
//
// Fails if restarts that were asked for count, if the first failure is left out when it
// was another one, or if a failure that restarts a region alone is not seen.
func TestFailures(t *testing.T) {
	restart := func(reason string) timeline.Event { return timeline.Job("RESTARTING", reason) }
	failed := func(subtask int, reason string) timeline.Event {
		e := timeline.Task(timeline.TaskState, "files", subtask, 1)
		e.State, e.Reason = "FAILED", reason
		return e
	}
	const disk, net = "files (1/4): operator files: mkdir /x: not a directory", "files (2/4): connection reset"
	for name, c := range map[string]struct {
		events []timeline.Event
		want   string
	}{
		"none":          {nil, ""},
		"asked for":     {[]timeline.Event{restart(""), timeline.Job("RUNNING", "")}, ""},
		"one":           {[]timeline.Event{failed(0, "no"), restart(disk)}, "the job has restarted once: " + disk},
		"the same":      {[]timeline.Event{restart(strings.Replace(disk, "1/4", "3/4", 1)), restart(""), restart(disk)}, "the job has restarted 2 times, last: " + disk},
		"another first": {[]timeline.Event{restart(net), restart(disk), restart(disk)}, "the job has restarted 3 times, first: " + net + "; last: " + disk},
		"a region":      {[]timeline.Event{failed(0, "no"), failed(1, "no\nstack")}, "tasks have failed 2 times, last: files/1: no"},
		"endless":       {[]timeline.Event{restart(strings.Repeat("ö", 400))}, "the job has restarted once: " + strings.Repeat("ö", 300) + " …"},
	} {
		if got := failures(c.events); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Fails if the reason of the trial, or its log, does not have it.
func TestTimeoutNamesTheFailures(t *testing.T) {
	f := &targettest.Target{Bytes: 1 << 20, OnFault: func(j *targettest.Job) bool {
		for range 3 {
			j.Tell(timeline.Job("RESTARTING", "slow (1/4): out of patience"))
		}
		return true
	}}
	playLogged(t, f, fakeHead+rescaleSteps, func(tr *result.Trial, said string) {
		want := "; the job has restarted 3 times, last: slow (1/4): out of patience"
		if tr.Outcome != result.Timeout || !strings.HasSuffix(tr.Reason, want) || !strings.Contains(said, want) {
			t.Errorf("%s in %s: %s\n%.300s", tr.Outcome, tr.Phase, tr.Reason, said)
		}
	})
}
