package page

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// view is all that the page shows, in the order in which it does.
type view struct {
	Title      string
	Run        string
	State      string
	Complete   bool
	Subtitle   []string
	Warnings   []string // of the whole run
	Workloads  []*workloadView
	Provenance []fact
	Options    *table
	Texts      []sourceText
	Downloads  []download
	Glossary   []glossaryEntry
}

// fact is a name with its value.
type fact struct {
	Name, Value string
	Code        bool
}

// sourceText is a workload file as the run read it.
type sourceText struct{ Name, File, SHA256, Text string }

// glossaryEntry explains a metric.
type glossaryEntry struct{ Name, Unit, Better, Help string }

// workloadView is one workload.
type workloadView struct {
	run     *result.Run
	spec    *result.Workload
	columns []verdict.Column
	summary result.WorkloadSummary
	faults  []faultView
	labels  []string            // of columns
	hosts   map[string]hostLoad // by trial

	Name, ID    string
	Heading     string
	Description string
	Headline    []string
	Warnings    []string
	Overviews   []figure // medians, a fault
	Results     *table
	Plots       []figure // every sample, the first fault's
	Later       []figure // every sample, later faults'
	Timelines   []figure
	Phases      *table
	Flow        *table
	Correctness *table
	Limits      *table
	Trials      *table
	Commands    []fact
}

// PrimaryName is the metric that the workload is judged by, in words.
func (w *workloadView) PrimaryName() string { return short(w.spec.Primary) }

// faultView is a fault of the scenario.
type faultView struct {
	name, kind string
	prefix     string // of its metrics in tables: empty for the first
}

// title names the fault with its step.
func (f faultView) title() string {
	if f.name == "" || f.name == f.kind {
		return noun(f.kind)
	}
	return noun(f.kind) + " (step " + f.name + ")"
}

// figure is a chart with what goes around it.
type figure struct {
	ID, Title, Note string
	Series          []string // of bars
	File            string   // under plots/
	SVG             template.HTML
	picture         picture
}

// table is a real table: a header cell a row and a column.
type table struct {
	ID, Caption, Note string
	Head              []column
	Rows              []row
}

type column struct{ Text, Sub, Title string }

// row is one row; one with Group has no cells and stands above those that
// follow.
type row struct {
	Label, Title string
	Cells        []cell
	Group, Note  string
	ID           string
}

// cell is one field of a table. Sub stands below the text, smaller.
type cell struct {
	Text, Sub, Title string
	Class            string // good, bad, dim
	Link             string
}

func newView(l *result.Loaded, s *result.Summary) (*view, error) {
	v := &view{Run: l.Run.Run, State: string(l.Run.State), Complete: l.Run.State == result.Complete && len(l.Missing) == 0}
	columns := verdict.Columns(l)
	hosts := hostLoads(l)
	for i := range l.Run.Workloads {
		w := &workloadView{run: &l.Run, spec: &l.Run.Workloads[i], summary: s.Workloads[l.Run.Workloads[i].Name], hosts: hosts}
		w.Name, w.ID, w.Heading, w.Description = w.spec.Name, "w-"+slug(w.spec.Name), w.spec.Name, w.spec.Description
		for _, c := range columns {
			if c.Workload == w.Name {
				name := label(c.Cell)
				if c.Name != c.Cell {
					name += " @ " + c.Build
				}
				w.columns, w.labels = append(w.columns, c), append(w.labels, name)
			}
		}
		if err := w.fill(l); err != nil {
			return nil, err
		}
		v.Workloads = append(v.Workloads, w)
	}
	var names []string
	for _, w := range v.Workloads {
		names = append(names, w.Name)
	}
	v.Title = strings.Join(names, ", ")
	if len(names) > 3 {
		v.Title = count(len(names), "workload", "workloads")
	}
	v.Warnings = runWarnings(l)
	if len(v.Workloads) == 1 { // one box instead of two
		v.Workloads[0].Warnings = append(v.Warnings, v.Workloads[0].Warnings...)
		v.Workloads[0].Heading, v.Warnings = "Results", nil
	}
	v.provenance(l)
	for _, m := range result.Metrics() {
		better := map[result.Better]string{result.Lower: "lower is better", result.Higher: "higher is better", result.Neutral: "neither is better"}[m.Better]
		v.Glossary = append(v.Glossary, glossaryEntry{m.Name, m.Unit, better, m.Help})
	}
	var err error
	v.Downloads, err = downloads(l, s, columns)
	return v, err
}

// plots are the pictures of all workloads.
func (v *view) plots() []plotFile {
	var out []plotFile
	for _, w := range v.Workloads {
		for _, f := range slices.Concat(w.Overviews, w.Plots, w.Later, w.Timelines) {
			out = append(out, plotFile{f.File, f.picture})
		}
	}
	return out
}

func (w *workloadView) fill(l *result.Loaded) error {
	w.findFaults()
	w.overviews()
	w.results()
	w.points()
	if err := w.timelines(l.Dir); err != nil {
		return err
	}
	w.phases()
	w.flow()
	w.correctness()
	w.trials()
	if err := w.limits(l); err != nil {
		return err
	}
	w.headline()
	w.warnings()
	for i, c := range w.columns {
		if i > 0 && w.columns[i-1].Cell == c.Cell {
			continue
		}
		w.Commands = append(w.Commands, fact{label(c.Cell), reproduce(w.run, w.spec, c.Cell), true})
	}
	return nil
}

// findFaults lists the faults of the scenario as the good trials met them.
func (w *workloadView) findFaults() {
	for _, c := range w.columns {
		for _, t := range c.Trials {
			for i, f := range t.Faults {
				if slices.ContainsFunc(w.faults, func(x faultView) bool { return x.name == f.Name }) {
					continue
				}
				x := faultView{name: f.Name, kind: f.Kind}
				if i > 0 {
					x.prefix = f.Name + "."
				}
				w.faults = append(w.faults, x)
			}
		}
	}
	if len(w.faults) == 0 {
		w.faults = []faultView{{}}
	}
}

// the three metrics that are shown together wherever one of them is.
var together = []string{"time_to_running_s", "time_to_first_checkpoint_s", "time_to_drained_s"}

var shortNames = map[string]string{
	"detect_s":                           "detected",
	"time_to_deploying_s":                "deploying",
	"time_to_initializing_s":             "initializing",
	"time_to_running_s":                  "running",
	"time_to_first_output_s":             "first output",
	"time_to_first_checkpoint_trigger_s": "first checkpoint triggered",
	"time_to_first_checkpoint_s":         "first checkpoint",
	"time_to_drained_s":                  "drained",
	"time_to_caught_up_s":                "caught up",
	"restored_inflight_bytes":            "restored in flight",
	"restored_bytes":                     "read at restore",
	"filtered_out_bytes":                 "filtered out",
	"spilled_bytes":                      "spilled",
	"first_checkpoint_inflight_bytes":    "in flight at first checkpoint",
	"inflight_inflation":                 "inflation",
	"reprocessed_records":                "reprocessed",
	"throughput_records_per_s":           "throughput",
	"makespan_s":                         "makespan",
}

// short is the name of a metric in words.
func short(metric string) string {
	step := ""
	if i := strings.LastIndexByte(metric, '.'); i >= 0 {
		step, metric = metric[:i], metric[i+1:]
	}
	name, ok := shortNames[metric]
	if !ok {
		name = metric
	}
	if step != "" {
		return step + ": " + name
	}
	return name
}

// stat is what the summary says of a metric in a column.
func (w *workloadView) stat(i int, metric string) (result.Stat, bool) {
	s, ok := w.summary.Cells[w.columns[i].Name].Metrics[metric]
	return s, ok
}

// has tells whether any column has samples of a metric.
func (w *workloadView) has(metric string) bool {
	for i := range w.columns {
		if _, ok := w.stat(i, metric); ok {
			return true
		}
	}
	return false
}

