package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/trial"
	"benchrun/reports/page"
	"benchrun/reports/verdict"

	"github.com/spf13/cobra"
)

// acceptedRuns is the folder of accepted runs, one a workload. Nothing else lies
// in it, so that a workload may have any name.
var acceptedRuns = filepath.Join(baselines, "runs")

// gateFlags are the flags of gate.
type gateFlags struct {
	baseline   string
	baselines  string
	offset     percentValue
	thresholds string
	out        string
	confirm    int
	timeout    time.Duration
	runs       string
	selfTest   bool
	accept     bool
	force      bool
	json       bool
	quiet      bool
}

func (a *app) gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate RUN",
		Short: "decide whether recovery got slower: an exit code for CI",
		Long: `Judges the primary metric of each cell. A run with two builds (run --build) is
judged block by block, the other builds against the first. A run with one build is
judged against --baseline RUN, or against what was accepted for its workloads in
results/baselines/runs; runs of different times need a far larger change.

  0 nothing got slower                  1 a cell is slower
  3 a cell is inconclusive              4 a trial failed, or a metric is absent
  5 no baseline, or not comparable      6 wrong output

--confirm N makes the first look a screen: what it alarms is run again, N more
blocks of those cells only, and the verdict rests on old and new blocks together.
There is one second look: a repeated call goes on with one that was cut off, and
judges one that is complete without running anything.
--self-test proves the gate on this machine: equal builds must pass, and a build
with a delay of 20 % planted in its restore must be found.

The decision is rendered into the run folder: gate.html, gate.md, gate-junit.xml,
gate.json.`,
		Example: `  benchrun run my.toml --build base=./benchrun-old --build head=./benchrun
  benchrun gate results/runs/20260102T030405Z-my-1a2b3c4d --confirm 8
  benchrun gate --self-test
  benchrun gate RUN --accept                   # RUN becomes the baseline of its workloads`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.gate(c.Context(), c, args, &f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.baseline, "baseline", "", "compare with the run in the folder `RUN`")
	fl.StringVar(&f.baselines, "baselines", acceptedRuns, "`DIR` of accepted baselines")
	fl.StringVar(&f.thresholds, "thresholds", "", "`FILE` of thresholds; default: "+filepath.Join(baselines, "thresholds.toml")+", if it is there")
	fl.Var(&f.offset, "offset", "what two runs of different times may differ by for no reason, `\"10 %\"` by default")
	fl.StringVar(&f.out, "out", "", "render into `DIR` instead of the run folder")
	fl.IntVar(&f.confirm, "confirm", 0, "run `N` more blocks of the cells that alarm before they count")
	fl.StringVar(&f.runs, "runs", "results/runs", "with --self-test: `DIR` for its run folders")
	fl.Var((*durationValue)(&f.timeout), "timeout", "`TIME` for all trials of --confirm and --self-test")
	fl.BoolVar(&f.selfTest, "self-test", false, "first prove that the gate finds a planted slow-down and passes equal builds")
	fl.BoolVar(&f.accept, "accept", false, "make RUN the baseline of its workloads; nothing is judged")
	fl.BoolVar(&f.force, "force", false, "with --confirm: although a build or the machine is another one")
	fl.BoolVar(&f.json, "json", false, "one JSON document on stdout")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	return c
}

func (a *app) gate(ctx context.Context, c *cobra.Command, args []string, f *gateFlags) error {
	switch {
	case len(args) == 0 && !f.selfTest:
		return fmt.Errorf("gate needs a run folder, or --self-test\nSee: %s --help", c.CommandPath())
	case f.confirm < 0:
		return fmt.Errorf("--confirm %d: give a number of blocks", f.confirm)
	case f.accept && (f.selfTest || f.confirm > 0 || f.baseline != "" || f.json):
		return errors.New("--accept judges nothing; it goes without --self-test, --confirm, --baseline and --json")
	case len(args) == 0 && (f.baseline != "" || f.accept || f.out != "" || f.json):
		return errors.New("--baseline, --accept, --out and --json are about a run: name its folder")
	case c.Flags().Changed("runs") && !f.selfTest:
		return errors.New("--runs goes with --self-test")
	case f.force && f.confirm == 0:
		return errors.New("--force goes with --confirm")
	case f.timeout > 0 && f.confirm == 0 && !f.selfTest:
		return errors.New("--timeout goes with --confirm or --self-test; judging alone takes no time")
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, trial.ErrRunTimeout)
		defer cancel()
	}
	if f.selfTest {
		if err := a.selfTest(ctx, f); err != nil || len(args) == 0 {
			return err
		}
	}
	l, err := a.loadRun(args[0])
	if err != nil {
		return err
	}
	if f.accept {
		return a.accept(l, f.baselines)
	}
	d, err := a.decide(ctx, l, f)
	if err != nil {
		return err
	}
	return a.tell(d, l.Dir, f)
}

