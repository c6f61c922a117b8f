package page

import (
	"fmt"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// results makes the table of times.
func (w *workloadView) results() {
	metrics := slices.Clone(together)
	if w.spec.Mode == "batch" {
		metrics = w.everywhere(append(together[:len(together):len(together)], "makespan_s", "control_recovery_s", "time_to_parity_s", "avoidable_reexecuted_fraction"))
	}
	for _, m := range []string{"time_to_first_output_s", "time_to_caught_up_s"} {
		if len(w.everywhere([]string{m})) > 0 {
			metrics = append(metrics, m)
		}
	}
	for _, m := range []string{"makespan_s", w.spec.Primary} {
		if w.has(m) && !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
	}
	caption := "Times after " + w.faults[0].title()
	if w.spec.Mode == "batch" && w.faults[0].kind == "" {
		caption = "Times of the job"
	}
	switch {
	case w.parted():
		caption = "Times of the job, and after each fault"
	case len(w.faults) > 1:
		caption = "Times after each fault"
	}
	t := &table{ID: w.ID + "-results", Caption: caption, Head: []column{{Text: "trials ok", Sub: "of planned"}}}
	for _, m := range metrics {
		d := metricOf(m)
		sub := unitWord(d.Unit)
		if d.Share() {
			sub = "share"
		}
		if d.Better != result.Neutral {
			sub += ", " + string(d.Better) + " is better"
		}
		t.Head = append(t.Head, column{Text: short(m), Sub: sub, Title: m + ": " + d.Help})
	}
	t.Head = append(t.Head, column{Text: "recovery path", Sub: "as recorded"})
	primary := w.spec.Primary
	paired := len(w.summary.Pairs) > 0 || w.twinned()
	if paired {
		t.Head = append(t.Head, column{Text: w.ratioTitle(), Sub: short(primary), Title: "median of the ratios within blocks, " + primary + ", to " + w.reference()})
	}
	t.Head = append(t.Head, column{Text: "output"})
	for _, g := range w.groups() {
		w.group(t, g)
		if g.silent {
			continue
		}
		for i := range w.columns {
			if w.elsewhere(i, g) {
				continue
			}
			c := &w.columns[i]
			r := row{Label: w.labels[i], Title: c.Name, Cells: []cell{okCell(c)}}
			for _, m := range metrics {
				r.Cells = append(r.Cells, w.groupCell(i, g, m))
			}
			if g.whole {
				r.Cells = append(r.Cells, cell{})
			} else {
				r.Cells = append(r.Cells, pathCell(c, g.k, g.name))
			}
			if paired && g.has(primary) {
				r.Cells = append(r.Cells, w.ratioCell(i, g.prefix+primary))
			} else if paired {
				r.Cells = append(r.Cells, cell{})
			}
			r.Cells = append(r.Cells, outputCell(c))
			t.Rows = append(t.Rows, r)
		}
	}
	w.Results = t
}

// rowGroup is a part of a table: what followed one fault, or what is of the whole
// trial.
type rowGroup struct {
	faultView
	k      int  // of the fault
	parted bool // rows of faults have no metrics of the whole trial
	whole  bool // it has nothing else
	silent bool // nothing could be measured after the fault
}

// has tells whether a metric belongs into a group.
func (g rowGroup) has(metric string) bool { return !g.parted || metricOf(metric).PerFault != g.whole }

// parted tells whether what is of the whole trial has rows of its own: it must not
// look as if it were of the first of several faults.
func (w *workloadView) parted() bool { return w.spec.Mode == "batch" && len(w.faults) > 1 }

// groups are the parts of a table.
func (w *workloadView) groups() (out []rowGroup) {
	parted := w.parted()
	if parted {
		out = append(out, rowGroup{parted: true, whole: true})
	}
	for k, f := range w.faults {
		g := rowGroup{faultView: f, k: k, parted: parted}
		g.silent = parted && !slices.ContainsFunc(result.Metrics(), func(m result.Metric) bool { return m.PerFault && w.has(f.prefix+m.Name) })
		out = append(out, g)
	}
	return out
}

// groupCell is the median of a metric in a group; empty where it does not belong.
func (w *workloadView) groupCell(i int, g rowGroup, metric string) cell {
	if !g.has(metric) {
		return cell{}
	}
	return w.medianCell(i, g.prefix+metric)
}

// elsewhere tells whether a column of a batch job has no row under a fault: another
// one befell it, or none.
func (w *workloadView) elsewhere(i int, g rowGroup) bool {
	if w.spec.Mode != "batch" || g.whole || !g.parted && w.faultOf(i) == "" {
		return false
	}
	return !w.befell(i, g.name)
}

// befell tells whether a fault was done in trials of a column.
func (w *workloadView) befell(i int, fault string) bool {
	return slices.ContainsFunc(w.columns[i].Trials, func(t result.Trial) bool {
		return t.Outcome == result.OK && slices.ContainsFunc(t.Faults, func(x result.Fault) bool { return x.Name == fault })
	})
}

// group puts the name of a fault above its rows, if there are several faults.
func (w *workloadView) group(t *table, g rowGroup) {
	if len(w.faults) < 2 {
		return
	}
	r := row{Group: g.name, Note: g.kind, ID: t.ID + "-" + slug(g.name)}
	switch {
	case g.whole:
		r = row{Group: "whole trial", Note: "from submission to the end of the job", ID: t.ID + "-whole"}
	case g.silent:
		r.Note += "; nothing could be measured before the next fault or the end"
	case g.prefix != "":
		r.Note += "; metrics " + g.prefix + "*"
	}
	t.Rows = append(t.Rows, r)
}

// everywhere are those of some metrics that any fault has samples of.
func (w *workloadView) everywhere(metrics []string) []string {
	var out []string
	for _, m := range metrics {
		if slices.ContainsFunc(w.faults, func(f faultView) bool { return w.has(f.prefix + m) }) {
			out = append(out, m)
		}
	}
	return out
}

func unitWord(unit string) string {
	switch unit {
	case "s":
		return "seconds"
	case "B":
		return "bytes"
	case "1":
		return ""
	}
	return unit
}

func (w *workloadView) reference() string {
	if w.twinned() {
		return "no " + recoveryFlag
	}
	name := verdict.Reference(w.run, w.Name)
	if i := slices.IndexFunc(w.columns, func(c verdict.Column) bool { return c.Cell == name }); i >= 0 && w.columns[i].Name == name {
		return w.labels[i]
	}
	return label(name)
}

// ratioTitle heads the column of ratios.
func (w *workloadView) ratioTitle() string {
	if r := w.reference(); len(r) <= 12 {
		return "ratio to " + r
	}
	return "ratio to the reference"
}

func okCell(c *verdict.Column) cell {
	ok := 0
	for _, t := range c.Trials {
		if t.Outcome == result.OK {
			ok++
		}
	}
	out := cell{Text: fmt.Sprintf("%d of %d", ok, c.Planned)}
	if c.Failed > 0 {
		out.Sub, out.Class = fmt.Sprintf("%d failed", c.Failed), "bad"
	}
	if missing := c.Planned - len(c.Trials); missing > 0 {
		out.Sub = strings.TrimPrefix(fmt.Sprintf("%s, %d missing", out.Sub, missing), ", ")
	}
	return out
}

// medianCell shows the median with its interval, or with the range where the
// samples are too few for one.
func (w *workloadView) medianCell(i int, metric string) cell {
	s, ok := w.stat(i, metric)
	if !ok {
		why := "no trial of this cell reached it before the next fault or the end"
		if !metricOf(metric).PerFault {
			why = "it is not known of any trial of this cell"
		}
		return cell{Text: "–", Class: "dim", Title: why}
	}
	out := cell{}
	exact := fmt.Sprintf("median %v, mean %v, min %v, max %v %s; n = %d", s.Median, s.Mean, s.Min, s.Max, s.Unit, s.N)
	if s.SD != nil {
		exact += fmt.Sprintf("; sd %.3g", *s.SD)
	}
	out.Title = exact
	s, unit := asShare(metric, s)
	out.Text = chart.Number(s.Median, s.Unit) + unit
	switch {
	case s.CILow != nil && s.CIHigh != nil:
		out.Sub = "[" + chart.Number(*s.CILow, s.Unit) + " – " + chart.Number(*s.CIHigh, s.Unit) + "]"
		if s.Min == s.Max {
			out.Sub = "all equal, no spread"
		}
	case s.N > 1 && s.Min == s.Max:
		out.Sub = "all equal, no spread"
	case s.N > 1:
		out.Sub = chart.Number(s.Min, s.Unit) + " … " + chart.Number(s.Max, s.Unit)
	default:
		out.Sub = "one sample"
	}
	return out
}

// pathCell is how the trials recovered from the k-th fault.
func pathCell(c *verdict.Column, k int, fault string) cell {
	var paths []string
	for _, t := range c.Trials {
		p := ""
		if k == 0 {
			p = t.RecoveryPath
		}
		for _, f := range t.Faults {
			if k > 0 && f.Name == fault {
				p = f.RecoveryPath
			}
		}
		if t.Outcome == result.OK && p != "" && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return cell{Text: "–", Class: "dim", Title: "no trial recorded a path"}
	}
	slices.Sort(paths)
	return cell{Text: strings.Join(paths, ", ")}
}

func (w *workloadView) ratioCell(i int, metric string) cell {
	if w.twinned() {
		return w.twinCell(i, metric)
	}
	c := &w.columns[i]
	if c.Cell == verdict.Reference(w.run, w.Name) {
		return cell{Text: "1", Sub: "the reference", Class: "dim"}
	}
	p, ok := w.summary.Pairs[c.Name][metric]
	if !ok {
		p.Ratio = nil
	}
	return pairCell(verdict.Verdict(p.Verdict), p.Ratio, p.CILow, p.CIHigh, p.N)
}

// twinCell is the ratio to the same cell without job recovery.
func (w *workloadView) twinCell(i int, metric string) cell {
	all := w.againstTwins(metric)
	k := slices.IndexFunc(all, func(x comparison) bool { return x.cell == w.columns[i].Name })
	if k < 0 {
		return cell{Text: "–", Class: "dim", Title: "compared are cells with job recovery"}
	}
	j := &all[k].judged
	return pairCell(j.Verdict, j.Ratio, j.CILow, j.CIHigh, j.N)
}

// pairCell is a ratio with its verdict.
func pairCell(v verdict.Verdict, ratio, low, high *float64, n int) cell {
	if ratio == nil {
		return cell{Text: "–", Class: "dim", Title: "too few blocks in which both cells were measured"}
	}
	out := cell{Text: ratioText(*ratio), Title: fmt.Sprintf("%v; %d pairs", *ratio, n)}
	switch v {
	case verdict.Faster:
		out.Class, out.Sub = "good", "faster"
	case verdict.Slower:
		out.Class, out.Sub = "bad", "slower"
	case verdict.Same:
		out.Sub = "same"
	default:
		out.Sub = "inconclusive"
	}
	if low != nil && high != nil {
		out.Sub += " [" + ratioText(*low) + " – " + ratioText(*high) + "]"
	}
	return out
}

func ratioText(r float64) string { return "×" + chart.Number(r, "ratio") }

func outputCell(c *verdict.Column) cell {
	var proved, unproved, wrong int
	for _, t := range c.Trials {
		switch {
		case t.Outcome == result.Incorrect:
			wrong++
		case t.Outcome != result.OK:
		case t.Correctness == nil:
			unproved++
		default:
			proved++
		}
	}
	switch {
	case wrong > 0:
		return cell{Text: "✗ wrong", Class: "bad", Title: count(wrong, "trial", "trials") + " with wrong output"}
	case proved > 0 && unproved == 0:
		return cell{Text: "✓ proved", Class: "good", Title: "every record of every trial that is ok is accounted for"}
	case proved+unproved == 0:
		return cell{Text: "–", Class: "dim", Title: "no trial ended well"}
	}
	return cell{Text: "unproved", Class: "dim", Title: "the job discards its output, so nothing can be proved"}
}
