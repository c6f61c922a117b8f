package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		name              string
		samples           []float64
		median, mean, p90 float64
		sd, low, high     float64 // NaN: absent
		n                 int
		nothing           bool
	}{
		{name: "none", nothing: true},
		{name: "no numbers", samples: []float64{math.NaN(), math.Inf(1)}, nothing: true},
		{name: "one", samples: []float64{3}, n: 1, median: 3, mean: 3, p90: 3, sd: math.NaN(), low: math.NaN(), high: math.NaN()},
		{name: "two", samples: []float64{4, 2}, n: 2, median: 3, mean: 3, p90: 4, sd: math.Sqrt2, low: math.NaN(), high: math.NaN()},
		{name: "equal", samples: []float64{5, 5, 5, 5, 5, 5}, n: 6, median: 5, mean: 5, p90: 5, sd: 0, low: 5, high: 5},
		{name: "zeros", samples: []float64{0, 0, 0}, n: 3, sd: 0, low: math.NaN(), high: math.NaN()},
		{name: "five have no interval", samples: []float64{1, 2, 3, 4, 5}, n: 5, median: 3, mean: 3, p90: 5, sd: math.Sqrt(2.5), low: math.NaN(), high: math.NaN()},
		{name: "six: all of them", samples: []float64{6, 1, 5, 2, 4, 3}, n: 6, median: 3.5, mean: 3.5, p90: 6, sd: math.Sqrt(3.5), low: 1, high: 6},
		{name: "NaN is left out", samples: []float64{1, math.NaN(), 3}, n: 2, median: 2, mean: 2, p90: 3, sd: math.Sqrt2, low: math.NaN(), high: math.NaN()},
		// SAS and R (DescTools::MedianCI, exact) give the 2nd and the 9th of ten.
		{name: "ten", samples: []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, n: 10, median: 5.5, mean: 5.5, p90: 9, sd: math.Sqrt(55.0 / 6), low: 2, high: 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.samples)
			d, ok := Describe(c.samples)
			if ok == c.nothing {
				t.Fatalf("described: %v", ok)
			}
			if c.nothing {
				return
			}
			if d.N != c.n || !close(d.Median, c.median) || !close(d.Mean, c.mean) || !close(d.P90, c.p90) {
				t.Errorf("%+v", d)
			}
			if (d.SD == nil) != math.IsNaN(c.sd) || d.SD != nil && !close(*d.SD, c.sd) {
				t.Errorf("sd %v, want %v", d.SD, c.sd)
			}
			if (d.CI == nil) != math.IsNaN(c.low) || d.CI != nil && *d.CI != (Interval{c.low, c.high}) {
				t.Errorf("interval %v, want %v to %v", d.CI, c.low, c.high)
			}
			for i := range before {
				if before[i] != c.samples[i] && !math.IsNaN(before[i]) {
					t.Error("the samples were changed")
				}
			}
		})
	}
}

func close(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(a), math.Abs(b)) }

// TestMedianIntervalCovers counts how often the interval misses a known median.
func TestMedianIntervalCovers(t *testing.T) {
	r := newRand(1)
	for _, n := range []int{6, 8, 15, 30} {
		missed := 0
		const rounds = 4000
		for range rounds {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = r.ExpFloat64()
			}
			ci, ok := MedianInterval(xs)
			if !ok {
				t.Fatalf("n = %d has no interval", n)
			}
			if !ci.Contains(math.Ln2) {
				missed++
			}
		}
		if share := float64(missed) / rounds; share > 0.06 {
			t.Errorf("n = %d: the interval misses the median in %.1f %% of the cases", n, share*100)
		}
	}
}

func TestRatios(t *testing.T) {
	type want struct {
		ratio float64
		ok    bool
	}
	for _, c := range []struct {
		name string
		a, b []float64
		want
	}{
		{"nothing", nil, nil, want{}},
		{"unequal", []float64{1}, []float64{1, 2}, want{}},
		{"one pair", []float64{3}, []float64{2}, want{1.5, true}},
		{"constant", []float64{78.8, 78.8, 78.8, 78.8, 78.8}, []float64{115, 115, 115, 115, 115}, want{78.8 / 115, true}},
		{"zero against zero", []float64{0, 2, 2}, []float64{0, 1, 1}, want{2, true}},
		{"zero against something", []float64{0, 2, 2}, []float64{1, 1, 1}, want{}},
		{"negative", []float64{-1}, []float64{1}, want{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ok := Ratios(c.a, c.b)
			if ok != c.ok || ok && !close(r.Ratio, c.ratio) {
				t.Fatalf("%+v %v", r, ok)
			}
			if ok && (r.CI == nil) != (len(c.a) < 2) {
				t.Errorf("interval %v of %d pairs", r.CI, len(c.a))
			}
		})
	}
}

