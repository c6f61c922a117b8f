package stats

import (
	"math"
	"slices"

	descriptive "github.com/montanaflynn/stats"
)

// Confidence is the level of the intervals of medians; comparisons set their own.
const Confidence = 0.95

// Interval encloses a value.
type Interval struct{ Low, High float64 }

// Contains tells whether x lies in the interval, its ends included.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Description is what can be said of the samples of one metric in one cell.
type Description struct {
	N      int
	Median float64
	Mean   float64
	SD     *float64 // of a sample; nil below two samples
	Min    float64
	Max    float64
	P90    float64   // nearest rank: the smallest sample that 90 % do not exceed
	CI     *Interval // of the median; nil below six samples
}

// Describe describes samples. Without a finite one it returns false; others
// are left out.
func Describe(samples []float64) (Description, bool) {
	xs := Finite(samples)
	if len(xs) == 0 {
		return Description{}, false
	}
	// With at least one finite number the library's functions have no errors
	// left, but sums can still overflow.
	d := Description{N: len(xs)}
	d.Median, _ = descriptive.Median(xs)
	d.Mean, _ = descriptive.Mean(xs)
	d.Min, _ = descriptive.Min(xs)
	d.Max, _ = descriptive.Max(xs)
	d.P90, _ = descriptive.PercentileNearestRank(xs, 90)
	// The library's StandardDeviation divides by n.
	if sd, err := descriptive.StandardDeviationSample(xs); err == nil && finite(sd) {
		d.SD = &sd
	}
	if ci, ok := MedianInterval(xs); ok {
		d.CI = &ci
	}
	return d, finite(d.Median) && finite(d.Mean)
}

// Finite returns the samples that are numbers, in their order.
func Finite(samples []float64) []float64 {
	xs := make([]float64, 0, len(samples))
	for _, x := range samples {
		if finite(x) {
			xs = append(xs, x)
		}
	}
	return xs
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Median is the middle sample, or the mean of the two in the middle.
func Median(samples []float64) (float64, bool) {
	xs := Finite(samples)
	if len(xs) == 0 {
		return 0, false
	}
	m, err := descriptive.Median(xs)
	return m, err == nil && finite(m)
}

// MedianInterval is the narrowest pair of symmetric order statistics that
// encloses the median of the population with probability Confidence or more,
// whatever the distribution is: the number of samples below the median is
// binomial. It takes six samples to reach 95 %.
func MedianInterval(samples []float64) (Interval, bool) {
	xs := slices.Sorted(slices.Values(Finite(samples)))
	n := len(xs)
	// Outside the k-th sample from either end lies the median with the
	// probability that fewer than k of n fair coins show heads.
	best := -1
	tail, term := 0.0, math.Pow(0.5, float64(n)) // term = C(n, k) / 2^n
	for k := 0; k < (n+1)/2; k++ {
		tail += term
		if 1-2*tail < Confidence {
			break
		}
		best = k
		term *= float64(n-k) / float64(k+1)
	}
	if best < 0 {
		return Interval{}, false
	}
	return Interval{xs[best], xs[n-1-best]}, true
}
