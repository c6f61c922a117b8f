package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// batchMetrics tell what the loss of a master or of data cost a batch job.
var batchMetrics = []string{
	"control_recovery_s", "time_to_parity_s", "reexecuted_fraction", "avoidable_reexecuted_fraction",
	"durability_gap_tasks", "wasted_bytes", "leftover_bytes", "event_log_bytes", "recording_overhead",
}

// recoveryPhases are the parts of control_recovery_s, in their order.
var recoveryPhases = []string{"detect_s", "recovery_elect_s", "recovery_replay_s", "recovery_wait_s", "recovery_schedule_s"}

// batch draws what a batch job lost and made again, and makes its tables. The
// stories are those of the typical trials, by column.
func (w *workloadView) batch() {
	if metrics := w.everywhere(batchMetrics); len(metrics) > 0 {
		w.Batch = &table{ID: w.ID + "-batch", Caption: "Batch: what the recovery took and what was done again, medians; times in seconds"}
		w.medians(w.Batch, metrics)
	}
	w.work()
	w.sums("phases-of-control", "From the loss of the master to the first task of the next: medians of the phases", "s", "no master was lost", recoveryPhases, func(i int, prefix string) []*float64 {
		if _, ok := w.stat(i, prefix+"control_recovery_s"); !ok {
			return nil
		}
		var parts []*float64
		for _, m := range recoveryPhases {
			parts = append(parts, w.median(i, prefix+m))
		}
		return parts
	})
	w.sums("done-again", "Work done again, of what had finished at the fault: medians", "ratio", "nothing had finished, or nothing was lost", []string{"output lost", "output still there: avoidable"}, func(i int, prefix string) []*float64 {
		all, avoidable := w.median(i, prefix+"reexecuted_fraction"), w.median(i, prefix+"avoidable_reexecuted_fraction")
		if all == nil || avoidable == nil {
			return nil
		}
		lost := max(0, *all-*avoidable)
		return []*float64{&lost, avoidable}
	})
	w.recoveryCost()
}

// median is that of a metric in a column; nil: no samples.
func (w *workloadView) median(i int, metric string) *float64 {
	s, ok := w.stat(i, metric)
	if !ok {
		return nil
	}
	return &s.Median
}

// work draws the useful work of one trial a cell.
func (w *workloadView) work() {
	if w.spec.Mode != "batch" {
		return
	}
	c := &chart.Work{Title: w.Name + ": useful work, one trial a cell"}
	for i, s := range w.stories {
		if s == nil {
			continue
		}
		p, to := progress(s)
		p.Label = w.labels[i]
		c.To = max(c.To, to)
		c.Rows = append(c.Rows, p)
	}
	if len(c.Rows) == 0 {
		return
	}
	c.To *= 1.03
	w.addBatch("work", "How far the job got: one trial a cell", "records of finished tasks whose output is still there, of all in the end; work that a fault made tasks do again is taken off at the fault", c)
}

// svgPicture is a picture that also goes into the page.
type svgPicture interface {
	picture
	SVG() string
}

func (w *workloadView) addBatch(name, title, note string, p svgPicture, series ...string) {
	w.BatchFigures = append(w.BatchFigures, figure{ID: w.ID + "-" + name, Title: title, Note: note, Series: series, File: plotName(w.Name, name), SVG: template.HTML(p.SVG()), picture: p})
}

// sums draws a bar of parts for each fault of each column. Without any there is
// no figure.
func (w *workloadView) sums(name, title, unit, why string, series []string, parts func(i int, prefix string) []*float64) {
	words := slices.Clone(series)
	for j := range words {
		words[j] = short(words[j])
	}
	b := &chart.Stacked{Title: w.Name + ": " + lower(title), Unit: unit, Series: words}
	any := false
	for k, f := range w.faults {
		for i := range w.columns {
			row := chart.Sum{Label: w.labels[i], Parts: parts(i, f.prefix), Why: why}
			if k > 0 {
				if row.Parts == nil {
					continue
				}
				row.Label += ", " + f.name
			}
			any = any || row.Parts != nil
			b.Rows = append(b.Rows, row)
		}
	}
	if any {
		w.addBatch(name, title, "", b, words...)
	}
}

