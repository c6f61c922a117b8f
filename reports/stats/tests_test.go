package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The expected values of this file come from enumerations in exact fractions:
// all signs, all resamples, all splits, all orders.

// TestPairedVectors fails if the sign-flip test cuts sizes at the mean, if its
// ties are counted on one side only, if the Walsh averages leave out a sample
// with itself, or if the bootstrap rounds its tail.
func TestPairedVectors(t *testing.T) {
	none := math.NaN()
	for _, c := range []struct {
		name                string
		samples             []float64
		greater, less       float64 // sign-flip
		shift               float64 // Hodges-Lehmann
		shiftLow, shiftHigh float64 // at 95 %
		bootLow, bootHigh   float64 // of the median, at 90 %
	}{
		{"one", []float64{4}, 0.5, 1, 4, none, none, none, none},
		{"three", []float64{3, 1, 2}, 0.125, 1, 2, none, none, 1, 3},
		{"three, with a negative", []float64{-1, 2, 4}, 0.25, 0.875, 1.75, none, none, -1, 4},
		{"constants", []float64{5, 5, 5, 5}, 0.0625, 1, 5, none, none, 5, 5},
		{"zeros", []float64{0, 0, 0}, 1, 1, 0, none, none, 0, 0},
		{"zero and ties", []float64{0, 1, 1, -1, 2}, 0.3125, 0.9375, 0.5, none, none, -1, 2},
		{"six", []float64{1, 2, 3, 4, 5, 6}, 0.015625, 1, 3.5, 1, 6, 2, 5},
		{"eight, ties", []float64{1, 1, 2, -2, 3, 3, 4, 8}, 0.0234375, 0.98828125, 2.5, 0, 5.5, 1, 3.5},
		{"eight", []float64{7, -1, 3, 5, 2, 6, -4, 9}, 0.05078125, 0.95703125, 3.75, -1, 7, 0.5, 6.5},
		{"ten", []float64{10, -3, 5, 7, 1, -2, 8, 4, 6, 9}, 0.009765625, 0.9931640625, 5, 1, 8, none, none},
		{"twelve, zeros", []float64{0, 0, 1, 2, -1, 3, 4, -2, 5, 6, 7, 8}, 0.015625, 0.98828125, 2.75, 0.5, 5, none, none},
		{"fifteen", []float64{12, -5, 7, 3, 1, 9, -2, 8, 4, 11, 6, -1, 10, 2, 5}, 0.00445556640625, 0.997131347656, 5, 2, 7.5, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.samples)
			p, ok := FlipSigns(c.samples, 1)
			if !ok || !near(p.Greater, c.greater) || !near(p.Less, c.less) || !near(p.TwoSided, min(1, 2*min(c.greater, c.less))) {
				t.Errorf("sign-flip %+v, want %v and %v", p, c.greater, c.less)
			}
			s, ok := PairedShift(c.samples, 0.95)
			if !ok || !near(s.Value, c.shift) || (s.CI == nil) != math.IsNaN(c.shiftLow) || s.CI != nil && *s.CI != (Interval{c.shiftLow, c.shiftHigh}) {
				t.Errorf("shift %v %v, want %v, %v to %v", s.Value, s.CI, c.shift, c.shiftLow, c.shiftHigh)
			}
			b, ok := BootstrapMedian(c.samples, 0.90)
			if ok != (len(c.samples) > 1) {
				t.Errorf("bootstrap of %d: %v", len(c.samples), ok)
			}
			if !math.IsNaN(c.bootLow) && b != (Interval{c.bootLow, c.bootHigh}) {
				t.Errorf("bootstrap %v, want %v to %v", b, c.bootLow, c.bootHigh)
			}
			if !slices.Equal(before, c.samples) {
				t.Error("the samples were changed")
			}
		})
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-10*max(1, math.Abs(a), math.Abs(b)) }

