package chart

import (
	"math"
	"strconv"
	"strings"
)

// scale maps values to 0..1.
type scale struct {
	log      bool
	min, max float64
	ticks    []tick
}

// tick is a mark of an axis; one without a label is a minor one.
type tick struct {
	value float64
	label string
}

// logSpan is the ratio of the largest to the smallest value from which an axis
// is logarithmic: below it, a linear axis from 0 shows all and shows it honestly.
const logSpan = 20

// absurdSpan is a ratio that no measurement has; then something is as good as 0.
const absurdSpan = 1e15

// newScale covers values: linear from 0, or logarithmic if they span decades
// and none is 0 or below.
func newScale(values []float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	switch {
	case high < low:
		return linear(0, 1) // nothing to show
	case low > 0 && high/low >= logSpan && high/low < absurdSpan:
		return logarithmic(low/1.25, high*1.25)
	case high <= 0 && low >= 0:
		return linear(0, 1)
	}
	return linear(min(low, 0), high+(high-min(low, 0))*0.05)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// at is the place of a value, 0..1; what lies outside is held at the edge.
func (s scale) at(v float64) float64 {
	p := 0.0
	if s.log {
		if v <= 0 {
			return 0
		}
		p = math.Log(v/s.min) / math.Log(s.max/s.min)
	} else {
		p = (v - s.min) / (s.max - s.min)
	}
	return min(max(p, 0), 1)
}

// linear makes a scale with round ticks, about six of them.
func linear(low, high float64) scale {
	if !(high > low) {
		high = low + 1
	}
	s := scale{min: low, max: high}
	step, decimals := roundStep((high - low) / 6)
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		v := i * step
		if i == 0 {
			v = 0 // not -0
		}
		s.ticks = append(s.ticks, tick{v, digits(v, decimals)})
	}
	return s
}

// digits writes the number at a tick; decimals below 0: as many as it has.
func digits(v float64, decimals int) string {
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return group(strconv.FormatFloat(v, 'f', min(decimals, 8), 64))
}

// roundStep is the next step of 1, 2, 2.5 or 5 times a power of ten, and the
// decimals that its multiples need.
func roundStep(raw float64) (step float64, decimals int) {
	exp := math.Floor(math.Log10(raw))
	base := math.Pow(10, exp)
	extra := 0
	switch f := raw / base; {
	case f <= 1:
		step = base
	case f <= 2:
		step = 2 * base
	case f <= 2.5:
		step, extra = 2.5*base, 1
	case f <= 5:
		step = 5 * base
	default:
		step = 10 * base
		exp++
	}
	return step, max(int(-exp)+extra, 0)
}

// logarithmic makes a scale with ticks at 1, 2 and 5 times powers of ten, or
// fewer where there are many decades. There are at least two labels.
func logarithmic(low, high float64) scale {
	s := scale{log: true, min: low, max: high}
	decades := math.Log10(high / low)
	every := math.Ceil(decades / 10)
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			v, _ := strconv.ParseFloat(strconv.FormatFloat(m, 'f', 0, 64)+"e"+strconv.FormatFloat(e, 'f', 0, 64), 64) // exact: 0.3, not 0.30000000000000004
			if v < low || v > high {
				continue
			}
			label := ""
			if m == 1 && math.Mod(e, every) == 0 || decades <= 4 && (m == 2 || m == 5) {
				label = digits(v, -1)
			}
			if label == "" && decades > 10 {
				continue
			}
			s.ticks = append(s.ticks, tick{v, label})
		}
	}
	return s
}

// group separates thousands of a decimal number.
func group(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}

// jitter spreads the i-th of several points around 0, within -0.5..0.5, the
// same way each time: neighbours in order are far apart in place.
func jitter(i, of int) float64 {
	if of <= 1 {
		return 0
	}
	p, f := 0.0, 0.5
	for n := i + 1; n > 0; n /= 2 {
		p += f * float64(n%2)
		f /= 2
	}
	return p - 0.5
}
