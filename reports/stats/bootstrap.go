package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resamples is the number of bootstrap draws. Their cost is small beside the
// shortest trial.
const resamples = 10_000

// MedianRatio is the median of paired ratios with its interval.
type MedianRatio struct {
	N     int
	Ratio float64
	CI    *Interval // nil below two pairs
}

// Ratios compares pairs of positive numbers: a of b, pair by pair. The
// interval is a percentile bootstrap of the median on logarithms, its random
// numbers a function of the seed. Without pairs, or with a number that has no
// logarithm, it returns false. A pair of two zeros is the ratio 1.
func Ratios(a, b []float64, seed uint64) (MedianRatio, bool) {
	if len(a) != len(b) || len(a) == 0 {
		return MedianRatio{}, false
	}
	logs := make([]float64, len(a))
	for i := range a {
		switch {
		case a[i] == 0 && b[i] == 0:
		case a[i] > 0 && b[i] > 0 && finite(a[i]) && finite(b[i]):
			logs[i] = math.Log(a[i]) - math.Log(b[i])
		default:
			return MedianRatio{}, false
		}
	}
	middle, _ := Median(logs)
	out := MedianRatio{N: len(logs), Ratio: math.Exp(middle)}
	if !finite(out.Ratio) {
		return MedianRatio{}, false
	}
	if len(logs) >= 2 {
		ci := bootstrap(logs, seed)
		out.CI = &Interval{math.Exp(ci.Low), math.Exp(ci.High)}
	}
	return out, true
}

// bootstrap is the interval between the percentiles of resampled medians.
func bootstrap(xs []float64, seed uint64) Interval {
	n := len(xs)
	r := newRand(seed)
	medians := make([]float64, resamples)
	draw := make([]float64, n)
	for i := range medians {
		for j := range draw {
			draw[j] = xs[r.IntN(n)]
		}
		slices.Sort(draw)
		medians[i] = (draw[(n-1)/2] + draw[n/2]) / 2
	}
	slices.Sort(medians)
	tail := int(math.Floor((1 - Confidence) / 2 * resamples))
	return Interval{medians[tail], medians[resamples-1-tail]}
}

// newRand is a generator that gives the same numbers for the same seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }
