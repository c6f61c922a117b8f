package page

import (
	"html/template"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// view is all that the page shows, in the order in which it does.
type view struct {
	PageTitle  string
	Title      string
	Run        string
	State      string
	Complete   bool
	Subtitle   []string
	Warnings   []string // of the whole run
	Workloads  []*workloadView
	Summary    []lead // of several workloads
	Provenance []fact
	Options    *table
	Texts      []sourceText
	Downloads  []download
	Glossary   []glossaryEntry
}

// lead is the first sentence on a workload.
type lead struct{ Name, ID, Text string }

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
	// compared are the comparisons of the whole run.
	compared   *verdict.Comparisons
	thresholds verdict.Thresholds
	faults     []faultView
	labels     []string            // of columns
	scenes     []string            // batch: likewise, without the option of job recovery
	hosts      map[string]hostLoad // by trial
	stories    []*story            // of the typical trials, by column

	Name, ID     string
	Heading      string
	Description  string
	Headline     []string
	Warnings     []string
	Overviews    []figure // medians, a fault
	Results      *table
	Forests      []figure // ratios to the base build, to the reference cell
	Verdicts     *table
	Noise        string
	Band         string   // threshold of the verdicts, and where it is from
	Heats        []figure // the matrix, if it has two axes
	Controls     *table
	Conclude     []string
	Refrain      []string
	Compared     []figure // one trial a cell, side by side
	Plots        []figure // every sample, the first fault's
	Later        []figure // every sample, later faults'
	Timelines    []figure
	Phases       *table
	Flow         *table
	BatchFigures []figure
	Batch        *table
	RecoveryCost *table
	Correctness  *table
	Limits       *table
	Trials       *table
	Commands     []fact
}

// Open tells whether the timelines of all tasks are few enough to be shown
// without being asked for.
func (w *workloadView) Open() bool { return len(w.Timelines) <= 3 }

// Batched tells whether it is a batch job, and Twinned whether cells are compared
// with the same without job recovery.
func (w *workloadView) Batched() bool { return w.spec.Mode == "batch" }
func (w *workloadView) Twinned() bool { return w.twinned() }

// Faulty tells whether any trial met a fault.
func (w *workloadView) Faulty() bool { return w.faults[0].kind != "" }

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

type column struct {
	Text, Sub, Title string
	Left             bool // of texts
}

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

// newView makes the view of a run, and the summary that it shows.
func newView(l *result.Loaded, thresholds verdict.Thresholds) (*view, *result.Summary, error) {
	compared := verdict.Within(l, thresholds)
	s := verdict.SummaryOf(l, compared)
	v := &view{Run: l.Run.Run, State: string(l.Run.State), Complete: l.Run.State == result.Complete && len(l.Missing) == 0}
	columns := verdict.Columns(l)
	hosts := hostLoads(l)
	for i := range l.Run.Workloads {
		w := &workloadView{run: &l.Run, spec: &l.Run.Workloads[i], summary: s.Workloads[l.Run.Workloads[i].Name], hosts: hosts, compared: compared, thresholds: thresholds}
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
			return nil, nil, err
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
	v.PageTitle = v.Title + " – recovery report"
	v.Warnings = runWarnings(l)
	if len(v.Workloads) == 1 { // one box instead of two
		v.Workloads[0].Warnings = append(v.Warnings, v.Workloads[0].Warnings...)
		v.Workloads[0].Heading, v.Warnings = "Results", nil
	}
	if len(v.Workloads) > 1 {
		for _, w := range v.Workloads {
			v.Summary = append(v.Summary, lead{w.Name, w.ID, w.Headline[0]})
		}
	}
	v.provenance(l)
	for _, m := range slices.Concat(result.Metrics(), result.DerivedMetrics()) {
		better := map[result.Better]string{result.Lower: "lower is better", result.Higher: "higher is better", result.Neutral: "neither is better"}[m.Better]
		v.Glossary = append(v.Glossary, glossaryEntry{m.Name, m.Unit, better, m.Help})
	}
	var err error
	v.Downloads, err = downloads(l, s, columns)
	return v, s, err
}

// Batch tells whether there is a workload of a batch job.
func (v *view) Batch() bool {
	return slices.ContainsFunc(v.Workloads, func(w *workloadView) bool { return w.spec.Mode == "batch" })
}

// SummaryTitle heads the first sentences on several workloads.
func (v *view) SummaryTitle() string {
	if v.Batch() {
		return "In short"
	}
	return "How long until safe again"
}

// plots are the pictures of all workloads.
func (v *view) plots() []plotFile {
	var out []plotFile
	for _, w := range v.Workloads {
		for _, f := range slices.Concat(w.Overviews, w.Forests, w.Heats, w.Plots, w.Later, w.Compared, w.Timelines, w.BatchFigures) {
			out = append(out, plotFile{f.File, f.picture})
		}
	}
	return out
}

func (w *workloadView) fill(l *result.Loaded) error {
	w.findFaults()
	w.batchLabels()
	w.overviews()
	w.results()
	w.comparisons()
	w.bands()
	w.heat()
	w.controls()
	w.points()
	if err := w.timelines(l.Dir); err != nil {
		return err
	}
	w.phases()
	w.flow()
	w.batch()
	w.correctness()
	w.trials()
	if err := w.limits(l); err != nil {
		return err
	}
	w.headline()
	w.conclude()
	w.warnings()
	for i, c := range w.columns {
		if i > 0 && w.columns[i-1].Cell == c.Cell {
			continue
		}
		name := label(c.Cell)
		if c.Name == c.Cell {
			name = w.labels[i]
		}
		w.Commands = append(w.Commands, fact{name, Reproduce(w.run, w.spec, c.Cell), true})
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
