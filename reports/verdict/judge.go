package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

// The rates that a gate call keeps over all its cells; sim_test.go holds it to
// them.
const (
	// callError is the one-sided error of the intervals of a call, divided by
	// the number of cells judged.
	callError = 0.05
	// confirmedError is the error of the exact test at the second of two looks.
	confirmedError = 0.0175
	// apartError is the error of few samples of two runs of different times.
	apartError = 0.015
	// surePairs is the number of pairs below which the bootstrap interval is too
	// narrow to convince alone.
	surePairs = 8
	// confirmedPairs is surePairs at the second look.
	confirmedPairs = 15
	// SameLevel is the level of the interval that must lie inside the band for
	// the verdict same. It is not corrected: no alarm hangs on it.
	SameLevel = 0.90
	// severalNoise is the error of the noise at the second look of several cells:
	// the screen has picked those that chance made slow. severalNoisy is noisy there.
	severalNoise, severalNoisy = 0.0125, 2.0
	// noisy is how many thresholds the noise of a cell may reach before an
	// interval alone no longer convinces.
	noisy = 1.5
	// screenTail is the tail of the first of two looks, for any number of
	// cells: what it lets through is measured again.
	screenTail = 0.20
	// equal is how far two computed logarithms may differ and mean the same.
	equal = 1e-9
	// last is the logarithm of a pair that ranks at the end of its direction;
	// e^300 fits in a number. What is beyond countable is none to show.
	last, countable = 300, 100
)

// rates are the error probabilities that one cell is judged with.
type rates struct {
	interval float64 // each tail of the interval
	exact    float64 // of the exact test
	ranks    float64 // of few samples of two runs of different times
	noise    float64 // that a change must be larger than the noise of
	noisy    float64 // thresholds that the noise may reach before an interval alone no longer convinces
	sure     int     // pairs below which an interval alone does not convince
}

// share splits a call's error evenly over its cells (Bonferroni): the verdict
// of a cell depends on how many others are judged, never on what they measured.
func share(cells int, confirmed bool) rates {
	cells = max(cells, 1)
	part := callError / float64(cells)
	e := rates{interval: part, exact: part, noise: part, noisy: noisy, ranks: apartError / float64(cells), sure: surePairs}
	if confirmed {
		e.exact, e.sure = confirmedError/float64(cells), confirmedPairs
		if cells > 1 {
			e.noise, e.noisy = severalNoise/float64(cells), severalNoisy
		}
	}
	return e
}

// pairing is one metric of two columns, block by block.
type pairing struct {
	head, base         []float64 // blocks in which both have the metric
	headLost, baseLost int       // blocks in which only the other side came to an end
}

func pairUp(head, base *Column, metric string) pairing {
	var p pairing
	p.head, p.base = Pair(head, base, metric)
	lost := func(c *Column) map[int]bool {
		m := map[int]bool{}
		for i := range c.Trials {
			if t := &c.Trials[i]; censored(t) {
				m[t.Block] = true
			}
		}
		return m
	}
	count := func(c *Column, other map[int]bool) int {
		n := 0
		for i := range c.Trials {
			if _, ok := sample(&c.Trials[i], metric); ok && other[c.Trials[i].Block] {
				n++
			}
		}
		return n
	}
	p.headLost, p.baseLost = count(base, lost(head)), count(head, lost(base))
	return p
}

// censored tells whether a trial would have taken longer than it was given, or
// for ever: it ranks behind all that ended.
func censored(t *result.Trial) bool {
	return t.Outcome == result.Timeout || t.Outcome == result.Failed || t.Outcome == result.Incorrect
}

// finding is what samples say of a change.
type finding struct {
	verdict Verdict
	ci      *stats.Interval // of the logarithm of the ratio
	level   float64
	why     string
}

