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

// comparison is one metric of one column against another, with what is needed
// to say why.
type comparison struct {
	name    string // of the column, as shown
	cell    string
	metric  string
	pair    result.Pair
	planned int
	band    verdict.Band
	better  result.Better
	unit    string
	value   *float64 // medians
	base    *float64
}

// against lists what the summary compares: a metric of every cell with the
// reference cell, or of every cell with the base build.
func (w *workloadView) against(metric string, builds bool) []comparison {
	var out []comparison
	m := metricOf(metric)
	reference := verdict.Reference(w.run, w.Name)
	bases := verdict.Builds(w.run)
	for i := range w.columns {
		c := &w.columns[i]
		var pairs map[string]result.Pair
		ref := -1
		if builds {
			pairs = w.summary.BuildPairs[c.Cell]
			if len(bases) > 2 {
				pairs = w.summary.BuildPairs[c.Name]
			}
			ref = slices.IndexFunc(w.columns, func(x verdict.Column) bool { return x.Cell == c.Cell && x.Build == bases[0] })
		} else {
			pairs = w.summary.Pairs[c.Name]
			ref = slices.IndexFunc(w.columns, func(x verdict.Column) bool { return x.Cell == reference && x.Build == c.Build })
		}
		if ref < 0 || ref == i {
			continue
		}
		x := comparison{name: w.labels[i], cell: c.Name, metric: metric, planned: min(c.Planned, w.columns[ref].Planned), band: verdict.DefaultBand(m), better: m.Better, unit: m.Unit}
		if s, ok := w.stat(i, metric); ok {
			x.value = &s.Median
		}
		if s, ok := w.stat(ref, metric); ok {
			x.base = &s.Median
		}
		if p, ok := pairs[metric]; ok {
			x.pair = p
		} else {
			x.pair.Verdict = string(verdict.Inconclusive)
		}
		out = append(out, x)
	}
	return out
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
	band := fmt.Sprintf("±%.0f %%", x.band.Relative*100)
	p := &x.pair
	switch {
	case p.N == 0:
		return "no block with a sample of both"
	case p.Ratio == nil:
		return fmt.Sprintf("%d of %d pairs: fewer than half, and the missing ones may be the slow ones", p.N, x.planned)
	case p.N < verdict.MinPairs:
		return fmt.Sprintf("%s: fewer than %d never give a verdict", count(p.N, "pair", "pairs"), verdict.MinPairs)
	case p.CILow == nil || p.CIHigh == nil:
		return "no interval can be given"
	}
	span := percent(*p.CILow) + " to " + percent(*p.CIHigh)
	switch verdict.Verdict(p.Verdict) {
	case verdict.Same:
		if *p.CILow >= 1/(1+x.band.Relative) && *p.CIHigh <= 1+x.band.Relative {
			return fmt.Sprintf("the whole interval, %s, lies within %s", span, band)
		}
		return "the differences are below the resolution of the metric"
	case verdict.Faster, verdict.Slower:
		return fmt.Sprintf("median change %s, beyond %s; the interval, %s, excludes no change", percent(*p.Ratio), band, span)
	}
	switch {
	case x.better == result.Neutral:
		return "neither direction is better; interval " + span
	case *p.CILow <= 1 && *p.CIHigh >= 1:
		return fmt.Sprintf("the interval, %s, includes no change and is not within %s", span, band)
	}
	return fmt.Sprintf("median change %s, not clearly beyond %s; interval %s", percent(*p.Ratio), band, span)
}

// effect is the comparison as a row of a forest plot.
func (x *comparison) effect() chart.Effect {
	return chart.Effect{Label: x.name, Ratio: x.pair.Ratio, Low: x.pair.CILow, High: x.pair.CIHigh, Band: x.band.Relative, N: x.pair.N, Planned: x.planned, Verdict: x.pair.Verdict, Why: x.why()}
}

// comparisons draws the forest plots and makes the table of verdicts.
func (w *workloadView) comparisons() {
	if len(w.summary.BuildPairs) > 0 {
		base := verdict.Builds(w.run)[0]
		w.compared("builds", "the other builds against "+base, base, w.against(w.spec.Primary, true), true)
	}
	if len(w.summary.Pairs) > 0 {
		w.compared("reference", "cells against "+w.reference(), w.reference(), w.against(w.spec.Primary, false), false)
	}
	for _, f := range w.faults[1:] {
		if more := w.against(f.prefix+w.spec.Primary, false); len(more) > 0 && w.has(f.prefix+w.spec.Primary) {
			w.verdictRows("After "+f.name, w.ID+"-verdicts-"+slug(f.name), more)
		}
	}
}

func (w *workloadView) compared(id, title, reference string, all []comparison, builds bool) {
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
	add("forest-"+id, capital(short(primary))+": "+title, "ratios within blocks, the smallest first", f)
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
			{Text: "median"}, {Text: "of the reference"}, {Text: "ratio", Sub: "95 % interval"}, {Text: "pairs", Sub: "of planned"}, {Text: "verdict", Sub: "and why", Left: true},
		}}
	}
	w.Verdicts.Rows = append(w.Verdicts.Rows, row{Group: group, ID: id})
	for i := range all {
		x := &all[i]
		ratio := cell{Text: "–", Class: "dim", Title: x.why()}
		if x.pair.Ratio != nil {
			ratio = cell{Text: ratioText(*x.pair.Ratio), Title: fmt.Sprint(*x.pair.Ratio)}
			if x.pair.CILow != nil && x.pair.CIHigh != nil {
				ratio.Sub = "[" + chart.Number(*x.pair.CILow, "ratio") + " – " + chart.Number(*x.pair.CIHigh, "ratio") + "]"
			}
		}
		w.Verdicts.Rows = append(w.Verdicts.Rows, row{Label: x.name, Title: x.cell, Cells: []cell{
			numberCell(x.value, x.unit), numberCell(x.base, x.unit), ratio, {Text: fmt.Sprintf("%d of %d", x.pair.N, x.planned)}, verdictCell(verdict.Verdict(x.pair.Verdict), x.why()),
		}})
	}
}

