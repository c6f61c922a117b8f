package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/target/embedded"
	"benchrun/harness/trial"
	"benchrun/reports/verdict"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/spf13/cobra"
)

// runFlags are the flags of run beside the selection.
type runFlags struct {
	selection
	out       string
	timeout   time.Duration
	budget    time.Duration
	resume    string
	force     bool
	retry     bool
	reference string
	json      bool
	noReport  bool
	keep      bool
	quiet     bool
	baseline  string
}

// durationValue is a flag in the spellings that workload files know.
type durationValue time.Duration

func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return options.FormatDuration(time.Duration(*d))
}

func (d *durationValue) Type() string { return "duration" }

func (d *durationValue) Set(s string) error {
	x, err := options.ParseDuration(s)
	if err == nil && x <= 0 {
		err = errors.New("must be above 0")
	}
	*d = durationValue(x)
	return err
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE|DIR...",
		Short: "run every cell, write a run folder, print a table, render the report",
		Long: `Runs every cell of the workload files in interleaved blocks, each trial in a
process of its own, and writes a run folder. A finished trial is on disk at once:
Ctrl-C keeps what is there, and --resume goes on with the same plan.

The table goes to stdout, progress to stderr; the last line on stdout names the
run folder. Flags beat --set, which beats --quick, which beats the file.`,
		Example: `  benchrun run configs/quickstart.toml
  benchrun run configs/streaming --only 'tag:nightly !cell:*D=true' --repeats 3
  benchrun run my.toml --set workload.vertex.slow.params.cost=1ms --set 'options."execution.checkpointing.interval"=1s'
  benchrun run my.toml --build old=./benchrun-old --build new=./benchrun
  benchrun run --resume results/runs/20260102T030405Z-my-1a2b3c4d`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, args, &f) },
	}
	f.selection.flags(c)
	fl := c.Flags()
	fl.StringVar(&f.out, "out", "results/runs", "`DIR` for the run folder")
	fl.Var((*durationValue)(&f.timeout), "timeout", "`TIME` for the whole run, such as \"10 min\"; what is done by then is kept")
	fl.Var((*durationValue)(&f.budget), "budget", "`TIME` for all trials: cells that do not fit are left out, those named last first")
	fl.StringVar(&f.resume, "resume", "", "go on with the run in the folder `RUN`: missing and interrupted trials")
	fl.BoolVar(&f.force, "force", false, "with --resume: although the executable or the machine is another one")
	fl.BoolVar(&f.retry, "retry-failed", false, "with --resume: also trials that failed or timed out")
	fl.StringVar(&f.reference, "reference", "", "`CELL` that the others are compared with; default: the first")
	fl.BoolVar(&f.json, "json", false, "one JSON event a line on stdout, instead of the table")
	fl.BoolVar(&f.noReport, "no-report", false, "render no report")
	fl.BoolVar(&f.keep, "keep", false, "keep the checkpoints of all trials")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	fl.StringVar(&f.baseline, "baseline", "", "judge the run against the one in the folder `RUN`, as gate does")
	return c
}

func (a *app) run(c *cobra.Command, args []string, f *runFlags) error {
	if err := f.read(c); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that is gone must not end the run
	baseline, err := f.before()
	if err != nil {
		return err
	}
	campaign, err := a.campaign(c, args, f)
	if errors.Is(err, trial.ErrRefused) {
		return exit(result.ExitUsage, err)
	}
	if err != nil {
		return err
	}
	defer campaign.Folder.Close()
	campaign.Keep, campaign.Timeout, campaign.Budget, campaign.Env = f.keep, f.timeout, f.budget, a.childEnv
	out := a.reporter(f, campaign)
	campaign.Watch = out
	out.start()
	err = campaign.Execute(c.Context())
	return a.conclude(f, baseline, campaign, out, err)
}

// campaign makes a new run, or takes up one that was begun.
func (a *app) campaign(c *cobra.Command, args []string, f *runFlags) (*trial.Campaign, error) {
	if f.resume != "" {
		if len(args) > 0 {
			return nil, errors.New("--resume takes no FILE: the workloads are those that the run began with")
		}
		for _, name := range []string{"set", "only", "repeats", "warmup", "seed", "target", "quick", "from-scratch", "build", "reference", "out", "budget"} {
			if c.Flags().Changed(name) {
				return nil, fmt.Errorf("--resume goes on with the plan of the run; --%s cannot change it", name)
			}
		}
		campaign, err := trial.Resume{Dir: f.resume, Self: a.self, Force: f.force, RetryFailed: f.retry, Sweep: embedded.Sweep}.Begin()
		if err == nil {
			a.edited(campaign.Run)
		}
		return campaign, err
	}
	if f.force || f.retry {
		return nil, errors.New("--force and --retry-failed go with --resume")
	}
	if err := needs("a FILE or DIR, or --resume")(c, args); err != nil {
		return nil, err
	}
	p, files, err := a.plan(args, &f.selection)
	if err != nil {
		return nil, err
	}
	printWarnings(a.stderr, files)
	builds, err := f.buildList()
	if err != nil {
		return nil, err
	}
	return trial.Session{
		Out: f.out, Plan: p, Builds: builds, Self: a.self, Command: append([]string{"benchrun"}, a.args...), Sets: f.sets, Settings: f.settings,
		Reference: f.reference, Tool: a.tool(), Sweep: embedded.Sweep,
	}.Begin(time.Now())
}