// paired judges pairs: logs are the logarithms of head to base, differences
// those of the values.
func paired(logs, differences []float64, flips stats.SignFlip, better result.Better, band Band, e rates) finding {
	f := finding{verdict: Inconclusive, level: 1 - 2*e.interval}
	middle, _ := stats.Median(logs)
	difference, _ := stats.Median(differences)
	limit := math.Log1p(band.Relative)
	wide, ok := stats.BootstrapMedian(logs, f.level)
	if !ok {
		f.why = "one pair has no interval"
		return f
	}
	f.ci = &wide
	narrow, _ := stats.BootstrapMedian(logs, SameLevel)
	inside := narrow.Low >= -limit-equal && narrow.High <= limit+equal
	if inside || withinAll(differences, band.Absolute) {
		f.verdict, f.level = Same, SameLevel
		f.ci = &narrow
		f.why = "the interval lies inside the threshold"
		if !inside {
			f.why = "no pair differs by more than the absolute threshold"
		}
		return f
	}
	spread, _ := stats.MedianError(logs)
	noise := stats.NormalQuantile(e.interval) * spread
	shown := stats.NormalQuantile(e.noise) * spread // what a change must be larger than
	excludes := wide.Low > equal || wide.High < -equal
	switch {
	case better == result.Neutral:
		f.why = "the metric has no better direction"
	case !excludes:
		f.why = "the interval holds both no change and more than the threshold"
	case math.Abs(middle) <= limit+equal:
		f.why = "it differs, but the median ratio is inside the threshold and the interval is not"
	case math.Abs(difference) <= band.Absolute:
		f.why = "the median difference is below the absolute threshold"
	case math.Abs(middle) <= shown:
		f.why = fmt.Sprintf("the change is no larger than the noise of so many pairs, %s", percent(math.Expm1(shown)))
	case (len(logs) < e.sure && !beyondDoubt(logs, limit) || noise > e.noisy*limit) && min(flips.Greater, flips.Less) > e.exact:
		f.why = fmt.Sprintf("the exact sign-flip test finds no change: p = %.2g, and it takes %.2g", min(flips.Greater, flips.Less), e.exact)
		if least := math.Ldexp(1, -len(logs)); least > e.exact {
			f.why = fmt.Sprintf("%d pairs are too few for the exact sign-flip test, which can reach p = %.2g with them and takes %.2g", len(logs), least, e.exact)
		}
	default:
		f.verdict = direction((middle > 0) == (better == result.Higher))
		f.why = "the interval excludes 1 and the median ratio is beyond the threshold"
	}
	return f
}

// judgePairs fills in what pairs of blocks tell.
func (j *Judged) judgePairs(p pairing, e rates, seed uint64) {
	j.Level = 1 - 2*e.interval
	j.N = len(p.head)
	j.Verdict = Inconclusive
	if j.N == 0 {
		j.Why = fmt.Sprintf("no block has the metric on both sides, of %d planned", j.Planned)
		return
	}
	if 2*j.N < j.Planned {
		j.Why = fmt.Sprintf("only %d of %d pairs came to an end: those that are missing may be the slow ones", j.N, j.Planned)
		return
	}
	logs, ok := logRatios(p.head, p.base)
	differences := make([]float64, j.N)
	for i := range differences {
		differences[i] = p.head[i] - p.base[i]
	}
	if middle, _ := stats.Median(logs); !ok || math.Abs(middle) > countable {
		j.Why = "a value of 0 on one side has no ratio"
		if !ok {
			j.Why = "a value below 0 has no ratio"
		}
		if j.N >= MinPairs && p.headLost+p.baseLost == 0 && withinAll(differences, j.Threshold.Absolute) {
			j.Verdict, j.Why = Same, "no pair differs by more than the absolute threshold"
		}
		return
	}
	flips, _ := stats.FlipSigns(logs, seed)
	j.P = &flips.TwoSided
	j.ratio(logs, e)
	if j.N < MinPairs {
		j.CILow, j.CIHigh = nil, nil
		j.Why = fmt.Sprintf("%d pairs are too few for a verdict; it takes %d", j.N, MinPairs)
		return
	}
	f := paired(logs, differences, flips, j.Better, j.Threshold.Band, e)
	f = f.censor(p, logs, differences, j, e, seed)
	j.Verdict, j.Level, j.Why = f.verdict, f.level, f.why
	j.plain = beyondDoubt(logs, math.Log1p(j.Threshold.Relative))
	if f.ci != nil {
		j.CILow, j.CIHigh = logPtr(f.ci.Low), logPtr(f.ci.High)
	}
}

// logRatios are the logarithms of head to base, pair by pair. A pair of two
// zeros is the ratio 1, one with a zero on one side ranks at the end of its
// direction. What is below 0 has none.
func logRatios(head, base []float64) ([]float64, bool) {
	logs := make([]float64, len(head))
	for i := range logs {
		switch h, b := head[i], base[i]; {
		case !(h >= 0) || !(b >= 0) || math.IsInf(h, 0) || math.IsInf(b, 0):
			return nil, false
		case h == 0 && b == 0:
		case h == 0:
			logs[i] = -last
		case b == 0:
			logs[i] = last
		default:
			logs[i] = math.Log(h) - math.Log(b)
		}
	}
	return logs, true
}

