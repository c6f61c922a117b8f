package verdict

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"benchrun/harness/result"
)

// Symptoms that users of other benchmark tools reported in public, as tests of
// ours: Bnn is the number in the list of complaints.

// all makes every trial of a build end alike.
func all(head, base float64) func(cell, build string, block int) (float64, result.Outcome) {
	return func(_, build string, _ int) (float64, result.Outcome) {
		if build == "head" {
			return head, result.OK
		}
		return base, result.OK
	}
}

// document is the JSON of a decision; what JSON cannot hold fails.
func document(t *testing.T, d *Decision) string {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatalf("%v: %+v", err, d)
	}
	return string(b)
}

func reasons(d *Decision) string { return strings.Join(d.Reasons, "\n") }

func wantExit(t *testing.T, d *Decision, code result.Exit, words ...string) {
	t.Helper()
	if d.Exit != code {
		t.Errorf("exit %d, want %d: %s", d.Exit, code, reasons(d))
	}
	for _, w := range words {
		if !strings.Contains(reasons(d), w) {
			t.Errorf("the reasons do not say %q: %s", w, reasons(d))
		}
	}
}

func wantWarning(t *testing.T, warnings []string, words ...string) {
	t.Helper()
	for _, w := range warnings {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(w, word) }) {
			return
		}
	}
	t.Errorf("no warning says %q: %q", words, warnings)
}

// TestB04NoSpread: all samples equal, or one sample. Fails if a spread of 0
// gives no verdict (paired: spread > 0 demanded).
func TestB04NoSpread(t *testing.T) {
	d := Decide(lab{blocks: 8, value: all(2, 2)}.run(), nil, Rules{})
	wantExit(t, d, result.ExitOK)
	if j := verdictOf(t, d, "D=true"); j.Verdict != Same || *j.Ratio != 1 || *j.CILow != 1 || *j.CIHigh != 1 || *j.Noise != 0 {
		t.Errorf("%+v", j)
	}
	d = Decide(lab{blocks: 1, value: all(2, 2)}.run(), nil, Rules{})
	wantExit(t, d, result.ExitInconclusive, "1 pairs are too few")
	if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || *j.Ratio != 1 || j.CILow != nil {
		t.Errorf("%+v", j)
	}
	document(t, d)
}

// TestB05NoInfinity: a time of zero has no ratio, and nothing that is printed
// is NaN or infinite. Fails if LogRatios takes the logarithm of 0.
func TestB05NoInfinity(t *testing.T) {
	for _, v := range []struct{ head, base float64 }{{0.3, 0}, {0, 0.3}, {0, 0}, {5e-324, 1e308}, {1e308, 5e-324}} {
		run := lab{blocks: 8, value: all(v.head, v.base)}.run()
		d := Decide(run, nil, Rules{})
		doc := document(t, d)
		base := single(run, "base")
		base.Run.Run = "before"
		doc += document(t, Decide(single(run, "head"), func(string) *result.Loaded { return base }, Rules{}))
		for _, no := range []string{"NaN", "Inf", "inf"} {
			if strings.Contains(doc, no) {
				t.Errorf("%v: %s in %s", v, no, doc)
			}
		}
		if v.head != v.base && (v.head == 0 || v.base == 0) {
			if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || j.Ratio != nil || !strings.Contains(j.Why, "has no ratio") {
				t.Errorf("%v: %+v", v, j)
			}
		}
	}
}

