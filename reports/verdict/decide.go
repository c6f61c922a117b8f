package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

// discoveryRate is the share of false ones among the advisory metrics that are
// called faster or slower.
const discoveryRate = 0.10

// Decide judges a run. Without a baseline it has several builds, and they are
// judged against its base build block by block. With one, base finds the
// baseline of a workload, nil: there is none; then head and baseline are two
// runs of different times.
func Decide(head *result.Loaded, base func(workload string) *result.Loaded, rules Rules) *Decision {
	if rules.Offset <= 0 {
		rules.Offset = DefaultOffset
	}
	g := &gate{head: head, rules: rules, d: &Decision{
		Schema: result.Schema, Run: head.Run.Run, Mode: Interleaved, Judged: []Judged{}, Advisory: []Judged{}, Reasons: []string{},
	}}
	g.ran()
	if base == nil {
		g.builds()
	} else {
		g.runs(base)
	}
	g.coverage()
	g.judge()
	g.d.Controls = controls(g.head, g.rules.Thresholds)
	g.alarms()
	g.conclude()
	return g.d
}

// gate is a decision in the making.
type gate struct {
	head   *result.Loaded
	rules  Rules
	d      *Decision
	duels  []duel
	failed result.Exit // of the lines and of what cannot be compared
}

// duel is two columns to be compared.
type duel struct {
	name       string
	primary    string
	head, base *Column
}

func (g *gate) say(code result.Exit, format string, args ...any) {
	g.failed = result.Worse(g.failed, code)
	g.d.Reasons = append(g.d.Reasons, fmt.Sprintf(format, args...))
}

func (g *gate) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(g.d.Warnings, w) {
		g.d.Warnings = append(g.d.Warnings, w)
	}
}

// ran asks whether the run is one that can be judged: an infrastructure failure
// is none of the program's speed.
func (g *gate) ran() {
	code, reasons := g.head.Exit(result.ExitFailed)
	g.failed = code
	g.d.Reasons = append(g.d.Reasons, reasons...)
	g.d.Warnings = append(g.d.Warnings, g.head.Warnings...)
	for _, t := range g.head.Trials {
		if t.Outcome == result.OK && !t.Warmup {
			return
		}
	}
	g.say(result.ExitFailed, "0 cells were measured")
}

// builds pairs the builds of one run.
func (g *gate) builds() {
	names := Builds(&g.head.Run)
	if len(names) == 0 {
		return
	}
	g.d.Base, g.d.Head = names[0], strings.Join(names[1:], ", ")
	if len(names) == 1 {
		g.d.Head = names[0]
		g.d.Base = ""
		g.say(result.ExitBaseline, "the run has the one build %s and there is no baseline: nothing to compare with", names[0])
		return
	}
	if !g.hasBase(&g.head.Run) {
		g.d.Head, g.d.Base = strings.Join(names, ", "), ""
		return
	}
	for i := range g.head.Run.Workloads {
		if w := &g.head.Run.Workloads[i]; slices.Contains(g.head.Edited, w.Name) {
			g.say(result.ExitBaseline, "%s: %s", w.Name, edited(g.head, w))
		}
	}
	first := g.head.Run.Builds[names[0]]
	for _, n := range names[1:] {
		if b := g.head.Run.Builds[n]; result.SameBuild(b, first) {
			g.warn("the builds %s and %s are the same file: any difference is chance", names[0], n)
		}
	}
	for _, x := range buildDuels(&g.head.Run, Columns(g.head)) {
		if x.head.Planned == 0 { // the run's budget had no room for it
			g.warn("%s %s: left out of the run; it is not judged", x.head.Workload, x.head.Cell)
			continue
		}
		g.duels = append(g.duels, x)
	}
}

// hasBase asks which of several builds is the base.
func (g *gate) hasBase(r *result.Run) bool {
	if _, ok := BaseBuild(r); ok {
		return true
	}
	names := strings.Join(Builds(r), ", ")
	if r.BaseBuild == "" {
		g.say(result.ExitBaseline, "the run %s does not say which of its builds %s is the base build", r.Run, names)
	} else {
		g.say(result.ExitBaseline, "the base build %q of the run %s is none of its builds %s", r.BaseBuild, r.Run, names)
	}
	return false
}

