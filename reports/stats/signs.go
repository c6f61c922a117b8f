package stats

import (
	"math"
	"slices"
)

// Limits of the signs below. They are meant to be quiet: a warning that comes
// with every second run is not read.
const (
	driftSamples = 6    // fewer cannot be significant and clear at once
	driftP       = 0.01 // two-sided
	driftSize    = 0.10 // between the first and the last half, relative
	humpSamples  = 6
	humpSize     = 0.10 // gap between the humps, relative to the median
)

// Drift tells whether samples in the order of their measurement go up or down
// through the run: the ranks follow the order (Mann-Kendall, exact for samples
// without ties) and the median of the last half differs from that of the first
// by more than a tenth. change is that difference, relative.
func Drift(samples []float64) (change float64, drifts bool) {
	xs := Finite(samples)
	n := len(xs)
	if n < driftSamples {
		return 0, false
	}
	inversions, pairs := 0, n*(n-1)/2
	for i := range xs {
		for j := i + 1; j < n; j++ {
			if xs[i] > xs[j] {
				inversions++
			} else if xs[i] == xs[j] {
				pairs-- // a tie speaks for neither
			}
		}
	}
	ordered := min(inversions, pairs-inversions)
	if ties := n*(n-1)/2 - pairs; ties > 0 {
		ordered += (ties + 1) / 2 // the cautious reading
	}
	first, _ := Median(xs[:n/2])
	last, _ := Median(xs[(n+1)/2:])
	if first <= 0 {
		return 0, false
	}
	change = last/first - 1
	return change, 2*orderedTail(n, ordered) <= driftP && math.Abs(change) > driftSize
}

// orderedTail is the probability that a random permutation of n has at most k
// inversions.
func orderedTail(n, k int) float64 {
	if n > 40 { // the normal approximation is exact enough long before
		pairs := float64(n*(n-1)) / 2
		sd := math.Sqrt(float64(n*(n-1)*(2*n+5)) / 72)
		return 0.5 * math.Erfc((pairs/2-float64(k)-0.5)/sd/math.Sqrt2)
	}
	p := []float64{1} // p[i]: probability of i inversions
	for m := 2; m <= n; m++ {
		next := make([]float64, m*(m-1)/2+1)
		for i, x := range p {
			for j := range m {
				next[i+j] += x / float64(m)
			}
		}
		p = next
	}
	sum := 0.0
	for i := 0; i <= min(k, len(p)-1); i++ {
		sum += p[i]
	}
	return min(sum, 1)
}

// Humps tells whether samples fall into two groups, so that a value in the
// middle describes neither: the widest gap is more than half of the range,
// each side has a quarter of the samples or more, and the gap is large beside
// the median and beside what lies within the groups. It returns the medians of
// both groups.
func Humps(samples []float64) (low, high float64, two bool) {
	xs := slices.Sorted(slices.Values(Finite(samples)))
	n := len(xs)
	if n < humpSamples {
		return 0, 0, false
	}
	at, gap := 0, 0.0
	for i := 1; i < n; i++ {
		if g := xs[i] - xs[i-1]; g > gap {
			at, gap = i, g
		}
	}
	middle, _ := Median(xs)
	within := max(xs[at-min(at, 1)]-xs[0], xs[n-1]-xs[at])
	if at < (n+3)/4 || n-at < (n+3)/4 || gap <= (xs[n-1]-xs[0])/2 || gap < 2*within || gap < humpSize*math.Abs(middle) {
		return 0, 0, false
	}
	low, _ = Median(xs[:at])
	high, _ = Median(xs[at:])
	return low, high, true
}