// overviews compare the medians of the three metrics after each fault, or of
// the primary one where those were not measured.
func (w *workloadView) overviews() {
	for k, f := range w.faults {
		metrics := w.present(f.prefix, together)
		unit := "s"
		title := "Medians after " + f.title()
		if len(metrics) == 0 {
			if k > 0 {
				continue // a fault that stops no task
			}
			metrics = []string{w.spec.Primary}
			title = capital(short(w.spec.Primary)) + ": medians"
			unit = metricOf(w.spec.Primary).Unit
		}
		b := &chart.Bars{Title: w.Name + ": " + lower(title), Unit: unit}
		for _, m := range metrics {
			b.Series = append(b.Series, short(strings.TrimPrefix(m, f.prefix)))
		}
		for i := range w.columns {
			g := chart.Group{Label: w.labels[i]}
			for _, m := range metrics {
				s, ok := w.stat(i, m)
				if !ok {
					g.Values, g.Notes = append(g.Values, nil), append(g.Notes, "")
					continue
				}
				g.Values = append(g.Values, &s.Median)
				g.Notes = append(g.Notes, "median of "+count(s.N, "trial", "trials"))
			}
			b.Groups = append(b.Groups, g)
		}
		name := "overview"
		if k > 0 {
			name += "-" + slug(f.name)
		}
		w.Overviews = append(w.Overviews, figure{
			ID: w.ID + "-" + name, Title: title, File: slug(w.Name) + "-" + name + ".png", SVG: template.HTML(b.SVG()), picture: b, Series: b.Series,
		})
	}
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// results makes the table of times.
func (w *workloadView) results() {
	metrics := slices.Clone(together)
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
	if len(w.faults) > 1 {
		caption = "Times after each fault"
	}
	t := &table{ID: w.ID + "-results", Caption: caption, Head: []column{{Text: "trials ok", Sub: "of planned"}}}
	for _, m := range metrics {
		d := metricOf(m)
		sub := unitWord(d.Unit)
		if d.Better != result.Neutral {
			sub += ", " + string(d.Better) + " is better"
		}
		t.Head = append(t.Head, column{Text: short(m), Sub: sub, Title: m + ": " + d.Help})
	}
	t.Head = append(t.Head, column{Text: "recovery path", Sub: "as recorded"})
	primary := w.spec.Primary
	paired := len(w.summary.Pairs) > 0
	if paired {
		t.Head = append(t.Head, column{Text: w.ratioTitle(), Sub: short(primary), Title: "median of the ratios within blocks, " + primary + ", to " + w.reference()})
	}
	t.Head = append(t.Head, column{Text: "output"})
	for k, f := range w.faults {
		w.group(t, f)
		for i := range w.columns {
			c := &w.columns[i]
			r := row{Label: w.labels[i], Title: c.Name, Cells: []cell{okCell(c)}}
			for _, m := range metrics {
				r.Cells = append(r.Cells, w.medianCell(i, f.prefix+m))
			}
			r.Cells = append(r.Cells, pathCell(c, k, f.name))
			if paired {
				r.Cells = append(r.Cells, w.ratioCell(i, f.prefix+primary))
			}
			r.Cells = append(r.Cells, outputCell(c))
			t.Rows = append(t.Rows, r)
		}
	}
	w.Results = t
}

// group puts the name of a fault above its rows, if there are several faults.
func (w *workloadView) group(t *table, f faultView) {
	if len(w.faults) < 2 {
		return
	}
	r := row{Group: f.name, Note: f.kind, ID: t.ID + "-" + slug(f.name)}
	if f.prefix != "" {
		r.Note += "; metrics " + f.prefix + "*"
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
	return label(verdict.Reference(w.run, w.Name))
}

// ratioTitle heads the column of ratios.
func (w *workloadView) ratioTitle() string {
	if r := w.reference(); len(r) <= 12 {
		return "ratio to " + r
	}
	return "ratio to the reference"
}

// metricOf finds a metric, or stands in for an unknown one.
func metricOf(name string) result.Metric {
	m, ok := result.LookupMetric(name)
	if !ok {
		m = result.Metric{Name: name, Unit: "1", Better: result.Neutral, Help: "not known to this version"}
	}
	return m
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
		return cell{Text: "–", Class: "dim", Title: "no trial of this cell reached it before the next fault or the end"}
	}
	out := cell{Text: chart.Number(s.Median, s.Unit)}
	exact := fmt.Sprintf("median %v, mean %v, min %v, max %v %s; n = %d", s.Median, s.Mean, s.Min, s.Max, s.Unit, s.N)
	if s.SD != nil {
		exact += fmt.Sprintf("; sd %.3g", *s.SD)
	}
	out.Title = exact
	switch {
	case s.CILow != nil && s.CIHigh != nil:
		out.Sub = "[" + chart.Number(*s.CILow, s.Unit) + " – " + chart.Number(*s.CIHigh, s.Unit) + "]"
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
	c := &w.columns[i]
	if c.Cell == verdict.Reference(w.run, w.Name) {
		return cell{Text: "1", Sub: "the reference", Class: "dim"}
	}
	p, ok := w.summary.Pairs[c.Name][metric]
	if !ok || p.Ratio == nil {
		return cell{Text: "–", Class: "dim", Title: "too few blocks in which both cells were measured"}
	}
	out := cell{Text: ratioText(*p.Ratio), Title: fmt.Sprintf("%v; %d pairs", *p.Ratio, p.N)}
	switch verdict.Verdict(p.Verdict) {
	case verdict.Faster:
		out.Class, out.Sub = "good", "faster"
	case verdict.Slower:
		out.Class, out.Sub = "bad", "slower"
	case verdict.Same:
		out.Sub = "same"
	default:
		out.Sub = "no verdict"
	}
	if p.CILow != nil && p.CIHigh != nil {
		out.Sub += " [" + ratioText(*p.CILow) + " – " + ratioText(*p.CIHigh) + "]"
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

// points draws every sample of the metrics that count, for every fault.
func (w *workloadView) points() {
	var metrics []string
	add := func(m string) {
		if w.has(m) && !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
	}
	add(w.spec.Primary)
	first := 0
	for k, f := range w.faults {
		for _, m := range together {
			add(f.prefix + m)
		}
		if k == 0 {
			first = len(metrics)
		}
	}
	for k, m := range metrics {
		d := metricOf(m)
		p := &chart.Points{Title: w.Name + ": " + short(m), Unit: d.Unit}
		for i := range w.columns {
			c := &w.columns[i]
			r := chart.Row{Label: w.labels[i], Planned: c.Planned, Failed: c.Failed}
			for j := range c.Trials {
				t := &c.Trials[j]
				if x, ok := t.Value(m); ok && t.Outcome == result.OK {
					r.Values = append(r.Values, chart.Value{V: x, Note: fmt.Sprintf("block %d, trial %s", t.Block, t.Trial)})
				}
			}
			if s, ok := w.stat(i, m); ok {
				r.Median, r.Low, r.High = &s.Median, s.CILow, s.CIHigh
			}
			p.Rows = append(p.Rows, r)
		}
		f := figure{ID: w.ID + "-" + slug(m), Title: short(m), File: slug(w.Name) + "-" + slug(m) + ".png", SVG: template.HTML(p.SVG()), picture: p, Note: m}
		if d.Better != result.Neutral {
			f.Note += ", " + string(d.Better) + " is better"
		}
		if k < first {
			w.Plots = append(w.Plots, f)
		} else {
			w.Later = append(w.Later, f)
		}
	}
}

// timelines draws one trial a cell: the one whose primary metric is nearest the
// median, else the last that failed.
func (w *workloadView) timelines(dir string) error {
	stories := make([]*story, len(w.columns))
	for i := range w.columns {
		t := w.typical(i)
		if t == nil {
			continue
		}
		events, err := result.LoadEvents(dir, t.Trial)
		if errors.Is(err, fs.ErrNotExist) {
			w.Warnings = append(w.Warnings, fmt.Sprintf("trial %s has no timeline; it was not kept", t.Trial))
			continue
		}
		if err != nil {
			w.Warnings = append(w.Warnings, fmt.Sprintf("the timeline of trial %s is damaged: %v", t.Trial, err))
		}
		if len(events) > 0 {
			stories[i] = newStory(t, events)
		}
	}
	from, to := extent(slices.DeleteFunc(slices.Clone(stories), func(s *story) bool { return s == nil }))
	charts := make([]*chart.Timeline, len(stories))
	top, left := 0.0, 0.0
	for i, s := range stories {
		if s == nil {
			continue
		}
		charts[i] = s.chart(w.Name+": "+w.labels[i], from, to)
		top = max(top, charts[i].RateTop())
	}
	for _, c := range charts {
		if c != nil {
			c.MaxRate = top
			left = max(left, c.NameWidth())
		}
	}
	for i, c := range charts {
		if c == nil {
			continue
		}
		c.Left = left
		t := stories[i].trial
		note := fmt.Sprintf("trial %s, block %d", t.Trial, t.Block)
		if t.Outcome != result.OK {
			note += fmt.Sprintf(" – %s in step %s: %s", t.Outcome, t.Phase, t.Reason)
		}
		w.Timelines = append(w.Timelines, figure{
			ID: w.ID + "-timeline-" + slug(w.columns[i].Name), Title: w.labels[i], Note: note,
			File: slug(w.Name) + "-timeline-" + slug(w.columns[i].Name) + ".png", SVG: template.HTML(c.SVG()), picture: c,
		})
	}
	return nil
}

// typical picks the trial of a column that its timeline shows.
func (w *workloadView) typical(i int) *result.Trial {
	c := &w.columns[i]
	middle, have := stats.Median(c.Samples(w.spec.Primary))
	var best *result.Trial
	for j := range c.Trials {
		t := &c.Trials[j]
		switch {
		case best == nil, best.Outcome != result.OK:
			best = t // at last the last of those that failed
		case t.Outcome == result.OK && have:
			if math.Abs(t.Metrics[w.spec.Primary]-middle) < math.Abs(best.Metrics[w.spec.Primary]-middle) {
				best = t
			}
		}
	}
	return best
}