// width is how far an interval reaches from its ratio, as a relative change:
// what is smaller cannot be shown.
func width(p *result.Pair) (float64, bool) {
	if p.N < verdict.MinPairs || p.Ratio == nil || p.CILow == nil || p.CIHigh == nil || *p.Ratio <= 0 || *p.CILow <= 0 {
		return 0, false
	}
	return max(*p.Ratio / *p.CILow, *p.CIHigh / *p.Ratio) - 1, true
}

// noise says what the samples can show at all, beside the threshold.
func (w *workloadView) noise(all []comparison) {
	var widths []float64
	for i := range all {
		if x, ok := width(&all[i].pair); ok {
			widths = append(widths, x)
		}
	}
	floor, ok := stats.Median(widths)
	if !ok || w.Noise != "" {
		return
	}
	band := all[0].band.Relative
	w.Noise = fmt.Sprintf("Noise floor: an interval reaches %s from its ratio (median over the cells); smaller changes of %s cannot be shown with these samples. The threshold is ±%.0f %%.", changeOf(floor), short(w.spec.Primary), band*100)
	if floor > band {
		w.Warnings = append(w.Warnings, fmt.Sprintf("The threshold of ±%.0f %% lies below the noise of %s: most changes of that size stay inconclusive. More repeats or a quieter machine narrow the intervals.", band*100, changeOf(floor)))
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

// controls compares cells that the options' rules make alike: what differs
// there is noise or a fault of the lab, whatever its cause.
func (w *workloadView) controls() {
	m := metricOf(w.spec.Primary)
	band := verdict.DefaultBand(m)
	var rows []row
	alarms := 0
	for _, group := range w.spec.Inert {
		var members []int
		for i, c := range w.columns {
			if slices.Contains(group, c.Cell) {
				members = append(members, i)
			}
		}
		for k := 1; k < len(members); k++ {
			a, b := &w.columns[members[k]], &w.columns[members[0]]
			if a.Build != b.Build {
				continue
			}
			as, bs := verdict.Pair(a, b, w.spec.Primary)
			c := verdict.Compare(as, bs, m.Better, band, min(a.Planned, b.Planned), w.run.Seed)
			x := comparison{name: w.labels[members[k]] + " against " + w.labels[members[0]], cell: a.Name + " / " + b.Name, planned: min(a.Planned, b.Planned), band: band, better: m.Better, unit: m.Unit, pair: result.Pair{N: c.N, Verdict: string(c.Verdict)}}
			ratio := cell{Text: "–", Class: "dim", Title: "no ratio can be given"}
			if c.Ratio != nil {
				x.pair.Ratio = &c.Ratio.Ratio
				ratio = cell{Text: ratioText(c.Ratio.Ratio)}
				if c.Ratio.CI != nil {
					x.pair.CILow, x.pair.CIHigh = &c.Ratio.CI.Low, &c.Ratio.CI.High
					ratio.Sub = "[" + chart.Number(c.Ratio.CI.Low, "ratio") + " – " + chart.Number(c.Ratio.CI.High, "ratio") + "]"
				}
			}
			alarm := cell{Text: "no", Class: "good"}
			if c.Verdict == verdict.Faster || c.Verdict == verdict.Slower {
				alarms++
				alarm = cell{Text: "✗ yes", Class: "bad"}
				w.Warnings = append(w.Warnings, fmt.Sprintf("%s and %s cannot differ by their options, but %s does (ratio %s): the machine or the engine makes a difference that is not asked for.", w.labels[members[k]], w.labels[members[0]], short(w.spec.Primary), ratioText(c.Ratio.Ratio)))
			}
			rows = append(rows, row{Label: x.name, Title: x.cell, Cells: []cell{ratio, {Text: fmt.Sprintf("%d of %d", c.N, x.planned)}, verdictCell(c.Verdict, x.why()), alarm}})
		}
	}
	if len(rows) == 0 {
		return
	}
	w.Controls = &table{ID: w.ID + "-controls", Caption: "A/A controls: cells that their options cannot make differ", Rows: rows,
		Head: []column{{Text: "ratio", Sub: short(w.spec.Primary)}, {Text: "pairs", Sub: "of planned"}, {Text: "verdict", Sub: "and why", Left: true}, {Text: "false alarm"}},
		Note: controlWords(&verdict.Controls{Pairs: len(rows), Alarms: alarms})}
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
			to = verdict.Builds(w.run)[0]
		}
		found := map[verdict.Verdict][]string{}
		for _, x := range w.against(w.spec.Primary, builds) {
			v := verdict.Verdict(x.pair.Verdict)
			switch v {
			case verdict.Faster, verdict.Slower:
				found[v] = append(found[v], fmt.Sprintf("%s %s (%s to %s)", x.name, percent(*x.pair.Ratio), percent(*x.pair.CILow), percent(*x.pair.CIHigh)))
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
		say(verdict.Same, fmt.Sprintf("The same as %%s in %%s, within ±%.0f %%%%: ", verdict.DefaultBand(metricOf(w.spec.Primary)).Relative*100))
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
