package verdict

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"benchrun/harness/result"

	"pgregory.net/rapid"
)

// draws are the values of trials of a drawn run, by cell, build and block. A
// value of 0 is a trial that ran into its timeout, -1 one that is missing.
type draws map[[2]string][]float64

func drawValues(t *rapid.T, cells []string, blocks int) draws {
	out := draws{}
	for _, c := range cells {
		shift := rapid.SampledFrom([]float64{1, 1, 1.05, 1.15, 1.3, 0.7, 1.08, 0.92, 0.95}).Draw(t, "shift of "+c)
		spread := rapid.SampledFrom([]float64{0, 0.02, 0.06, 0.4}).Draw(t, "spread of "+c)
		for _, b := range []string{"base", "head"} {
			for range blocks {
				x := 1 + spread*float64(rapid.IntRange(-10, 20).Draw(t, "noise"))/20
				if b == "head" {
					x *= shift
				}
				switch rapid.IntRange(0, 40).Draw(t, "lost") {
				case 0:
					x = 0
				case 1:
					x = -1
				}
				out[[2]string{c, b}] = append(out[[2]string{c, b}], x)
			}
		}
	}
	return out
}

func (d draws) run(cells []string, blocks int, scale float64, swap bool) *result.Loaded {
	return lab{cells: cells, blocks: blocks, value: func(cell, build string, block int) (float64, result.Outcome) {
		if swap {
			build = map[string]string{"base": "head", "head": "base"}[build]
		}
		x := d[[2]string{cell, build}][block]
		switch x {
		case 0:
			return 0, result.Timeout
		case -1:
			return 0, ""
		}
		return x * scale, result.OK
	}}.run()
}

// relative is a threshold without an absolute part, which would not scale.
func relative(string, string) Threshold {
	return Threshold{Band: Band{Relative: 0.10}, Source: "test"}
}

var modes = []string{Interleaved, Sequential}

func decideAs(mode string, run *result.Loaded, rules Rules) *Decision {
	if mode == Interleaved {
		return Decide(run, nil, rules)
	}
	base := single(run, "base")
	base.Run.Run = "before"
	return Decide(single(run, "head"), func(string) *result.Loaded { return base }, rules)
}

func verdicts(d *Decision) map[string]Verdict {
	out := map[string]Verdict{}
	for _, j := range d.Judged {
		out[j.Workload+" "+j.Cell] = j.Verdict
	}
	return out
}

// TestOrderOfTrials: the order of the lines does not matter. Fails if the k-th
// line of one side pairs with the k-th of the other.
func TestOrderOfTrials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := []string{"a", "b"}
		blocks := rapid.IntRange(4, 12).Draw(t, "blocks")
		d := drawValues(t, cells, blocks)
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		run := d.run(cells, blocks, 1, false)
		want := decideAs(mode, run, Rules{Thresholds: relative})
		run.Trials = rapid.Permutation(run.Trials).Draw(t, "trials")
		got := decideAs(mode, run, Rules{Thresholds: relative})
		for i := range want.Judged {
			if fmt.Sprint(plain(got.Judged[i])) != fmt.Sprint(plain(want.Judged[i])) {
				t.Fatalf("%v, in another order %v", plain(want.Judged[i]), plain(got.Judged[i]))
			}
		}
	})
}

// plain shows a judgement with its numbers.
func plain(j Judged) []any {
	out := []any{j.Cell, j.Verdict, j.N, j.Level, j.Why, j.Alarm}
	for _, p := range []*float64{j.Ratio, j.CILow, j.CIHigh, j.Shift, j.P, j.Noise, j.MannWhitney, j.HeadMedian, j.BaseMedian} {
		if p == nil {
			out = append(out, "none")
		} else {
			out = append(out, fmt.Sprintf("%.9g", *p))
		}
	}
	return out
}

// TestScale: seconds or milliseconds, the verdict is the same. Fails if an
// interval of differences is held against 1.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := []string{"a", "b"}
		blocks := rapid.IntRange(4, 12).Draw(t, "blocks")
		d := drawValues(t, cells, blocks)
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		screen := rapid.Bool().Draw(t, "screen")
		scale := rapid.SampledFrom([]float64{1e-3, 3, 1000, 7.3e6}).Draw(t, "scale")
		rules := Rules{Thresholds: relative, Screen: screen}
		want, got := decideAs(mode, d.run(cells, blocks, 1, false), rules), decideAs(mode, d.run(cells, blocks, scale, false), rules)
		for i := range want.Judged {
			if x, y := want.Judged[i], got.Judged[i]; x.Verdict != y.Verdict || x.Alarm != y.Alarm {
				t.Fatalf("%v, times %v: %v", plain(x), scale, plain(y))
			}
		}
		// With an absolute threshold it takes a scaled one.
		absolute := func(f float64) Rules {
			return Rules{Thresholds: func(string, string) Threshold {
				return Threshold{Band: Band{Relative: 0.05, Absolute: 0.11 * f}, Source: "test"}
			}}
		}
		scale = 1 << 10 // exact
		want, got = decideAs(mode, d.run(cells, blocks, 1, false), absolute(1)), decideAs(mode, d.run(cells, blocks, scale, false), absolute(scale))
		for i := range want.Judged {
			if x, y := want.Judged[i], got.Judged[i]; x.Verdict != y.Verdict {
				t.Fatalf("%v, times %v: %v", plain(x), scale, plain(y))
			}
		}
	})
}

