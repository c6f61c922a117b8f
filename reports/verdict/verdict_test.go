package verdict

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"benchrun/harness/result"

	"pgregory.net/rapid"
)

// pairVerdict judges two columns of values as one metric of one cell.
func pairVerdict(a, b []float64, better result.Better, band Band, planned int) Judged {
	j := Judged{Better: better, Planned: planned, Threshold: Threshold{Band: band, Source: "test"}}
	j.judgePairs(pairing{head: a, base: b}, share(1, false), 1)
	return j
}

// TestPairs fails if a pair with one 0 gives no logarithm, or one of the wrong
// sign.
func TestPairs(t *testing.T) {
	five := []float64{1, 1.02, 0.98, 1.01, 0.99}
	nine := []float64{1, 1.02, 0.98, 1.01, 0.99, 1, 1.02, 0.98, 1.01}
	times := func(xs []float64, f float64) []float64 {
		out := make([]float64, len(xs))
		for i, x := range xs {
			out[i] = x * f
		}
		return out
	}
	band := Band{Relative: 0.1, Absolute: 0.001}
	for _, c := range []struct {
		name    string
		a, b    []float64
		better  result.Better
		planned int
		want    Verdict
		ratio   bool
	}{
		{"half the time", times(five, 0.5), five, result.Lower, 5, Faster, true},
		{"twice the time", times(five, 2), five, result.Lower, 5, Slower, true},
		{"twice the throughput", times(five, 2), five, result.Higher, 5, Faster, true},
		{"half the throughput", times(five, 0.5), five, result.Higher, 5, Slower, true},
		{"no direction", times(five, 2), five, result.Neutral, 5, Inconclusive, true},
		{"equal", five, five, result.Lower, 5, Same, true},
		{"equal, no direction", five, five, result.Neutral, 5, Same, true},
		{"within the band", times(five, 1.04), five, result.Lower, 5, Same, true},
		{"constants compare", []float64{78.8, 78.8, 78.8, 78.8, 78.8}, []float64{115, 115, 115, 115, 115}, result.Lower, 5, Faster, true},
		{"four pairs", times(five[:4], 0.5), five[:4], result.Lower, 4, Inconclusive, true},
		{"no pairs", nil, nil, result.Lower, 5, Inconclusive, false},
		{"most failed", times(five, 0.5), five, result.Lower, 11, Inconclusive, false},
		{"noise", []float64{1, 3, 0.5, 2, 0.8}, []float64{2, 1, 1, 1, 1.1}, result.Lower, 5, Inconclusive, true},
		{"zero on one side", []float64{0, 0, 0, 0, 0}, five, result.Lower, 5, Inconclusive, false},
		{"one zero the other way", append([]float64{0}, times(nine, 2)...), append([]float64{1}, nine...), result.Lower, 10, Slower, true},
		{"one zero of five the other way", []float64{0, 2, 2, 2, 2.1}, []float64{1, 1, 1, 1, 1}, result.Lower, 5, Inconclusive, true},
		{"one zero the same way", append([]float64{1}, times(nine, 2)...), append([]float64{0}, nine...), result.Lower, 10, Slower, true},
		{"one zero among equals", append([]float64{0}, nine...), append([]float64{1}, nine...), result.Lower, 10, Same, true},
		{"zeros in most pairs", append([]float64{0, 0, 0, 0, 0, 0, 0}, five...), append(slices.Clone(five), 1, 1, 1, 1, 1, 1, 1), result.Lower, 12, Inconclusive, false},
		{"below zero", []float64{-1, 1, 1, 1, 1}, five, result.Lower, 5, Inconclusive, false},
		{"zeros", []float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}, result.Lower, 5, Same, true},
		{"below what anyone sees", []float64{2e-4, 2e-4, 2e-4, 2e-4, 2e-4}, []float64{1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, result.Lower, 5, Same, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := pairVerdict(c.a, c.b, c.better, band, c.planned)
			if got.Verdict != c.want || (got.Ratio != nil) != c.ratio {
				t.Errorf("%s, ratio %+v; want %s", got.Verdict, got.Ratio, c.want)
			}
		})
	}
}

// TestPairsAreAntisymmetric: what is faster one way is slower the other.
func TestPairsAreAntisymmetric(t *testing.T) {
	opposite := map[Verdict]Verdict{Faster: Slower, Slower: Faster, Same: Same, Inconclusive: Inconclusive}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(5, 12).Draw(t, "n")
		value := rapid.Float64Range(0.5, 2)
		a := rapid.SliceOfN(value, n, n).Draw(t, "a")
		b := rapid.SliceOfN(value, n, n).Draw(t, "b")
		band := Band{Relative: 0.1}
		x, y := pairVerdict(a, b, result.Lower, band, n), pairVerdict(b, a, result.Lower, band, n)
		if x.Verdict != opposite[y.Verdict] {
			t.Fatalf("%s and %s: %+v %+v", x.Verdict, y.Verdict, x.Ratio, y.Ratio)
		}
	})
}

