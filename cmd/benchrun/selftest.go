package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/trial"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
	"benchrun/workloads/spec"
)

//go:embed selftest.toml
var selfTestText []byte

// Builds of the self-test: all of them are this executable.
const (
	buildBase   = "base"
	buildSame   = "same"
	buildSlowed = "slowed"
)

// Figures of the self-test.
const (
	plantedPoint   = "task/restore"
	plantedRise    = 0.20 // of the primary metric's median
	pilotDelay     = 100 * time.Millisecond
	pilotRepeats   = 8
	selfTestBlocks = 8 // more, where the first look alarms
)

// errSelfTest means that the gate cannot be trusted here and now.
var errSelfTest = errors.New("the gate's self-test failed")

// selfTest measures this executable against itself, once as it is and once with
// a delay in its restore that raises the primary metric by a fifth. The gate
// has to pass the first and to find the second.
func (a *app) selfTest(ctx context.Context, f *gateFlags) error {
	began := time.Now()
	pilot, err := a.selfTestRun(ctx, f, fmt.Sprintf("run.repeats=%d", pilotRepeats), map[string]time.Duration{buildSlowed: pilotDelay})
	if err != nil {
		return err
	}
	delay, base, err := sizeDelay(pilot)
	if err != nil {
		return exit(result.ExitFailed, fmt.Errorf("%w: %w (%s)", errSelfTest, err, relative(pilot.Dir)))
	}
	a.say(f, "self-test: %s is %s; a delay of %s in each restore raises it by %.0f %%\n", pilot.Run.Workloads[0].Primary, quantity(pilot.Run.Workloads[0].Primary, base), delay, 100*plantedRise)
	l, err := a.selfTestRun(ctx, f, "", map[string]time.Duration{buildSame: 0, buildSlowed: delay})
	if err != nil {
		return err
	}
	g := *f
	if g.confirm == 0 {
		g.confirm = selfTestBlocks
	}
	// The default threshold, whatever a team tolerates: the planted rise is
	// twice as large.
	d, err := a.confirm(ctx, l, verdict.Rules{}, &g)
	if err != nil {
		return err
	}
	failures := selfTestFailures(d)
	for _, j := range d.Judged {
		a.say(f, "self-test: %s: %s, %s\n", j.Cell, j.Verdict, measuredText(j))
	}
	a.say(f, "self-test: %s\n", relative(l.Dir))
	if len(failures) > 0 {
		return exit(result.ExitFailed, fmt.Errorf("%w: %s", errSelfTest, strings.Join(failures, "; ")))
	}
	a.say(f, "self-test: passed in %s: equal builds pass, the planted slow-down is found\n", time.Since(began).Round(time.Second))
	return nil
}

// measuredText is what a judged metric showed, in numbers and words.
func measuredText(j verdict.Judged) string {
	text := ""
	if j.Ratio != nil {
		text = fmt.Sprintf("ratio %.3f", *j.Ratio)
		if j.CILow != nil && j.CIHigh != nil {
			text += fmt.Sprintf(" [%.3f .. %.3f]", *j.CILow, *j.CIHigh)
		}
		text += " of " + count(j.N, "pair") + ": "
	}
	return text + j.Why
}

// say prints a line for a person; with --json the document stands alone.
func (a *app) say(f *gateFlags, format string, args ...any) {
	out := a.stdout
	if f.json {
		out = a.stderr
	}
	fmt.Fprintf(out, format, args...)
}

// selfTestRun measures the self-test's workload with the base build and others,
// each with its delay.
func (a *app) selfTestRun(ctx context.Context, f *gateFlags, override string, delays map[string]time.Duration) (*result.Loaded, error) {
	var sets []string
	if override != "" {
		sets = append(sets, override)
	}
	file, err := spec.Parse("selftest.toml", ".", selfTestText, sets)
	if err != nil {
		return nil, err
	}
	builds := []trial.Build{{Name: buildBase, Path: a.self}}
	names := []string{buildBase}
	for _, name := range []string{buildSame, buildSlowed} {
		d, in := delays[name]
		if !in {
			continue
		}
		b := trial.Build{Name: name, Path: a.self}
		if d > 0 {
			b.Delays = map[string]time.Duration{plantedPoint: d}
		}
		builds, names = append(builds, b), append(names, name)
	}
	p, err := plan.New(plan.Input{Files: []*spec.File{file}, Builds: names})
	if err != nil {
		return nil, err
	}
	campaign, err := trial.Session{
		Out: f.runs, Plan: p, Builds: builds, Self: a.self, Command: append([]string{"benchrun"}, a.args...), Sets: sets, Tool: a.tool(),
	}.Begin(time.Now())
	if err != nil {
		return nil, exit(result.ExitFailed, err)
	}
	defer campaign.Folder.Close()
	if err := a.carryOut(ctx, campaign, f.quiet); err != nil {
		return nil, err
	}
	l, err := a.loadRun(campaign.Folder.Dir())
	if err != nil {
		return nil, exit(result.ExitFailed, err)
	}
	if code, reasons := l.Exit(result.ExitFailed); code != result.ExitOK {
		return nil, exit(code, fmt.Errorf("%w: its trials are not all ok: %s (%s)", errSelfTest, reasons[0], relative(l.Dir)))
	}
	return l, nil
}

// sizeDelay finds the delay that raises the base build's median by a fifth,
// from a pilot with a delay of a guessed size.
func sizeDelay(pilot *result.Loaded) (delay time.Duration, base float64, err error) {
	metric := pilot.Run.Workloads[0].Primary
	median := map[string]float64{}
	for _, c := range verdict.Columns(pilot) {
		stat, ok := stats.Median(c.Samples(metric))
		if !ok {
			return 0, 0, fmt.Errorf("the pilot has no %s", metric)
		}
		median[c.Build] = stat
	}
	rise := median[buildSlowed] - median[buildBase]
	effect := rise / pilotDelay.Seconds()
	if effect < 0.3 || effect > 3 {
		return 0, 0, fmt.Errorf("a delay of %s in each restore changed the %s of %.3f s by %+.3f s: the delay does not act as it should, or the machine is too noisy to tell", pilotDelay, metric, median[buildBase], rise)
	}
	d := time.Duration(plantedRise * median[buildBase] / effect * float64(time.Second))
	return d.Round(time.Millisecond), median[buildBase], nil
}

// selfTestFailures says what a decision on the self-test's run got wrong.
func selfTestFailures(d *verdict.Decision) []string {
	var out []string
	if d.Exit != result.ExitOK && d.Exit != result.ExitRegression && d.Exit != result.ExitInconclusive {
		out = append(out, "the comparison came to "+d.Outcome)
	}
	same, slowed := "", ""
	for _, j := range d.Judged {
		switch {
		case strings.HasSuffix(j.Cell, "@"+buildSame):
			same = string(j.Verdict)
		case strings.HasSuffix(j.Cell, "@"+buildSlowed):
			slowed = string(j.Verdict)
		}
	}
	switch {
	case same == "":
		out = append(out, "equal builds were not compared")
	case same == string(verdict.Slower), same == string(verdict.Faster):
		out = append(out, "equal builds were called "+same)
	}
	switch slowed {
	case string(verdict.Slower):
	case "":
		out = append(out, "the planted slow-down was not looked at")
	default:
		out = append(out, fmt.Sprintf("a planted slow-down of %.0f %% was called %s", 100*plantedRise, slowed))
	}
	if slowed == string(verdict.Slower) && d.Exit != result.ExitRegression {
		out = append(out, fmt.Sprintf("a slower cell came with exit code %d", d.Exit))
	}
	return out
}
