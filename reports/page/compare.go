package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"benchrun/reports/chart"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// comparison is one metric of one column against another, with what is needed
// to say why.
type comparison struct {
	name    string // of the column, as shown
	cell    string
	metric  string
	judged  verdict.Judged
	planned int
	unit    string
}

// against lists what was compared: a metric of every cell with the reference
// cell, or of every cell with the base build.
func (w *workloadView) against(metric string, builds bool) []comparison {
	if !builds && w.twinned() {
		return w.againstTwins(metric)
	}
	var out []comparison
	m := metricOf(metric)
	reference := verdict.Reference(w.run, w.Name)
	base, known := verdict.BaseBuild(w.run)
	for i := range w.columns {
		c := &w.columns[i]
		all, name := w.compared.Cells, c.Name
		like := func(x verdict.Column) bool { return x.Cell == reference && x.Build == c.Build }
		if builds {
			if !known {
				return nil
			}
			all = w.compared.Builds
			if len(w.run.Builds) <= 2 {
				name = c.Cell
			}
			like = func(x verdict.Column) bool { return x.Cell == c.Cell && x.Build == base }
		}
		ref := slices.IndexFunc(w.columns, like)
		if ref < 0 || ref == i {
			continue
		}
		x := comparison{name: w.labels[i], cell: c.Name, metric: metric, planned: min(c.Planned, w.columns[ref].Planned), unit: m.Unit}
		if j := verdict.Find(all, w.Name, name, metric); j != nil {
			x.judged = *j
		} else {
			x.judged = verdict.Judged{Verdict: verdict.Inconclusive, Threshold: w.threshold(metric), Why: "no block with a sample of both"}
			if s, ok := w.stat(i, metric); ok {
				x.judged.HeadMedian = &s.Median
			}
			if s, ok := w.stat(ref, metric); ok {
				x.judged.BaseMedian = &s.Median
			}
		}
		out = append(out, x)
	}
	return out
}

// threshold is the one that a metric of the workload is judged with.
func (w *workloadView) threshold(metric string) verdict.Threshold {
	return verdict.ThresholdOf(w.thresholds, w.Name, metric)
}

// percent writes a ratio as a change.
func percent(ratio float64) string {
	switch p := (ratio - 1) * 100; {
	case ratio >= 3:
		return "×" + chart.Number(ratio, "ratio")
	case p > -0.5 && p < 0.5:
		return "0 %"
	case p < -90: // where one percent more is much
		return fmt.Sprintf("−%.1f %%", -p)
	case p < 0:
		return fmt.Sprintf("−%.0f %%", -p)
	default:
		return fmt.Sprintf("+%.0f %%", p)
	}
}

// why gives the reason of a verdict in words and numbers.
func (x *comparison) why() string {
	j := &x.judged
	if j.N > 0 && j.N < verdict.MinPairs {
		return fmt.Sprintf("%s: fewer than %d never give a verdict", count(j.N, "pair", "pairs"), verdict.MinPairs)
	}
	if j.Ratio == nil || j.CILow == nil || j.CIHigh == nil {
		return j.Why
	}
	return fmt.Sprintf("%s; median change %s, %.3g %% interval %s to %s, threshold ±%.3g %%", j.Why, percent(*j.Ratio), 100*j.Level, percent(*j.CILow), percent(*j.CIHigh), 100*j.Threshold.Relative)
}

// effect is the comparison as a row of a forest plot.
func (x *comparison) effect() chart.Effect {
	j := &x.judged
	return chart.Effect{Label: x.name, Ratio: j.Ratio, Low: j.CILow, High: j.CIHigh, Band: j.Threshold.Relative, N: j.N, Planned: x.planned, Verdict: string(j.Verdict), Why: x.why()}
}

// comparisons draws the forest plots and makes the table of verdicts.
func (w *workloadView) comparisons() {
	if len(w.summary.BuildPairs) > 0 {
		base, _ := verdict.BaseBuild(w.run)
		w.forests("builds", "the other builds against "+base, base, w.against(w.spec.Primary, true), true)
	}
	if len(w.summary.Pairs) > 0 || w.twinned() {
		w.forests("reference", "cells against "+w.reference(), w.reference(), w.against(w.spec.Primary, false), false)
	}
	for _, f := range w.faults[1:] {
		if more := w.against(f.prefix+w.spec.Primary, false); len(more) > 0 && w.has(f.prefix+w.spec.Primary) {
			w.verdictRows("After "+f.name, w.ID+"-verdicts-"+slug(f.name), more)
		}
	}
}

