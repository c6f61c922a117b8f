package page

import (
	"slices"

	"benchrun/harness/result"
	"benchrun/reports/chart"
)

// finish is one attempt that finished, in seconds from submission.
type finish struct {
	task
	from, at, gone float64 // gone < 0: its work counts to the end
	records        int64
}

// progress makes the curve of useful work of a trial, and tells its last moment.
// Work is taken off at the fault before the task ran again.
func progress(s *story) (p chart.Progress, to float64) {
	begin := submission(s.events)
	at := func(us int64) float64 { return float64(us-begin) / 1e6 }
	for i, f := range s.trial.Faults {
		if d, ok := f.Metrics["control_recovery_s"]; ok {
			p.Outages = append(p.Outages, chart.Outage{From: at(f.T0Us), To: at(f.T0Us) + d})
		} else if d, ok := f.Metrics["time_to_parity_s"]; ok && f.Kind == result.KillMaster { // no task was left to run
			p.Outages = append(p.Outages, chart.Outage{From: at(f.T0Us), To: at(f.T0Us) + d})
		} else if f.Kind == result.KillMaster && i+1 < len(s.trial.Faults) { // the next fault came before a task ran
			p.Outages = append(p.Outages, chart.Outage{From: at(f.T0Us), To: at(s.trial.Faults[i+1].T0Us)})
		}
	}
	var all []*finish
	done, began := map[task]*finish{}, map[task]float64{}
	lastFault := -1.0
	for _, e := range s.events {
		t := task{e.Vertex, e.Subtask}
		to = max(to, at(e.TUs))
		switch {
		case e.Kind == "fault":
			lastFault = at(e.TUs)
			name := e.Detail
			if name == "" {
				name = e.State
			}
			p.Faults = append(p.Faults, chart.Mark{T: at(e.TUs), Text: name, Fault: true})
		case e.Kind == "job-state" && e.State == "FINISHED":
			end := at(e.TUs)
			p.End = &end
		case e.Kind == "task-state" && e.State == "DEPLOYING":
			began[t] = at(e.TUs)
			if old := done[t]; old != nil {
				old.gone = at(e.TUs)
				if lastFault >= old.at {
					old.gone = lastFault
				}
				delete(done, t)
			}
		case e.Kind == "task-state" && e.State == "FINISHED" && e.Records > 0 && done[t] == nil: // a new master tells old ends again
			f := &finish{t, began[t], at(e.TUs), -1, e.Records}
			all, done[t] = append(all, f), f
		}
	}
	if s.trial.Outcome != result.OK {
		p.Ended = string(s.trial.Outcome)
	}
	p.Steps = steps(all)
	return p, to
}

// submission is where the clock of a job's progress begins. Runs that are older than
// the event have a first state of the job.
func submission(events []result.Event) (us int64) {
	first := func(state string) int {
		return slices.IndexFunc(events, func(e result.Event) bool { return e.Kind == "job-state" && (state == "" || e.State == state) })
	}
	i := first("SUBMITTED")
	if i < 0 {
		i = first("")
	}
	if i < 0 {
		return 0
	}
	return events[i].TUs
}

// steps adds finished work up and takes off what was lost.
func steps(all []*finish) []chart.WorkStep {
	type change struct {
		t       float64
		records int64
	}
	var changes []change
	total := int64(0)
	for _, f := range all {
		changes = append(changes, change{f.at, f.records})
		if f.gone >= 0 {
			changes = append(changes, change{f.gone, -f.records})
		} else {
			total += f.records
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		switch {
		case a.t < b.t:
			return -1
		case a.t > b.t:
			return 1
		}
		return 0
	})
	if total == 0 {
		for _, f := range all { // nothing was left in the end: of all that there was
			total += f.records
		}
	}
	var out []chart.WorkStep
	sum := int64(0)
	for _, c := range changes {
		sum += c.records
		step := chart.WorkStep{T: c.t, Share: float64(sum) / float64(max(total, 1))}
		if n := len(out); n > 0 && out[n-1].T == c.t {
			out[n-1] = step
			continue
		}
		out = append(out, step)
	}
	return out
}
