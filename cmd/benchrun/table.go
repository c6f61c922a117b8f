package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"benchrun/harness/result"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// tableColumn is a metric of the table at the end of a run.
type tableColumn struct{ metric, title string }

// columns are those of streaming jobs. RUNNING means different things on different
// recovery paths, so it never stands alone.
var columns = []tableColumn{
	{"time_to_running_s", "running"},
	{"time_to_first_checkpoint_s", "first checkpoint"},
	{"time_to_drained_s", "drained"},
}

// batchColumns are those of batch jobs.
var batchColumns = []tableColumn{
	{"makespan_s", "makespan"},
	{"control_recovery_s", "control recovery"},
	{"time_to_parity_s", "parity"},
	{"avoidable_reexecuted_fraction", "avoidably redone"},
}

// tableTitle is what the table calls a metric; empty: it has no column of its own.
func tableTitle(metric string) string {
	for _, c := range slices.Concat(columns, batchColumns) {
		if c.metric == metric {
			return c.title
		}
	}
	return ""
}

// writeTables prints one table a workload: the medians of each cell.
func writeTables(out io.Writer, l *result.Loaded) {
	for _, w := range l.Run.Workloads {
		fmt.Fprintf(out, "%s: medians of the trials that are ok, warm-ups left out\n", w.Name)
		t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		titles, paths, more := columns, []string{""}, 0
		if w.Mode == spec.Batch {
			var steps []string
			steps, more = laterSteps(l, &w)
			titles, paths = measuredColumns(l, &w, steps), recordedPaths(l, &w, steps)
		}
		if !slices.ContainsFunc(titles, func(c tableColumn) bool { return c.metric == w.Primary }) {
			titles = append(slices.Clone(titles), tableColumn{w.Primary, w.Primary})
		}
		fmt.Fprint(t, "cell\tok")
		for _, c := range titles {
			fmt.Fprint(t, "\t"+c.title)
		}
		for _, step := range paths {
			fmt.Fprint(t, "\t"+ofStep(step, "recovery"))
		}
		fmt.Fprint(t, "\toutput\n")
		for _, c := range l.Run.Plan.Cells {
			if c.Workload != w.Name {
				continue
			}
			for _, build := range builds(l) {
				writeRow(t, l, w, c.Cell, build, titles, paths)
			}
		}
		t.Flush()
		if more > 0 {
			fmt.Fprintf(out, "faults that come later, see the report: %d more\n", more)
		}
		writeRecoveryCost(out, l, &w)
		fmt.Fprintln(out)
	}
}

