package page

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// phaseMetrics are the steps of a recovery, in their usual order.
var phaseMetrics = []string{
	"detect_s", "time_to_deploying_s", "time_to_initializing_s", "time_to_running_s", "time_to_first_output_s",
	"time_to_first_checkpoint_trigger_s", "time_to_first_checkpoint_s", "time_to_drained_s", "time_to_caught_up_s",
}

// phases makes the table of the way back.
func (w *workloadView) phases() {
	list, caption := phaseMetrics, "The way back: medians in seconds from the fault"
	if w.spec.Mode == "batch" {
		list, caption = append(recoveryPhases[:len(recoveryPhases):len(recoveryPhases)], "control_recovery_s"), "How control came back: medians of the phases in seconds"
	}
	metrics := w.everywhere(list)
	if len(metrics) == 0 {
		return
	}
	w.Phases = &table{ID: w.ID + "-phases", Caption: caption}
	w.medians(w.Phases, metrics)
}

// flowMetrics tell what became of the data in flight.
var flowMetrics = []string{
	"restored_inflight_bytes", "restored_bytes", "filtered_out_bytes", "spilled_bytes", "first_checkpoint_inflight_bytes", "inflight_inflation", "reprocessed_records", "throughput_records_per_s",
}

// flow makes the table of in-flight data.
func (w *workloadView) flow() {
	metrics := w.everywhere(flowMetrics)
	if len(metrics) == 0 {
		return
	}
	w.Flow = &table{
		ID: w.ID + "-inflight", Caption: "Data in flight and throughput: medians",
		Note: "Inflation is the in-flight data of the first checkpoint after the fault over what was restored. It counts new records too: where the sources go on, it is above 1 although nothing is held twice. In a chain of rescales it must not stay above 1 while no new records come in.",
	}
	w.medians(w.Flow, metrics)
}

// present are those of some metrics that a fault has samples of, with its
// prefix.
func (w *workloadView) present(prefix string, metrics []string) []string {
	var out []string
	for _, m := range metrics {
		if w.has(prefix + m) {
			out = append(out, prefix+m)
		}
	}
	return out
}

// medians fills a table of medians: cells by metrics, fault by fault.
func (w *workloadView) medians(t *table, metrics []string) {
	for _, m := range metrics {
		d := metricOf(m)
		h := column{Text: short(m), Title: m + ": " + d.Help}
		if strings.HasPrefix(d.Unit, "records") || d.Unit == "tasks" {
			h.Sub = d.Unit
		}
		t.Head = append(t.Head, h)
	}
	for _, g := range w.groups() {
		own := slices.DeleteFunc(slices.Clone(metrics), func(m string) bool { return !g.has(m) })
		if len(w.present(g.prefix, own)) == 0 {
			continue
		}
		w.group(t, g)
		for i := range w.columns {
			if w.elsewhere(i, g) {
				continue
			}
			r := row{Label: w.labels[i], Title: w.columns[i].Name}
			for _, m := range metrics {
				c := w.groupCell(i, g, m)
				c.Sub = ""
				r.Cells = append(r.Cells, c)
			}
			t.Rows = append(t.Rows, r)
		}
	}
}