// alarms warns of controls that differ.
func (g *gate) alarms() {
	if g.d.Controls == nil {
		return
	}
	for _, j := range g.d.Controls.Cells {
		if j.Alarm {
			size := "more than a ratio can say"
			if j.Ratio != nil {
				size = percent(*j.Ratio - 1)
			}
			g.warn("%s: the A/A control %s differs by %s although its options cannot make a difference: smaller changes of %s may be chance (threshold %s from %s)", j.Workload, j.Cell, size, j.Metric, percent(j.Threshold.Relative), j.Threshold.Source)
		}
	}
}

func index(columns []Column) map[[3]string]*Column {
	at := make(map[[3]string]*Column, len(columns))
	for i := range columns {
		c := &columns[i]
		at[[3]string{c.Workload, c.Cell, c.Build}] = c
	}
	return at
}

// runs pairs the cells of two runs.
func (g *gate) runs(find func(workload string) *result.Loaded) {
	g.d.Mode = Sequential
	g.d.Head = g.head.Run.Run
	heads := Builds(&g.head.Run)
	if !g.hasBase(&g.head.Run) {
		return
	}
	columns := Columns(g.head)
	at := index(columns)
	loaded := map[*result.Loaded]map[[3]string]*Column{}
	var bases []string
	for _, w := range g.head.Run.Workloads {
		base := find(w.Name)
		if base == nil {
			g.say(result.ExitBaseline, "%s: there is no baseline", w.Name)
			continue
		}
		if !slices.Contains(bases, base.Run.Run) {
			bases = append(bases, base.Run.Run)
		}
		if base.Run.Run == g.head.Run.Run {
			g.say(result.ExitBaseline, "%s: the baseline is the run itself", w.Name)
			continue
		}
		forbids, doubts := comparable(g.head, base, w.Name)
		for _, d := range doubts {
			g.warn("%s and %s: %s", base.Run.Run, g.head.Run.Run, d)
		}
		for _, f := range forbids {
			g.say(result.ExitBaseline, "not comparable with %s: %s", base.Run.Run, f)
		}
		if len(forbids) > 0 {
			continue
		}
		if loaded[base] == nil {
			loaded[base] = index(Columns(base))
			for _, x := range base.Warnings {
				g.warn("%s: %s", base.Run.Run, x)
			}
		}
		theirs := Builds(&base.Run)
		ours := heads
		if len(ours) > 1 {
			ours = ours[1:]
		}
		for _, build := range ours {
			// A baseline of several builds is the one of the same name, else
			// its own base build.
			name := build
			if !slices.Contains(theirs, build) {
				if !g.hasBase(&base.Run) {
					continue
				}
				name = theirs[0]
			}
			g.cells(w, build, name, at, loaded[base], base, len(ours) > 1)
		}
	}
	g.d.Base = strings.Join(bases, ", ")
	g.d.Baseline = g.d.Base
}

func (g *gate) cells(w result.Workload, build, theirs string, at, baseAt map[[3]string]*Column, base *result.Loaded, several bool) {
	for _, c := range g.head.Run.Plan.Cells {
		if c.Workload != w.Name {
			continue
		}
		ours := at[[3]string{w.Name, c.Cell, build}]
		b := baseAt[[3]string{w.Name, c.Cell, theirs}]
		if b == nil {
			g.say(result.ExitBaseline, "%s: the baseline %s does not have the cell %s", w.Name, base.Run.Run, c.Cell)
			continue
		}
		if ours.Planned == 0 || b.Planned == 0 {
			g.warn("%s %s: left out of one of the runs; it is not judged", w.Name, c.Cell)
			continue
		}
		if len(b.Samples(w.Primary)) == 0 && !unsupported(ours) && !unsupported(b) {
			// It stays a cell that is judged, or the number of these would
			// depend on what was measured.
			g.say(result.ExitBaseline, "%s %s: the baseline %s has no sample of %s", w.Name, c.Cell, base.Run.Run, w.Primary)
		}
		name := c.Cell
		if several {
			name += "@" + build
		}
		g.duels = append(g.duels, duel{name: name, primary: w.Primary, head: ours, base: b})
	}
	for _, c := range base.Run.Plan.Cells {
		if c.Workload == w.Name && at[[3]string{w.Name, c.Cell, build}] == nil {
			g.warn("%s: the baseline's cell %s is not in %s and is not judged", w.Name, c.Cell, g.head.Run.Run)
		}
	}
}

// unsupported tells whether a target has said of all trials that it cannot run
// the cell.
func unsupported(c *Column) bool {
	for i := range c.Trials {
		if c.Trials[i].Outcome != result.Unsupported {
			return false
		}
	}
	return len(c.Trials) > 0
}

