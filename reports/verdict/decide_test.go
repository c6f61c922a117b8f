package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"benchrun/harness/result"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor float64
		want   Verdict
		exit   result.Exit
	}{
		{"slower", 1.3, Slower, result.ExitRegression},
		{"faster", 0.7, Faster, result.ExitOK},
		{"same", 1.0, Same, result.ExitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(lab{blocks: 8, value: times(c.factor)}.run(), nil, Rules{})
			if j := verdictOf(t, d, "D=true"); j.Verdict != c.want || d.Exit != c.exit {
				t.Errorf("%s, exit %d: %+v", j.Verdict, d.Exit, d.Reasons)
			}
		})
	}
}

// TestExitCodes: the most severe outcome wins. Fails if failed trials give no
// code.
func TestExitCodes(t *testing.T) {
	end := func(o result.Outcome) func(*result.Trial) {
		return func(x *result.Trial) { x.Outcome, x.Reason, x.Metrics = o, "because", nil }
	}
	for _, c := range []struct {
		name   string
		factor float64
		spoil  func(*result.Trial) // the third trial of the head in D=true
		want   result.Exit
	}{
		{"ok", 1, nil, result.ExitOK},
		{"faster", 0.5, nil, result.ExitOK},
		{"slower", 1.5, nil, result.ExitRegression},
		{"slower, one failed", 1.5, end(result.Failed), result.ExitFailed},
		{"one timed out", 1, end(result.Timeout), result.ExitFailed},
		{"one was misconfigured", 1, end(result.Misconfigured), result.ExitFailed},
		{"slower, one incorrect", 1.5, end(result.Incorrect), result.ExitWrong},
		{"expected metric absent", 1, func(x *result.Trial) { x.Metrics = map[string]float64{"detect_s": 1} }, result.ExitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := lab{blocks: 8, value: times(c.factor)}.run()
			for i := range run.Trials {
				if x := &run.Trials[i]; c.spoil != nil && x.Build == "head" && x.Cell == "D=true" && x.Block == 3 {
					c.spoil(x)
				}
			}
			d := Decide(run, nil, Rules{})
			wantExit(t, d, c.want)
			if d.Outcome != Outcome(c.want) || d.Outcome == "" {
				t.Errorf("outcome %q", d.Outcome)
			}
		})
	}
}

// TestSeverity: among verdicts a slow cell outweighs an unsure one, and a
// failure what does not compare. Fails if the larger number wins.
func TestSeverity(t *testing.T) {
	run := lab{blocks: 8, value: func(cell, build string, block int) (float64, result.Outcome) {
		switch {
		case cell == "D=true":
			return times(1.5)(cell, build, block)
		case build == "head" && block%2 == 0:
			return 3, result.OK
		}
		return times(1)(cell, build, block)
	}}.run()
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitRegression)
	if j := verdictOf(t, d, "D=false"); j.Verdict != Inconclusive {
		t.Errorf("%+v", j)
	}
	head := single(lab{blocks: 8, value: func(cell, build string, block int) (float64, result.Outcome) {
		if block == 3 {
			return 0, result.Failed
		}
		return times(1)(cell, build, block)
	}}.run(), "head")
	wantExit(t, Decide(head, func(string) *result.Loaded { return nil }, Rules{}), result.ExitFailed, "there is no baseline")
}

