package page

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// gatePlots begins the names of a decision's plots.
const gatePlots = "gate-forest-"

// decisionView is all that the page of a decision shows.
type decisionView struct {
	PageTitle, Kicker, Title      string
	Run, Baseline                 string
	Base, Head                    string
	Subtitle                      []string
	Outcome, OutcomeClass         string
	ExitText                      string
	ExitWords                     string
	Headline                      []string
	Reasons, Warnings             []string
	Figures                       []figure
	Judged, Advisory, Controls    *table
	ControlWords                  string
	Failures, Thresholds          *table
	Reading                       []string
	Downloads                     []download
	slower, faster, same, unclear []verdict.Judged
}

// RenderDecision writes the pages of a decision into a folder: gate.html,
// gate.md, gate-junit.xml, gate.json and plots/gate-forest-*.png.
func RenderDecision(dir string, d *verdict.Decision) error { return renderDecision(dir, d, decides) }

// RenderComparison writes the same pages of a comparison that was asked for no
// exit code: it says what a gate would do.
func RenderComparison(dir string, d *verdict.Decision) error { return renderDecision(dir, d, compares) }

// asked is what a decision is for.
type asked bool

const (
	decides  asked = true  // an exit code
	compares asked = false // a look
)

func (a asked) exit(e result.Exit) string {
	if a == decides {
		return fmt.Sprintf("exit code %d", e)
	}
	return fmt.Sprintf("a gate would exit with %d", e)
}

