package result

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limit is one absolute limit of a workload, held against one cell of one build.
type Limit struct {
	Workload string
	Cell     string  // cell@build if the run has several builds
	Text     string  // as in the file
	Value    float64 // of the statistic; NaN without data
	N        int     // samples
	Broken   bool
}

var limitPattern = regexp.MustCompile(`^(median|mean|min|max|p[0-9]{1,2})\s*\(\s*([A-Za-z0-9_.#-]+)\s*\)\s*(<=|>=|<|>)\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-z/]*)$`)

var limitUnits = map[string]float64{
	"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "min": 60,
	"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30,
	"records": 1, "records/s": 1, "/s": 1,
}

// Limits holds the thresholds of a run against its samples, those of each build
// by themselves: one build's must not hide another's. A limit whose cells have
// no data has N = 0 and is neither kept nor broken. A cell that the run's budget
// left out is not asked for; LeftOutLimits tells what is not held for that.
func (l *Loaded) Limits() ([]Limit, error) {
	var out []Limit
	for _, w := range l.Run.Workloads {
		var selectors []string
		for s := range w.Thresholds {
			selectors = append(selectors, s)
		}
		slices.Sort(selectors)
		for _, selector := range selectors {
			matched := false
			for _, c := range l.Run.Plan.Cells {
				if c.Workload != w.Name || !Selects(selector, c.Cell) {
					continue
				}
				matched = true
				if l.Run.Plan.leftOut(c) {
					continue
				}
				for _, text := range w.Thresholds[selector] {
					for _, build := range l.builds() {
						limit, err := l.limit(w.Name, c.Cell, build, text)
						if err != nil {
							return nil, fmt.Errorf("thresholds of %s: %w", w.Name, err)
						}
						out = append(out, limit)
					}
				}
			}
			if !matched && l.Run.Settings.Only == "" {
				for _, text := range w.Thresholds[selector] {
					out = append(out, Limit{Workload: w.Name, Cell: selector, Text: text, Value: math.NaN()})
				}
			}
		}
	}
	return out, nil
}

// LeftOutLimits says in words which limits are not held because the run's time
// had no room for their cells.
func (l *Loaded) LeftOutLimits() []string {
	var out []string
	for _, w := range l.Run.Workloads {
		for _, c := range l.Run.Plan.LeftOut {
			if c.Workload != w.Name {
				continue
			}
			var texts []string
			for selector, limits := range w.Thresholds {
				if Selects(selector, c.Cell) {
					texts = append(texts, limits...)
				}
			}
			if len(texts) > 0 {
				slices.Sort(texts)
				out = append(out, fmt.Sprintf("%s %s was left out (%s), and so were its limits: %s", w.Name, c.Cell, c.Reason, strings.Join(texts, "; ")))
			}
		}
	}
	return out
}

func (p *Plan) leftOut(c Cell) bool {
	return slices.ContainsFunc(p.LeftOut, func(o LeftOut) bool { return o.Workload == c.Workload && o.Cell == c.Cell })
}

// builds lists the builds of the run, the base build first; with fewer than two
// the name does not matter, and is empty.
func (l *Loaded) builds() []string {
	if len(l.Run.Builds) < 2 {
		return []string{""}
	}
	names := slices.Sorted(maps.Keys(l.Run.Builds))
	if i := slices.Index(names, l.Run.BaseBuild); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, l.Run.BaseBuild)
	}
	return names
}

// Selects tells whether a selector ("*", or some of a cell's name=value pairs)
// stands for a cell.
func Selects(selector, cell string) bool {
	if selector == "*" {
		return true
	}
	have := strings.Split(cell, ",")
	for pair := range strings.SplitSeq(selector, ",") {
		if !slices.Contains(have, strings.TrimSpace(pair)) {
			return false
		}
	}
	return true
}

// limit holds a limit against the samples of a cell, with a build only of that.
func (l *Loaded) limit(workload, cell, build, text string) (Limit, error) {
	out := Limit{Workload: workload, Cell: cell, Text: text, Value: math.NaN()}
	if build != "" {
		out.Cell += "@" + build
	}
	m := limitPattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return out, fmt.Errorf("%q is no limit", text)
	}
	bound, err := strconv.ParseFloat(m[4], 64)
	if err != nil {
		return out, fmt.Errorf("%q: %w", text, err)
	}
	unit, ok := limitUnits[m[5]]
	if !ok {
		return out, fmt.Errorf("%q has the unknown unit %q", text, m[5])
	}
	bound *= unit
	var samples []float64
	for _, t := range l.Trials {
		if t.Workload == workload && t.Cell == cell && (build == "" || t.Build == build) && t.Outcome == OK && !t.Warmup {
			if v, ok := t.Value(m[2]); ok {
				samples = append(samples, v)
			}
		}
	}
	out.N = len(samples)
	if out.N == 0 {
		return out, nil
	}
	out.Value = statistic(m[1], samples)
	switch m[3] {
	case "<":
		out.Broken = !(out.Value < bound)
	case "<=":
		out.Broken = !(out.Value <= bound)
	case ">":
		out.Broken = !(out.Value > bound)
	case ">=":
		out.Broken = !(out.Value >= bound)
	}
	return out, nil
}

// Value finds a metric of the trial, or that of a later fault by its name in
// tables: step.metric.
func (t *Trial) Value(metric string) (float64, bool) {
	if v, ok := t.Metrics[metric]; ok {
		return v, true
	}
	step, name, ok := cutLast(metric)
	if !ok {
		return 0, false
	}
	for _, f := range t.Faults {
		if f.Name == step {
			v, ok := f.Metrics[name]
			return v, ok
		}
	}
	return 0, false
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

func statistic(name string, samples []float64) float64 {
	xs := slices.Sorted(slices.Values(samples))
	n := len(xs)
	switch name {
	case "median":
		return (xs[(n-1)/2] + xs[n/2]) / 2
	case "min":
		return xs[0]
	case "max":
		return xs[n-1]
	case "mean":
		sum := 0.0
		for _, x := range xs {
			sum += x
		}
		return sum / float64(n)
	}
	// pN: the smallest sample that at least N percent do not exceed.
	p, err := strconv.Atoi(name[1:])
	if err != nil {
		return math.NaN()
	}
	i := int(math.Ceil(float64(p)/100*float64(n))) - 1
	return xs[min(max(i, 0), n-1)]
}