// judge judges the primary metrics, and then the others.
func (g *gate) judge() {
	var judged []duel
	for _, x := range g.duels {
		switch {
		case unsupported(x.head) != unsupported(x.base):
			side, other := "head", "base"
			if unsupported(x.base) {
				side, other = other, side
			}
			g.say(result.ExitFailed, "%s %s: the target of the %s does not support the cell, that of the %s does: the expected metric %s is absent", x.head.Workload, x.name, side, other, orUnknown(x.primary))
		case unsupported(x.head):
			g.warn("%s %s: the target does not support the cell; it is not judged", x.head.Workload, x.name)
		case x.primary == "":
			g.warn("%s %s: the workload has no primary metric; the cell is not judged", x.head.Workload, x.name)
		default:
			judged = append(judged, x)
		}
	}
	e := share(len(judged), g.rules.Confirmed)
	for _, x := range judged {
		j := g.compare(x, x.primary, e)
		g.absent(x)
		g.second(&j, x)
		g.doubt(&j, x)
		g.d.Judged = append(g.d.Judged, j)
	}
	g.advise(judged)
}

// compare judges one metric of two columns.
func (g *gate) compare(x duel, metric string, e rates) Judged {
	m := describe(metric)
	j := Judged{
		Workload: x.head.Workload, Cell: x.name, Build: x.head.Build, Metric: metric, Unit: m.Unit, Better: m.Better,
		Planned: min(x.head.Planned, x.base.Planned), HeadFailed: x.head.Failed, BaseFailed: x.base.Failed,
		Threshold: g.threshold(x.head.Workload, metric, m),
	}
	seed := seed(g.head.Run.Seed, x.head.Workload, x.name, metric)
	if g.d.Mode == Sequential {
		j.judgeGroups(x.head.Samples(metric), x.base.Samples(metric), x.head.Failed, x.base.Failed, e, g.rules.Offset)
		return j
	}
	p := pairUp(x.head, x.base, metric)
	j.HeadMedian, j.BaseMedian = medianPtr(x.head.Samples(metric)), medianPtr(x.base.Samples(metric))
	j.judgePairs(p, e, seed)
	if g.rules.Screen && metric == x.primary {
		j.screen(p)
	}
	return j
}

func (g *gate) threshold(workload, metric string, m result.Metric) Threshold {
	return threshold(g.rules.Thresholds, workload, metric, m)
}

// threshold finds the threshold of a metric, or the default.
func threshold(find Thresholds, workload, metric string, m result.Metric) Threshold {
	if find != nil {
		if t := find(workload, metric); t.Source != "" {
			return t
		}
	}
	return Threshold{Band: DefaultBand(m), Source: "default"}
}

// ThresholdOf is the threshold that a metric of a workload is judged with.
func ThresholdOf(find Thresholds, workload, metric string) Threshold {
	return threshold(find, workload, metric, describe(metric))
}

// absent asks for the primary metric in every trial that is ok, unless the trial says
// why it has none and others of the cell have one. Where the workload expects it, the
// lines have been asked already.
func (g *gate) absent(x duel) {
	expected := slices.Contains(findWorkload(&g.head.Run, x.head.Workload).Expected, x.primary)
	for i := range x.head.Trials {
		t := &x.head.Trials[i]
		if _, ok := sample(t, x.primary); ok || t.Outcome != result.OK {
			continue
		}
		if _, excused := t.Absent[x.primary]; excused && len(x.head.Samples(x.primary)) > 0 {
			continue
		}
		if _, there := t.Value(x.primary); there || !expected {
			g.say(result.ExitFailed, "trial %s (%s %s block %d): the primary metric %s is absent", t.Trial, t.Workload, x.name, t.Block, x.primary)
		}
	}
}

// second marks what the first look alarmed on and the second did not confirm.
func (g *gate) second(j *Judged, x duel) {
	if !g.rules.Confirmed {
		return
	}
	alarmed := slices.ContainsFunc(g.rules.Alarmed, func(c result.Cell) bool { return c.Workload == x.head.Workload && c.Cell == x.head.Cell })
	if j.Cleared = alarmed && j.Verdict != Slower; j.Cleared {
		j.Why = fmt.Sprintf("alarmed at the first look; after %d blocks: %s", j.Planned, j.Why)
	}
}