// run builds a loaded run of two cells by hand.
func run(blocks int, value func(cell string, block int) (float64, result.Outcome)) *result.Loaded {
	l := &result.Loaded{Run: result.Run{
		Schema: 1, Run: "r", Seed: 42, Builds: map[string]result.Build{"this": {}},
		Workloads: []result.Workload{{Name: "w", Primary: "time_to_first_checkpoint_s"}},
		Plan:      result.Plan{Cells: []result.Cell{{Workload: "w", Cell: "D=false"}, {Workload: "w", Cell: "D=true"}}},
	}}
	for b := range blocks + 1 {
		for _, c := range l.Run.Plan.Cells {
			s := result.Slot{Workload: "w", Cell: c.Cell, Build: "this", Block: b, Warmup: b == 0}
			l.Run.Plan.Order = append(l.Run.Plan.Order, s)
			v, outcome := value(c.Cell, b)
			if outcome == "" {
				l.Missing = append(l.Missing, s)
				continue
			}
			x := result.Trial{Trial: fmt.Sprint(len(l.Trials)), Workload: "w", Cell: c.Cell, Build: "this", Block: b, Warmup: b == 0, Outcome: outcome}
			if outcome == result.OK {
				m := map[string]float64{"time_to_first_checkpoint_s": v}
				x.Metrics = map[string]float64{"time_to_first_checkpoint_s": v, "throughput_records_per_s": 1000}
				x.Faults = []result.Fault{{Name: "up", Kind: "rescale", Metrics: m}, {Name: "down", Kind: "rescale", Metrics: map[string]float64{"time_to_first_checkpoint_s": 2 * v}}}
			}
			l.Trials = append(l.Trials, x)
		}
	}
	l.Run.Plan.Trials = len(l.Run.Plan.Order)
	return l
}

func TestSummarize(t *testing.T) {
	l := run(6, func(cell string, block int) (float64, result.Outcome) {
		switch {
		case block == 0:
			return 1000, result.OK // warm-up
		case cell == "D=true" && block == 3:
			return 0, result.Timeout
		case cell == "D=true":
			return 0.1 + float64(block)/1000, result.OK
		}
		return 1 + float64(block)/100, result.OK
	})
	s := Summarize(l).Workloads["w"]
	off := s.Cells["D=false"].Metrics["time_to_first_checkpoint_s"]
	if off.N != 6 || off.Planned != 6 || off.Failed != 0 || !near(off.Median, 1.035) || off.Max > 1.061 || off.CILow == nil || off.Unit != "s" || off.Better != result.Lower {
		t.Errorf("%+v", off)
	}
	on := s.Cells["D=true"].Metrics["time_to_first_checkpoint_s"]
	if on.N != 5 || on.Planned != 6 || on.Failed != 1 || on.CILow != nil {
		t.Errorf("%+v", on)
	}
	if later := s.Cells["D=true"].Metrics["down.time_to_first_checkpoint_s"]; later.N != 5 || later.Unit != "s" || later.Median != 2*on.Median {
		t.Errorf("later fault: %+v", later)
	}
	if _, twice := s.Cells["D=true"].Metrics["up.time_to_first_checkpoint_s"]; twice {
		t.Error("the first fault's metrics are there twice")
	}
	if s.Pairs["D=false"] != nil {
		t.Error("the reference is paired with itself")
	}
	p := s.Pairs["D=true"]["time_to_first_checkpoint_s"]
	if p.N != 5 || p.Ratio == nil || *p.Ratio < 0.09 || *p.Ratio > 0.11 || p.Verdict != "inconclusive" { // the pair that is missing may be the slow one
		t.Errorf("%+v", p)
	}
	if p := s.Pairs["D=true"]["throughput_records_per_s"]; p.Verdict != "inconclusive" {
		t.Errorf("%+v", p)
	}
}

func TestSummarizeNothing(t *testing.T) {
	for name, outcome := range map[string]result.Outcome{"missing": "", "all failed": result.Failed} {
		s := Summarize(run(3, func(string, int) (float64, result.Outcome) { return 0, outcome }))
		w := s.Workloads["w"]
		if len(w.Cells) != 2 || len(w.Cells["D=true"].Metrics) != 0 || len(w.Pairs) != 0 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestTwoBuilds(t *testing.T) {
	l := run(5, func(cell string, block int) (float64, result.Outcome) { return 1, result.OK })
	l.Run.Builds = map[string]result.Build{"new": {}, "old": {}}
	l.Run.BaseBuild = "old"
	var order []result.Slot
	var trials []result.Trial
	for _, b := range []string{"new", "old"} {
		for _, s := range l.Run.Plan.Order {
			s.Build = b
			order = append(order, s)
		}
		for _, x := range l.Trials {
			x.Build = b
			if b == "new" {
				x.Metrics = map[string]float64{"time_to_first_checkpoint_s": 3}
			}
			trials = append(trials, x)
		}
	}
	l.Run.Plan.Order, l.Trials = order, trials
	s := Summarize(l).Workloads["w"]
	if _, ok := s.Cells["D=true@new"]; !ok || len(s.Cells) != 4 {
		t.Errorf("cells %v", s.Cells)
	}
	p := s.BuildPairs["D=true"]["time_to_first_checkpoint_s"]
	if p.Verdict != "slower" || p.Ratio == nil || !near(*p.Ratio, 3) {
		t.Errorf("%+v", p)
	}
	if p := s.Pairs["D=true@new"]["time_to_first_checkpoint_s"]; p.Verdict != "same" {
		t.Errorf("pairs are not within a build: %+v", p)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