// TestInfrastructureIsNotSlower: trials of the head that fail make no cell
// slower, and their share is tested apart. Fails if censored pairs count as
// slow ones.
func TestInfrastructureIsNotSlower(t *testing.T) {
	run := lab{blocks: 12, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" && block < 5 {
			return 0, result.Timeout
		}
		return jitter(block), result.OK
	}}.run()
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitFailed)
	j := verdictOf(t, d, "D=true")
	if j.Verdict == Slower || j.Verdict == Same || j.Verdict == Faster {
		t.Errorf("%+v", j)
	}
	few := lab{blocks: 12, value: func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" && block < 6 {
			return 0, result.Timeout
		}
		if build == "head" {
			return 1.08, result.OK
		}
		return 1, result.OK
	}}.run()
	if j := verdictOf(t, Decide(few, nil, Rules{}), "D=true"); j.Verdict != Inconclusive || *j.Ratio > 1.09 {
		t.Errorf("half of the trials failed: %+v", j)
	}
	wantWarning(t, d.Warnings, "w D=true: 5 of 12 trials did not end well, and 0 of 12 of the base", "p = 0.019")
	// What is slower among the trials that ended stays so with failures of the
	// head, and not with as many of the base.
	for _, c := range []struct {
		lost string
		want Verdict
	}{{"head", Slower}, {"base", Inconclusive}} {
		run := lab{blocks: 12, value: func(cell, build string, block int) (float64, result.Outcome) {
			if build == c.lost && block < 5 {
				return 0, result.Failed
			}
			return times(1.5)(cell, build, block)
		}}.run()
		if j := verdictOf(t, Decide(run, nil, Rules{}), "D=true"); j.Verdict != c.want {
			t.Errorf("%s fails: %+v", c.lost, j)
		}
	}
}

// TestManyBuilds: each build is judged against the base build, and all of them
// are judged cells. Fails if the builds are paired in a row.
func TestManyBuilds(t *testing.T) {
	run := lab{builds: []string{"main", "a", "b"}, blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
		return map[string]float64{"main": 1, "a": 1.5, "b": 0.7}[build] * jitter(block), result.OK
	}}.run()
	d := Decide(run, nil, Rules{Screen: true})
	if d.Base != "main" || d.Head != "a, b" || len(d.Judged) != 4 {
		t.Fatalf("%s %s %+v", d.Base, d.Head, d.Judged)
	}
	if a := d.Alarmed(); len(a) != 2 || a[0].Cell != "D=false" || a[1].Cell != "D=true" {
		t.Errorf("alarmed %+v", a)
	}
	d = Decide(run, nil, Rules{})
	if j := verdictOf(t, d, "D=true@a"); j.Verdict != Slower || j.Level != 1-2*callError/4 {
		t.Errorf("%+v", j)
	}
	if j := verdictOf(t, d, "D=true@b"); j.Verdict != Faster || j.Build != "b" {
		t.Errorf("%+v", j)
	}
}

// TestAdvisory: other metrics are judged and change no exit code; a lone one
// among many that do not differ is no discovery. Fails if advisory verdicts
// count.
func TestAdvisory(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		x := &run.Trials[i]
		x.Metrics["makespan_s"] = 1
		if x.Build == "head" {
			x.Metrics["makespan_s"] = 2
		}
	}
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitOK)
	if len(d.Advisory) != 2 || d.Advisory[0].Metric != "makespan_s" || d.Advisory[0].Verdict != Slower {
		t.Errorf("%+v", d.Advisory)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("n=%d", i)
	}
	run = lab{cells: many, blocks: 8, value: times(1)}.run()
	for i := range run.Trials {
		x := &run.Trials[i]
		x.Metrics["makespan_s"] = jitter(x.Block * 3)
		if x.Build == "head" && x.Cell == "n=7" {
			x.Metrics["makespan_s"] = []float64{1.3, 1.4, 1.5, 1.2, 1.3, 1.4, 0.95, 1.4}[x.Block]
		}
	}
	d = Decide(run, nil, Rules{})
	for _, j := range d.Advisory {
		if j.Verdict == Slower || j.Verdict == Faster {
			t.Errorf("%+v", j)
		}
		if j.Cell == "n=7" && !strings.Contains(j.Why, "no discovery among 40 metrics") {
			t.Errorf("%s", j.Why)
		}
	}
}