// TestSwap: what is faster one way is slower the other, with the inverse ratio.
// Fails if the threshold is 5 % downwards and 10 % upwards.
func TestSwap(t *testing.T) {
	mirror := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Same: Same, Inconclusive: Inconclusive}
	rapid.Check(t, func(t *rapid.T) {
		cells := []string{"a", "b"}
		blocks := rapid.IntRange(4, 12).Draw(t, "blocks")
		d := drawValues(t, cells, blocks)
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		want := decideAs(mode, d.run(cells, blocks, 1, false), Rules{Thresholds: relative})
		got := decideAs(mode, d.run(cells, blocks, 1, true), Rules{Thresholds: relative})
		for i := range want.Judged {
			x, y := want.Judged[i], got.Judged[i]
			if x.Verdict != mirror[y.Verdict] {
				t.Fatalf("%v, swapped %v", plain(x), plain(y))
			}
			if x.Ratio != nil && math.Abs(*x.Ratio**y.Ratio-1) > 1e-9 || x.CILow != nil && math.Abs(*x.CILow**y.CIHigh-1) > 1e-9 {
				t.Fatalf("%v, swapped %v", plain(x), plain(y))
			}
		}
	})
}

// TestOtherCells: a verdict uses the trials of its cell, of both sides, and the
// number of cells judged. It does not change with anything else: not with what
// the other cells measured, not with cells that are not judged because the
// target does not support them or the plan left them out, not with warm-ups,
// other metrics, or the order of the cells. Fails if unsupported cells count.
func TestOtherCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := []string{"a", "b", "c"}
		blocks := rapid.IntRange(5, 12).Draw(t, "blocks")
		d, other := drawValues(t, cells, blocks), drawValues(t, cells, blocks)
		mode := rapid.SampledFrom(modes).Draw(t, "mode")
		want := decideAs(mode, d.run(cells, blocks, 1, false), Rules{Thresholds: relative})
		for _, b := range []string{"base", "head"} {
			other[[2]string{"a", b}] = d[[2]string{"a", b}]
		}
		run := other.run(cells, blocks, 1, false)
		add := func(cell, workload string, outcome result.Outcome, warmup bool) {
			run.Run.Plan.Cells = append(run.Run.Plan.Cells, result.Cell{Workload: workload, Cell: cell})
			for _, b := range []string{"base", "head"} {
				for k := range blocks {
					s := result.Slot{Workload: workload, Cell: cell, Build: b, Block: k, Warmup: warmup}
					run.Run.Plan.Order = append(run.Run.Plan.Order, s)
					run.Trials = append(run.Trials, result.Trial{Trial: cell + b + fmt.Sprint(k), Workload: workload, Cell: cell, Build: b, Block: k, Warmup: warmup, Outcome: outcome, Metrics: map[string]float64{primary: 99}})
				}
			}
		}
		add("not supported", "w", result.Unsupported, false)
		add("warm-ups only", "w", result.OK, true)
		run.Run.Plan.Cells = append(run.Run.Plan.Cells, result.Cell{Workload: "w", Cell: "left out"})
		for i := range run.Trials {
			if m := run.Trials[i].Metrics; m != nil && !run.Trials[i].Warmup {
				m["makespan_s"] = float64(i)
			}
		}
		slices.Reverse(run.Run.Plan.Cells)
		got := decideAs(mode, run, Rules{Thresholds: relative})
		if x, y := plain(judgedCell(want, "a")), plain(judgedCell(got, "a")); fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("%v, beside others %v", x, y)
		}
		if len(got.Judged) != len(cells) {
			t.Fatalf("judged %v", verdicts(got))
		}
	})
}

func judgedCell(d *Decision, cell string) Judged {
	for _, j := range d.Judged {
		if j.Cell == cell {
			return j
		}
	}
	return Judged{}
}

// TestNothingPanics: any numbers, outcomes and gaps give a document. Fails if a
// NaN gets into it.
func TestNothingPanics(t *testing.T) {
	outcomes := []result.Outcome{result.OK, result.OK, result.OK, result.OK, result.Timeout, result.Failed, result.Incorrect, result.Misconfigured, result.Unsupported, result.TrialInterrupted, ""}
	rapid.Check(t, func(t *rapid.T) {
		metric := rapid.SampledFrom([]string{primary, "throughput_records_per_s", "restored_bytes", "filtered_out_bytes", "none", ""}).Draw(t, "metric")
		run := lab{cells: []string{"a", "b"}, blocks: rapid.IntRange(0, 9).Draw(t, "blocks"), metric: metric, inert: [][]string{{"a", "b", "gone"}, {}}, value: func(string, string, int) (float64, result.Outcome) {
			v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1, 1, 2, math.NaN(), math.Inf(1), -1})).Draw(t, "value")
			return v, rapid.SampledFrom(outcomes).Draw(t, "outcome")
		}}.run()
		rules := Rules{Screen: rapid.Bool().Draw(t, "screen"), Confirmed: rapid.Bool().Draw(t, "confirmed")}
		for _, mode := range modes {
			d := decideAs(mode, run, rules)
			if _, err := json.Marshal(d); err != nil {
				t.Fatalf("%s: %v: %+v", mode, err, d)
			}
			for _, j := range d.Judged {
				if (j.N < MinPairs) && j.Verdict != Inconclusive || rules.Screen && mode == Interleaved && j.Verdict == Slower {
					t.Fatalf("%+v", j)
				}
			}
		}
		other := single(run, "head")
		other.Run.Run = "other"
		for _, v := range []any{Summarize(run), Trends([]*result.Loaded{run, other, run}), Trends(nil)} {
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%v: %+v", err, v)
			}
		}
	})
}
