package stats

import (
	"math"
	"slices"
)

// MedianQuotient compares two groups of positive numbers that do not pair: the
// ratio of their medians, a to b, with the percentile bootstrap interval at the
// level, both groups drawn on their own, on logarithms and without a resample;
// see BootstrapMedian. Below two samples a side, and beyond
// what numbers hold, there is no interval.
func MedianQuotient(a, b []float64, level float64) (MedianRatio, bool) {
	as, ok := logs(a)
	bs, fine := logs(b)
	if !ok || !fine {
		return MedianRatio{}, false
	}
	x, _ := Median(as)
	y, _ := Median(bs)
	out := MedianRatio{N: min(len(a), len(b)), Ratio: math.Exp(x - y)}
	if !finite(out.Ratio) || out.Ratio == 0 {
		return MedianRatio{}, false
	}
	if out.N < 2 {
		return out, true
	}
	da, _ := medianDistribution(as)
	db, _ := medianDistribution(bs)
	tail := (1 - level) / 2
	low := differenceQuantile(da, db, tail)
	high := -differenceQuantile(db, da, tail)
	out.CI = ratioInterval(low, high)
	return out, true
}

// logs are the logarithms of positive numbers.
func logs(xs []float64) ([]float64, bool) {
	out := make([]float64, len(xs))
	for i, x := range xs {
		if !(x > 0) || !finite(x) {
			return nil, false
		}
		out[i] = math.Log(x)
	}
	return out, len(xs) > 0
}

// differenceQuantile is the value that a draw from a less one from b stays
// below with the probability tail, by halving.
func differenceQuantile(a, b distribution, tail float64) float64 {
	low, high := a[0].value-b[len(b)-1].value, a[len(a)-1].value-b[0].value
	for range 64 {
		at := low/2 + high/2
		if at <= low || at >= high {
			break
		}
		if differenceBelow(a, b, at) > tail+rounding {
			high = at
		} else {
			low = at
		}
	}
	return high
}

// differenceBelow is the probability that a less b is at most v.
func differenceBelow(a, b distribution, v float64) float64 {
	p, above, at := 0.0, 0.0, len(b)
	for _, m := range slices.Backward(a) {
		// b must be at least m.value-v; as a falls, more of b will do.
		for at > 0 && b[at-1].value >= m.value-v {
			at--
			above += b[at].p
		}
		p += m.p * above
	}
	return p
}
