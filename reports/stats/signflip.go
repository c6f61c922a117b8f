package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	exactFlips = 30      // samples up to which all signs are gone through
	flips      = 100_000 // random ones beyond
)

// SignFlip is the result of a sign-flip test: how often random signs give a
// sum as far from 0 as the one that was seen.
type SignFlip struct {
	Greater  float64 // one-sided: the samples lie above 0
	Less     float64
	TwoSided float64
}

// FlipSigns tests whether samples lie around 0. Their distribution may be any
// that is symmetric. Sizes are cut at the median size, a function of the sizes
// alone: the test stays exact and an outlier counts as much as a middling
// sample. All 2^n signs are gone through, beyond exactFlips samples 100,000
// random ones, a function of the seed, with p = (c+1)/(B+1).
func FlipSigns(samples []float64, seed uint64) (SignFlip, bool) {
	if len(samples) == 0 || len(Finite(samples)) != len(samples) {
		return SignFlip{}, false
	}
	sizes := make([]float64, len(samples))
	for i, x := range samples {
		sizes[i] = math.Abs(x)
	}
	// More zeros than sizes: there is nothing to cut at.
	if limit, _ := Median(sizes); limit > 0 {
		for i := range sizes {
			sizes[i] = min(sizes[i], limit)
		}
	}
	sum, total := 0.0, 0.0
	for i, x := range samples {
		total += sizes[i]
		sum += math.Copysign(sizes[i], x)
	}
	slack := rounding * max(total, math.SmallestNonzeroFloat64)
	var p SignFlip
	if len(samples) <= exactFlips {
		shares := allSigns(sizes, sum-slack, -sum-slack) // all signs are as many as their opposites
		p.Greater, p.Less = shares[0], shares[1]
	} else {
		p.Greater, p.Less = someSigns(sizes, sum, slack, newRand(seed))
	}
	p.TwoSided = min(1, 2*min(p.Greater, p.Less))
	return p, true
}

// allSigns are the shares of the signs that give the sizes a sum of at least
// each bound: the sums of each half in order, then pairs of them.
func allSigns(sizes []float64, bounds ...float64) []float64 {
	half := len(sizes) / 2
	low, high := signedSums(sizes[:half]), signedSums(sizes[half:])
	shares := make([]float64, len(bounds))
	for k, bound := range bounds {
		count, from := 0, len(high)
		for _, s := range low {
			for from > 0 && s+high[from-1] >= bound {
				from--
			}
			count += len(high) - from
		}
		shares[k] = float64(count) / (float64(len(low)) * float64(len(high)))
	}
	return shares
}

// signedSums are all sums of the sizes with either sign, ascending.
func signedSums(sizes []float64) []float64 {
	sums, next := make([]float64, 1, 1<<len(sizes)), make([]float64, 0, 1<<len(sizes))
	for _, x := range sizes {
		next = next[:2*len(sums)]
		// Two ascending lists are merged: the sums less x, and the sums plus x.
		i, j := 0, 0
		for k := range next {
			if j == len(sums) || i < len(sums) && sums[i]-x <= sums[j]+x {
				next[k] = sums[i] - x
				i++
			} else {
				next[k] = sums[j] + x
				j++
			}
		}
		sums, next = next, sums[:0]
	}
	return sums
}

func someSigns(sizes []float64, sum, slack float64, r *rand.Rand) (greater, less float64) {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes) // the order of the samples does not matter
	above, below := 1, 1
	for range flips {
		s := 0.0
		var signs uint64
		for i, x := range sizes {
			if i%64 == 0 {
				signs = r.Uint64()
			}
			if signs&1 == 0 {
				x = -x
			}
			signs >>= 1
			s += x
		}
		// Signs are as likely as their opposites: one draw serves both sides.
		if s >= sum-slack {
			above++
		}
		if -s >= -sum-slack {
			below++
		}
	}
	return float64(above) / (flips + 1), float64(below) / (flips + 1)
}
