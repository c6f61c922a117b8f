package trial

import (
	"fmt"
	"slices"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/timeline"
)

// What a number does not say of a trial that is ok: why there is none, and what else
// to know of it.

// lacks says at a moment of the timeline why a metric is absent.
func (e *execution) lacks(t *result.Trial, at time.Duration, metric, why string) {
	if t.Absent == nil {
		t.Absent = map[string]string{}
	}
	t.Absent[metric] = why
	e.say("%s is not known: %s (at %.3f s)", metric, why, at.Seconds())
}

// unrecovered says of each loss of a master after which no task was left to run
// that there was no control recovery.
func (e *execution) unrecovered(t *result.Trial, events []timeline.Event, end time.Duration) {
	const metric = "control_recovery_s"
	for i, f := range t.Faults {
		until := time.Duration(1<<63 - 1)
		if i+1 < len(e.windows) {
			until = e.windows[i+1].T0
		}
		if _, ok := f.Metrics[metric]; ok || f.Kind != result.KillMaster || end < e.windows[i].T0 || end >= until {
			continue
		}
		name := metric
		if i > 0 {
			name = f.Name + "." + metric
		}
		why := "the job ended before another master led"
		if slices.ContainsFunc(events, func(x timeline.Event) bool {
			return x.Kind == timeline.MasterElected && x.T >= e.windows[i].T0 && x.T <= end
		}) {
			why = "no task was left to run when the next master led"
		}
		e.lacks(t, end, name, why)
	}
}

// remark notes what else to know of a trial that is ok.
func (e *execution) remark(t *result.Trial, notes []string) {
	for _, n := range notes {
		e.say("%s", n)
	}
	t.Notes = append(t.Notes, notes...)
}

// outages are the times in which one thing could not be written.
type outages struct {
	since  time.Duration // of the one under way; negative: none is
	total  time.Duration
	times  int
	reason string // of the first
}

func (o *outages) over(at time.Duration) {
	if o.since >= 0 {
		o.total += max(0, at-o.since)
		o.since = -1
	}
}

// unprotected words for how long what had finished would have been lost with the
// master of a job, and why; end < 0: the job has not finished.
func unprotected(events []timeline.Event, end time.Duration) (notes []string) {
	toEnd := ", until the job's end"
	if end < 0 {
		toEnd, end = ", until the end of the trial", lastMoment(events)
	}
	seen := map[string]*outages{}
	var order, commits []string
	for _, e := range events {
		if e.Kind == timeline.MasterElected { // it tries anew
			for _, o := range seen {
				o.over(e.T)
			}
		}
		if e.Kind != timeline.JobState {
			continue
		}
		o := seen[e.Detail]
		switch {
		case e.State == timeline.Uncommitted:
			commits = append(commits, e.Reason)
		case e.State == timeline.Protected && o != nil:
			o.over(e.T)
		case e.State == timeline.Unprotected:
			if o == nil {
				o = &outages{since: -1, reason: e.Reason}
				seen[e.Detail], order = o, append(order, e.Detail)
			}
			if o.times++; o.since < 0 {
				o.since = e.T
			}
		}
	}
	for _, detail := range order {
		o := seen[detail]
		until := ""
		if o.since >= 0 {
			until = toEnd
		}
		o.over(end)
		if detail == "end" { // the end is all there is of it
			notes = append(notes, "the job ended without its log: "+brief(o.reason))
			continue
		}
		times := ""
		if o.times > 1 {
			times = fmt.Sprintf(", %d times", o.times)
		}
		notes = append(notes, fmt.Sprintf("%s for %.1f s%s%s: %s", unwritten(detail), o.total.Seconds(), times, until, brief(o.reason)))
	}
	if len(commits) > 0 {
		notes = append(notes, often("commits have failed", commits))
	}
	return notes
}

// lastMoment is that of a timeline.
func lastMoment(events []timeline.Event) (last time.Duration) {
	for _, e := range events {
		last = max(last, e.T)
	}
	return last
}

// unwritten says what the detail of an UNPROTECTED means.
func unwritten(detail string) string {
	switch detail {
	case "events":
		return "the log could not be written"
	case "result":
		return "the result of the job could not be written"
	case "output":
		return "what masters before had committed could not be taken back"
	case "backlog":
		return "the log could not keep up"
	}
	return "the job was unprotected (" + detail + ")"
}
