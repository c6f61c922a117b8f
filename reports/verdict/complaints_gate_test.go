package verdict

import (
	"encoding/json"
	"math"
	"testing"

	"benchrun/harness/result"
)

// TestB22NoSamples: a threshold on a metric without samples is not kept, it
// fails. Fails if cells without the metric are left out.
func TestB22NoSamples(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		if run.Trials[i].Cell == "D=true" {
			run.Trials[i].Metrics = map[string]float64{"makespan_s": 1}
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "the primary metric "+primary+" is absent")
	if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || j.N != 0 {
		t.Errorf("%+v", j)
	}
}

// TestB25AllFailed: without any threshold a run of failures is not 0. Fails if
// failed trials give no code.
func TestB25AllFailed(t *testing.T) {
	run := lab{blocks: 8, value: func(string, string, int) (float64, result.Outcome) { return 0, result.Failed }}.run()
	wantExit(t, Decide(run, nil, Rules{}), result.ExitFailed, "0 cells were measured")
}

// TestB31NoFaultNoTime: where no fault happened there is no recovery time, and
// no average of none. Fails if an absent metric is 0.
func TestB31NoFaultNoTime(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		run.Trials[i].Metrics = map[string]float64{"throughput_records_per_s": 1000}
	}
	s := Summarize(run).Workloads["w"]
	for cell, c := range s.Cells {
		if _, have := c.Metrics[primary]; have {
			t.Errorf("%s has a recovery time: %+v", cell, c)
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "is absent")
	if j := verdictOf(t, d, "D=true"); j.HeadMedian != nil || j.Ratio != nil {
		t.Errorf("%+v", j)
	}
	if tr := Trends([]*result.Loaded{run}); len(tr.Series[0].Points) != 0 {
		t.Errorf("%+v", tr.Series)
	}
}

// TestB33FlagWasVaried: a flag that the running tasks report with one value in
// all cells was not varied, whatever the plan says. Fails if planned flags are
// believed.
func TestB33FlagWasVaried(t *testing.T) {
	const key = "execution.checkpointing.unaligned.during-recovery.enabled"
	for _, stuck := range []bool{false, true} {
		run := lab{blocks: 8, value: times(1)}.run()
		flags := map[string]bool{"D=false": false, "D=true": true}
		for i := range run.Run.Plan.Cells {
			run.Run.Plan.Cells[i].Flags = map[string]any{"D": flags[run.Run.Plan.Cells[i].Cell]}
		}
		for i := range run.Trials {
			x := &run.Trials[i]
			x.Flags = map[string]any{"D": flags[x.Cell]}
			x.Options = map[string]any{key: flags[x.Cell] && !stuck, "parallelism.default": 4}
		}
		d := Decide(run, nil, Rules{})
		if stuck {
			wantExit(t, d, result.ExitFailed, "D was planned with the values false, true, the running tasks report false in all cells")
		} else {
			wantExit(t, d, result.ExitOK)
		}
	}
}

// TestB36NoisyIsVisible: a change that is large and unsure is shown with its
// numbers and its own code. Fails if inconclusive gives 0.
func TestB36NoisyIsVisible(t *testing.T) {
	run := lab{blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" && block%2 == 0 {
			return 3, result.OK
		}
		return jitter(block), result.OK
	}}.run()
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitInconclusive, "D=true", "inconclusive")
	if j := verdictOf(t, d, "D=true"); j.Ratio == nil || j.CIHigh == nil || *j.CIHigh < 2 || j.Why == "" {
		t.Errorf("%+v", j)
	}
}

// TestB37ThresholdBelowNoise: such a threshold alarms at random, so both
// figures are told. Fails if the noise is not held against the threshold.
func TestB37ThresholdBelowNoise(t *testing.T) {
	run := lab{blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" {
			return []float64{0.8, 1.25, 0.9, 1.1, 1.2, 0.85, 1.15, 1}[block], result.OK
		}
		return 1, result.OK
	}}.run()
	tight := Rules{Thresholds: func(string, string) Threshold {
		return Threshold{Band: Band{Relative: 0.02}, Source: "thresholds.toml:3"}
	}}
	d := Decide(run, nil, tight)
	j := verdictOf(t, d, "D=true")
	wantWarning(t, d.Warnings, "the threshold of 2 % (thresholds.toml:3) lies below the noise", percent(*j.Noise))
	wide := Rules{Thresholds: func(string, string) Threshold {
		return Threshold{Band: Band{Relative: 0.5}, Source: "thresholds.toml:3"}
	}}
	if d := Decide(run, nil, wide); len(d.Warnings) > 0 {
		t.Errorf("%q", d.Warnings)
	}
}