// TestMannWhitney fails if U is of the other group, or if equal samples are an
// error. The two-sided p is twice the smaller tail.
func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		a, b     []float64
		u, delta float64
		p        float64
	}{
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0, -1, 0.1},
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 9, 1, 0.1},
		{[]float64{1, 2, 3, 4}, []float64{3, 4, 5, 6}, 2, -0.75, 0.14285714285714285},
		{[]float64{5, 5, 5}, []float64{5, 5, 5}, 4.5, 0, 1},
		{[]float64{1, 1, 2}, []float64{2, 3, 3, 3}, 0.5, -11.0 / 12, 0.11428571428571428},
		{[]float64{7}, []float64{1, 2, 3}, 3, 1, 0.5},
		{[]float64{1, 2, 3, 4, 5, 6}, []float64{1.5, 2.5, 3.5, 4.5, 5.5, 6.5}, 15, -1.0 / 6, 0.6991341991341992},
		{[]float64{78.8, 78.8, 78.8, 78.8, 78.8}, []float64{115, 115, 115, 115, 115}, 0, -1, 0.007936507936507936},
		{[]float64{0, 0, 1}, []float64{0, 1, 1, 2}, 3, -0.5, 0.5714285714285714},
	} {
		t.Run(fmt.Sprint(c.a, c.b), func(t *testing.T) {
			before := slices.Clone(c.a)
			r, ok := MannWhitney(c.a, c.b)
			if !ok || !near(r.U, c.u) || !near(r.Delta, c.delta) || !near(r.P, c.p) {
				t.Errorf("%+v, want U %v, delta %v, p %v", r, c.u, c.delta, c.p)
			}
			if !slices.Equal(before, c.a) {
				t.Error("the samples were changed")
			}
		})
	}
	for _, none := range [][]float64{nil, {math.NaN()}} {
		if _, ok := MannWhitney(none, []float64{1}); ok {
			t.Errorf("%v are ranked", none)
		}
	}
}

// TestFisher fails if the sum begins above the number that was seen.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		a, n, b, m int
		p          float64
	}{
		{4, 8, 0, 8, 0.0384615384615}, {1, 8, 0, 8, 0.5}, {8, 8, 0, 8, 7.77000777001e-05},
		{2, 8, 2, 8, 0.715384615385}, {0, 5, 5, 5, 1}, {3, 10, 1, 12, 0.225563909774},
	} {
		if p, ok := FisherGreater(c.a, c.n, c.b, c.m); !ok || !near(p, c.p) {
			t.Errorf("%d of %d and %d of %d: p = %v, want %v", c.a, c.n, c.b, c.m, p, c.p)
		}
	}
	if _, ok := FisherGreater(9, 8, 0, 8); ok {
		t.Error("nine of eight")
	}
	if _, ok := FisherGreater(0, 0, 0, 8); ok {
		t.Error("none of none")
	}
}

// TestBenjaminiHochberg is the example of the paper (1995, section 3.2), whose
// first four are discoveries at 5 %. Fails if a p below its bound does not take
// the smaller ones with it.
func TestBenjaminiHochberg(t *testing.T) {
	ps := []float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	slices.Reverse(ps)
	n := 0
	for i, found := range BenjaminiHochberg(ps, 0.05) {
		if found != (ps[i] <= 0.0095) {
			t.Errorf("p = %v: %v", ps[i], found)
		}
		if found {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d discoveries", n)
	}
	// 0.03 is above its own bound 0.025 and carried by 0.04 below 0.05.
	if got := BenjaminiHochberg([]float64{0.04, 0.03}, 0.05); !got[0] || !got[1] {
		t.Errorf("%v", got)
	}
	if got := BenjaminiHochberg(nil, 0.05); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestMedianQuotient fails if the groups are drawn together, or if the upper
// end is the lower one of the same difference.
func TestMedianQuotient(t *testing.T) {
	for _, c := range []struct {
		a, b             []float64
		ratio, low, high float64
	}{
		{[]float64{1, 2, 4}, []float64{1, 1, 8}, 2, 0.125, 4},
		{[]float64{2, 3, 5, 7}, []float64{1, 2, 4}, math.Sqrt(15) / 2, 0.75, 5},
		{[]float64{3, 3, 3}, []float64{2, 2, 2}, 1.5, 1.5, 1.5},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 2, 3, 9, 1}, 1.5, 1.0 / 3, 2.5},
	} {
		r, ok := MedianQuotient(c.a, c.b, 0.90)
		if !ok || !near(r.Ratio, c.ratio) || r.CI == nil || !near(r.CI.Low, c.low) || !near(r.CI.High, c.high) {
			t.Errorf("%v to %v: %v %v, want %v, %v to %v", c.a, c.b, r.Ratio, r.CI, c.ratio, c.low, c.high)
		}
	}
	for _, none := range [][]float64{nil, {0, 1}, {-1}, {math.Inf(1)}} {
		if _, ok := MedianQuotient(none, []float64{1, 2}, 0.9); ok {
			t.Errorf("%v have a ratio", none)
		}
	}
	if r, ok := MedianQuotient([]float64{2}, []float64{1, 1}, 0.9); !ok || r.CI != nil || r.Ratio != 2 {
		t.Errorf("one sample: %+v", r)
	}
}

