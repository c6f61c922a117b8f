package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"

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
		w.Batch = &table{ID: w.ID + "-batch", Caption: "What the recovery took and what was done again: medians; times in seconds"}
		w.medians(w.Batch, metrics)
		if slices.Contains(metrics, "reexecuted_fraction") {
			w.Batch.Note = "Done again is relative to all task-seconds that had finished at the fault, and so is its avoidable part: above 100 % where tasks took longer the second time. The durability gap is of finished tasks that the log did not tell the new master of; without job recovery there is no log, and no gap."
		}
	}
	w.work()
	w.controlPhases()
	w.doneAgain()
	w.recoveryCost()
}

// controlPhases draws how control came back: in each cell of the trial whose
// control recovery is nearest the median, so that the phases add up.
func (w *workloadView) controlPhases() {
	w.sums("phases-of-control", "From the loss of the master to the first task of the next", "in each cell the trial nearest the median of control recovery, which stands behind the bar with its 95 % interval; the time until the next master is started (down-for) is part of “"+short("recovery_elect_s")+"”",
		"s", recoveryPhases, func(i int, f faultView) (r chart.Sum, ok bool) {
			s, ok := w.stat(i, f.prefix+"control_recovery_s")
			if !ok {
				return r, false
			}
			t := w.nearest(i, f.prefix+"control_recovery_s", s.Median)
			for _, m := range recoveryPhases {
				var part *float64
				if v, ok := t.Value(f.prefix + m); ok {
					part = &v
				}
				r.Parts = append(r.Parts, part)
			}
			r.Note, r.Text = "trial "+t.Trial, quantityText(s)
			return r, true
		})
}

// doneAgain draws the share of the finished work that was done again, by cause.
func (w *workloadView) doneAgain() {
	w.sums("done-again", "Finished work that was done again", "task-seconds of what ran again, in percent of all task-seconds that had finished at the fault: medians with their 95 % intervals; above 100 % where tasks took longer the second time", "%",
		[]string{"unavoidable: output lost, or its input", "avoidable"}, func(i int, f faultView) (r chart.Sum, ok bool) {
			s, ok := w.stat(i, f.prefix+"reexecuted_fraction")
			avoidable := w.median(i, f.prefix+"avoidable_reexecuted_fraction")
			if !ok || avoidable == nil {
				return r, false
			}
			lost, rest := 100*max(0, s.Median-*avoidable), 100**avoidable
			r.Parts = []*float64{&lost, &rest}
			s, _ = asShare("reexecuted_fraction", s)
			r.Text = quantityText(s)
			return r, true
		})
}

// quantityText is a median with its interval, or the number of its samples.
func quantityText(s result.Stat) string {
	text := chart.Quantity(s.Median, s.Unit)
	if s.CILow != nil && s.CIHigh != nil && s.Min != s.Max {
		return text + " [" + chart.Number(*s.CILow, s.Unit) + " – " + chart.Number(*s.CIHigh, s.Unit) + "]"
	}
	return text + ", n = " + fmt.Sprint(s.N)
}

// nearest is the good trial of a column whose metric is nearest a value.
func (w *workloadView) nearest(i int, metric string, to float64) (best *result.Trial) {
	off := math.Inf(1)
	for j := range w.columns[i].Trials {
		t := &w.columns[i].Trials[j]
		if v, ok := t.Value(metric); ok && t.Outcome == result.OK && math.Abs(v-to) < off {
			best, off = t, math.Abs(v-to)
		}
	}
	return best
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

// sums draws a bar of parts for each fault of each column that has one. Without
// any there is no figure.
func (w *workloadView) sums(name, title, note, unit string, series []string, bar func(i int, f faultView) (chart.Sum, bool)) {
	words := slices.Clone(series)
	for j := range words {
		words[j] = short(words[j])
	}
	b := &chart.Stacked{Title: w.Name + ": " + lower(title), Unit: unit, Series: words}
	for _, f := range w.faults {
		for i := range w.columns {
			row, ok := bar(i, f)
			if !ok || !w.befell(i, f.name) {
				continue
			}
			row.Label = w.labels[i]
			if f.prefix != "" || len(w.faultNames(i)) > 1 {
				row.Label += " (" + f.name + ")"
			}
			b.Rows = append(b.Rows, row)
		}
	}
	if len(b.Rows) > 0 {
		w.addBatch(name, title, note, b, words...)
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
		ID: w.ID + "-recovery-cost", Caption: "What job recovery costs and what it saves: medians of the blocks, 95 % intervals",
		Head: []column{
			{Text: "steady overhead", Sub: "makespan, no fault", Title: metricOf("steady_overhead_ratio").Help}, {Text: "noise floor", Sub: "of so many pairs", Title: "how far the median of so many ratios is from 1 by chance, as neighbouring blocks without job recovery say"},
			{Text: "recording", Sub: "of the machine, same run", Title: metricOf("recording_overhead").Help}, {Text: "recovery efficiency", Sub: "1: only the outage was lost", Title: metricOf("recovery_efficiency").Help}, {Text: "blocks", Sub: "of planned"},
		},
		Note: "An overhead below the noise floor cannot be seen in makespans; what recording takes in the run itself can. An efficiency above 1: tasks went on through the outage.",
	}
	f := &chart.Forest{Title: w.Name + ": makespan with job recovery against without", Reference: w.reference(), Band: "noise floor", Groups: []chart.ForestGroup{{Better: "lower"}}}
	for i := range w.columns {
		for _, d := range derived[w.columns[i].Name] {
			w.derivation(i, d, t, f)
		}
	}
	w.RecoveryCost = t
	if len(f.Groups[0].Rows) > 0 {
		w.addBatch("overhead", "What job recovery costs where nothing happens", "ratios of makespans within blocks with their interval; shaded: the noise floor, which neighbouring blocks without job recovery give", f)
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
	recording := none
	if _, ok := w.stat(i, "recording_overhead"); ok {
		recording = w.medianCell(i, "recording_overhead")
	}
	write := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	overhead := d.Metric == "steady_overhead_ratio"
	if overhead {
		write = changed
	}
	value := cell{Text: write(x.Median), Title: fmt.Sprintf("%s: median %v", d.Metric, x.Median)}
	if x.CI != nil {
		value.Sub = "[" + write(x.CI.Low) + " – " + write(x.CI.High) + "]"
	}
	r := row{Label: w.labels[i], Title: c.Name}
	blocks := cell{Text: fmt.Sprintf("%d of %d", len(d.Values), c.Planned)}
	if !overhead {
		r.Cells = []cell{none, none, recording, value, blocks}
		t.Rows = append(t.Rows, r)
		return
	}
	floor := none
	e := chart.Effect{Label: w.labels[i], Ratio: &x.Median, N: len(d.Values), Planned: c.Planned, Verdict: string(verdict.Inconclusive)}
	if k := w.twin(i); k >= 0 {
		e.Verdict = string(verdict.Against(w.run, c, &w.columns[k], "makespan_s", w.thresholds, 1).Verdict)
	}
	if v, ok := w.floor(d); ok {
		floor = cell{Text: "±" + share(v-1)}
		e.Band = v - 1
	}
	if x.CI != nil {
		e.Low, e.High = &x.CI.Low, &x.CI.High
	}
	f.Groups[0].Rows = append(f.Groups[0].Rows, e)
	r.Cells = []cell{value, floor, recording, none, blocks}
	t.Rows = append(t.Rows, r)
}

// share writes a small part of a whole.
func share(v float64) string { return chart.Number(100*v, "%") + " %" }