// TestB06ConstantSamplesCompare: 78.8 against 115, five times each, is a
// difference. Fails if samples without a spread are the same.
func TestB06ConstantSamplesCompare(t *testing.T) {
	d := Decide(lab{blocks: 5, value: all(115, 78.8)}.run(), nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.Verdict != Slower {
		t.Errorf("%+v", j)
	}
	d = Decide(lab{blocks: 5, value: all(78.8, 115)}.run(), nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.Verdict != Faster || *j.P > 0.0626 {
		t.Errorf("%+v", j)
	}
}

// TestB07OnlyMatchedBlocks: blocks of the base that the head does not have do
// not move the ratio, and the number of pairs is told. Fails if the ratio is
// that of the medians.
func TestB07OnlyMatchedBlocks(t *testing.T) {
	run := lab{blocks: 12, value: func(_, build string, block int) (float64, result.Outcome) {
		slow := 1.0
		if block >= 7 { // the machine was slow
			slow = 10
			if build == "head" {
				return 0, ""
			}
		}
		return slow * jitter(block), result.OK
	}}.run()
	d := Decide(run, nil, Rules{})
	j := verdictOf(t, d, "D=true")
	if j.N != 7 || j.Planned != 12 || *j.Ratio != 1 || j.Verdict != Same {
		t.Errorf("%+v", j)
	}
	wantExit(t, d, result.ExitFailed, "10 of 48 trials were not run")
}

// TestB08DividedByPlanned: lost trials count. Fails if half of the present
// pairs are asked for, not half of the planned ones.
func TestB08DividedByPlanned(t *testing.T) {
	run := lab{blocks: 12, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" && block >= 5 {
			return 0, ""
		}
		return all(0.5, 1)("", build, block)
	}}.run()
	d := Decide(run, nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || j.Ratio != nil || j.N != 5 || !strings.Contains(j.Why, "5 of 12") {
		t.Errorf("%+v", j)
	}
	wantExit(t, d, result.ExitFailed)
}

// TestB11MixedUnits: a metric that is now in other units has another name and
// compares with nothing. Fails if the primary metrics of two runs are not
// compared.
func TestB11MixedUnits(t *testing.T) {
	head := lab{name: "tonight", builds: []string{"this"}, blocks: 8, metric: "time_to_first_checkpoint_s", value: all(1, 1)}.run()
	base := lab{name: "before", builds: []string{"this"}, blocks: 8, metric: "time_to_first_checkpoint_ms", value: all(1000, 1000)}.run()
	d := Decide(head, func(string) *result.Loaded { return base }, Rules{})
	wantExit(t, d, result.ExitBaseline, "another primary metric: time_to_first_checkpoint_s, not time_to_first_checkpoint_ms")
	if len(d.Judged) > 0 {
		t.Errorf("%+v", d.Judged)
	}
	// A metric that nobody described has no direction, so it alarms nobody.
	d = Decide(lab{blocks: 8, metric: "furlongs", value: all(3, 1)}.run(), nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || j.Better != result.Neutral {
		t.Errorf("%+v", j)
	}
}

// TestB12Direction: more throughput is faster, less is slower, in one run and
// in two. Fails if the direction is not asked for.
func TestB12Direction(t *testing.T) {
	for _, c := range []struct {
		metric     string
		head, base float64
		want       Verdict
	}{
		{"throughput_records_per_s", 2000, 1000, Faster},
		{"throughput_records_per_s", 1000, 2000, Slower},
		{"makespan_s", 2, 1, Slower},
		{"makespan_s", 1, 2, Faster},
	} {
		run := lab{blocks: 8, metric: c.metric, value: all(c.head, c.base)}.run()
		if j := verdictOf(t, Decide(run, nil, Rules{}), "D=true"); j.Verdict != c.want {
			t.Errorf("%s %v to %v in a run: %s", c.metric, c.head, c.base, j.Verdict)
		}
		base := single(run, "base")
		base.Run.Run = "before"
		if j := verdictOf(t, Decide(single(run, "head"), func(string) *result.Loaded { return base }, Rules{}), "D=true"); j.Verdict != c.want {
			t.Errorf("%s %v to %v in two runs: %s", c.metric, c.head, c.base, j.Verdict)
		}
		alarm := Decide(run, nil, Rules{Screen: true})
		if j := verdictOf(t, alarm, "D=true"); j.Alarm != (c.want == Slower) {
			t.Errorf("%s %v to %v: alarm %v", c.metric, c.head, c.base, j.Alarm)
		}
	}
}

// TestB13FailedIsNoZero: a trial that failed and still left a number is a
// failure without a number. Fails if samples are taken of trials that are not
// ok.
func TestB13FailedIsNoZero(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		if x := &run.Trials[i]; x.Build == "head" && x.Block == 3 {
			x.Outcome, x.Reason, x.Metrics = result.Failed, "HTTP 500", map[string]float64{primary: 0}
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "failed: HTTP 500")
	if j := verdictOf(t, d, "D=true"); j.N != 7 || j.HeadFailed != 1 || *j.HeadMedian < 0.9 {
		t.Errorf("%+v", j)
	}
}

// TestB14NotANumberIsMissing: NaN is no lag of 0. Fails if NaN is a sample.
func TestB14NotANumberIsMissing(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		if x := &run.Trials[i]; x.Build == "head" && x.Block == 3 {
			x.Metrics = map[string]float64{primary: math.NaN()}
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "the primary metric "+primary+" is absent")
	if j := verdictOf(t, d, "D=true"); j.N != 7 {
		t.Errorf("%+v", j)
	}
	document(t, d)
}

// TestB15NoRatioWithCensoredSide: what ran into its timeout has no time, and no
// build is faster than that. Fails if the pairs that are left give a ratio.
func TestB15NoRatioWithCensoredSide(t *testing.T) {
	run := lab{blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "base" && block%8 < 5 {
			return 0, result.Timeout
		}
		return jitter(block), result.OK
	}}.run()
	d := Decide(run, nil, Rules{})
	j := verdictOf(t, d, "D=true")
	if j.Ratio != nil || j.CIHigh != nil || j.Verdict != Inconclusive || j.BaseFailed != 5 || !strings.Contains(j.Why, "only 3 of 8") {
		t.Errorf("%+v", j)
	}
	wantExit(t, d, result.ExitFailed)
}

// TestB16NothingMeasured: an environment that ran nothing is not slower.
// Fails if the gate does not ask whether any trial was ok.
func TestB16NothingMeasured(t *testing.T) {
	for _, outcome := range []result.Outcome{result.Misconfigured, result.Unsupported, result.Failed, ""} {
		run := lab{blocks: 8, value: func(string, string, int) (float64, result.Outcome) { return 0, outcome }}.run()
		d := Decide(run, nil, Rules{})
		wantExit(t, d, result.ExitFailed, "0 cells were measured")
		for _, j := range d.Judged {
			if j.Verdict != Inconclusive {
				t.Errorf("%s: %+v", outcome, j)
			}
		}
	}
	empty := lab{blocks: 0, value: times(1)}.run()
	wantExit(t, Decide(empty, nil, Rules{}), result.ExitFailed, "0 cells were measured")
}

// TestB17GateTestsItself: of a run with itself nothing is slower, and a planted
// fifth is found; a comparator that never looks fails one of both. Fails if
// paired returns Same always, or Slower always.
func TestB17GateTestsItself(t *testing.T) {
	wantExit(t, Decide(lab{blocks: 8, value: times(1)}.run(), nil, Rules{}), result.ExitOK)
	wantExit(t, Decide(lab{blocks: 8, value: times(1.2)}.run(), nil, Rules{}), result.ExitRegression, "D=true", "D=false", "slower (ratio 1.2", "threshold 10 % from default")
}

// TestB18MissingResultFails: a planned cell without a line is no notice. Fails
// if missing trials give ExitInconclusive.
func TestB18MissingResultFails(t *testing.T) {
	run := lab{blocks: 8, value: func(cell, build string, block int) (float64, result.Outcome) {
		if cell == "D=true" {
			return 0, ""
		}
		return times(1)(cell, build, block)
	}}.run()
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "16 of 32 trials were not run")
	if j := verdictOf(t, d, "D=true"); j.N != 0 || j.Planned != 8 || j.Verdict != Inconclusive {
		t.Errorf("%+v", j)
	}
}