// correctness adds up what the proofs of a cell's trials say.
func (w *workloadView) correctness() {
	t := &table{
		ID: w.ID + "-correctness", Caption: "Proof of the output: records, all trials of a cell together",
		Head: []column{{Text: "proved", Sub: "trials"}, {Text: "expected"}, {Text: "received"}, {Text: "lost"}, {Text: "duplicated"}, {Text: "digest"}, {Text: "verdict"}},
		Note: "Expected records and digest come from a computation that shares nothing with the engine. A job whose only sink discards proves nothing.",
	}
	for i := range w.columns {
		c := &w.columns[i]
		var sum result.Correctness
		proofs, digests := 0, 0
		for _, x := range c.Trials {
			if p := x.Correctness; p != nil {
				proofs++
				sum.Expected, sum.Received = sum.Expected+p.Expected, sum.Received+p.Received
				sum.Lost, sum.Duplicated = sum.Lost+p.Lost, sum.Duplicated+p.Duplicated
				if p.Digest == p.ExpectedDigest {
					digests++
				}
			}
		}
		r := row{Label: w.labels[i], Title: c.Name}
		if proofs == 0 {
			for range 6 {
				r.Cells = append(r.Cells, cell{Text: "–", Class: "dim", Title: "no trial of this cell has a proof"})
			}
			r.Cells = append(r.Cells, outputCell(c))
			t.Rows = append(t.Rows, r)
			continue
		}
		number := func(n int64, wrong bool) cell {
			out := cell{Text: chart.Number(float64(n), "records")}
			if wrong {
				out.Class = "bad"
			}
			return out
		}
		digest := cell{Text: "equal"}
		if digests < proofs {
			digest = cell{Text: fmt.Sprintf("%d of %d differ", proofs-digests, proofs), Class: "bad"}
		}
		r.Cells = append(r.Cells, cell{Text: fmt.Sprintf("%d of %d", proofs, len(c.Trials))}, number(sum.Expected, false), number(sum.Received, sum.Received != sum.Expected),
			number(sum.Lost, sum.Lost > 0), number(sum.Duplicated, sum.Duplicated > 0), digest, outputCell(c))
		t.Rows = append(t.Rows, r)
	}
	w.Correctness = t
}

// trials lists every trial, warm-ups too where their lines are there.
func (w *workloadView) trials() {
	t := &table{
		ID: w.ID + "-trials", Caption: "Every trial, in the order of their running",
		Head: []column{{Text: "block"}, {Text: "cell"}, {Text: "outcome"}},
	}
	metrics := together
	if w.spec.Mode == "batch" {
		metrics = []string{"makespan_s"}
		for _, f := range w.faults {
			for _, m := range w.present(f.prefix, []string{"control_recovery_s", "time_to_parity_s"}) {
				if !slices.Contains(metrics, m) {
					metrics = append(metrics, m)
				}
			}
		}
	}
	for _, m := range metrics {
		t.Head = append(t.Head, column{Text: short(m), Sub: "s"})
	}
	t.Head = append(t.Head, column{Text: "path"}, column{Text: "wall", Sub: "s"}, column{Text: "CPU", Sub: "s"}, column{Text: "peak memory"}, column{Text: "others", Sub: "cores", Title: "cores that other processes used meanwhile, on average"}, column{Text: "log"})
	var all []result.Trial
	names := map[string]string{}
	for i, c := range w.columns {
		for _, x := range c.Trials {
			all = append(all, x)
			names[x.Trial] = w.labels[i]
		}
	}
	slices.SortStableFunc(all, func(a, b result.Trial) int { return a.Order - b.Order })
	for _, x := range all {
		r := row{Label: x.Trial, Title: x.Cell}
		outcome := cell{Text: string(x.Outcome)}
		if x.Outcome != result.OK {
			outcome.Class, outcome.Sub = "bad", reason(&x)
		}
		r.Cells = append(r.Cells, cell{Text: fmt.Sprint(x.Block)}, cell{Text: names[x.Trial]}, outcome)
		for _, m := range metrics {
			if v, ok := x.Value(m); ok {
				r.Cells = append(r.Cells, cell{Text: chart.Number(v, "s"), Title: fmt.Sprint(v)})
			} else {
				r.Cells = append(r.Cells, cell{Text: "–", Class: "dim"})
			}
		}
		path := cell{Text: pathsOf(&x)}
		if path.Text == "" {
			path = cell{Text: "–", Class: "dim"}
		}
		r.Cells = append(r.Cells, path, cell{Text: chart.Number(x.WallS, "s")})
		cpu, rss := cell{Text: "–", Class: "dim"}, cell{Text: "–", Class: "dim"}
		if x.Resources != nil && x.Resources.CPUS != nil {
			cpu = cell{Text: chart.Number(*x.Resources.CPUS, "s")}
		}
		if x.Resources != nil && x.Resources.MaxRSSBytes != nil {
			rss = cell{Text: chart.Quantity(float64(*x.Resources.MaxRSSBytes), "B")}
		}
		others := cell{Text: "–", Class: "dim", Title: "the trial was too short for a sample of the host"}
		if h, ok := w.hosts[x.Trial]; ok {
			others = cell{Text: fmt.Sprintf("%.2f", h.others)}
		}
		r.Cells = append(r.Cells, cpu, rss, others, cell{Text: "log", Link: "logs/" + baseName(x.Trial) + ".txt"})
		t.Rows = append(t.Rows, r)
	}
	w.Trials = t
}