// ratio fills in the numbers that need no verdict.
func (j *Judged) ratio(logs []float64, e rates) {
	if m, ok := stats.Median(logs); ok {
		j.Ratio = logPtr(m)
	}
	if s, ok := stats.PairedShift(logs, j.Level); ok {
		j.Shift = logPtr(s.Value)
		if s.CI != nil {
			j.ShiftLow, j.ShiftHigh = logPtr(s.CI.Low), logPtr(s.CI.High)
		}
	}
	if s, ok := stats.MedianError(logs); ok {
		j.Noise = finitePtr(math.Expm1(stats.NormalQuantile(e.interval) * s))
	}
}

// censor looks again with the pairs of which one side never came to an end,
// ranked last. They may take a verdict away and give none: slower comes from
// times, not from failures.
func (f finding) censor(p pairing, logs, differences []float64, j *Judged, e rates, seed uint64) finding {
	if p.headLost+p.baseLost == 0 || f.verdict == Inconclusive {
		return f
	}
	sign := 1.0
	if j.Better == result.Higher {
		sign = -1
	}
	logs, differences = slices.Clone(logs), slices.Clone(differences)
	for k := range p.headLost + p.baseLost {
		x := last * sign
		if k >= p.headLost {
			x = -x
		}
		logs, differences = append(logs, x), append(differences, math.Copysign(math.MaxFloat64/4, x))
	}
	flips, _ := stats.FlipSigns(logs, seed)
	if again := paired(logs, differences, flips, j.Better, j.Threshold.Band, e); again.verdict != f.verdict {
		f.why = fmt.Sprintf("%s among the pairs that came to an end, but not with %d ranked last that did not", f.verdict, p.headLost+p.baseLost)
		f.verdict = Inconclusive
	}
	return f
}

// judgeGroups fills in what two runs of different times tell. Their samples do
// not pair, and something may have lain between the runs that is no change of
// the program: an interval must exclude 1 even when it is wider by that.
func (j *Judged) judgeGroups(head, base []float64, headLost, baseLost int, e rates, offset float64) {
	j.Level = 1 - 2*e.interval
	j.N = min(len(head), len(base))
	j.Verdict = Inconclusive
	j.HeadMedian, j.BaseMedian = medianPtr(head), medianPtr(base)
	if j.N == 0 {
		j.Why = "one run has no samples"
		return
	}
	if u, ok := stats.MannWhitney(head, base); ok {
		j.MannWhitney = &u.P
		j.Delta = &u.Delta
	}
	if 2*j.N < j.Planned {
		j.Why = fmt.Sprintf("only %d of %d samples came to an end: those that are missing may be the slow ones", j.N, j.Planned)
		return
	}
	flat := constant(head) && constant(base) && math.Abs(head[0]-base[0]) <= j.Threshold.Absolute
	head, base = ranked(head), ranked(base)
	r, ok := stats.MedianQuotient(head, base, j.Level)
	if !ok || math.Abs(math.Log(r.Ratio)) > countable {
		j.Why = "a value of 0 has no ratio"
		if j.N >= MinPairs && headLost+baseLost == 0 && flat {
			j.Verdict, j.Why = Same, "both sides are constant and alike"
		}
		return
	}
	j.Ratio = ratioPtr(r.Ratio)
	if j.N < MinPairs || r.CI == nil {
		j.Why = fmt.Sprintf("%d samples are too few for a verdict; it takes %d", j.N, MinPairs)
		return
	}
	j.CILow, j.CIHigh = logPtr(math.Log(r.CI.Low)), logPtr(math.Log(r.CI.High))
	limit := 1 + j.Threshold.Relative
	near := math.Abs(*j.HeadMedian-*j.BaseMedian) <= j.Threshold.Absolute
	narrow, _ := stats.MedianQuotient(head, base, SameLevel)
	excludes := func(widen float64) bool {
		return r.CI.Low > widen*(1+equal) || r.CI.High*widen < 1-equal
	}
	beyond := r.Ratio > limit*(1+equal) || r.Ratio*limit < 1-equal
	switch {
	case narrow.CI != nil && narrow.CI.Low*limit >= 1-equal && narrow.CI.High <= limit*(1+equal) || flat:
		if headLost+baseLost > 0 {
			j.Why = "alike among the trials that came to an end, but some did not"
			return
		}
		j.Verdict, j.Level = Same, SameLevel
		j.CILow, j.CIHigh = logPtr(math.Log(narrow.CI.Low)), logPtr(math.Log(narrow.CI.High))
		j.Why = "the interval lies inside the threshold; what lay between the runs is not known"
	case j.Better == result.Neutral:
		j.Why = "the metric has no better direction"
	case !beyond:
		j.Why = "the ratio of the medians is inside the threshold and the interval is not"
	case near:
		j.Why = "the difference of the medians is below the absolute threshold"
	case !excludes(1):
		j.Why = "the interval holds no change"
	case !excludes(1 + offset):
		j.Why = fmt.Sprintf("the interval excludes 1, but not when it is wider by %s, which may lie between two runs", percent(offset))
	case j.N < surePairs && !apart(head, base, e.ranks):
		j.Why = fmt.Sprintf("the interval excludes 1, but with fewer than %d samples on a side the runs must not overlap, by chance in fewer than %.2g of all cases", surePairs, e.ranks)
	default:
		v := direction((r.Ratio > 1) == (j.Better == result.Higher))
		if v == Faster && headLost > 0 || v == Slower && baseLost > 0 {
			j.Why = fmt.Sprintf("%s among the trials that came to an end, but some did not", v)
			return
		}
		j.Verdict = v
		j.Why = fmt.Sprintf("the interval excludes 1, also when it is wider by %s, which may lie between two runs", percent(offset))
	}
}

