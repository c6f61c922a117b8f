package stats

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// MedianRatio is the median of paired ratios with its interval.
type MedianRatio struct {
	N     int
	Ratio float64
	CI    *Interval // nil below two pairs
}

// Ratios is RatiosAt the level Confidence.
func Ratios(a, b []float64) (MedianRatio, bool) { return RatiosAt(a, b, Confidence) }

// RatiosAt compares pairs of positive numbers: a of b, pair by pair. The
// interval is the percentile bootstrap of the median on logarithms. Without
// pairs, or with a number that has no logarithm, it returns false.
func RatiosAt(a, b []float64, level float64) (MedianRatio, bool) {
	logs, ok := LogRatios(a, b)
	if !ok || len(logs) == 0 {
		return MedianRatio{}, false
	}
	middle, _ := Median(logs)
	out := MedianRatio{N: len(logs), Ratio: math.Exp(middle)}
	if !finite(out.Ratio) || out.Ratio == 0 {
		return MedianRatio{}, false
	}
	if ci, ok := BootstrapMedian(logs, level); ok {
		out.CI = ratioInterval(ci.Low, ci.High)
	}
	return out, true
}

// ratioInterval is the interval of a ratio from that of its logarithm; nil if
// an end is beyond what a number can hold.
func ratioInterval(low, high float64) *Interval {
	ci := Interval{math.Exp(low), math.Exp(high)}
	if ci.Low == 0 || !finite(ci.High) {
		return nil
	}
	return &ci
}

// LogRatios are the logarithms of a of b, pair by pair. A pair of two zeros is
// the ratio 1; a pair with one zero, a negative number or none has no ratio,
// and then there is no answer.
func LogRatios(a, b []float64) ([]float64, bool) {
	if len(a) != len(b) {
		return nil, false
	}
	logs := make([]float64, len(a))
	for i := range a {
		switch {
		case a[i] == 0 && b[i] == 0:
		case a[i] > 0 && b[i] > 0 && finite(a[i]) && finite(b[i]):
			logs[i] = math.Log(a[i]) - math.Log(b[i])
		default:
			return nil, false
		}
	}
	return logs, true
}

// BootstrapMedian is the percentile bootstrap interval of the median at a
// level, without a resample: the bootstrap distribution of the median of n
// points lives on the points (n odd) or on the means of two of them (n even),
// with probabilities that depend on n alone. It is what resampling converges
// to. Below two samples there is none.
func BootstrapMedian(samples []float64, level float64) (Interval, bool) {
	d, ok := medianDistribution(samples)
	if !ok || len(samples) < 2 {
		return Interval{}, false
	}
	return d.interval((1 - level) / 2), true
}

// mass is a value with its probability.
type mass struct{ value, p float64 }

// distribution is discrete, sorted by value.
type distribution []mass

// rounding is the error that sums of probabilities may carry.
const rounding = 1e-12

// interval cuts off at most tail on either side.
func (d distribution) interval(tail float64) Interval {
	out := Interval{d[len(d)-1].value, d[0].value}
	sum := 0.0
	for _, m := range d {
		if sum += m.p; sum > tail+rounding {
			out.Low = m.value
			break
		}
	}
	sum = 0
	for _, m := range slices.Backward(d) {
		if sum += m.p; sum > tail+rounding {
			out.High = m.value
			break
		}
	}
	return out
}

// medianDistribution is the bootstrap distribution of the median.
func medianDistribution(samples []float64) (distribution, bool) {
	xs := slices.Sorted(slices.Values(samples))
	n := len(xs)
	if n == 0 || !finite(xs[0]) || !finite(xs[n-1]) {
		return nil, false
	}
	weights := medianWeights(n)
	d := make(distribution, len(weights))
	for k, w := range weights {
		d[k] = mass{xs[w.i]/2 + xs[w.j]/2, w.p}
		if w.i == w.j {
			d[k].value = xs[w.i]
		}
	}
	slices.SortFunc(d, func(a, b mass) int { return cmp.Compare(a.value, b.value) })
	return d, true
}

// weight is the probability that the two middle points of a resample are the
// i-th and the j-th of the sorted sample; with an odd number they are one.
type weight struct {
	i, j int
	p    float64
}

// pairedLimit is the even n from which on the two middle points count as one:
// then they are neighbours nearly always.
const pairedLimit = 128

// medianTables holds the weights by n. They are a function of n, so that who
// computes them first does not matter.
var medianTables sync.Map

func medianWeights(n int) []weight {
	if t, ok := medianTables.Load(n); ok {
		return t.([]weight)
	}
	var t []weight
	if n%2 == 1 || n > pairedLimit {
		t = middleWeights(n)
	} else {
		t = middlePairWeights(n)
	}
	medianTables.Store(n, t)
	return t
}

// middleWeights: the middle point of a resample is at most the i-th of the
// sample if at least half of the draws are. Of an even number the two middle
// ones share the weight.
func middleWeights(n int) []weight {
	below := func(i int) float64 {
		p := float64(i) / float64(n)
		return (binomialTail(n, (n+1)/2, p) + binomialTail(n, n/2+1, p)) / 2
	}
	out := make([]weight, n)
	rest := 1.0
	for i := range n / 2 {
		p := below(i+1) - below(i)
		out[i], out[n-1-i] = weight{i, i, p}, weight{n - 1 - i, n - 1 - i, p}
		rest -= 2 * p
	}
	if n%2 == 1 {
		out[n/2] = weight{n / 2, n / 2, rest}
	}
	return out
}

// middlePairWeights: of 2m draws the m-th smallest is the i-th of the sample
// and the next one the j-th if m draws are at most i, not all below it, and m
// are at least j, not all above it.
func middlePairWeights(n int) []weight {
	m := n / 2
	ways := math.Exp(logChoose(n, m))
	power := func(i int) float64 { return math.Pow(float64(i)/float64(n), float64(m)) }
	var out []weight
	both := func(i, j int, p float64) {
		out = append(out, weight{i, j, p})
		if i+j != n-1 {
			out = append(out, weight{n - 1 - j, n - 1 - i, p})
		}
	}
	for i := range m {
		// The smaller of the two is the i-th; what is not left for a larger
		// partner falls on the i-th twice.
		same := binomialTail(n, m, float64(i+1)/float64(n)) - binomialTail(n, m, float64(i)/float64(n))
		for j := i + 1; j < n; j++ {
			p := ways * (power(i+1) - power(i)) * (power(n-j) - power(n-j-1))
			same -= p
			if i+j <= n-1 {
				both(i, j, p)
			}
		}
		both(i, i, max(same, 0))
	}
	return out
}

// binomialTail is the probability of k or more successes in n.
func binomialTail(n, k int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0:
		return 0
	}
	sum := 0.0
	for x := n; x >= k; x-- {
		sum += math.Exp(logChoose(n, x) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
	}
	return min(sum, 1)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n) + 1)
	b, _ := math.Lgamma(float64(k) + 1)
	c, _ := math.Lgamma(float64(n-k) + 1)
	return a - b - c
}