// TestNotComparable: what keeps two runs apart is told in words. Fails if one
// of the fields is not looked at.
func TestNotComparable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*result.Loaded)
		want   result.Exit
		words  string
	}{
		{"nothing", func(*result.Loaded) {}, result.ExitOK, ""},
		{"processor", func(l *result.Loaded) { l.Run.Machine.CPUModel = "other" }, result.ExitBaseline, "another machine: CPU model: cpu, not other"},
		{"cores", func(l *result.Loaded) { l.Run.Machine.Cores = 64 }, result.ExitBaseline, "cores: 2, not 64"},
		{"memory", func(l *result.Loaded) { l.Run.Machine.MemoryBytes = 64 << 30 }, result.ExitBaseline, "memory: 8.0 GiB, not 64.0 GiB"},
		{"a little memory", func(l *result.Loaded) { l.Run.Machine.MemoryBytes += 64 << 20 }, result.ExitOK, ""},
		{"host", func(l *result.Loaded) { l.Run.Machine.Hostname = "desk" }, result.ExitOK, ""},
		{"host, and memory that is not known", func(l *result.Loaded) { l.Run.Machine.Hostname, l.Run.Machine.MemoryBytes = "desk", 0 }, result.ExitBaseline, "host: lab, not desk"},
		{"edited text", func(l *result.Loaded) { l.Run.Workloads[0].Text = "name = \"x\"\n" }, result.ExitBaseline, `another text of the workload under the same hash: line 1 is "name = \"w\"", not "name = \"x\""`},
		{"edited", func(l *result.Loaded) { l.Edited = []string{"w"} }, result.ExitBaseline, "was changed after the run"},
		{"limit", func(l *result.Loaded) { l.Run.Machine.CgroupCPUs = 1.5 }, result.ExitBaseline, "CPUs of the control group: unlimited, not 1.5"},
		{"kernel", func(l *result.Loaded) { l.Run.Machine.Kernel = "5.10.0" }, result.ExitOK, ""},
		{"text", func(l *result.Loaded) {
			l.Run.Workloads[0].SHA256, l.Run.Workloads[0].Text = "other", "name = \"x\"\n"
		}, result.ExitBaseline, `another text of the workload: line 1 is "name = \"w\"", not "name = \"x\""`},
		{"primary", func(l *result.Loaded) { l.Run.Workloads[0].Primary = "makespan_s" }, result.ExitBaseline, "another primary metric"},
		{"schema", func(l *result.Loaded) { l.Run.Schema = 0 }, result.ExitBaseline, "schema: 1, not 0"},
		{"override", func(l *result.Loaded) { l.Run.Overrides = []string{"workload.parallelism=8"} }, result.ExitBaseline, "other overrides"},
		{"more repeats", func(l *result.Loaded) { l.Run.Overrides = []string{"run.repeats=9"} }, result.ExitOK, ""},
		{"target", func(l *result.Loaded) { l.Run.Settings.Target = "process" }, result.ExitBaseline, "another target"},
		{"workload is gone", func(l *result.Loaded) { l.Run.Workloads[0].Name = "v" }, result.ExitBaseline, "does not have the workload w"},
		{"cell is gone", func(l *result.Loaded) { l.Run.Plan.Cells = l.Run.Plan.Cells[:1] }, result.ExitBaseline, "does not have the cell D=true"},
		{"empty", func(l *result.Loaded) { l.Trials = nil }, result.ExitBaseline, "has no sample of"},
		{"the same run", func(l *result.Loaded) { l.Run.Run = "tonight" }, result.ExitBaseline, "the baseline is the run itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := single(lab{name: "tonight", blocks: 8, value: times(1)}.run(), "head")
			base := single(lab{name: "before", blocks: 8, value: times(1)}.run(), "base")
			c.change(base)
			d := Decide(head, func(string) *result.Loaded { return base }, Rules{})
			wantExit(t, d, c.want, c.words)
			if d.Mode != Sequential || d.Baseline == "" {
				t.Errorf("mode %s, baseline %q", d.Mode, d.Baseline)
			}
		})
	}
	head := single(lab{blocks: 8, value: times(1)}.run(), "head")
	wantExit(t, Decide(head, func(string) *result.Loaded { return nil }, Rules{}), result.ExitBaseline, "there is no baseline")
	wantExit(t, Decide(head, nil, Rules{}), result.ExitBaseline, "nothing to compare with")
}