func renderDecision(dir string, d *verdict.Decision, what asked) error {
	d = finiteDecision(d)
	document, err := indented(d)
	if err != nil {
		return fmt.Errorf("gate: gate.json: %w", err)
	}
	v := newDecision(d, what)
	add, err := embedded("gate.json", "the decision with all figures", "application/json", document)
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	v.Downloads = append(v.Downloads, add)
	html, err := execute("gate.html", v)
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	unit, err := DecisionJUnit(d)
	if err != nil {
		return fmt.Errorf("gate: gate-junit.xml: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	var plots []plotFile
	for _, f := range v.Figures {
		plots = append(plots, plotFile{f.File, f.picture})
	}
	if err := writePlots(dir, gatePlots, plots); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	return writeFiles(dir, "gate", []file{{"gate.html", html}, {"gate.md", []byte(decisionMarkdown(d, what))}, {"gate-junit.xml", unit}, {"gate.json", document}})
}

// finiteDecision is the decision without figures that are no numbers: they are
// absent, as everywhere.
func finiteDecision(d *verdict.Decision) *verdict.Decision {
	out := *d
	clean := func(all []verdict.Judged) []verdict.Judged {
		all = slices.Clone(all)
		for i := range all {
			j := &all[i]
			for _, p := range []**float64{&j.BaseMedian, &j.HeadMedian, &j.Ratio, &j.CILow, &j.CIHigh, &j.Shift, &j.ShiftLow, &j.ShiftHigh, &j.P, &j.Noise} {
				if *p != nil && !finite(**p) {
					*p = nil
				}
			}
			if !finite(j.Level) {
				j.Level = 0
			}
		}
		return all
	}
	out.Judged, out.Advisory = clean(d.Judged), clean(d.Advisory)
	if d.Controls != nil {
		c := *d.Controls
		c.Cells = clean(c.Cells)
		out.Controls = &c
	}
	return &out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// exitWords say what an exit code of a gate means.
var exitWords = map[result.Exit]string{
	result.ExitOK:           "Passed: nothing got slower",
	result.ExitRegression:   "Slower: a primary metric got worse, or a limit is broken",
	result.ExitUsage:        "Not judged: the command or the configuration is wrong",
	result.ExitInconclusive: "No verdict: the samples do not tell",
	result.ExitFailed:       "Not measured: a trial failed, or an expected metric is absent",
	result.ExitBaseline:     "Not compared: the baseline is missing or not comparable",
	result.ExitWrong:        "Wrong output: no speed makes up for that",
	result.ExitInterrupted:  "Interrupted: partial results",
}

func exitText(e result.Exit) string {
	if s, ok := exitWords[e]; ok {
		return s
	}
	return fmt.Sprintf("Exit code %d", e)
}

func newDecision(d *verdict.Decision, what asked) *decisionView {
	v := &decisionView{
		Run: d.Run, Baseline: d.Baseline, Base: d.Base, Head: d.Head, Kicker: "Before and after", Title: d.Head + " against " + d.Base,
		Outcome: d.Outcome, ExitText: what.exit(d.Exit), ExitWords: exitText(d.Exit), Reasons: d.Reasons, Warnings: slices.Clone(d.Warnings),
	}
	if d.Mode == verdict.Sequential { // names of runs are long; the subtitle has them
		v.Head, v.Base = "the new run", "the base run"
		v.Title = "The new run against the base run"
	}
	if d.Head == "" && d.Base == "" {
		v.Title = "Comparison"
	}
	if v.Outcome == "" {
		v.Outcome = fmt.Sprintf("exit code %d", d.Exit)
	}
	v.OutcomeClass = "no"
	if d.Exit == result.ExitOK {
		v.OutcomeClass = "ok"
	}
	v.PageTitle = v.Title + " – " + v.Outcome
	v.Subtitle = append(v.Subtitle, modeWords(d.Mode), count(len(d.Judged), "metric judged", "metrics judged"), "run "+d.Run)
	switch {
	case d.Baseline != "":
		v.Subtitle = append(v.Subtitle, "baseline "+d.Baseline)
	case d.Mode == verdict.Sequential && d.Base != "":
		v.Subtitle = append(v.Subtitle, "base "+d.Base)
	}
	for _, j := range d.Judged {
		switch j.Verdict {
		case verdict.Slower:
			v.slower = append(v.slower, j)
		case verdict.Faster:
			v.faster = append(v.faster, j)
		case verdict.Same:
			v.same = append(v.same, j)
		default:
			v.unclear = append(v.unclear, j)
		}
	}
	v.headline(d)
	v.forests(d)
	v.Judged = judgedTable("judged", "Primary metrics: "+v.Head+" against "+v.Base, d.Judged)
	v.Advisory = judgedTable("advisory-table", "Metrics that decide nothing", d.Advisory)
	v.controls(d)
	v.failures(d)
	v.thresholds(d)
	v.reading(d)
	return v
}

func modeWords(mode string) string {
	switch mode {
	case verdict.Interleaved:
		return "interleaved, block by block"
	case verdict.Sequential:
		return "sequential: two runs of different times"
	}
	return mode
}

// where names a judged metric, the shortest way that is clear.
func where(j *verdict.Judged) string {
	return j.Workload + ", " + label(j.Cell) + ", " + short(j.Metric)
}

// amount says what happened to a metric in a sentence's end: "20 % longer
// (0.13 s, before 0.11 s)".
func amount(j *verdict.Judged) string {
	var s string
	if j.Ratio != nil && *j.Ratio > 0 {
		s = change(*j.Ratio, j.Unit)
	} else {
		s = "with no ratio to give"
	}
	if j.BaseMedian != nil && j.HeadMedian != nil {
		s += fmt.Sprintf(" (%s, before %s)", chart.Quantity(*j.HeadMedian, j.Unit), chart.Quantity(*j.BaseMedian, j.Unit))
	}
	return s
}

// change puts a ratio into words.
func change(ratio float64, unit string) string {
	up, down := "more", "less"
	if unit == "s" {
		up, down = "longer", "shorter"
	}
	switch p := (ratio - 1) * 100; {
	case ratio >= 3:
		return fmt.Sprintf("%s times as much", chart.Number(ratio, "ratio"))
	case p >= 0.5:
		return fmt.Sprintf("%.0f %% %s", p, up)
	case p <= -0.5:
		return fmt.Sprintf("%.0f %% %s", -p, down)
	}
	return "unchanged"
}

// headline says the outcome in words first.
func (v *decisionView) headline(d *verdict.Decision) {
	say := func(format string, args ...any) { v.Headline = append(v.Headline, fmt.Sprintf(format, args...)) }
	switch n := len(d.Judged); {
	case n == 0:
		say("Nothing was judged.")
	case len(v.slower) > 0:
		worst := slices.MaxFunc(v.slower, func(a, b verdict.Judged) int { return badness(&a, &b) })
		say("Recovery got slower in %d of %d: most in %s – %s.", len(v.slower), n, where(&worst), amount(&worst))
	case len(v.unclear) == n:
		say("Whether recovery changed cannot be said: none of %s has a verdict.", count(n, "metric", "metrics"))
	case len(v.unclear) > 0:
		say("Nothing got slower as far as the samples tell; %d of %d have no verdict.", len(v.unclear), n)
	case len(v.faster) > 0:
		best := slices.MaxFunc(v.faster, func(a, b verdict.Judged) int { return badness(&b, &a) })
		say("Recovery got faster in %d of %d, slower in none: most in %s – %s.", len(v.faster), n, where(&best), amount(&best))
	default:
		say("Recovery is as fast as before: all %d primary metrics are the same within their thresholds.", n)
	}
	if len(d.Judged) > 0 {
		say("%d slower, %d faster, %d the same, %d inconclusive.", len(v.slower), len(v.faster), len(v.same), len(v.unclear))
	}
	if names := cleared(d); len(names) > 0 {
		say("Alarmed at the first look and cleared by the second: %s.", list(names))
	}
	if a := d.Alarmed(); len(a) > 0 {
		say("%s alarmed and will be run again before this is final.", capital(count(len(a), "cell", "cells")))
	}
}

func cleared(d *verdict.Decision) []string {
	var names []string
	for _, j := range d.Judged {
		if j.Cleared {
			names = append(names, where(&j))
		}
	}
	return names
}

// badness orders by how much worse the head is.
func badness(a, b *verdict.Judged) int {
	w := func(j *verdict.Judged) float64 {
		if j.Ratio == nil || *j.Ratio <= 0 {
			return math.Inf(-1)
		}
		if j.Better == result.Higher {
			return 1 / *j.Ratio
		}
		return *j.Ratio
	}
	switch x, y := w(a), w(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// verdictCell shows a verdict by sign, word and colour.
func verdictCell(v verdict.Verdict, why string) cell {
	c := cell{Text: "○ inconclusive", Class: "dim wrap", Sub: why}
	switch v {
	case verdict.Faster:
		c.Text, c.Class = "● faster", "good wrap"
	case verdict.Slower:
		c.Text, c.Class = "▲ slower", "bad wrap"
	case verdict.Same:
		c.Text, c.Class = "■ same", "wrap"
	}
	return c
}

func numberCell(p *float64, unit string) cell {
	if p == nil {
		return cell{Text: "–", Class: "dim", Title: "not known"}
	}
	return cell{Text: chart.Quantity(*p, unit), Title: fmt.Sprintf("%v %s", *p, unit)}
}

// thresholdWords write a band.
func thresholdWords(t verdict.Threshold, unit string) string {
	s := fmt.Sprintf("±%s %%", chart.Number(t.Relative*100, "%"))
	if t.Absolute > 0 {
		s += ", at least " + small(t.Absolute, unit)
	}
	return s
}

// small writes an absolute threshold, which may be far below what tables show.
func small(v float64, unit string) string {
	if unit == "s" {
		switch {
		case v < 1e-3:
			return fmt.Sprintf("%.3g µs", v*1e6)
		case v < 1:
			return fmt.Sprintf("%.3g ms", v*1e3)
		}
	}
	return chart.Quantity(v, unit)
}

func judgedTable(id, caption string, all []verdict.Judged) *table {
	if len(all) == 0 {
		return nil
	}
	t := &table{ID: id, Caption: caption, Head: []column{{Text: "metric"}, {Text: "before"}, {Text: "after"}, {Text: "ratio", Sub: "interval"}, {Text: "pairs", Sub: "of planned"}, {Text: "threshold", Left: true}, {Text: "verdict", Sub: "and why", Left: true}}}
	several := slices.ContainsFunc(all, func(j verdict.Judged) bool { return j.Workload != all[0].Workload })
	all = byWorkload(all)
	group := ""
	for i := range all {
		j := &all[i]
		if several && j.Workload != group {
			group = j.Workload
			t.Rows = append(t.Rows, row{Group: group, ID: id + "-" + slug(group)})
		}
		ratio := cell{Text: "–", Class: "dim", Title: "no ratio can be given"}
		if j.Ratio != nil {
			ratio = cell{Text: ratioText(*j.Ratio), Title: fmt.Sprint(*j.Ratio)}
			if j.CILow != nil && j.CIHigh != nil {
				ratio.Sub = "[" + chart.Number(*j.CILow, "ratio") + " – " + chart.Number(*j.CIHigh, "ratio") + "]"
				ratio.Title += fmt.Sprintf(", interval at %s %%", chart.Number(j.Level*100, "%"))
			}
			if j.Shift != nil {
				ratio.Title += fmt.Sprintf("; Hodges-Lehmann %.3g", *j.Shift)
			}
			if j.P != nil {
				ratio.Title += fmt.Sprintf("; p of sign flips %.3g", *j.P)
			}
		}
		pairs := cell{Text: fmt.Sprintf("%d of %d", j.N, j.Planned)}
		if j.BaseFailed+j.HeadFailed > 0 {
			pairs.Class, pairs.Sub = "bad", fmt.Sprintf("failed: %d before, %d after", j.BaseFailed, j.HeadFailed)
		}
		v := verdictCell(j.Verdict, j.Why)
		switch {
		case j.Cleared:
			v.Sub = strings.TrimPrefix(v.Sub+"; alarmed at the first look, cleared by the second", "; ")
		case j.Alarm:
			v.Sub = strings.TrimPrefix(v.Sub+"; alarm: to be run again", "; ")
		}
		t.Rows = append(t.Rows, row{Label: label(j.Cell), Title: j.Cell, Cells: []cell{
			{Text: short(j.Metric), Title: j.Metric}, numberCell(j.BaseMedian, j.Unit), numberCell(j.HeadMedian, j.Unit), ratio, pairs,
			{Text: thresholdWords(j.Threshold, j.Unit), Class: "wrap", Sub: j.Threshold.Source}, v,
		}})
	}
	return t
}

// byWorkload puts the rows of a workload together; the first comes first.
func byWorkload(all []verdict.Judged) []verdict.Judged {
	place := map[string]int{}
	for _, j := range all {
		if _, ok := place[j.Workload]; !ok {
			place[j.Workload] = len(place)
		}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b verdict.Judged) int { return place[a.Workload] - place[b.Workload] })
	return all
}

// controls show what the night says of itself.
func (v *decisionView) controls(d *verdict.Decision) {
	c := d.Controls
	if c == nil || c.Pairs == 0 {
		return
	}
	v.ControlWords = controlWords(c)
	v.Controls = judgedTable("controls-table", "A/A controls", c.Cells)
	if v.Controls == nil {
		v.Controls = &table{ID: "controls-table", Caption: "A/A controls", Head: []column{{Text: "pairs"}, {Text: "false alarms"}}, Rows: []row{{Label: "all", Cells: []cell{{Text: fmt.Sprint(c.Pairs)}, {Text: fmt.Sprint(c.Alarms)}}}}}
	}
}

func controlWords(c *verdict.Controls) string {
	s := fmt.Sprintf("%s of cells that their options cannot make differ: %s.", capital(count(c.Pairs, "pair", "pairs")), count(c.Alarms, "false alarm", "false alarms"))
	if c.Alarms > 0 {
		return s + " The machine or the engine makes differences that nobody asked for; read the verdicts with that in mind."
	}
	return s + " So the method did not cry wolf in this run."
}

func (v *decisionView) failures(d *verdict.Decision) {
	t := &table{ID: "failures", Caption: "Failed trials, and pairs that are missing", Head: []column{{Text: "failed before"}, {Text: "failed after"}, {Text: "pairs"}, {Text: "planned"}}}
	for i := range d.Judged {
		j := &d.Judged[i]
		if j.BaseFailed+j.HeadFailed > 0 || j.N < j.Planned {
			t.Rows = append(t.Rows, row{Label: j.Workload + ", " + label(j.Cell), Title: j.Cell, Cells: []cell{{Text: fmt.Sprint(j.BaseFailed)}, {Text: fmt.Sprint(j.HeadFailed)}, {Text: fmt.Sprint(j.N)}, {Text: fmt.Sprint(j.Planned)}}})
		}
	}
	if len(t.Rows) > 0 {
		v.Failures = t
	}
}

// thresholds say which band applied and where it came from, and which of them
// lie below what the samples can show.
func (v *decisionView) thresholds(d *verdict.Decision) {
	t := &table{ID: "threshold-table", Caption: "Thresholds that applied", Head: []column{{Text: "metric"}, {Text: "relative"}, {Text: "absolute"}, {Text: "smallest change", Sub: "that the samples can show"}, {Text: "from", Left: true}}}
	for i := range d.Judged {
		j := &d.Judged[i]
		noise := cell{Text: "–", Class: "dim", Title: "not known"}
		if j.Noise != nil {
			noise = cell{Text: "±" + chart.Number(*j.Noise*100, "%") + " %"}
			if *j.Noise > j.Threshold.Relative {
				noise.Class, noise.Sub = "bad", "above the threshold"
			}
		}
		absolute := cell{Text: "–", Class: "dim", Title: "none"}
		if j.Threshold.Absolute > 0 {
			absolute = cell{Text: small(j.Threshold.Absolute, j.Unit)}
		}
		t.Rows = append(t.Rows, row{Label: j.Workload + ", " + label(j.Cell), Title: j.Cell, Cells: []cell{
			{Text: short(j.Metric), Title: j.Metric}, {Text: "±" + chart.Number(j.Threshold.Relative*100, "%") + " %"}, absolute, noise, {Text: j.Threshold.Source, Class: "wrap"},
		}})
	}
	if len(t.Rows) > 0 {
		v.Thresholds = t
	}
}

func (v *decisionView) reading(d *verdict.Decision) {
	v.Reading = []string{
		"Slower and faster need both: a median change beyond the threshold, and an interval that excludes no change. The same means that the whole interval lies inside the threshold. Everything else is inconclusive, however large the median change looks.",
		"Inconclusive is not the same as unchanged. More repeats narrow the interval; fewer than " + fmt.Sprint(verdict.MinPairs) + " pairs never give a verdict.",
		"A trial that failed has no times. It is counted, ranked worst, and never turned into a number.",
	}
	if d.Mode == verdict.Sequential {
		v.Reading = append(v.Reading, "The two runs were made at different times, so the machine may differ between them. Slower needs an interval that excludes no change even when it is widened by that offset. For a firm answer run both builds in one run, block by block.")
	} else {
		v.Reading = append(v.Reading, "Both builds ran block by block in shuffled order on one machine, so what drifts slowly cancels out in the ratios.")
	}
	v.Reading = append(v.Reading,
		"With several cells judged at once the intervals are wider than 95 %, so that the whole call rarely alarms by chance.",
		"Metrics other than the primary one decide nothing here. What this does not tell: how another job, another size of backlog or another machine would do.")
}
