package trial

import (
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
// things that fail are one.
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
