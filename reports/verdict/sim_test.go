package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"benchrun/harness/result"
)

// The rates of whole gate calls, on virtual trials. A trial's time is
//
//	1 s x offset of its run x drift of its block x noise of its own,
//
// on logarithms: offset sd 5 %, drift sd 10 %, noise sd 6 % with 5 % outliers
// of +40 to +100 %. Blocks are shared by all cells and builds of a run.
const (
	simSeed    = 7
	offsetSD   = 0.05
	driftSD    = 0.10
	noiseSD    = 0.06
	outliers   = 0.05
	fullSimEnv = "BENCHRUN_SIMULATION" // set to "full" for twenty times the calls
)

// noises are the distributions of a trial's own noise, on logarithms.
var noises = map[string]func(r *rand.Rand) float64{
	"model": func(r *rand.Rand) float64 {
		x := noiseSD * r.NormFloat64()
		if r.Float64() < outliers {
			x += math.Log(1.4 + 0.6*r.Float64())
		}
		return x
	},
	"two humps": func(r *rand.Rand) float64 { // 40 % of the trials are 42 % slower
		x := noiseSD / 2 * r.NormFloat64()
		if r.Float64() < 0.4 {
			x += 0.35
		}
		return x
	},
	"heavy tails": func(r *rand.Rand) float64 { // Student's t with two degrees of freedom
		return noiseSD * r.NormFloat64() / math.Sqrt(r.ExpFloat64())
	},
	"far too noisy": func(r *rand.Rand) float64 { return 0.4 * r.NormFloat64() },
}

// design is a gate call: cells, blocks of the first look and of the second, the
// threshold, and by how much which cells are slower.
type design struct {
	cells, first, second int
	of                   int // cells of the call, if not all of them are drawn: their verdicts do not depend on each other
	threshold            float64
	slowdown             float64
	slow                 int // cells that are slower, from the first on
	noise                string
	lost                 float64 // share of the trials that never end
}

func (d design) String() string {
	return fmt.Sprintf("%s, %d cells, %d+%d blocks, threshold %s, %d slower by %s", d.noise, d.judgedCells(), d.first, d.second, percent(d.threshold), d.slow, percent(d.slowdown))
}

func (d design) judgedCells() int { return max(d.cells, d.of) }

// pairs draws the pairs of blocks of all cells.
func (d design) pairs(r *rand.Rand, blocks int) []pairing {
	noise := noises[d.noise]
	drift := make([]float64, blocks)
	for i := range drift {
		drift[i] = driftSD * r.NormFloat64()
	}
	out := make([]pairing, d.cells)
	for c := range out {
		factor := 0.0
		if c < d.slow {
			factor = math.Log1p(d.slowdown)
		}
		for b := range blocks {
			head, base := math.Exp(drift[b]+noise(r)+factor), math.Exp(drift[b]+noise(r))
			switch h, b := r.Float64() < d.lost, r.Float64() < d.lost; {
			case h && b:
			case h:
				out[c].headLost++
			case b:
				out[c].baseLost++
			default:
				out[c].head, out[c].base = append(out[c].head, head), append(out[c].base, base)
			}
		}
	}
	return out
}

func (d design) judged(p pairing, blocks int) Judged {
	return Judged{Better: result.Lower, Planned: blocks, Threshold: Threshold{Band: Band{Relative: d.threshold}, Source: "test"}}
}

// call runs a gate call and tells which cells it calls slower.
func (d design) call(r *rand.Rand) []bool {
	slower := make([]bool, d.cells)
	blocks := d.pairs(r, d.first+d.second)
	for c, all := range blocks {
		blocks := d.first
		if d.second > 0 {
			j := d.judged(all, d.first)
			look := pairing{head: all.head[:min(d.first, len(all.head))], base: all.base[:min(d.first, len(all.base))]}
			j.Verdict = Inconclusive
			j.screen(look)
			if !j.Alarm {
				continue
			}
			blocks += d.second
		}
		j := d.judged(all, blocks)
		j.judgePairs(all, share(d.judgedCells(), d.second > 0), simSeed)
		slower[c] = j.Verdict == Slower
	}
	return slower
}

// rates of many calls: with any alarm, and of cells that are slower and called so.
func (d design) rates(calls int) (red, found float64) {
	r := rand.New(rand.NewPCG(simSeed, uint64(d.cells)))
	reds, founds := 0, 0
	for range calls {
		slower := d.call(r)
		if slices.Contains(slower, true) {
			reds++
		}
		for c := range d.slow {
			if slower[c] {
				founds++
			}
		}
	}
	return float64(reds) / float64(calls), float64(founds) / float64(calls*max(d.slow, 1))
}

