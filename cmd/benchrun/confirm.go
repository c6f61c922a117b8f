package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/harness/target/embedded"
	"benchrun/harness/trial"
	"benchrun/reports/verdict"
)

// confirm looks twice: what the first look alarms on is run again, and the
// verdict rests on old and new blocks together. A run that has its second look
// gets no third one: trying until a verdict pleases is no test.
func (a *app) confirm(ctx context.Context, l *result.Loaded, rules verdict.Rules, f *gateFlags) (*verdict.Decision, error) {
	cells, blocks := l.Run.Plan.Again(), f.confirm
	if look := l.Run.Plan.SecondLook; look != nil {
		blocks = look.Blocks
		if _, missing := l.MissingByLook(); len(missing) == 0 {
			cells = nil
		}
	} else {
		rules.Screen = true
		first := a.judge(l, nil, rules)
		if !a.mendable(l, rules, first.Exit) {
			return first, nil
		}
		cells = withoutBuilds(first.Alarmed(), l)
	}
	if len(cells) > 0 {
		more, err := a.again(ctx, l, cells, blocks, f)
		if err != nil {
			return nil, err
		}
		l = more
	}
	rules.Screen, rules.Confirmed, rules.Alarmed = false, true, l.Run.Plan.Again()
	d := a.judge(l, nil, rules)
	if look := l.Run.Plan.SecondLook; look != nil && look.Blocks != f.confirm {
		d.Warnings = append(d.Warnings, fmt.Sprintf("the second look was taken with %s; --confirm %d adds none", count(look.Blocks, "block"), f.confirm))
	}
	return d, nil
}

// mendable tells whether more blocks can change what a screen came to: slowness,
// also beside trials that failed or timed out. These stay the exit code, but must
// not hide what is slower. All else is told at once.
func (a *app) mendable(l *result.Loaded, rules verdict.Rules, code result.Exit) bool {
	onSlowness := func(code result.Exit) bool {
		return code == result.ExitOK || code == result.ExitRegression || code == result.ExitInconclusive
	}
	if code != result.ExitFailed {
		return onSlowness(code)
	}
	others := *l
	others.Trials = slices.Clone(l.Trials)
	for i := range others.Trials {
		if t := &others.Trials[i]; t.Outcome == result.Failed || t.Outcome == result.Timeout {
			t.Outcome = result.TrialInterrupted // which by itself gives no code
		}
	}
	return onSlowness(a.judge(&others, nil, rules).Exit)
}

// asItStands judges what was measured, and measures nothing. A second look
// counts as one if it is complete; if not, its blocks do not count.
func (a *app) asItStands(l *result.Loaded, base func(workload string) *result.Loaded, rules verdict.Rules) *verdict.Decision {
	look := l.Run.Plan.SecondLook
	if look == nil {
		return a.judge(l, base, rules)
	}
	if _, missing := l.MissingByLook(); len(missing) > 0 {
		d := a.judge(l.FirstLook(), base, rules)
		d.Warnings = append(d.Warnings, fmt.Sprintf("a second look was begun and %s of it are missing: this is the first look alone; go on with: %s", count(len(missing), "trial"), confirmCommand(l.Dir, look.Blocks)))
		return d
	}
	if base == nil {
		rules.Confirmed, rules.Alarmed = true, l.Run.Plan.Again()
	}
	return a.judge(l, base, rules)
}

func confirmCommand(dir string, blocks int) string {
	return fmt.Sprintf("benchrun gate --confirm %d %s", blocks, relative(dir))
}

// again runs more blocks of some cells of a run, or the rest of them, and reads
// it anew.
func (a *app) again(ctx context.Context, l *result.Loaded, cells []result.Cell, blocks int, f *gateFlags) (*result.Loaded, error) {
	campaign, err := trial.Extend{Dir: l.Dir, Self: a.self, Cells: cells, Blocks: blocks, Force: f.force, Sweep: embedded.Sweep}.Begin()
	if errors.Is(err, trial.ErrRefused) {
		return nil, exit(result.ExitUsage, err)
	}
	if err != nil {
		return nil, err
	}
	defer campaign.Folder.Close()
	if !f.quiet {
		var names []string
		for _, c := range cells {
			names = append(names, c.Workload+" "+c.Cell)
		}
		fmt.Fprintf(a.stderr, "to be confirmed with %s more: %s\n", count(blocks, "block"), strings.Join(names, "; "))
	}
	if err := a.carryOut(ctx, campaign, f.quiet); err != nil {
		return nil, fmt.Errorf("%w\ngo on with: %s", err, confirmCommand(l.Dir, blocks))
	}
	return a.loadRun(l.Dir)
}

// withoutBuilds makes cells of the names that a run with several builds to
// judge gives them, each once.
func withoutBuilds(cells []result.Cell, l *result.Loaded) []result.Cell {
	var out []result.Cell
	seen := map[[2]string]bool{}
	for _, c := range cells {
		for b := range l.Run.Builds {
			c.Cell = strings.TrimSuffix(c.Cell, "@"+b)
		}
		if k := [2]string{c.Workload, c.Cell}; !seen[k] {
			seen[k] = true
			out = append(out, c)
		}
	}
	return out
}
