package verdict

import (
	"hash/fnv"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

// Summarize computes the summary of a run with the default thresholds.
func Summarize(l *result.Loaded) *result.Summary { return SummarizeWith(l, nil) }

// SummarizeWith computes the summary of a run. Where thresholds are given, the
// verdicts of pairs rest on them.
func SummarizeWith(l *result.Loaded, thresholds Thresholds) *result.Summary {
	s := &result.Summary{Schema: result.Schema, Run: l.Run.Run, Workloads: map[string]result.WorkloadSummary{}}
	columns := Columns(l)
	for _, w := range l.Run.Workloads {
		var own []Column
		for _, c := range columns {
			if c.Workload == w.Name {
				own = append(own, c)
			}
		}
		sum := summarize(&l.Run, w.Name, own, thresholds)
		sum.Derived = derived(&w, own)
		s.Workloads[w.Name] = sum
	}
	return s
}

func summarize(run *result.Run, workload string, columns []Column, thresholds Thresholds) result.WorkloadSummary {
	out := result.WorkloadSummary{Cells: map[string]result.CellSummary{}}
	metrics := Metrics(columns)
	for i := range columns {
		c := &columns[i]
		cell := result.CellSummary{Metrics: map[string]result.Stat{}}
		for _, m := range metrics {
			if d, ok := stats.Describe(c.Samples(m)); ok {
				cell.Metrics[m] = stat(d, c, describe(m))
			}
		}
		out.Cells[c.Name] = cell
	}
	builds := Builds(run)
	reference := Reference(run, workload)
	for i := range columns {
		c := &columns[i]
		if c.Cell != reference {
			if ref := find(columns, reference, c.Build); ref != nil {
				put(&out.Pairs, c.Name, pairs(run, c, ref, metrics, thresholds))
			}
		}
		if c.Build != builds[0] {
			if base := find(columns, c.Cell, builds[0]); base != nil {
				name := c.Cell
				if len(builds) > 2 {
					name = c.Name
				}
				put(&out.BuildPairs, name, pairs(run, c, base, metrics, thresholds))
			}
		}
	}
	return out
}

func put(to *map[string]map[string]result.Pair, name string, pairs map[string]result.Pair) {
	if len(pairs) == 0 {
		return
	}
	if *to == nil {
		*to = map[string]map[string]result.Pair{}
	}
	(*to)[name] = pairs
}

func find(columns []Column, cell, build string) *Column {
	for i := range columns {
		if columns[i].Cell == cell && columns[i].Build == build {
			return &columns[i]
		}
	}
	return nil
}

func stat(d stats.Description, c *Column, m result.Metric) result.Stat {
	s := result.Stat{
		N: d.N, Planned: c.Planned, Failed: c.Failed, Median: d.Median, Mean: d.Mean, SD: d.SD, Min: d.Min, Max: d.Max, P90: d.P90,
		Unit: m.Unit, Better: m.Better,
	}
	if d.CI != nil {
		s.CILow, s.CIHigh = &d.CI.Low, &d.CI.High
	}
	return s
}

// pairs compares a column with its reference, metric by metric. Metrics that
// no block has in both are left out.
func pairs(run *result.Run, c, ref *Column, metrics []string, thresholds Thresholds) map[string]result.Pair {
	out := map[string]result.Pair{}
	for _, m := range metrics {
		a, b := Pair(c, ref, m)
		if len(a) == 0 {
			continue
		}
		d := describe(m)
		x := Compare(a, b, d.Better, threshold(thresholds, c.Workload, m, d).Band, min(c.Planned, ref.Planned), seed(run.Seed, c.Workload, c.Name, ref.Name, m))
		p := result.Pair{N: x.N, Verdict: string(x.Verdict)}
		if x.Ratio != nil {
			p.Ratio = &x.Ratio.Ratio
			if x.Ratio.CI != nil {
				p.CILow, p.CIHigh = &x.Ratio.CI.Low, &x.Ratio.CI.High
			}
		}
		out[m] = p
	}
	return out
}

// seed gives every comparison random numbers of its own, the same each time.
func seed(run uint64, names ...string) uint64 {
	h := fnv.New64a()
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return h.Sum64() ^ run
}
