package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	minSegment   = 2   // points on either side of a change
	allOrders    = 7   // points up to which all orders are gone through
	permutations = 999 // random ones beyond
)

// ChangePoint is where a series moved to another level.
type ChangePoint struct {
	Index int     // of the first point at the new level
	P     float64 // of the permutation test
}

// ChangePoints finds where the distribution of a series changes: E-divisive
// (Matteson and James 2014) with the energy distance of the two parts of a
// segment, split where it is largest as long as a permutation test gives at
// most p. The test goes through all orders of up to allOrders points, beyond
// through random ones, a function of the seed, with p = (c+1)/(B+1).
//
// Of n points no order is rarer than a clean cut in the middle: its p is about
// 2/C(n, n/2), so 0.05 takes eight points; a cut that leaves k points on one
// side about 2/C(n, k).
func ChangePoints(samples []float64, p float64, seed uint64) []ChangePoint {
	if len(Finite(samples)) != len(samples) {
		return nil
	}
	var out []ChangePoint
	divide(samples, 0, p, newRand(seed), &out)
	return out
}

func divide(xs []float64, from int, p float64, r *rand.Rand, out *[]ChangePoint) {
	n := len(xs)
	if n < 2*minSegment {
		return
	}
	d := newDistances(xs)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	at, seen := d.split(order)
	if seen <= 0 {
		return
	}
	seen -= rounding * max(seen, 1e-300)
	found := 0.0
	if n <= allOrders {
		count, total := 0, 0
		eachOrder(order, 0, func() {
			total++
			if _, q := d.split(order); q >= seen {
				count++
			}
		})
		found = float64(count) / float64(total)
	} else {
		count := 1
		for range permutations {
			r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			if _, q := d.split(order); q >= seen {
				count++
			}
		}
		found = float64(count) / (permutations + 1)
	}
	if found > p {
		return
	}
	divide(xs[:at], from, p, r, out)
	*out = append(*out, ChangePoint{from + at, found})
	divide(xs[at:], from+at, p, r, out)
}

// distances are those between all points of a segment.
type distances struct {
	n     int
	of    []float64
	total float64 // over pairs
}

func newDistances(xs []float64) *distances {
	d := &distances{n: len(xs), of: make([]float64, len(xs)*len(xs))}
	for i, x := range xs {
		for j, y := range xs {
			d.of[i*d.n+j] = math.Abs(x - y)
			if i < j {
				d.total += math.Abs(x - y)
			}
		}
	}
	return d
}

// split is the cut of an order of the points with the largest energy distance,
// the first one of equals.
func (d *distances) split(order []int) (at int, energy float64) {
	left, right := 0.0, d.total // sums within the parts
	for cut := 1; cut <= d.n-minSegment; cut++ {
		row := d.of[order[cut-1]*d.n : order[cut-1]*d.n+d.n]
		for _, j := range order[:cut-1] {
			left += row[j]
		}
		for _, j := range order[cut:] {
			right -= row[j]
		}
		if cut < minSegment {
			continue
		}
		m, n := float64(cut), float64(d.n-cut)
		between := d.total - left - right
		q := m * n / (m + n) * (2*between/(m*n) - 2*left/(m*(m-1)) - 2*right/(n*(n-1)))
		if q > energy*(1+rounding) {
			at, energy = cut, q
		}
	}
	return at, energy
}

// eachOrder calls f with all orders of the elements from k on, in place.
func eachOrder(order []int, k int, f func()) {
	if k == len(order) {
		f()
		return
	}
	for i := k; i < len(order); i++ {
		order[k], order[i] = order[i], order[k]
		eachOrder(order, k+1, f)
		order[k], order[i] = order[i], order[k]
	}
}

// SegmentMedians are the medians of the parts that change points cut a series
// into.
func SegmentMedians(samples []float64, changes []ChangePoint) []float64 {
	var out []float64
	from := 0
	for _, c := range changes {
		m, _ := Median(samples[from:c.Index])
		out = append(out, m)
		from = c.Index
	}
	m, ok := Median(samples[min(from, len(samples)):])
	if ok {
		out = append(out, m)
	}
	return slices.Clip(out)
}