func calls(n int) int {
	if os.Getenv(fullSimEnv) == "full" {
		return 20 * n
	}
	return n
}

// apart runs a gate call on two runs of different times.
func (d design) apart(r *rand.Rand) (red bool) {
	noise := noises[d.noise]
	run := func(factor float64) [][]float64 {
		offset := offsetSD * r.NormFloat64() / math.Sqrt2
		out := make([][]float64, d.cells)
		for range d.first {
			drift := driftSD * r.NormFloat64()
			for c := range out {
				x := offset + drift + noise(r)
				if c < d.slow {
					x += factor
				}
				out[c] = append(out[c], math.Exp(x))
			}
		}
		return out
	}
	base, head := run(0), run(math.Log1p(d.slowdown))
	for c := range head {
		j := d.judged(pairing{}, d.first)
		j.judgeGroups(head[c], base[c], 0, 0, share(d.cells, false), DefaultOffset)
		red = red || j.Verdict == Slower
	}
	return red
}

// atMost and atLeast hold a rate to its bound.
func atMost(t *testing.T, d fmt.Stringer, what string, rate, bound float64) {
	t.Helper()
	t.Logf("%v: %s %.2f %%", d, what, 100*rate)
	if rate > bound {
		t.Errorf("%v: %s %.2f %%, at most %.0f %% is wanted", d, what, 100*rate, 100*bound)
	}
}

func atLeast(t *testing.T, d fmt.Stringer, what string, rate, bound float64) {
	t.Helper()
	t.Logf("%v: %s %.2f %%", d, what, 100*rate)
	if rate < bound {
		t.Errorf("%v: %s %.2f %%, at least %.0f %% is wanted", d, what, 100*rate, 100*bound)
	}
}

var (
	simCells  = []int{1, 4, 16}
	simNoises = []string{"model", "two humps", "heavy tails", "far too noisy"}
)

// TestSimulationOneLook: eight pairs and fewer, the default threshold. Fails if
// callError is 0.5, if the interval is not asked to exclude 1, or if surePairs
// is 5.
func TestSimulationOneLook(t *testing.T) {
	for _, cells := range simCells {
		for _, noise := range simNoises {
			for _, lost := range []float64{0, 0.1} {
				d := design{cells: cells, first: 8, threshold: 0.10, noise: noise, lost: lost}
				red, _ := d.rates(calls(8000 / cells))
				atMost(t, d, "false alarms", red, 0.05)
			}
			for few := MinPairs; few < 8; few++ {
				d := design{cells: cells, first: few, threshold: 0.10, noise: noise}
				red, _ := d.rates(calls(4000/cells + 300))
				atMost(t, d, "false alarms", red, 0.05)
			}
		}
		d := design{cells: cells, first: 8, threshold: 0.10, noise: "model", slow: cells, slowdown: 0.20}
		red, found := d.rates(calls(4000 / cells))
		atLeast(t, d, "found", red, 0.90)
		t.Logf("%v: of the cells %.1f %%", d, 100*found)
	}
}

// TestSimulationTwoLooks: eight pairs, and more of what alarmed: ten, as in a
// night, or as few as before. Fails if confirmedError is 0.9, or if the screen
// asks for an interval of 99 %.
func TestSimulationTwoLooks(t *testing.T) {
	for _, cells := range simCells {
		for _, noise := range simNoises {
			for _, lost := range []float64{0, 0.1} {
				d := design{cells: cells, first: 8, second: 8, threshold: 0.10, noise: noise, lost: lost}
				red, _ := d.rates(calls(12000 / cells))
				atMost(t, d, "false alarms", red, 0.02)
			}
			for few := MinPairs; few < 8; few++ {
				d := design{cells: cells, first: few, second: few, threshold: 0.10, noise: noise}
				red, _ := d.rates(calls(4000/cells + 300))
				atMost(t, d, "false alarms", red, 0.02)
			}
		}
		for _, noise := range simNoises {
			d := design{cells: cells, first: 8, second: 10, threshold: 0.10, noise: noise}
			red, _ := d.rates(calls(12000 / cells))
			atMost(t, d, "false alarms", red, 0.02)
		}
		d := design{cells: 1, of: cells, first: 8, second: 10, threshold: 0.10, noise: "model", slow: 1, slowdown: 0.20}
		_, found := d.rates(calls(4000 + 1000*cells))
		atLeast(t, d, "found", found, 0.95)
	}
}