// beyondDoubt tells whether few pairs leave no doubt: each is beyond the threshold on
// one side, and they scatter by less than half of the change.
func beyondDoubt(logs []float64, limit float64) bool {
	low, high := slices.Min(logs), slices.Max(logs)
	middle, _ := stats.Median(logs)
	return (low > limit || high < -limit) && 2*(high-low) < math.Abs(middle)
}

// apart tells whether all samples of one run lie above all of the other, and
// whether a random division of the samples does so rarely enough or both runs
// scatter by less than half of the distance of their medians.
func apart(head, base []float64, most float64) bool {
	above, below := head, base
	if slices.Max(head) < slices.Min(base) {
		above, below = base, head
	}
	if slices.Min(above) <= slices.Max(below) {
		return false
	}
	a, _ := stats.Median(above)
	b, _ := stats.Median(below)
	scatter := max(math.Log(slices.Max(above)/slices.Min(above)), math.Log(slices.Max(below)/slices.Min(below)))
	return 1/ways(len(head)+len(base), len(head)) <= most || 2*scatter < math.Log(a/b)
}

// ways is in how many ways k of n can be chosen.
func ways(n, k int) float64 {
	out := 1.0
	for i := range k {
		out *= float64(n-i) / float64(i+1)
	}
	return out
}

// ranked are values of which those of 0 have a logarithm that ranks last.
func ranked(xs []float64) []float64 {
	out := slices.Clone(xs)
	for i, x := range out {
		if x == 0 {
			out[i] = math.Exp(-last)
		}
	}
	return out
}

func constant(xs []float64) bool {
	for _, x := range xs {
		if x != xs[0] {
			return false
		}
	}
	return len(xs) > 0
}

// screen is the first of two looks: it alarms where a cell might be slower and
// pronounces none slower.
func (j *Judged) screen(p pairing) {
	logs, ok := logRatios(p.head, p.base)
	if ok && len(logs) >= MinPairs && j.Better != result.Neutral {
		differences := make([]float64, len(logs))
		for i := range logs {
			differences[i] = p.head[i] - p.base[i]
			if j.Better == result.Higher {
				logs[i], differences[i] = -logs[i], -differences[i]
			}
		}
		middle, _ := stats.Median(logs)
		difference, _ := stats.Median(differences)
		ci, _ := stats.BootstrapMedian(logs, 1-2*screenTail)
		j.Alarm = 2*middle > math.Log1p(j.Threshold.Relative) && ci.Low > 0 && 2*difference > j.Threshold.Absolute
	}
	if j.Alarm || j.Verdict == Slower {
		j.Alarm = true
		j.Verdict = Inconclusive
		j.Why = "it may be slower; more blocks will tell"
	}
}

func percent(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", x*100), "0"), ".") + " %"
}

func finitePtr(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// ratioPtr is a ratio; what is too large or small for a number is none.
func ratioPtr(x float64) *float64 {
	if x <= 0 {
		return nil
	}
	return finitePtr(x)
}

// logPtr is the ratio of a logarithm, unless it stands for the end of a
// direction.
func logPtr(x float64) *float64 {
	if math.Abs(x) > countable {
		return nil
	}
	return ratioPtr(math.Exp(x))
}

func medianPtr(xs []float64) *float64 {
	if m, ok := stats.Median(xs); ok {
		return &m
	}
	return nil
}
