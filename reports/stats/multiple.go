package stats

import (
	"cmp"
	"math"
	"slices"
)

// BenjaminiHochberg tells which of many p-values are discoveries, so that of
// these at most the share rate is expected to be none.
func BenjaminiHochberg(ps []float64, rate float64) []bool {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	last := -1
	for rank, i := range order {
		if ps[i] <= rate*float64(rank+1)/float64(len(ps))+rounding {
			last = rank
		}
	}
	out := make([]bool, len(ps))
	for _, i := range order[:last+1] {
		out[i] = true
	}
	return out
}

// FisherGreater is Fisher's exact test of two shares: the probability of at
// least failedA failures among nA, given all failures of both sides, if both
// fail alike.
func FisherGreater(failedA, nA, failedB, nB int) (float64, bool) {
	if failedA < 0 || failedB < 0 || failedA > nA || failedB > nB || nA == 0 || nB == 0 {
		return 0, false
	}
	failed := failedA + failedB
	sum := 0.0
	for k := failedA; k <= min(failed, nA); k++ {
		if failed-k > nB {
			continue
		}
		sum += math.Exp(logChoose(nA, k) + logChoose(nB, failed-k) - logChoose(nA+nB, failed))
	}
	return min(sum, 1), true
}