func (w *workloadView) forests(id, title, reference string, all []comparison, builds bool) {
	if len(all) == 0 {
		return
	}
	primary := w.spec.Primary
	add := func(name, title, note string, f *chart.Forest) {
		w.Forests = append(w.Forests, figure{ID: w.ID + "-" + name, Title: title, Note: note, File: plotName(w.Name, name), SVG: template.HTML(f.SVG()), picture: f})
	}
	group := func(metric string, all []comparison) chart.ForestGroup {
		g := chart.ForestGroup{Name: short(metric), Better: string(metricOf(metric).Better)}
		for i := range all {
			g.Rows = append(g.Rows, all[i].effect())
		}
		return g
	}
	f := &chart.Forest{Title: w.Name + ", " + short(primary) + ": " + title, Reference: reference, Groups: []chart.ForestGroup{group(primary, all)}}
	f.Groups[0].Name = ""
	if builds || !w.twinned() || w.faults[0].kind != "" { // else the overhead is drawn with its noise
		add("forest-"+id, capital(short(primary))+": "+title, "ratios within blocks, the smallest first", f)
	}
	three := &chart.Forest{Title: w.Name + ": " + title, Reference: reference}
	for _, m := range together {
		if w.has(m) {
			three.Groups = append(three.Groups, group(m, w.against(m, builds)))
		}
	}
	if len(three.Groups) > 1 {
		add("forest-"+id+"-together", "The three times together: "+title, "", three)
	}
	w.verdictRows(capital(title), w.ID+"-verdicts-"+id, all)
	w.noise(all)
}

// verdictRows adds comparisons to the table of verdicts.
func (w *workloadView) verdictRows(group, id string, all []comparison) {
	if w.Verdicts == nil {
		w.Verdicts = &table{ID: w.ID + "-verdicts", Caption: "Verdicts on " + short(w.spec.Primary), Head: []column{
			{Text: "median"}, {Text: "of the reference"}, {Text: "ratio", Sub: "interval"}, {Text: "pairs", Sub: "of planned"}, {Text: "verdict", Sub: "and why", Left: true},
		}}
	}
	w.Verdicts.Rows = append(w.Verdicts.Rows, row{Group: group, ID: id})
	for i := range all {
		x := &all[i]
		w.Verdicts.Rows = append(w.Verdicts.Rows, row{Label: x.name, Title: x.cell, Cells: []cell{
			numberCell(x.judged.HeadMedian, x.unit), numberCell(x.judged.BaseMedian, x.unit), x.ratio(), {Text: fmt.Sprintf("%d of %d", x.judged.N, x.planned)}, verdictCell(x.judged.Verdict, x.why()),
		}})
	}
}

// ratio is the cell of the ratio with its interval.
func (x *comparison) ratio() cell {
	j := &x.judged
	if j.Ratio == nil {
		return cell{Text: "–", Class: "dim", Title: x.why()}
	}
	out := cell{Text: ratioText(*j.Ratio), Title: fmt.Sprint(*j.Ratio)}
	if j.CILow != nil && j.CIHigh != nil {
		out.Sub = "[" + chart.Number(*j.CILow, "ratio") + " – " + chart.Number(*j.CIHigh, "ratio") + "]"
		out.Title = fmt.Sprintf("%v; %.3g %% interval", *j.Ratio, 100*j.Level)
	}
	return out
}

// bands says which threshold the verdicts rest on, and where it is from.
func (w *workloadView) bands() {
	if w.Verdicts == nil {
		return
	}
	t := w.threshold(w.spec.Primary)
	absolute := ""
	if t.Absolute > 0 {
		absolute = " and " + chart.Quantity(t.Absolute, metricOf(w.spec.Primary).Unit)
	}
	w.Band = fmt.Sprintf("The threshold of %s is ±%.3g %%%s (%s). Verdicts are those of a gate in one look: the error of 5 %% is divided by the number of cells, trials that never ended rank last, and intervals have the level that follows from it.", short(w.spec.Primary), t.Relative*100, absolute, t.Source)
}

// width is how far an interval reaches from its ratio, as a relative change:
// what is smaller cannot be shown.
func width(p *verdict.Judged) (float64, bool) {
	if p.N < verdict.MinPairs || p.Ratio == nil || p.CILow == nil || p.CIHigh == nil || *p.Ratio <= 0 || *p.CILow <= 0 {
		return 0, false
	}
	return max(*p.Ratio / *p.CILow, *p.CIHigh / *p.Ratio) - 1, true
}

// noise says what the samples can show at all, beside the threshold.
func (w *workloadView) noise(all []comparison) {
	var widths []float64
	for i := range all {
		if x, ok := width(&all[i].judged); ok {
			widths = append(widths, x)
		}
	}
	floor, ok := stats.Median(widths)
	if !ok || w.Noise != "" {
		return
	}
	band := w.threshold(w.spec.Primary).Relative
	w.Noise = fmt.Sprintf("Noise floor: an interval reaches %s from its ratio (median over the cells); smaller changes of %s cannot be shown with these samples.", changeOf(floor), short(w.spec.Primary))
	if floor > band {
		w.Warnings = append(w.Warnings, fmt.Sprintf("The threshold of ±%.3g %% lies below the noise of %s: most changes of that size stay inconclusive. More repeats or a quieter machine narrow the intervals.", band*100, changeOf(floor)))
	}
}