// recoveryCost shows what takes several trials of a block: the overhead of job
// recovery with the noise that it is seen against, and what it saves.
func (w *workloadView) recoveryCost() {
	derived := verdict.Derive(w.spec, w.columns)
	if len(derived) == 0 {
		return
	}
	t := &table{
		ID: w.ID + "-recovery-cost", Caption: "What job recovery costs and what it saves: medians of the blocks",
		Head: []column{
			{Text: "steady overhead", Sub: "makespan with / without", Title: metricOf("steady_overhead_ratio").Help}, {Text: "noise floor", Sub: "of so many pairs", Title: "how far the median of so many ratios is from 1 by chance, as neighbouring blocks without job recovery say"},
			{Text: "recording", Sub: "of the machine, same run", Title: metricOf("recording_overhead").Help}, {Text: "recovery efficiency", Sub: "1: only the outage was lost", Title: metricOf("recovery_efficiency").Help}, {Text: "pairs", Sub: "of planned"},
		},
		Note: "An overhead below the noise floor cannot be seen in makespans; what recording takes in the run itself can.",
	}
	f := &chart.Forest{Title: w.Name + ": makespan with job recovery against without", Reference: "the same without job recovery", Band: "noise floor", Groups: []chart.ForestGroup{{Better: "lower"}}}
	for i := range w.columns {
		for _, d := range derived[w.columns[i].Name] {
			w.derivation(i, d, t, f)
		}
	}
	w.RecoveryCost = t
	if len(f.Groups[0].Rows) > 0 {
		w.addBatch("overhead", "What job recovery costs where nothing happens", "ratios of makespans within blocks; shaded: the noise floor", f)
	}
}

// derivation adds a derived metric of a column to the table and the chart.
func (w *workloadView) derivation(i int, d verdict.Derivation, t *table, f *chart.Forest) {
	c := &w.columns[i]
	x, ok := stats.Describe(d.Values)
	if !ok {
		return
	}
	none := cell{Text: "–", Class: "dim"}
	value := cell{Text: chart.Number(x.Median, "ratio"), Title: d.Metric}
	if x.CI != nil {
		value.Sub = "[" + chart.Number(x.CI.Low, "ratio") + " – " + chart.Number(x.CI.High, "ratio") + "]"
	}
	recording := none
	if m := w.median(i, "recording_overhead"); m != nil {
		recording = cell{Text: share(*m)}
	}
	r := row{Label: w.labels[i], Title: c.Name}
	pairs := cell{Text: fmt.Sprintf("%d of %d", len(d.Values), c.Planned)}
	if d.Metric != "steady_overhead_ratio" {
		r.Cells = []cell{none, none, recording, value, pairs}
		t.Rows = append(t.Rows, r)
		return
	}
	floor := none
	base := slices.IndexFunc(w.columns, func(x verdict.Column) bool { return x.Name == d.Base })
	e := chart.Effect{Label: w.labels[i], Ratio: &x.Median, N: len(d.Values), Planned: c.Planned, Verdict: string(verdict.Inconclusive)}
	if base >= 0 {
		e.Verdict = string(verdict.Against(w.run, c, &w.columns[base], "makespan_s", w.thresholds).Verdict)
		if v, ok := verdict.NoiseFloor(&w.columns[base], len(d.Values)); ok {
			floor = cell{Text: "±" + share(v-1)}
			e.Band = v - 1
		}
	}
	if x.CI != nil {
		e.Low, e.High = &x.CI.Low, &x.CI.High
	}
	f.Groups[0].Rows = append(f.Groups[0].Rows, e)
	r.Cells = []cell{value, floor, recording, none, pairs}
	t.Rows = append(t.Rows, r)
}

// share writes a small part of a whole.
func share(v float64) string { return chart.Number(100*v, "%") + " %" }

// finish is one attempt that finished, in seconds from submission.
type finish struct {
	task
	from, at, gone float64 // gone < 0: its work counts to the end
	records        int64
}