// TestB38ConfirmBeforeRed: the first look alarms and is not red; after more
// blocks of what alarmed the cell is cleared, and that is told. Fails if the
// screen gives Slower, or if the second look forgets the alarm.
func TestB38ConfirmBeforeRed(t *testing.T) {
	slowStart := func(cell, build string, block int) (float64, result.Outcome) {
		if cell == "D=true" && build == "head" && block < 8 && block != 2 {
			return 1.15 * jitter(block), result.OK
		}
		return jitter(block), result.OK
	}
	first := Decide(lab{blocks: 8, value: slowStart}.run(), nil, Rules{Screen: true})
	wantExit(t, first, result.ExitInconclusive)
	if a := first.Alarmed(); len(a) != 1 || a[0].Cell != "D=true" || a[0].Workload != "w" {
		t.Fatalf("alarmed %+v", a)
	}
	more := lab{blocks: 8, more: map[string]int{"D=true": 16}, value: slowStart}.run()
	second := Decide(more, nil, Rules{Confirmed: true, Alarmed: first.Alarmed()})
	wantExit(t, second, result.ExitOK)
	if j := verdictOf(t, second, "D=true"); !j.Cleared || j.N != 24 || j.Verdict != Same {
		t.Errorf("%+v", j)
	}
	if j := verdictOf(t, second, "D=false"); j.Cleared || j.N != 8 {
		t.Errorf("%+v", j)
	}
	really := lab{blocks: 8, more: map[string]int{"D=true": 8}, value: func(cell, build string, block int) (float64, result.Outcome) {
		if cell == "D=true" {
			return times(1.3)(cell, build, block)
		}
		return times(1)(cell, build, block)
	}}.run()
	second = Decide(really, nil, Rules{Confirmed: true, Alarmed: first.Alarmed()})
	wantExit(t, second, result.ExitRegression, "D=true")
	if j := verdictOf(t, second, "D=true"); j.Cleared || j.Verdict != Slower || j.N != 16 {
		t.Errorf("%+v", j)
	}
}

// TestB43GuardedLibraries: NaN, none and zero do not come out of a library as
// an answer. Fails if Describe hands on what is not finite.
func TestB43GuardedLibraries(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		run.Trials[i].Metrics = map[string]float64{primary: []float64{math.NaN(), 0, math.Inf(1), -1}[i%4], "makespan_s": 0}
	}
	document(t, Decide(run, nil, Rules{}))
	if b, err := json.Marshal(Summarize(run)); err != nil {
		t.Errorf("%v: %s", err, b)
	}
	if b, err := json.Marshal(Trends([]*result.Loaded{run})); err != nil {
		t.Errorf("%v: %s", err, b)
	}
}

// TestB44FailedWorkload: a workload that failed is no success, and its cells
// carry no numbers. Fails if failed trials are described.
func TestB44FailedWorkload(t *testing.T) {
	run := lab{workloads: []string{"good", "bad"}, blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		if x := &run.Trials[i]; x.Workload == "bad" {
			x.Outcome, x.Reason, x.Metrics = result.Failed, "no such class", map[string]float64{primary: 0}
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed, "bad", "no such class")
	for _, j := range d.Judged {
		if bad := j.Workload == "bad"; bad != (j.Verdict == Inconclusive) || bad != (j.HeadMedian == nil) || bad != (j.Ratio == nil) {
			t.Errorf("%+v", j)
		}
	}
	for _, c := range Summarize(run).Workloads["bad"].Cells {
		if len(c.Metrics) > 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestB47FastAndWrong: a build that recovers in half the time and loses records
// is wrong, not faster. Fails if the times of incorrect trials are samples.
func TestB47FastAndWrong(t *testing.T) {
	run := lab{blocks: 8, value: times(0.5)}.run()
	for i := range run.Trials {
		if x := &run.Trials[i]; x.Build == "head" && x.Block%2 == 0 {
			x.Outcome, x.Reason = result.Incorrect, "3 records are lost"
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitWrong, "3 records are lost")
	if j := verdictOf(t, d, "D=true"); j.Verdict != Inconclusive || j.HeadFailed != 4 || j.N != 4 {
		t.Errorf("%+v", j)
	}
}

// TestB48NoiseIsShown: what so many pairs can show stands beside every verdict,
// and the controls tell the false alarms of the night, so that a threshold can
// be chosen. Fails if the noise or the controls are left out.
func TestB48NoiseIsShown(t *testing.T) {
	run := lab{blocks: 8, value: times(1), inert: [][]string{{"D=false", "D=true"}}}.run()
	d := Decide(run, nil, Rules{})
	for _, j := range d.Judged {
		if j.Noise == nil || *j.Noise <= 0 || *j.Noise > 0.1 {
			t.Errorf("%+v", j)
		}
	}
	if d.Controls == nil || d.Controls.Pairs != 2 || d.Controls.Alarms != 0 || d.Controls.Cells[0].Noise == nil {
		t.Errorf("%+v", d.Controls)
	}
	// A control that differs is a false alarm, and changes no exit code.
	differ := lab{blocks: 8, inert: [][]string{{"D=false", "D=true"}}, value: func(cell, build string, block int) (float64, result.Outcome) {
		v, _ := times(1)(cell, build, block)
		if cell == "D=true" {
			v *= 1.5
		}
		return v, result.OK
	}}.run()
	d = Decide(differ, nil, Rules{})
	wantExit(t, d, result.ExitOK)
	if d.Controls.Alarms != 2 {
		t.Errorf("%+v", d.Controls)
	}
	wantWarning(t, d.Warnings, "A/A control D=true@base against D=false@base differs by 50 %", "threshold 10 % from default")
}