func changeOf(relative float64) string {
	if relative >= 2 {
		return fmt.Sprintf("a factor of %s", chart.Number(1+relative, "ratio"))
	}
	if relative < 0.1 {
		return fmt.Sprintf("±%.1f %%", relative*100)
	}
	return fmt.Sprintf("±%.0f %%", relative*100)
}

// controls shows the cells that the options' rules make alike: what differs
// there is noise or a fault of the lab, whatever its cause.
func (w *workloadView) controls() {
	if w.compared.Controls == nil {
		return
	}
	var rows []row
	words := verdict.Controls{}
	for _, j := range w.compared.Controls.Cells {
		if j.Workload != w.Name {
			continue
		}
		words.Pairs++
		x := comparison{judged: j, planned: j.Planned, unit: j.Unit}
		head, base, _ := strings.Cut(j.Cell, " against ")
		name := w.labelOf(head) + " against " + w.labelOf(base)
		alarm := cell{Text: "no", Class: "good"}
		if j.Alarm {
			words.Alarms++
			alarm = cell{Text: "✗ yes", Class: "bad"}
			size := ""
			if j.Ratio != nil {
				size = " (ratio " + ratioText(*j.Ratio) + ")"
			}
			w.Warnings = append(w.Warnings, fmt.Sprintf("%s and %s cannot differ by their options, but %s does%s: the machine or the engine makes a difference that is not asked for.", w.labelOf(head), w.labelOf(base), short(w.spec.Primary), size))
		}
		rows = append(rows, row{Label: name, Title: head + " / " + base, Cells: []cell{x.ratio(), {Text: fmt.Sprintf("%d of %d", j.N, j.Planned)}, verdictCell(j.Verdict, x.why()), alarm}})
	}
	if len(rows) == 0 {
		return
	}
	w.Controls = &table{ID: w.ID + "-controls", Caption: "A/A controls: cells that their options cannot make differ", Rows: rows,
		Head: []column{{Text: "ratio", Sub: short(w.spec.Primary)}, {Text: "pairs", Sub: "of planned"}, {Text: "verdict", Sub: "and why", Left: true}, {Text: "false alarm"}},
		Note: controlWords(&words)}
}

// labelOf is the label of a column by its name.
func (w *workloadView) labelOf(name string) string {
	if i := slices.IndexFunc(w.columns, func(c verdict.Column) bool { return c.Name == name }); i >= 0 {
		return w.labels[i]
	}
	return label(name)
}

// conclude sorts what the run supports from what it does not.
func (w *workloadView) conclude() {
	if !w.has(w.spec.Primary) {
		return
	}
	var unclear []string
	for _, builds := range []bool{true, false} {
		to := w.reference()
		if builds {
			to, _ = verdict.BaseBuild(w.run)
		}
		found := map[verdict.Verdict][]string{}
		for _, x := range w.against(w.spec.Primary, builds) {
			j := &x.judged
			switch v := j.Verdict; v {
			case verdict.Faster, verdict.Slower:
				text := x.name
				if j.Ratio != nil {
					text += " " + percent(*j.Ratio)
				}
				if j.CILow != nil && j.CIHigh != nil {
					text += fmt.Sprintf(" (%s to %s)", percent(*j.CILow), percent(*j.CIHigh))
				}
				found[v] = append(found[v], text)
			case verdict.Same:
				found[v] = append(found[v], x.name)
			default:
				if builds {
					x.name += " against " + to
				}
				unclear = append(unclear, x.name)
			}
		}
		name := short(w.spec.Primary)
		say := func(v verdict.Verdict, format string) {
			if len(found[v]) > 0 {
				w.Conclude = append(w.Conclude, fmt.Sprintf(format, to, name)+strings.Join(found[v], "; ")+".")
			}
		}
		say(verdict.Faster, "Better than %s in %s: ")
		say(verdict.Slower, "Worse than %s in %s: ")
		say(verdict.Same, fmt.Sprintf("The same as %%s in %%s, within ±%.3g %%%%: ", w.threshold(w.spec.Primary).Relative*100))
	}
	if len(unclear) > 0 {
		if len(unclear) > 6 {
			unclear = append(unclear[:5:5], fmt.Sprintf("%d more", len(unclear)-5))
		}
		w.Refrain = append(w.Refrain, fmt.Sprintf("Anything on %s: no verdict, which is not the same as no difference.", list(unclear)))
	}
	if w.has("time_to_running_s") && w.severalPaths() {
		w.Refrain = append(w.Refrain, "That a cell which is RUNNING earlier recovers faster: RUNNING means different things on different recovery paths.")
	}
	w.Refrain = append(w.Refrain, "That the times hold elsewhere: they are of this job, this backlog and this machine.")
}

// severalPaths tells whether cells recovered in different ways.
func (w *workloadView) severalPaths() bool {
	seen := map[string]bool{}
	for i := range w.columns {
		seen[pathCell(&w.columns[i], 0, "").Text] = true
	}
	delete(seen, "–")
	return len(seen) > 1 || slices.ContainsFunc(w.labels, func(l string) bool { return strings.Contains(l, "+D") })
}
