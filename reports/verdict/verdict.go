package verdict

import (
	"math"

	"benchrun/harness/result"
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
