package stats

import moremath "github.com/aclements/go-moremath/stats"

// Ranks is the result of a Mann-Whitney test.
type Ranks struct {
	U     float64 // pairs in which the first group is larger, ties by half
	P     float64 // two-sided, exact up to 50 samples a side, with ties up to 25
	Delta float64 // Cliff's delta: 1 if every sample of the first group is larger, -1 if every one is smaller
}

// MannWhitney tests whether one of two groups tends to larger values. Where all
// samples are equal there is nothing to rank and P is 1.
func MannWhitney(a, b []float64) (Ranks, bool) {
	if len(a) == 0 || len(b) == 0 || len(Finite(a)) != len(a) || len(Finite(b)) != len(b) {
		return Ranks{}, false
	}
	r, err := moremath.MannWhitneyUTest(a, b, moremath.LocationDiffers)
	if err != nil { // the samples are there, so they are all equal
		return Ranks{U: float64(len(a)*len(b)) / 2, P: 1}, true
	}
	return Ranks{U: r.U, P: min(r.P, 1), Delta: 2*r.U/float64(len(a)*len(b)) - 1}, true
}