// TestChangePoints: up to seven points p is exact. Fails if a segment may hold
// one point, or if the orders are counted that lie above what was seen only.
func TestChangePoints(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		at      int
		p       float64 // NaN: no change at any level
	}{
		{[]float64{1, 1, 1, 5, 5, 5}, 3, 0.1},
		{[]float64{1, 2, 1, 2, 9, 8}, 4, 2.0 / 15},
		{[]float64{1, 2, 3, 4, 5}, 2, 1.0 / 3},
		{[]float64{3, 3, 3, 3, 9, 9, 9}, 4, 2.0 / 35},
		{[]float64{1, 1, 1, 1, 1}, 0, math.NaN()},
		{[]float64{1, 9, 9}, 0, math.NaN()},
		{nil, 0, math.NaN()},
	} {
		found := ChangePoints(c.samples, c.p, 1)
		if math.IsNaN(c.p) {
			if found = ChangePoints(c.samples, 1, 1); len(found) != 0 {
				t.Errorf("%v: %v", c.samples, found)
			}
			continue
		}
		if len(found) == 0 || !slices.ContainsFunc(found, func(x ChangePoint) bool { return x.Index == c.at && near(x.P, c.p) }) {
			t.Errorf("%v: %v, want %d with %v", c.samples, found, c.at, c.p)
		}
		if found := ChangePoints(c.samples, c.p*0.99, 1); len(found) != 0 {
			t.Errorf("%v: %v below its p", c.samples, found)
		}
	}
}

// TestChangePointRates: ten points, noise of 4 %, at most 5 % false alarms, and
// a step of a fifth is found where it is. Fails if p is c/B.
func TestChangePointRates(t *testing.T) {
	r := newRand(4)
	const rounds = 300
	cried, found := 0, 0
	for round := range rounds {
		xs := make([]float64, 10)
		for i := range xs {
			xs[i] = 0.04 * r.NormFloat64()
		}
		if len(ChangePoints(xs, 0.05, uint64(round))) > 0 {
			cried++
		}
		for i := 6; i < 10; i++ {
			xs[i] += math.Log(1.2)
		}
		if c := ChangePoints(xs, 0.05, uint64(round)); len(c) > 0 && slices.ContainsFunc(c, func(x ChangePoint) bool { return x.Index == 6 }) {
			found++
		}
	}
	t.Logf("%d of %d false, %d found", cried, rounds, found)
	if cried > rounds*7/100 {
		t.Errorf("%d of %d series without a change have one", cried, rounds)
	}
	if found < rounds*90/100 {
		t.Errorf("%d of %d changes are found at their place", found, rounds)
	}
}

// TestTestsAreBlindToOrder: the order of samples does not matter, and mirrored
// samples give mirrored answers. Fails if zeros count for one side.
func TestTestsAreBlindToOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-20, 20).Draw(t, "x")) / 4
		}), 2, 34).Draw(t, "xs")
		shuffled := rapid.Permutation(xs).Draw(t, "shuffled")
		mirrored := make([]float64, len(xs))
		for i, x := range xs {
			mirrored[i] = -x
		}
		p, _ := FlipSigns(xs, 3)
		q, _ := FlipSigns(shuffled, 3)
		m, _ := FlipSigns(mirrored, 3)
		if len(xs) <= exactFlips && (p != q || !near(p.Greater, m.Less) || !near(p.TwoSided, m.TwoSided)) {
			t.Fatalf("sign-flip %+v, shuffled %+v, mirrored %+v", p, q, m)
		}
		if !(p.Greater > 0 && p.Greater <= 1 && p.Less > 0 && p.Less <= 1) {
			t.Fatalf("sign-flip %+v", p)
		}
		for _, level := range []float64{0.8, 0.9, 0.95, 0.999} {
			b, _ := BootstrapMedian(xs, level)
			c, _ := BootstrapMedian(shuffled, level)
			d, _ := BootstrapMedian(mirrored, level)
			middle, _ := Median(xs)
			if b != c || b.Low != -d.High || b.High != -d.Low || !b.Contains(middle) {
				t.Fatalf("bootstrap at %v: %v, shuffled %v, mirrored %v", level, b, c, d)
			}
			s, _ := PairedShift(xs, level)
			u, _ := PairedShift(mirrored, level)
			if s.Value != -u.Value || s.CI != nil && (s.CI.Low != -u.CI.High || !s.CI.Contains(s.Value)) {
				t.Fatalf("shift %+v, mirrored %+v", s, u)
			}
		}
	})
}