// progress makes the curve of useful work of a trial, and tells its last moment.
// Work is taken off at the fault before the task ran again.
func progress(s *story) (p chart.Progress, to float64) {
	begin := int64(0)
	if i := slices.IndexFunc(s.events, func(e result.Event) bool { return e.Kind == "job-state" }); i >= 0 {
		begin = s.events[i].TUs
	}
	at := func(us int64) float64 { return float64(us-begin) / 1e6 }
	faults := map[string]result.Fault{}
	for _, f := range s.trial.Faults {
		faults[f.Name] = f
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
			if d, ok := faults[e.Detail].Metrics["control_recovery_s"]; ok {
				p.Outages = append(p.Outages, chart.Outage{From: at(e.TUs), To: at(e.TUs) + d})
			}
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
		case e.Kind == "task-state" && e.State == "FINISHED" && e.Records > 0:
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

// batchLabels name the cells of a batch workload: one in which nothing happens
// by that, and axes of the scenario that are the same in all others not at all.
func (w *workloadView) batchLabels() {
	if w.spec.Mode != "batch" || len(w.spec.ScenarioAxes) == 0 {
		return
	}
	faulty := func(c *verdict.Column) bool {
		return slices.ContainsFunc(c.Trials, func(t result.Trial) bool { return len(t.Faults) > 0 })
	}
	values := map[string]map[string]bool{}
	some := false
	for i := range w.columns {
		c := &w.columns[i]
		if !faulty(c) {
			continue
		}
		some = true
		for _, axis := range w.spec.ScenarioAxes {
			if values[axis] == nil {
				values[axis] = map[string]bool{}
			}
			values[axis][fmt.Sprint(c.Flags[axis])] = true
		}
	}
	if !some {
		return
	}
	for i := range w.columns {
		c := &w.columns[i]
		quiet := !faulty(c) && slices.ContainsFunc(c.Trials, func(t result.Trial) bool { return t.Outcome == result.OK })
		var keep []string
		for pair := range strings.SplitSeq(c.Cell, ",") {
			name, _, _ := strings.Cut(pair, "=")
			if slices.Contains(w.spec.ScenarioAxes, name) && (quiet || len(values[name]) < 2) {
				continue
			}
			keep = append(keep, pair)
		}
		name := label(strings.Join(keep, ","))
		if quiet {
			name += ", no fault"
		}
		if c.Name != c.Cell {
			name += " @ " + c.Build
		}
		if !slices.Contains(w.labels[:i], name) {
			w.labels[i] = name
		}
	}
}

// batchHeadline says what the same fault cost with and without job recovery: of
// the pair of cells in which a restart costs most. Cells with a fault and without
// one are no rivals. It tells whether there is such a pair.
func (w *workloadView) batchHeadline() bool {
	best, other, free := -1, -1, -1
	slowest := 0.0
	for i := range w.columns {
		c := &w.columns[i]
		if c.Flags["J"] != true || !strings.Contains(noun(w.faultOf(i)), "loss") {
			continue
		}
		for k := range w.columns {
			x := &w.columns[k]
			same := x.Build == c.Build && x.Flags["J"] == false && w.faultOf(k) != ""
			for name, v := range c.Flags {
				same = same && (name == "J" || x.Flags[name] == v)
			}
			if a, b := w.median(i, "makespan_s"), w.median(k, "makespan_s"); same && a != nil && b != nil && *b > slowest {
				best, other, slowest = i, k, *b
			}
		}
	}
	if best < 0 {
		return false
	}
	for i := range w.columns {
		if w.faultOf(i) == "" && w.columns[i].Flags["J"] == false && w.median(i, "makespan_s") != nil {
			free = i
		}
	}
	say := func(i int) string { return rough(*w.median(i, "makespan_s"), "s") }
	text := fmt.Sprintf("After %s the job took %s with job recovery (%s) and %s without.", noun(w.faultOf(best)), say(best), w.labels[best], say(other))
	if free >= 0 {
		text += fmt.Sprintf(" Undisturbed it takes %s.", say(free))
	}
	w.Headline = append(w.Headline, text)
	if v := w.median(best, "avoidable_reexecuted_fraction"); v != nil {
		if *v == 0 {
			w.Headline = append(w.Headline, "With job recovery nothing was done again whose output was still there.")
		} else {
			w.Headline = append(w.Headline, fmt.Sprintf("With job recovery %s of the finished work was done again although its output was still there.", share(*v)))
		}
	}
	return true
}

// faultOf is the kind of the first fault of a column's trials; empty: none.
func (w *workloadView) faultOf(i int) string {
	for _, t := range w.columns[i].Trials {
		if t.Outcome == result.OK && len(t.Faults) > 0 {
			return t.Faults[0].Kind
		}
	}
	return ""
}