// TestB19UnknownProvenance: a baseline that does not say where it comes from is
// not compared. Fails if an unknown machine is any machine.
func TestB19UnknownProvenance(t *testing.T) {
	head := single(lab{name: "tonight", blocks: 8, value: times(1)}.run(), "head")
	for name, forget := range map[string]func(*result.Loaded){
		"machine": func(l *result.Loaded) { l.Run.Machine = result.Machine{} },
		"text of the workload": func(l *result.Loaded) {
			l.Run.Workloads = slices.Clone(l.Run.Workloads)
			l.Run.Workloads[0].SHA256, l.Run.Workloads[0].Text = "", ""
		},
	} {
		base := single(lab{name: "before", blocks: 8, value: times(1)}.run(), "base")
		forget(base)
		d := Decide(head, func(string) *result.Loaded { return base }, Rules{})
		wantExit(t, d, result.ExitBaseline, "not comparable with before", name)
	}
}

// TestB20SignificanceAndSize: neither a difference that is sure and small nor
// one that is large and unsure alarms. Fails if one of the two is enough.
func TestB20SignificanceAndSize(t *testing.T) {
	small := lab{blocks: 30, value: times(1.03)}.run()
	if j := verdictOf(t, Decide(small, nil, Rules{}), "D=true"); j.Verdict != Same || *j.P > 0.001 {
		t.Errorf("small: %+v", j)
	}
	unsure := lab{blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" {
			return []float64{0.4, 2.5, 0.6, 2, 1.9, 0.5, 3, 1.8}[block], result.OK
		}
		return 1, result.OK
	}}.run()
	if j := verdictOf(t, Decide(unsure, nil, Rules{}), "D=true"); j.Verdict != Inconclusive || *j.Ratio < 1.5 {
		t.Errorf("unsure: %+v", j)
	}
}

// TestB21ThresholdAndItsPlace: the threshold of the file holds, and the place
// it came from is told. Fails if the default is used all the same.
func TestB21ThresholdAndItsPlace(t *testing.T) {
	run := lab{blocks: 8, value: times(1.3)}.run()
	rules := Rules{Thresholds: func(workload, metric string) Threshold {
		if workload == "w" && metric == primary {
			return Threshold{Band: Band{Relative: 0.5}, Source: "results/baselines/thresholds.toml:12"}
		}
		return Threshold{}
	}}
	d := Decide(run, nil, rules)
	j := verdictOf(t, d, "D=true")
	if j.Verdict != Same || j.Threshold.Source != "results/baselines/thresholds.toml:12" || j.Threshold.Relative != 0.5 {
		t.Errorf("%+v", j)
	}
	if s := SummarizeWith(run, rules.Thresholds).Workloads["w"].BuildPairs["D=true"][primary]; s.Verdict != "same" {
		t.Errorf("summary: %+v", s)
	}
	if doc := document(t, d); !strings.Contains(doc, `"threshold":{"relative":0.5,"absolute":0,"source":"results/baselines/thresholds.toml:12"}`) {
		t.Errorf("%s", doc)
	}
	d = Decide(run, nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.Verdict != Slower || j.Threshold.Source != "default" || j.Threshold.Relative != 0.1 {
		t.Errorf("%+v", j)
	}
}
