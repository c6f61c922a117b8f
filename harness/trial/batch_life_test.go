package trial

import (
	"testing"
	"time"

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
