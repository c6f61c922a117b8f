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
	l = l.Settled()
	return SummaryOf(l, Within(l, thresholds))
}

// SummaryOf computes the summary of a run whose columns have been compared.
func SummaryOf(l *result.Loaded, c *Comparisons) *result.Summary {
	s := &result.Summary{Schema: result.Schema, Run: l.Run.Run, Workloads: map[string]result.WorkloadSummary{}}
	columns := Columns(l)
	for _, w := range l.Run.Workloads {
		var own []Column
		for _, c := range columns {
			if c.Workload == w.Name {
				own = append(own, c)
			}
		}
		sum := summarize(own)
		sum.Pairs, sum.BuildPairs = pairsOf(c.Cells, w.Name), pairsOf(c.Builds, w.Name)
		sum.Derived = derived(&w, own)
		s.Workloads[w.Name] = sum
	}
	return s
}

func summarize(columns []Column) result.WorkloadSummary {
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
	return out
}

// pairsOf are the comparisons of a workload as summary.json has them. Metrics
// that no block has on both sides are left out.
func pairsOf(all []Judged, workload string) map[string]map[string]result.Pair {
	var out map[string]map[string]result.Pair
	for i := range all {
		j := &all[i]
		if j.Workload != workload || j.N == 0 {
			continue
		}
		if out == nil {
			out = map[string]map[string]result.Pair{}
		}
		if out[j.Cell] == nil {
			out[j.Cell] = map[string]result.Pair{}
		}
		out[j.Cell][j.Metric] = result.Pair{N: j.N, Ratio: j.Ratio, CILow: j.CILow, CIHigh: j.CIHigh, Verdict: string(j.Verdict)}
	}
	return out
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

// seed gives every comparison random numbers of its own, the same each time.
func seed(run uint64, names ...string) uint64 {
	h := fnv.New64a()
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return h.Sum64() ^ run
}
