package main

import (
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

// columns are the metrics of the table at the end of a run. RUNNING means
// different things on different recovery paths, so it never stands alone.
var columns = []struct{ metric, title string }{
	{"time_to_running_s", "running"},
	{"time_to_first_checkpoint_s", "first checkpoint"},
	{"time_to_drained_s", "drained"},
}

// batchColumns are those of batch jobs.
var batchColumns = []struct{ metric, title string }{
	{"makespan_s", "makespan"},
	{"control_recovery_s", "control recovery"},
	{"time_to_parity_s", "parity"},
	{"avoidable_reexecuted_fraction", "avoidably redone"},
}

// writeTables prints one table a workload: the medians of each cell.
func writeTables(out io.Writer, l *result.Loaded) {
	for _, w := range l.Run.Workloads {
		fmt.Fprintf(out, "%s: medians of the trials that are ok, warm-ups left out\n", w.Name)
		t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		titles := columns
		if w.Mode == spec.Batch {
			titles = measuredColumns(l, &w, batchColumns)
		}
		if !slices.ContainsFunc(titles, func(c struct{ metric, title string }) bool { return c.metric == w.Primary }) {
			titles = append(slices.Clone(titles), struct{ metric, title string }{w.Primary, w.Primary})
		}
		fmt.Fprint(t, "cell\tok")
		for _, c := range titles {
			fmt.Fprint(t, "\t"+c.title)
		}
		fmt.Fprint(t, "\trecovery\toutput\n")
		for _, c := range l.Run.Plan.Cells {
			if c.Workload != w.Name {
				continue
			}
			for _, build := range builds(l) {
				writeRow(t, l, w, c.Cell, build, titles)
			}
		}
		t.Flush()
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

func writeRow(t io.Writer, l *result.Loaded, w result.Workload, cell, build string, titles []struct{ metric, title string }) {
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
	var paths []string
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
		path := x.RecoveryPath
		if w.Mode == spec.Batch { // several faults at once: that of the master may not be the first
			path = batchPath(&x)
		}
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		for _, c := range titles {
			v, there := x.Metrics[c.metric]
			if w.Mode == spec.Batch && !there {
				v, there = laterFault(&x, c.metric)
			}
			if there {
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
	path := "-"
	if len(paths) > 0 {
		path = strings.Join(paths, ", ")
	}
	if output == "" {
		output = "-"
	}
	fmt.Fprintf(t, "\t%s\t%s\n", path, output)
}

// measuredColumns are those of which any trial of a workload has a value.
func measuredColumns(l *result.Loaded, w *result.Workload, all []struct{ metric, title string }) []struct{ metric, title string } {
	return slices.DeleteFunc(slices.Clone(all), func(c struct{ metric, title string }) bool {
		return c.metric != w.Primary && !slices.ContainsFunc(l.Trials, func(t result.Trial) bool {
			_, own := t.Metrics[c.metric]
			_, later := laterFault(&t, c.metric)
			return t.Workload == w.Name && t.Outcome == result.OK && (own || later)
		})
	})
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

// batchPath is the recovery path of the first fault that has one.
func batchPath(t *result.Trial) string {
	for _, f := range t.Faults {
		if f.RecoveryPath != "" {
			return f.RecoveryPath
		}
	}
	return ""
}

// laterFault is a metric of the first fault that has it.
func laterFault(t *result.Trial, metric string) (float64, bool) {
	for _, f := range t.Faults {
		if v, ok := f.Metrics[metric]; ok {
			return v, true
		}
	}
	return 0, false
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
