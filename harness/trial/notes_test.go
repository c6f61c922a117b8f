package trial

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
)

// TestUnprotected: for how long the log could not be written is a note of the trial.
//
// Fails if a time that nobody ends does not reach to the end of the job, if one that a
// new master has ended does, if several count as one that lasts, or if different
// things that fail are one, or if one of a job that did not finish lasts no time.
func TestUnprotected(t *testing.T) {
	at := func(ms time.Duration, e timeline.Event, detail string) timeline.Event {
		e.T, e.Detail = ms*time.Millisecond, detail
		return e
	}
	off := func(ms time.Duration, detail string) timeline.Event {
		return at(ms, timeline.Job(timeline.Unprotected, "input/output error"), detail)
	}
	on := func(ms time.Duration, detail string) timeline.Event {
		return at(ms, timeline.Job(timeline.Protected, ""), detail)
	}
	for name, c := range map[string]struct {
		events []timeline.Event
		want   []string
	}{
		"never":   {[]timeline.Event{on(10, "events")}, nil},
		"a while": {[]timeline.Event{off(1000, "events"), on(4200, "events")}, []string{"the log could not be written for 3.2 s: input/output error"}},
		"to the end": {[]timeline.Event{off(1000, "events")},
			[]string{"the log could not be written for 9.0 s, until the job's end: input/output error"}},
		"to the next master": {[]timeline.Event{off(1000, "events"), at(3000, timeline.Of(timeline.MasterElected), "epoch 2")},
			[]string{"the log could not be written for 2.0 s: input/output error"}},
		"twice": {[]timeline.Event{off(1000, "events"), on(1500, "events"), off(5000, "events"), on(5500, "events")},
			[]string{"the log could not be written for 1.0 s, 2 times: input/output error"}},
		"two things": {[]timeline.Event{off(1000, "events"), off(2000, "result"), on(3000, "events"), on(4000, "result")},
			[]string{"the log could not be written for 2.0 s: input/output error", "the result of the job could not be written for 2.0 s: input/output error"}},
		"given up": {[]timeline.Event{off(1000, "end")}, []string{"the job ended without its log: input/output error"}},
		"commits":  {[]timeline.Event{at(1000, timeline.Job(timeline.Uncommitted, "no space"), "0 committed, 4 not")}, []string{"commits have failed once: no space"}},
	} {
		if got := unprotected(c.events, 10*time.Second); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	cancelled := []timeline.Event{off(1000, "events"), at(4500, timeline.Task(timeline.TaskState, "sum", 0, 1), "")}
	want := []string{"the log could not be written for 3.5 s, until the end of the trial: input/output error"}
	if got := unprotected(cancelled, -1); !slices.Equal(got, want) {
		t.Errorf("of a job that did not finish: %q", got)
	}
}

// Why there is no control recovery.
//
// Fails if a master of another window, or one that came after the end of the job, counts
// as one that led.
func TestUnrecovered(t *testing.T) {
	elected := func(ms time.Duration) timeline.Event {
		e := timeline.Of(timeline.MasterElected)
		e.T = ms * time.Millisecond
		return e
	}
	const led, nobody = "no task was left to run when the next master led", "the job ended before another master led"
	for name, c := range map[string]struct {
		events []timeline.Event
		end    time.Duration
		want   map[string]string
	}{
		"led":             {[]timeline.Event{elected(10), elected(2500)}, 3000, map[string]string{"again.control_recovery_s": led}},
		"nobody":          {[]timeline.Event{elected(10), elected(1500)}, 3000, map[string]string{"again.control_recovery_s": nobody}},
		"after the end":   {[]timeline.Event{elected(10), elected(3500)}, 3000, map[string]string{"again.control_recovery_s": nobody}},
		"the first fault": {[]timeline.Event{elected(10), elected(1500)}, 1800, map[string]string{"control_recovery_s": led}},
		"not finished":    {[]timeline.Event{elected(10), elected(2500)}, -1, nil},
	} {
		end := c.end
		if end > 0 {
			end *= time.Millisecond
		}
		e := &execution{Execution: Execution{Log: timeline.New(), Stderr: io.Discard}, windows: []Window{{Name: "kill", Kind: result.KillMaster, T0: time.Second}, {Name: "again", Kind: result.KillMaster, T0: 2 * time.Second}}}
		tr := &result.Trial{Faults: []result.Fault{{Name: "kill", Kind: result.KillMaster}, {Name: "again", Kind: result.KillMaster}}}
		if e.unrecovered(tr, c.events, end); !maps.Equal(tr.Absent, c.want) {
			t.Errorf("%s: %q", name, tr.Absent)
		}
	}
}

// Fails if the trial, or its log, does not have the note.
func TestTrialHasItsNotes(t *testing.T) {
	off := timeline.Job(timeline.Unprotected, "input/output error")
	off.Detail = "events"
	f := &targettest.Target{Batch: targettest.Batch{Tells: []timeline.Event{off}}}
	steps := "[[scenario.step]]\ndo = \"finish\"\n"
	playLogged(t, f, batchHead+steps, func(tr *result.Trial, said string) {
		want := "the log could not be written for 3.0 s, until the job's end: input/output error"
		if tr.Outcome != result.OK || !slices.Equal(tr.Notes, []string{want}) || !strings.Contains(said, want) {
			t.Errorf("%s %s: %q, said %s", tr.Outcome, tr.Reason, tr.Notes, said)
		}
	})
}