// TestSimulationSmallSlowdown: a tenth more time and a threshold of a twentieth. One cell
// takes 8+7 pairs; of several, each gets a smaller share of the error, and it
// takes 15 and 15 more. Fails if severalNoise is callError.
func TestSimulationSmallSlowdown(t *testing.T) {
	for _, d := range []design{
		{cells: 1, first: 8, second: 7},
		{cells: 4, first: 8, second: 7},
		{cells: 16, first: 8, second: 7},
		{cells: 4, first: 15, second: 15},
		{cells: 16, first: 15, second: 15},
	} {
		d.threshold, d.noise = 0.05, "model"
		red, _ := d.rates(calls(9000/d.cells + 1000))
		atMost(t, d, "false alarms", red, 0.02)
		if d.judgedCells() > 1 && d.first < 15 {
			continue
		}
		d.cells, d.of, d.slow, d.slowdown = 1, d.cells, 1, 0.10
		_, found := d.rates(calls(1500))
		atLeast(t, d, "found", found, 0.80)
	}
}

// TestSimulationRunsApart: the offset between two runs is no regression. Fails if the
// interval is not widened, or if few samples may overlap.
func TestSimulationRunsApart(t *testing.T) {
	for _, cells := range simCells {
		for _, noise := range simNoises {
			for samples := MinPairs; samples <= 8; samples++ {
				d := design{cells: cells, first: samples, threshold: 0.10, noise: noise}
				r := rand.New(rand.NewPCG(simSeed, uint64(cells)))
				red, n := 0, calls(4000/cells+600)
				for range n {
					if d.apart(r) {
						red++
					}
				}
				atMost(t, d, "false alarms of two runs", float64(red)/float64(n), 0.02)
			}
		}
	}
	d := design{cells: 1, first: 8, threshold: 0.10, noise: "model", slow: 1, slowdown: 0.60}
	r := rand.New(rand.NewPCG(simSeed, 0))
	red, n := 0, calls(500)
	for range n {
		if d.apart(r) {
			red++
		}
	}
	atLeast(t, d, "found by two runs", float64(red)/float64(n), 0.90)
}

// TestSimulationIsTheGate: what the simulation judges is what Decide judges.
func TestSimulationIsTheGate(t *testing.T) {
	d := design{cells: 4, first: 8, threshold: 0.10, noise: "model", slow: 2, slowdown: 0.25}
	r := rand.New(rand.NewPCG(simSeed, 1))
	for range 30 {
		pairs := d.pairs(r, d.first)
		cells := []string{"a", "b", "c", "d"}
		run := lab{cells: cells, blocks: d.first, value: func(cell, build string, block int) (float64, result.Outcome) {
			p := pairs[slices.Index(cells, cell)]
			if build == "head" {
				return p.head[block], result.OK
			}
			return p.base[block], result.OK
		}}.run()
		got := Decide(run, nil, Rules{})
		for i, cell := range cells {
			want := d.judged(pairs[i], d.first)
			want.judgePairs(pairs[i], share(d.cells, false), simSeed)
			if j := verdictOf(t, got, cell); j.Verdict != want.Verdict || *j.Ratio != *want.Ratio || *j.CILow != *want.CILow {
				t.Fatalf("%s: %s %v, simulated %s %v", cell, j.Verdict, *j.Ratio, want.Verdict, *want.Ratio)
			}
		}
	}
}

// TestSimulationSame: a change of the threshold's size is rarely called the
// same, and no change often is. Fails if SameLevel is 0.5.
func TestSimulationSame(t *testing.T) {
	for blocks, often := range map[int]float64{8: 0.50, 16: 0.85} {
		same := func(slowdown float64) float64 {
			d := design{cells: 1, first: blocks, threshold: 0.10, noise: "model", slow: 1, slowdown: slowdown}
			r := rand.New(rand.NewPCG(simSeed, uint64(blocks)))
			n, count := calls(3000), 0
			for range n {
				j, p := d.judged(pairing{}, blocks), d.pairs(r, blocks)[0]
				j.judgePairs(p, share(4, false), simSeed)
				if j.Verdict == Same {
					count++
				}
			}
			return float64(count) / float64(n)
		}
		wrong, right := same(0.10), same(0)
		t.Logf("%d pairs: %.1f %% of changes by the threshold are called the same, %.1f %% of none", blocks, 100*wrong, 100*right)
		if wrong > 0.07 || right < often {
			t.Errorf("%d pairs: %.1f %% of changes by the threshold are called the same, %.1f %% of none", blocks, 100*wrong, 100*right)
		}
	}
}
