package verdict

import (
	"math"
	"math/rand/v2"
	"testing"

	"benchrun/harness/result"
)

// TestBaseBuildUnknown: with more than one build, which of them is the base is
// not guessed, or verdicts would be turned round. Fails if BaseBuild takes the
// first by name.
func TestBaseBuildUnknown(t *testing.T) {
	for _, name := range []string{"", "gone"} {
		slow := lab{blocks: 10, value: times(1.5)}.run()
		slow.Run.BaseBuild = name
		d := Decide(slow, nil, Rules{})
		if d.Exit != result.ExitBaseline || len(d.Judged) != 0 {
			t.Errorf("base %q: exit %d, judged %+v", name, d.Exit, d.Judged)
		}
		wantWarning(t, d.Reasons, "base build", "base, head")
		if s := Summarize(slow).Workloads["w"]; len(s.BuildPairs) != 0 || len(s.Pairs) == 0 {
			t.Errorf("base %q: summary %+v", name, s.BuildPairs)
		}
		// As the head, and as the baseline, of two runs of different times.
		one := lab{name: "one", builds: []string{"other"}, blocks: 10, value: times(1)}.run()
		for _, x := range [][2]*result.Loaded{{slow, one}, {one, slow}} {
			d := Decide(x[0], func(string) *result.Loaded { return x[1] }, Rules{})
			if d.Exit != result.ExitBaseline {
				t.Errorf("base %q, two runs: exit %d %q", name, d.Exit, d.Reasons)
			}
		}
		slow.Run.Started = slow.Run.Started.AddDate(0, 0, 1)
		wantWarning(t, Trends([]*result.Loaded{slow}).Warnings, "it is not known which of the builds is the base build")
	}
}

// TestOneSideUnsupported: a cell that only one side can run has lost its
// metric. Fails if such a cell is only warned of.
func TestOneSideUnsupported(t *testing.T) {
	for _, c := range []struct {
		head, base bool
		want       result.Exit
	}{{true, false, result.ExitFailed}, {false, true, result.ExitFailed}, {true, true, result.ExitOK}, {false, false, result.ExitOK}} {
		run := lab{blocks: 10, value: func(cell, build string, block int) (float64, result.Outcome) {
			if cell == "D=true" && (build == "head" && c.head || build == "base" && c.base) {
				return 0, result.Unsupported
			}
			return jitter(block), result.OK
		}}.run()
		d := Decide(run, nil, Rules{})
		if d.Exit != c.want {
			t.Errorf("head %v, base %v: exit %d, want %d: %q", c.head, c.base, d.Exit, c.want, d.Reasons)
		}
		if c.want == result.ExitFailed {
			wantWarning(t, d.Reasons, "w D=true", "does not support the cell", "is absent")
		}
	}
}

// TestEditedRun: one run of two builds whose text was changed after it. Fails
// if Loaded.Edited is not looked at.
func TestEditedRun(t *testing.T) {
	run := lab{blocks: 10, value: times(1)}.run()
	run.Edited = []string{"w"}
	d := Decide(run, nil, Rules{})
	if d.Exit != result.ExitBaseline {
		t.Errorf("exit %d", d.Exit)
	}
	wantWarning(t, d.Reasons, "w: the text", "was changed after the run", "not hash")
}

// TestSummaryAgreesWithGate: on whatever was measured the summary says of
// builds what the gate says. Fails if Within divides the error by another
// number, has another threshold, or takes no account of lost trials.
func TestSummaryAgreesWithGate(t *testing.T) {
	rules := Rules{Thresholds: relative}
	seen := map[Verdict]int{}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		run := lab{blocks: 5 + int(seed%6), value: func(cell, build string, block int) (float64, result.Outcome) {
			x := math.Exp(0.04 * r.NormFloat64())
			if build == "head" {
				x *= 1 + 0.1*float64(seed%4)
			}
			if r.IntN(20) == 0 {
				return 0, result.Timeout
			}
			return x, result.OK
		}}.run()
		d, c := Decide(run, nil, rules), Within(run, rules.Thresholds)
		s := SummaryOf(run, c).Workloads["w"]
		for _, j := range d.Judged {
			seen[j.Verdict]++
			if got := s.BuildPairs[j.Cell][j.Metric]; got.Verdict != string(j.Verdict) || *got.Ratio != *j.Ratio {
				t.Errorf("seed %d, %s: %s, the gate %s", seed, j.Cell, got.Verdict, j.Verdict)
			}
			if got := Find(c.Builds, "w", j.Cell, j.Metric); got.Why != j.Why || got.Level != j.Level || got.Threshold != j.Threshold {
				t.Errorf("seed %d, %s: %+v, the gate %+v", seed, j.Cell, got, j)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("only %v", seen)
	}
}

// TestFewPairs: below eight pairs the exact test is asked, unless the change is
// beyond doubt. Fails if surePairs is 5, or if beyondDoubt says no.
func TestFewPairs(t *testing.T) {
	noisy := []float64{1.3, 1.3, 1.31, 1.3, 1.6}
	flat := []float64{1, 1, 1, 1, 1}
	plain := []float64{3, 3.02, 2.98, 3, 3.1}
	for _, c := range []struct {
		name  string
		head  []float64
		cells int
		want  Verdict
	}{
		{"one cell", noisy, 1, Slower},
		{"four cells", noisy, 4, Inconclusive},
		{"four cells, beyond doubt", plain, 4, Slower},
	} {
		j := Judged{Better: result.Lower, Planned: 5, Threshold: Threshold{Band: Band{Relative: 0.1}, Source: "test"}}
		j.judgePairs(pairing{head: c.head, base: flat}, share(c.cells, false), 1)
		if j.Verdict != c.want {
			t.Errorf("%s: %s: %s", c.name, j.Verdict, j.Why)
		}
	}
}