// tell prints a decision and renders its pages. The verdict does not depend on
// whether they can be written, unless somebody asked for them.
func (a *app) tell(d *verdict.Decision, dir string, f *gateFlags) error {
	if f.json {
		if err := a.document(d); err != nil {
			return err
		}
	} else if err := writeDecision(a.stdout, d, false); err != nil {
		return err
	}
	out := f.out
	if out == "" {
		out = dir
	}
	switch err := page.RenderDecision(out, d); {
	case err != nil && f.out != "":
		return exit(result.Worse(d.Exit, result.ExitFailed), err)
	case err != nil:
		fmt.Fprintf(a.stderr, "warning: no pages of the decision: %v\n", err)
	case !f.json:
		fmt.Fprintf(a.stdout, "page: %s\n", relative(filepath.Join(out, "gate.html")))
	}
	if !f.json {
		fmt.Fprintf(a.stdout, "gate: %s (exit code %d)\n", d.Outcome, d.Exit)
	}
	if d.Exit != result.ExitOK {
		return exit(d.Exit, nil)
	}
	return nil
}

// decide judges a run; with --confirm what alarms is run again first.
func (a *app) decide(ctx context.Context, l *result.Loaded, f *gateFlags) (*verdict.Decision, error) {
	limits, err := thresholds(f.thresholds)
	if err != nil {
		return nil, err
	}
	base, err := comparand(l, f.baseline, f.baselines)
	if err != nil {
		return nil, err
	}
	rules := verdict.Rules{Thresholds: limits, Offset: float64(f.offset)}
	if f.confirm == 0 {
		return a.asItStands(l, base, rules), nil
	}
	if base != nil {
		return nil, errors.New("--confirm runs both sides again, so it needs a run with two builds (run --build base=... --build head=...)")
	}
	return a.confirm(ctx, l, rules, f)
}

// carryOut runs a campaign on the way to a decision, with progress on stderr,
// and renders its report.
func (a *app) carryOut(ctx context.Context, campaign *trial.Campaign, quiet bool) error {
	campaign.Env = a.childEnv
	watch := a.reporter(&runFlags{quiet: quiet}, campaign)
	campaign.Watch = watch
	watch.start()
	err := campaign.Execute(ctx)
	if a.render != nil {
		if rerr := a.render(campaign.Folder.Dir()); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, trial.ErrInterrupted) || errors.Is(err, context.Canceled):
		return exit(result.ExitInterrupted, fmt.Errorf("%w; what was measured is in %s", err, relative(campaign.Folder.Dir())))
	case errors.Is(err, trial.ErrProtocol):
		return exit(result.ExitBaseline, err)
	}
	return exit(result.ExitFailed, err)
}

// accept makes a run the baseline of its workloads and says what it replaces.
func (a *app) accept(l *result.Loaded, dir string) error {
	var before []string
	for _, w := range l.Run.Workloads {
		old, err := result.LoadBaseline(dir, w.Name)
		switch {
		case errors.Is(err, result.ErrNoBaseline):
			before = append(before, fmt.Sprintf("%s: the first baseline", w.Name))
		case err != nil:
			before = append(before, fmt.Sprintf("%s: replaces one that cannot be read: %v", w.Name, err))
		default:
			before = append(before, fmt.Sprintf("%s: replaces %s of revision %s", w.Name, old.Run.Run, old.Run.Tool.Revision))
		}
	}
	names, err := result.SaveBaseline(dir, l)
	if errors.Is(err, result.ErrBaselineRefused) {
		return exit(result.ExitUsage, err)
	}
	if err != nil {
		return exit(result.ExitFailed, err)
	}
	fmt.Fprintln(a.stdout, strings.Join(before, "\n"))
	for _, n := range names {
		fmt.Fprintf(a.stdout, "baseline: %s\n", filepath.Join(dir, n))
	}
	return nil
}