// doubt warns of what a reader should know beside the verdict.
func (g *gate) doubt(j *Judged, x duel) {
	if j.Noise != nil && j.N >= MinPairs && *j.Noise > j.Threshold.Relative {
		g.warn("%s %s %s: the threshold of %s (%s) lies below the noise: %d pairs show changes of %s and more", j.Workload, j.Cell, j.Metric, percent(j.Threshold.Relative), j.Threshold.Source, j.N, percent(*j.Noise))
	}
	if x.head.Planned != x.base.Planned {
		g.warn("%s %s: %d trials were planned, and %d of the base", j.Workload, j.Cell, x.head.Planned, x.base.Planned)
	}
	if h, b := x.head.Failed, x.base.Failed; h > b {
		if p, ok := stats.FisherGreater(h, x.head.Planned, b, x.base.Planned); ok {
			g.warn("%s %s: %d of %d trials did not end well, and %d of %d of the base (Fisher's exact p = %.2g)", j.Workload, j.Cell, h, x.head.Planned, b, x.base.Planned, p)
		}
	}
}

// advise judges the other metrics. They change no exit code; what is called
// faster or slower is a discovery among all of them, or leaves no doubt: with
// few pairs no p is small enough for a discovery.
func (g *gate) advise(duels []duel) {
	e := share(1, false)
	metrics := map[string][]string{}
	columns := map[string][]Column{}
	for _, x := range duels {
		columns[x.head.Workload] = append(columns[x.head.Workload], *x.head, *x.base)
	}
	for w, c := range columns {
		metrics[w] = Metrics(c)
	}
	var ps []float64
	for _, x := range duels {
		for _, m := range metrics[x.head.Workload] {
			if m == x.primary || len(x.head.Samples(m)) == 0 || len(x.base.Samples(m)) == 0 {
				continue
			}
			j := g.compare(x, m, e)
			p := 1.0
			if j.P != nil {
				p = *j.P
			} else if j.MannWhitney != nil {
				p = *j.MannWhitney
			}
			ps = append(ps, p)
			g.d.Advisory = append(g.d.Advisory, j)
		}
	}
	for i, found := range stats.BenjaminiHochberg(ps, discoveryRate) {
		if j := &g.d.Advisory[i]; !found && !j.plain && (j.Verdict == Faster || j.Verdict == Slower) {
			j.Why = fmt.Sprintf("%s on its own, but no discovery among %d metrics (Benjamini-Hochberg at %s)", j.Verdict, len(ps), percent(discoveryRate))
			j.Verdict = Inconclusive
		}
	}
}

// conclude makes the exit code.
func (g *gate) conclude() {
	d := g.d
	d.Exit = g.failed
	count := map[Verdict]int{}
	for _, j := range d.Judged {
		count[j.Verdict]++
		if j.Verdict == Slower || j.Verdict == Inconclusive {
			d.Reasons = append(d.Reasons, fmt.Sprintf("%s %s %s: %s%s: %s", j.Workload, j.Cell, j.Metric, j.Verdict, j.figures(), j.Why))
		}
	}
	if count[Slower] > 0 {
		d.Exit = result.Worse(d.Exit, result.ExitRegression)
	}
	if count[Inconclusive] > 0 {
		d.Exit = result.Worse(d.Exit, result.ExitInconclusive)
	}
	if len(d.Judged) == 0 && d.Exit == result.ExitOK {
		d.Exit = result.ExitFailed
		d.Reasons = append(d.Reasons, "0 cells were judged")
	}
	d.Outcome = Outcome(d.Exit)
}

// figures are the numbers of a verdict, with the threshold and where it is from.
func (j *Judged) figures() string {
	if j.Ratio == nil || j.CILow == nil || j.CIHigh == nil {
		return ""
	}
	return fmt.Sprintf(" (ratio %.3f, %s interval %.3f to %.3f, n = %d, threshold %s from %s)", *j.Ratio, percent(j.Level), *j.CILow, *j.CIHigh, j.N, percent(j.Threshold.Relative), j.Threshold.Source)
}

// Outcome is an exit code in a word.
func Outcome(code result.Exit) string {
	switch code {
	case result.ExitOK:
		return "ok"
	case result.ExitRegression:
		return "regression"
	case result.ExitInconclusive:
		return "inconclusive"
	case result.ExitFailed:
		return "failed"
	case result.ExitBaseline:
		return "not comparable"
	case result.ExitWrong:
		return "wrong output"
	case result.ExitInterrupted:
		return "interrupted"
	}
	return "usage"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
