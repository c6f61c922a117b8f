package stats

import "math"

// MedianError is the standard error of the median of samples, from their
// median absolute deviation: what some outliers do to it is little. Constant
// samples have none, 0; below two samples there is no answer.
func MedianError(samples []float64) (float64, bool) {
	xs := Finite(samples)
	if len(xs) < 2 {
		return 0, false
	}
	middle, _ := Median(xs)
	for i, x := range xs {
		xs[i] = math.Abs(x - middle)
	}
	deviation, ok := Median(xs)
	// 1.4826 makes the deviation that of a normal distribution, whose median
	// has the error sqrt(pi/2) sd / sqrt(n).
	return 1.4826 * math.Sqrt(math.Pi/2) * deviation / math.Sqrt(float64(len(xs))), ok
}

// NormalQuantile is the value that a standard normal variable exceeds with
// probability tail.
func NormalQuantile(tail float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*tail) }