// pathsOf are how a trial recovered, of later faults with their names.
func pathsOf(t *result.Trial) string {
	var parts []string
	for i, f := range t.Faults {
		switch {
		case f.RecoveryPath == "":
		case i == 0:
			parts = append(parts, f.RecoveryPath)
		default:
			parts = append(parts, f.Name+": "+f.RecoveryPath)
		}
	}
	return strings.Join(parts, ", ")
}

// baseName keeps a trial's name within the folder that a link points into.
func baseName(name string) string { return path.Base(path.Clean("/" + name)) }

func reason(t *result.Trial) string {
	var parts []string
	if t.Phase != "" {
		parts = append(parts, "in "+t.Phase)
	}
	if t.Reason != "" {
		parts = append(parts, t.Reason)
	}
	return strings.Join(parts, ": ")
}

// limits holds the thresholds of the workload file.
func (w *workloadView) limits(l *result.Loaded) error {
	limits, err := l.Limits()
	if err != nil {
		w.Warnings = append(w.Warnings, err.Error())
		return nil
	}
	t := &table{ID: w.ID + "-limits", Caption: "Limits of the workload file", Head: []column{{Text: "limit"}, {Text: "value"}, {Text: "samples"}, {Text: "kept"}}}
	for _, x := range limits {
		if x.Workload != w.Name {
			continue
		}
		r := row{Label: label(x.Cell), Title: x.Cell, Cells: []cell{{Text: x.Text}}}
		switch {
		case x.N == 0:
			r.Cells = append(r.Cells, cell{Text: "–", Class: "dim"}, cell{Text: "0"}, cell{Text: "no data", Class: "bad"})
		case x.Broken:
			r.Cells = append(r.Cells, cell{Text: chart.Number(x.Value, "")}, cell{Text: fmt.Sprint(x.N)}, cell{Text: "✗ broken", Class: "bad"})
		default:
			r.Cells = append(r.Cells, cell{Text: chart.Number(x.Value, "")}, cell{Text: fmt.Sprint(x.N)}, cell{Text: "✓ kept", Class: "good"})
		}
		t.Rows = append(t.Rows, r)
	}
	if len(t.Rows) > 0 {
		w.Limits = t
	}
	return nil
}

// labelOf is the name of a column as its workload shows it.
func (v *view) labelOf(c verdict.Column) string {
	for _, w := range v.Workloads {
		if w.Name == c.Workload {
			return w.labelOf(c.Name)
		}
	}
	return label(c.Cell)
}

// options compares what the running tasks really used: one column a cell.
func (v *view) options(columns []verdict.Column) {
	names := map[string]bool{}
	used := make([]map[string]any, len(columns))
	for i, c := range columns {
		for _, t := range c.Trials {
			if t.Outcome == result.OK {
				used[i] = t.Options
				break
			}
		}
		for k := range used[i] {
			names[k] = true
		}
	}
	if len(names) == 0 {
		return
	}
	t := &table{ID: "options", Caption: "Options as read back from the running tasks"}
	several := len(v.Workloads) > 1
	for _, c := range columns {
		h := column{Text: v.labelOf(c), Title: c.Name}
		if several {
			h.Sub = c.Workload
		}
		t.Head = append(t.Head, h)
	}
	sorted := make([]string, 0, len(names))
	for k := range names {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	for _, k := range sorted {
		r := row{Label: k}
		for i := range columns {
			if x, ok := used[i][k]; ok && x != nil {
				r.Cells = append(r.Cells, cell{Text: fmt.Sprint(x)})
			} else {
				r.Cells = append(r.Cells, cell{Text: "–", Class: "dim"})
			}
		}
		t.Rows = append(t.Rows, r)
	}
	v.Options = t
}
