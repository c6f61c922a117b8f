package verdict

import (
	"math"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

// Verdict is the outcome of a comparison.
type Verdict string

// The four verdicts.
const (
	Faster       Verdict = "faster" // better in the metric's direction
	Slower       Verdict = "slower"
	Same         Verdict = "same"
	Inconclusive Verdict = "inconclusive"
)

// MinPairs is the number of pairs below which nothing is concluded.
const MinPairs = 5

// Band is how much a metric may differ and still count as the same.
type Band struct {
	Relative float64 `json:"relative"` // 0.1: ten percent
	Absolute float64 `json:"absolute"` // in the metric's unit
}

// DefaultBand is the band of a metric for which nobody set one: a tenth, and
// twice the resolution.
func DefaultBand(m result.Metric) Band {
	return Band{Relative: 0.10, Absolute: 2 * m.Resolution}
}

// Comparison is one metric of two cells, pair by pair.
type Comparison struct {
	N       int                // pairs
	Ratio   *stats.MedianRatio // nil: no number can be given
	Verdict Verdict
}

// Compare compares paired samples, a against the reference b, at 95 % and with
// no thought of other cells. planned is how many pairs the plan has: with less
// than half of them no ratio is given, since those that are missing may be the
// slow ones. The last argument, once a seed, is not used: nothing is drawn.
func Compare(a, b []float64, better result.Better, band Band, planned int, _ uint64) Comparison {
	c := Comparison{N: len(a), Verdict: Inconclusive}
	if 2*len(a) < planned {
		return c
	}
	r, ok := stats.Ratios(a, b)
	if !ok {
		return c
	}
	c.Ratio = &r
	if c.N < MinPairs || r.CI == nil {
		return c
	}
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	difference, _ := stats.Median(differences)
	limit := 1 + band.Relative
	inside := r.CI.Low >= 1/limit && r.CI.High <= limit
	switch {
	case inside || math.Abs(difference) <= band.Absolute && withinAll(differences, band.Absolute):
		c.Verdict = Same
	case math.Abs(difference) <= band.Absolute || better == result.Neutral:
	case r.CI.High < 1 && r.Ratio < 1/limit:
		c.Verdict = direction(better == result.Lower)
	case r.CI.Low > 1 && r.Ratio > limit:
		c.Verdict = direction(better == result.Higher)
	}
	return c
}

func withinAll(differences []float64, absolute float64) bool {
	for _, d := range differences {
		if math.Abs(d) > absolute {
			return false
		}
	}
	return true
}

func direction(good bool) Verdict {
	if good {
		return Faster
	}
	return Slower
}