// TestManySigns: beyond exactFlips the random signs agree with all of them.
func TestManySigns(t *testing.T) {
	r := newRand(9)
	xs := make([]float64, exactFlips)
	for i := range xs {
		xs[i] = r.NormFloat64() + 0.3
	}
	exact, _ := FlipSigns(xs, 1)
	sizes := make([]float64, len(xs))
	sum := 0.0
	for i, x := range xs {
		sizes[i] = math.Abs(x)
	}
	limit, _ := Median(sizes)
	for i, x := range xs {
		sizes[i] = min(sizes[i], limit)
		sum += math.Copysign(sizes[i], x)
	}
	greater, less := someSigns(sizes, sum, 1e-12, newRand(1))
	if math.Abs(greater-exact.Greater) > 0.005 || math.Abs(less-exact.Less) > 0.005 {
		t.Errorf("%v and %v, exactly %+v", greater, less, exact)
	}
	long := make([]float64, 200)
	for i := range long {
		long[i] = 1
	}
	if p, _ := FlipSigns(long, 1); p.Greater != 1.0/(flips+1) || p.Less != 1 {
		t.Errorf("%+v: no random sign is p = 0", p)
	}
}

// TestWeights: the bootstrap weights are probabilities at any n, and resampling
// converges to them. Fails if the pair of the two middle points leaves out that
// both can be one.
func TestWeights(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 8, 30, 101, pairedLimit, pairedLimit + 2, 301} {
		sum := 0.0
		for _, w := range medianWeights(n) {
			if w.p < 0 || w.i > w.j || w.j >= n {
				t.Fatalf("n = %d: %+v", n, w)
			}
			sum += w.p
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("n = %d: the weights add up to %v", n, sum)
		}
	}
	r := newRand(5)
	xs := []float64{0.1, 0.4, 0.45, 0.9, 1.3, 1.31, 2, 5}
	const draws = 200_000
	below := 0
	draw := make([]float64, len(xs))
	for range draws {
		for j := range draw {
			draw[j] = xs[r.IntN(len(xs))]
		}
		slices.Sort(draw)
		if middle(draw) <= 0.5 {
			below++
		}
	}
	d, _ := medianDistribution(xs)
	p := 0.0
	for _, m := range d {
		if m.value <= 0.5 {
			p += m.p
		}
	}
	if math.Abs(p-float64(below)/draws) > 0.004 {
		t.Errorf("P(median <= 0.5) is %v, of resamples %v", p, float64(below)/draws)
	}
}

// TestMedianError: a tenth of outliers moves the error of the median little.
func TestMedianError(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
		ok      bool
	}{
		{nil, 0, false}, {[]float64{1}, 0, false}, {[]float64{2, 2, 2}, 0, true},
		{[]float64{1, 2, 3, 4, 5}, 1.4826 * math.Sqrt(math.Pi/2) / math.Sqrt(5), true},
		{[]float64{1, 2, 3, 4, 500}, 1.4826 * math.Sqrt(math.Pi/2) / math.Sqrt(5), true},
	} {
		if got, ok := MedianError(c.samples); ok != c.ok || !near(got, c.want) {
			t.Errorf("%v: %v %v", c.samples, got, ok)
		}
	}
	if z := NormalQuantile(0.025); math.Abs(z-1.959964) > 1e-6 {
		t.Errorf("%v", z)
	}
}

// TestBeyondNumbers: an interval whose end no number holds is none, and the
// ratio stays. Fails if the end is infinite.
func TestBeyondNumbers(t *testing.T) {
	a, b := []float64{1e308, 1, 1, 1e308, 1}, []float64{1e-308, 1, 1, 1e-308, 1}
	if r, ok := RatiosAt(a, b, 0.99); !ok || r.Ratio != 1 || r.CI != nil {
		t.Errorf("%+v %v", r, ok)
	}
	if r, ok := RatiosAt(b, a, 0.99); !ok || r.Ratio != 1 || r.CI != nil {
		t.Errorf("%+v %v", r, ok)
	}
	if r, ok := MedianQuotient(a, b, 0.99); !ok || r.CI != nil {
		t.Errorf("%+v %v", r, ok)
	}
}

// TestManyRanks: the approximation for long samples goes on where the exact
// distribution of the signed ranks ends.
func TestManyRanks(t *testing.T) {
	exact, approximate := signedRankCut(200, 0.025), signedRankCut(201, 0.025)
	if step := approximate - exact; step < 80 || step > 100 {
		t.Errorf("%d of 200, %d of 201", exact, approximate)
	}
	if k := signedRankCut(5, 0.025); k != 0 {
		t.Errorf("five samples have an interval at 95 %%, cut %d", k)
	}
}