// edited says which workload files are others by now than those that a run goes
// on with.
func (a *app) edited(r *result.Run) {
	for _, w := range r.Workloads {
		path := filepath.Join(w.Dir, filepath.Base(w.File))
		if sum, err := trial.HashFile(path); err == nil && sum != w.SHA256 {
			fmt.Fprintf(a.stderr, "note: %s was edited since the run began; the run goes on with the text that it began with\n", relative(path))
		}
	}
}

// plan loads files and plans their trials.
func (a *app) plan(paths []string, s *selection) (*plan.Plan, []*spec.File, error) {
	files, err := a.load(paths, trial.Overrides(s.settings, s.sets))
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		s.blame(problems)
	}
	if err != nil {
		return nil, nil, err
	}
	builds, err := s.buildList()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, b := range builds {
		names = append(names, b.Name)
	}
	p, err := plan.New(plan.Input{Files: files, Builds: names, Only: s.only})
	if err == nil && s.settings.FromScratch {
		err = p.CheckScratch()
	}
	return p, files, err
}

// conclude prints what came of a run and finds its exit code.
func (a *app) conclude(f *runFlags, baseline *against, campaign *trial.Campaign, out reporter, err error) error {
	dir := campaign.Folder.Dir()
	loaded, lerr := result.Load(dir)
	if lerr != nil {
		return exit(result.ExitFailed, errors.Join(err, lerr))
	}
	missing := result.ExitInterrupted
	code := result.ExitOK
	switch {
	case err == nil:
	case errors.Is(err, trial.ErrInterrupted) || errors.Is(err, context.Canceled):
		code = result.ExitInterrupted
	case errors.Is(err, trial.ErrProtocol):
		code, missing = result.ExitBaseline, result.ExitOK
	default: // the run's time, or a file that could not be written
		code, missing = result.ExitFailed, result.ExitOK
	}
	lines, reasons := loaded.Exit(missing)
	code = result.Worse(code, lines)
	if err != nil {
		reasons = append(reasons, err.Error())
	}
	limits, terr := loaded.Limits()
	if terr != nil {
		reasons = append(reasons, terr.Error())
		code = result.Worse(code, result.ExitFailed)
	}
	for _, l := range limits {
		switch {
		case l.N == 0 && len(loaded.Missing) == 0:
			code = result.Worse(code, result.ExitFailed)
			reasons = append(reasons, fmt.Sprintf("%s %s: %s: no data", l.Workload, l.Cell, l.Text))
		case l.Broken:
			code = result.Worse(code, result.ExitRegression)
			reasons = append(reasons, fmt.Sprintf("%s %s: %s is broken: %s", l.Workload, l.Cell, l.Text, number(l.Value)))
		}
	}
	code, reasons = a.judgeRun(f, baseline, loaded, out, code, reasons)
	report := ""
	if f.noReport { // summary.json is a result, no report
		t, serr := thresholds("")
		if serr == nil {
			serr = result.WriteJSON(campaign.Folder.Path("summary.json"), verdict.SummarizeWith(loaded, t))
		}
		if serr != nil {
			code = result.Worse(code, result.ExitFailed)
			reasons = append(reasons, fmt.Sprintf("summary.json: %v", serr))
		}
	}
	if !f.noReport && a.render != nil && len(loaded.Trials) > 0 {
		if rerr := a.render(dir); rerr != nil {
			code = result.Worse(code, result.ExitFailed)
			reasons = append(reasons, fmt.Sprintf("report: %v", rerr))
		} else {
			report = campaign.Folder.Path("report.html")
		}
	}
	out.finish(loaded, code, reasons, report)
	if code == result.ExitOK {
		return nil
	}
	return exit(code, nil)
}

// against is what --baseline needs, read before the first trial: a wrong path
// must not be found out at the end.
type against struct {
	limits verdict.Thresholds
	base   *result.Loaded
}

func (f *runFlags) before() (*against, error) {
	if f.baseline == "" {
		return nil, nil
	}
	limits, err := thresholds("")
	if err != nil {
		return nil, err
	}
	base, err := result.Load(f.baseline)
	if err != nil {
		return nil, exit(result.ExitBaseline, fmt.Errorf("the baseline cannot be read: %w", err))
	}
	return &against{limits, base}, nil
}

// judgeRun holds a run against --baseline.
func (a *app) judgeRun(f *runFlags, v *against, l *result.Loaded, out reporter, code result.Exit, reasons []string) (result.Exit, []string) {
	if v == nil || code == result.ExitInterrupted {
		return code, reasons
	}
	d := a.judge(l, func(string) *result.Loaded { return v.base }, verdict.Rules{Thresholds: v.limits})
	if f.json {
		out.(*jsonReporter).send("decision", map[string]any{"decision": d})
	} else if err := writeDecision(a.stdout, d, false); err != nil {
		return result.Worse(code, result.ExitFailed), append(reasons, err.Error())
	}
	return result.Worse(code, d.Exit), append(reasons, fmt.Sprintf("against %s: %s", f.baseline, d.Outcome))
}

// tool is this program, as run.json names it.
func (a *app) tool() result.Tool {
	revision, dirty := a.revision()
	return result.Tool{Version: version, Revision: revision, Dirty: dirty, Go: goVersion()}
}

// relative shortens a path for a person if it lies below the working folder.
func relative(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rest, ok := strings.CutPrefix(path, wd+string(os.PathSeparator)); ok {
		return rest
	}
	return path
}
