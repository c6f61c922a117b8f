package verdict

import (
	"maps"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
)

// Column is one cell of a workload, of one build.
type Column struct {
	Workload string
	Cell     string
	Build    string
	Flags    map[string]any
	Name     string // the cell, or cell@build if there are several builds
	Planned  int    // trials, warm-ups not counted
	Failed   int    // trials that ended otherwise than ok
	Trials   []result.Trial
}

// Columns lists what a run measured: workloads and cells in the order of the
// plan, builds by name with the base build first. Warm-ups are left out.
func Columns(l *result.Loaded) []Column {
	builds := Builds(&l.Run)
	var out []Column
	at := map[[3]string]int{}
	for _, w := range l.Run.Workloads {
		for _, c := range l.Run.Plan.Cells {
			if c.Workload != w.Name {
				continue
			}
			for _, b := range builds {
				name := c.Cell
				if len(builds) > 1 {
					name += "@" + b
				}
				at[[3]string{w.Name, c.Cell, b}] = len(out)
				out = append(out, Column{Workload: w.Name, Cell: c.Cell, Build: b, Flags: c.Flags, Name: name})
			}
		}
	}
	for _, s := range l.Run.Plan.Order {
		if i, ok := at[[3]string{s.Workload, s.Cell, s.Build}]; ok && !s.Warmup {
			out[i].Planned++
		}
	}
	for _, t := range l.Trials {
		i, ok := at[[3]string{t.Workload, t.Cell, t.Build}]
		if !ok || t.Warmup {
			continue
		}
		if t.Outcome != result.OK && t.Outcome != result.TrialInterrupted {
			out[i].Failed++
		}
		out[i].Trials = append(out[i].Trials, t)
	}
	for i := range out {
		slices.SortStableFunc(out[i].Trials, func(a, b result.Trial) int { return a.Block - b.Block })
	}
	return out
}

// Builds lists the builds of a run by name, the base build first where the run
// says which one it is.
func Builds(r *result.Run) []string {
	names := slices.Sorted(maps.Keys(r.Builds))
	if len(names) == 0 {
		seen := map[string]bool{}
		for _, s := range r.Plan.Order {
			seen[s.Build] = true
		}
		names = slices.Sorted(maps.Keys(seen))
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == r.BaseBuild:
			return -1
		case b == r.BaseBuild:
			return 1
		}
		return 0
	})
	return names
}

// BaseBuild is the build that the others of a run are compared with; false: the
// run does not say which one it is, and to guess would turn verdicts round.
func BaseBuild(r *result.Run) (string, bool) {
	builds := Builds(r)
	if len(builds) == 0 || len(builds) > 1 && builds[0] != r.BaseBuild {
		return "", false
	}
	return builds[0], true
}

// Reference is the cell of a workload that the others are compared with.
func Reference(r *result.Run, workload string) string {
	first := ""
	for _, c := range r.Plan.Cells {
		if c.Workload != workload {
			continue
		}
		if c.Cell == r.Reference {
			return c.Cell
		}
		if first == "" {
			first = c.Cell
		}
	}
	return first
}

// Samples are the values of a metric in the trials that are ok, in the order
// of their blocks.
func (c *Column) Samples(metric string) []float64 {
	var xs []float64
	for i := range c.Trials {
		if v, ok := sample(&c.Trials[i], metric); ok {
			xs = append(xs, v)
		}
	}
	return xs
}

// sample is the value of a metric in a trial that is ok. What is no number is
// missing.
func sample(t *result.Trial, metric string) (float64, bool) {
	if t.Outcome != result.OK {
		return 0, false
	}
	v, ok := t.Value(metric)
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Metrics lists the metrics that columns have samples of, in the order of
// tables: the first fault's and the whole trial's, then those of later faults
// as step.metric, then those that this version does not know.
func Metrics(columns []Column) []string {
	var steps []string
	have := map[string]bool{}
	for _, c := range columns {
		for _, t := range c.Trials {
			if t.Outcome != result.OK {
				continue
			}
			for m := range t.Metrics {
				have[m] = true
			}
			for i, f := range t.Faults {
				if i == 0 {
					continue
				}
				if !slices.Contains(steps, f.Name) {
					steps = append(steps, f.Name)
				}
				for m := range f.Metrics {
					have[f.Name+"."+m] = true
				}
			}
		}
	}
	var out []string
	take := func(name string) {
		if have[name] {
			out = append(out, name)
			delete(have, name)
		}
	}
	for _, m := range result.Metrics() {
		take(m.Name)
	}
	for _, s := range steps {
		for _, m := range result.Metrics() {
			take(s + "." + m.Name)
		}
	}
	return append(out, slices.Sorted(maps.Keys(have))...)
}

// Pair is the values of a metric in the blocks in which both columns have it.
func Pair(a, b *Column, metric string) (as, bs []float64) {
	other := map[int]float64{}
	for i := range b.Trials {
		if v, ok := sample(&b.Trials[i], metric); ok {
			other[b.Trials[i].Block] = v
		}
	}
	for i := range a.Trials {
		v, ok := sample(&a.Trials[i], metric)
		w, both := other[a.Trials[i].Block]
		if ok && both {
			as, bs = append(as, v), append(bs, w)
		}
	}
	return as, bs
}

// describe finds a metric, or stands in for one that this version does not
// know.
func describe(name string) result.Metric {
	if m, ok := result.LookupMetric(name); ok {
		return m
	}
	m := result.Metric{Name: name, Unit: "1", Better: result.Neutral}
	if strings.HasSuffix(name, "_s") {
		m.Unit = "s"
	}
	return m
}
