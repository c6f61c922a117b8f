package stats

import (
	"math"
	"slices"
)

// Shift is a Hodges-Lehmann estimate.
type Shift struct {
	Value float64
	CI    *Interval // nil where the samples are too few for the level
}

// PairedShift is the Hodges-Lehmann estimate of the centre of samples, the
// median of their Walsh averages, with the interval that the exact null
// distribution of Wilcoxon's signed ranks gives: the narrowest that holds at
// least the level. It takes six samples to reach 95 %.
func PairedShift(samples []float64, level float64) (Shift, bool) {
	n := len(samples)
	if n == 0 || len(Finite(samples)) != n {
		return Shift{}, false
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i, x := range samples {
		for _, y := range samples[i:] {
			walsh = append(walsh, x/2+y/2)
		}
	}
	slices.Sort(walsh)
	out := Shift{Value: middle(walsh)}
	if k := signedRankCut(n, (1-level)/2); k > 0 {
		out.CI = &Interval{walsh[k-1], walsh[len(walsh)-k]}
	}
	return out, true
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// signedRankCut is the largest k for which fewer than k of the Walsh averages
// lie below the centre with a probability of at most tail; 0: none.
func signedRankCut(n int, tail float64) int {
	top := n * (n + 1) / 2
	if n > 200 { // far beyond, the normal approximation serves
		mean, sd := float64(top)/2, math.Sqrt(float64(top)*float64(2*n+1)/12)
		return max(0, int(math.Floor(mean-0.5-NormalQuantile(tail)*sd))+1)
	}
	p := make([]float64, top+1) // p[s]: the ranks with a plus add up to s
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for s := rank * (rank + 1) / 2; s >= 0; s-- {
			with := 0.0
			if s >= rank {
				with = p[s-rank]
			}
			p[s] = (p[s] + with) / 2
		}
	}
	sum := 0.0
	for k, x := range p {
		if sum += x; sum > tail+rounding {
			return k
		}
	}
	return 0
}