// TestOffset: two runs of different times are slower only beyond the offset
// that may lie between them; what it hides is inconclusive. Fails if the
// interval is not widened.
func TestOffset(t *testing.T) {
	for _, c := range []struct {
		factor, offset float64
		want           Verdict
	}{
		{1.5, 0, Slower}, {1.105, 0, Inconclusive}, {1.13, 0.02, Slower}, {1.5, 0.6, Inconclusive}, {0.6, 0, Faster}, {1.01, 0, Same},
	} {
		run := lab{blocks: 15, value: times(c.factor)}.run()
		base := single(run, "base")
		base.Run.Run = "before"
		d := Decide(single(run, "head"), func(string) *result.Loaded { return base }, Rules{Offset: c.offset})
		if j := verdictOf(t, d, "D=true"); j.Verdict != c.want || j.MannWhitney == nil || j.Delta == nil {
			t.Errorf("times %v, offset %v: %s: %s", c.factor, c.offset, j.Verdict, j.Why)
		}
	}
}

// TestUnequalPlans: more blocks on one side are no pairs, and are told.
func TestUnequalPlans(t *testing.T) {
	run := lab{blocks: 8, value: times(1.3)}.run()
	keep := func(build string, block int) bool { return build == "base" || block < 6 }
	run.Run.Plan.Order = slices.DeleteFunc(run.Run.Plan.Order, func(s result.Slot) bool { return !keep(s.Build, s.Block) })
	run.Trials = slices.DeleteFunc(run.Trials, func(x result.Trial) bool { return !keep(x.Build, x.Block) })
	d := Decide(run, nil, Rules{})
	if j := verdictOf(t, d, "D=true"); j.N != 6 || j.Planned != 6 || j.Verdict != Slower {
		t.Errorf("%+v", j)
	}
	wantWarning(t, d.Warnings, "6 trials were planned, and 8 of the base")
}

// TestSameFile: two builds of one file differ by chance alone.
func TestSameFile(t *testing.T) {
	run := lab{blocks: 8, value: times(1)}.run()
	run.Run.Builds["head"] = run.Run.Builds["base"]
	d := Decide(run, nil, Rules{})
	wantExit(t, d, result.ExitOK)
	wantWarning(t, d.Warnings, "are the same file")
}

// TestAbsoluteThreshold: nobody is alarmed by a difference below it, whatever
// the ratio; with every pair below it they are the same. Fails if the median
// difference is not held against it.
func TestAbsoluteThreshold(t *testing.T) {
	rules := Rules{Thresholds: func(string, string) Threshold {
		return Threshold{Band: Band{Relative: 0.10, Absolute: 0.4}, Source: "test"}
	}}
	for _, c := range []struct {
		typical, odd float64 // of the head; the base is 1
		want         Verdict
	}{{1.3, 1.3, Same}, {1.3, 1.6, Inconclusive}, {1.5, 1.5, Slower}, {0.7, 0.7, Same}, {0.5, 0.5, Faster}} {
		run := lab{blocks: 8, value: func(_, build string, block int) (float64, result.Outcome) {
			switch {
			case build == "base":
				return 1, result.OK
			case block == 4:
				return c.odd, result.OK
			}
			return c.typical, result.OK
		}}.run()
		if j := verdictOf(t, Decide(run, nil, rules), "D=true"); j.Verdict != c.want {
			t.Errorf("%v and %v: %s: %s", c.typical, c.odd, j.Verdict, j.Why)
		}
		if j := verdictOf(t, decideAs(Sequential, run, rules), "D=true"); (j.Verdict == Slower) != (c.want == Slower) {
			t.Errorf("two runs, %v and %v: %s: %s", c.typical, c.odd, j.Verdict, j.Why)
		}
	}
}