// TestNoAnswerIsNoNumber throws anything at the functions.
func TestNoAnswerIsNoNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64(), 0, 30).Draw(t, "xs")
		if d, ok := Describe(xs); ok {
			all := []float64{d.Median, d.Mean, d.Min, d.Max, d.P90}
			if d.SD != nil {
				all = append(all, *d.SD)
			}
			if d.CI != nil {
				all = append(all, d.CI.Low, d.CI.High)
				if !d.CI.Contains(d.Median) {
					t.Errorf("the interval %v is without the median %v", *d.CI, d.Median)
				}
			}
			for _, x := range all {
				if !finite(x) {
					t.Fatalf("%+v of %v", d, xs)
				}
			}
		}
		n := len(xs) / 2
		if r, ok := Ratios(xs[:n], xs[n:2*n]); ok {
			if !finite(r.Ratio) || r.CI != nil && !(r.CI.Low <= r.CI.High) {
				t.Fatalf("%+v of %v", r, xs)
			}
			again, _ := Ratios(xs[:n], xs[n:2*n])
			if again.Ratio != r.Ratio || r.CI != nil && *again.CI != *r.CI {
				t.Fatal("the same samples give another interval")
			}
		}
		Drift(xs)
		Humps(xs)
	})
}

func TestDrift(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		want    bool
	}{
		{"few", []float64{1, 2, 3, 4, 5}, false},
		{"up", []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7}, true},
		{"down", []float64{2, 1.9, 1.7, 1.6, 1.5, 1.2, 1.1, 1}, true},
		{"up, but hardly", []float64{1, 1.001, 1.002, 1.003, 1.004, 1.005, 1.006, 1.007}, false},
		{"to and fro", []float64{1, 2, 1.1, 1.9, 1.2, 1.8, 1.3, 1.7}, false},
		{"constant", []float64{1, 1, 1, 1, 1, 1, 1, 1}, false},
		{"zeros", []float64{0, 0, 0, 0, 0, 0, 0, 1}, false},
		{"one late outlier", []float64{1, 1.01, 0.99, 1, 1.02, 0.98, 1, 9}, false},
	} {
		if _, got := Drift(c.samples); got != c.want {
			t.Errorf("%s: drifts %v", c.name, got)
		}
	}
}

// TestDriftIsQuiet holds the warning's rate on samples without drift.
func TestDriftIsQuiet(t *testing.T) {
	r := newRand(2)
	for _, n := range []int{6, 8, 20, 50} {
		cried := 0
		const rounds = 2000
		for range rounds {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(r.NormFloat64())
			}
			if _, drifts := Drift(xs); drifts {
				cried++
			}
		}
		if cried > rounds/50 {
			t.Errorf("n = %d: %d of %d warnings without a drift", n, cried, rounds)
		}
	}
}

func TestOrderedTail(t *testing.T) {
	// Of the six permutations of three, one has no inversion and two have one.
	if p := orderedTail(3, 0); !close(p, 1.0/6) {
		t.Error(p)
	}
	if p := orderedTail(3, 1); !close(p, 3.0/6) {
		t.Error(p)
	}
	if p := orderedTail(3, 9); !close(p, 1) {
		t.Error(p)
	}
	exact, approximate := orderedTail(40, 300), orderedTail(41, 320)
	if math.Abs(exact-approximate) > 0.03 {
		t.Errorf("%v exact, %v approximate", exact, approximate)
	}
}

func TestHumps(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		want    bool
	}{
		{"few", []float64{1, 1, 5, 5}, false},
		{"two", []float64{1, 1.1, 5, 1.05, 5.2, 5.1, 1, 5}, true},
		{"one outlier", []float64{1, 1.1, 1.05, 1, 1.1, 1.2, 1.1, 9}, false},
		{"spread", []float64{1, 2, 3, 4, 5, 6, 7, 8}, false},
		{"constant", []float64{2, 2, 2, 2, 2, 2, 2}, false},
		{"two, but close", []float64{1, 1, 1, 1, 1.01, 1.01, 1.01, 1.01}, false},
		{"zeros", []float64{0, 0, 0, 0, 0, 0, 0}, false},
	} {
		low, high, got := Humps(c.samples)
		if got != c.want || got && !(low < high) {
			t.Errorf("%s: %v to %v, %v", c.name, low, high, got)
		}
	}
}