func builds(l *result.Loaded) []string {
	var names []string
	for n := range l.Run.Builds {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// writeRow prints a cell. paths are the steps whose recovery path is told; the empty
// one is that of the first fault.
func writeRow(t io.Writer, l *result.Loaded, w result.Workload, cell, build string, titles []tableColumn, paths []string) {
	label := cell
	if len(l.Run.Builds) > 1 {
		label += "@" + build
	}
	planned, ok := 0, 0
	for _, s := range l.Run.Plan.Order {
		if s.Workload == w.Name && s.Cell == cell && s.Build == build && !s.Warmup {
			planned++
		}
	}
	samples := map[string][]float64{}
	taken := map[string][]string{}
	output := ""
	note := func(s string) {
		if !strings.Contains(output, s) {
			if output != "" {
				output += ", "
			}
			output += s
		}
	}
	for _, x := range l.Trials {
		if x.Workload != w.Name || x.Cell != cell || x.Build != build || x.Warmup {
			continue
		}
		switch {
		case x.Outcome == result.Incorrect:
			note("WRONG")
		case x.Outcome != result.OK:
			note(string(x.Outcome))
		case x.Correctness == nil:
			note("unproved")
		default:
			note("proved")
		}
		if x.Outcome != result.OK {
			continue
		}
		ok++
		for _, step := range paths {
			if path := pathOf(&x, step); path != "" && !slices.Contains(taken[step], path) {
				taken[step] = append(taken[step], path)
			}
		}
		for _, c := range titles {
			if v, there := x.Value(c.metric); there {
				samples[c.metric] = append(samples[c.metric], v)
			}
		}
	}
	fmt.Fprintf(t, "%s\t%d/%d", label, ok, planned)
	for _, c := range titles {
		value := "-"
		if xs := samples[c.metric]; len(xs) > 0 {
			value = quantity(c.metric, median(xs))
		}
		fmt.Fprint(t, "\t"+value)
	}
	for _, step := range paths {
		fmt.Fprint(t, "\t"+cmp.Or(strings.Join(taken[step], ", "), "-"))
	}
	fmt.Fprintf(t, "\t%s\n", cmp.Or(output, "-"))
}

// ofStep is the title of what belongs to a later fault, as its metrics are called.
func ofStep(step, title string) string {
	if step == "" {
		return title
	}
	return step + "." + title
}

// stepsShown is how many later faults the table has columns of.
const stepsShown = 3

// laterSteps are the faults that were not the first of their trial, in the order in
// which trials met them, and how many more there are.
func laterSteps(l *result.Loaded, w *result.Workload) (steps []string, more int) {
	for _, t := range l.Trials {
		if t.Workload != w.Name || t.Outcome != result.OK || len(t.Faults) == 0 {
			continue
		}
		for _, f := range t.Faults[1:] {
			if !slices.Contains(steps, f.Name) {
				steps = append(steps, f.Name)
			}
		}
	}
	n := min(len(steps), stepsShown)
	return steps[:n], len(steps) - n
}

// measuredColumns are those of a batch job of which any trial has a value: of the whole
// trial and of its first fault, then of later ones.
func measuredColumns(l *result.Loaded, w *result.Workload, steps []string) (titles []tableColumn) {
	for _, step := range append([]string{""}, steps...) {
		for _, c := range batchColumns {
			m, _ := result.LookupMetric(c.metric)
			own := tableColumn{ofStep(step, c.metric), ofStep(step, c.title)}
			if (step == "" || m.PerFault) && (own.metric == w.Primary || anyTrial(l, w, func(t *result.Trial) bool {
				_, there := t.Value(own.metric)
				return there
			})) {
				titles = append(titles, own)
			}
		}
	}
	return titles
}

// recordedPaths are the faults after which any trial has a recovery path.
func recordedPaths(l *result.Loaded, w *result.Workload, steps []string) []string {
	var paths []string
	for _, step := range append([]string{""}, steps...) {
		if anyTrial(l, w, func(t *result.Trial) bool { return pathOf(t, step) != "" }) {
			paths = append(paths, step)
		}
	}
	if len(paths) == 0 {
		return []string{""}
	}
	return paths
}

func anyTrial(l *result.Loaded, w *result.Workload, is func(*result.Trial) bool) bool {
	return slices.ContainsFunc(l.Trials, func(t result.Trial) bool {
		return t.Workload == w.Name && t.Outcome == result.OK && !t.Warmup && is(&t)
	})
}

// pathOf is the recovery path after a step, or after the first fault.
func pathOf(t *result.Trial, step string) string {
	if step == "" {
		return t.RecoveryPath
	}
	for _, f := range t.Faults {
		if f.Name == step {
			return f.RecoveryPath
		}
	}
	return ""
}

// writeRecoveryCost prints what job recovery costs and saves, where blocks hold a
// cell with it and the same without.
func writeRecoveryCost(out io.Writer, l *result.Loaded, w *result.Workload) {
	var columns []verdict.Column
	for _, c := range verdict.Columns(l) {
		if c.Workload == w.Name {
			columns = append(columns, c)
		}
	}
	derived := verdict.Derive(w, columns)
	if len(derived) == 0 {
		return
	}
	fmt.Fprint(out, "\njob recovery: medians of the blocks, with their 95 % intervals\n")
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "cell\tsteady overhead\tnoise floor\trecovery efficiency\tblocks\n")
	for i := range columns {
		for _, d := range derived[columns[i].Name] {
			x, ok := stats.Describe(d.Values)
			if !ok {
				continue
			}
			overhead, floor, efficiency := "-", "-", "-"
			if d.Metric == "steady_overhead_ratio" {
				overhead = interval(x, func(v float64) string { return fmt.Sprintf("%+.1f %%", 100*(v-1)) })
				base := slices.IndexFunc(columns, func(c verdict.Column) bool { return c.Name == d.Base })
				if v, ok := verdict.NoiseFloor(&columns[base], len(d.Values)); ok {
					floor = fmt.Sprintf("±%.1f %%", 100*(v-1))
				}
			} else {
				efficiency = interval(x, func(v float64) string { return fmt.Sprintf("%.2f", v) })
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d/%d\n", columns[i].Name, overhead, floor, efficiency, len(d.Values), columns[i].Planned)
		}
	}
	t.Flush()
}

// interval writes a median with its interval, if there is one.
func interval(x stats.Description, write func(float64) string) string {
	if x.CI == nil {
		return write(x.Median)
	}
	return fmt.Sprintf("%s [%s, %s]", write(x.Median), write(x.CI.Low), write(x.CI.High))
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// quantity writes a metric's value with its unit.
func quantity(metric string, v float64) string {
	m, ok := result.LookupMetric(metric)
	if !ok {
		return number(v)
	}
	switch m.Unit {
	case "s":
		return fmt.Sprintf("%.3f s", v)
	case "B":
		return bytesText(v)
	}
	if m.Share() {
		return number(100*v) + " %"
	}
	if m.Unit == "ratio" {
		return number(v)
	}
	return number(v) + " " + m.Unit
}

func bytesText(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return options.FormatSize(int64(v))
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
