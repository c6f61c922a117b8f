package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"benchrun/harness/result"
	"benchrun/harness/trial"
	"benchrun/runtime/options"
	"benchrun/workloads/catalog"
	"benchrun/workloads/spec"

	"github.com/spf13/cobra"
)

// app is one invocation with all that it touches, so that a test can stand in
// for the outside.
type app struct {
	args     []string
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	self     string   // path of this executable
	childEnv []string // of trial processes; nil: the same
	targets  trial.Targets
	render   func(dir string) error // nil: no reports
	judge    judge                  // decides for gate and compare
	terminal bool                   // stderr is one
}

// codedError carries the exit code of a command.
type codedError struct {
	code result.Exit
	err  error // nil: everything was said
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func exit(code result.Exit, err error) error { return &codedError{code, err} }

// main runs the command and returns the exit code.
func (a *app) main(ctx context.Context) result.Exit {
	err := a.execute(ctx)
	if err == nil {
		return result.ExitOK
	}
	code := result.ExitUsage // what cobra finds is usage
	var coded *codedError
	if errors.As(err, &coded) {
		code = coded.code
		if coded.err == nil {
			return code
		}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) {
		code = result.ExitFailed // no matter of usage
	}
	var problems spec.Problems
	if errors.As(err, &problems) {
		printProblems(a.stderr, problems)
		return code
	}
	fmt.Fprintf(a.stderr, "benchrun: %v\n", err)
	return code
}

func (a *app) execute(ctx context.Context) error {
	root := a.root()
	root.SetArgs(a.args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root.ExecuteContext(ctx)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "benchrun",
		Short: "measures how fast stream and batch jobs recover, for every combination of the recovery options",
		Long: `benchrun runs a job, disturbs it, and measures the way back, for every combination
of the options that a workload file names. Of a streaming job with large in-flight
state: how long until it runs again, holds a safe checkpoint, and is through with
the restored data. Of a batch job that loses workers, output or its master: what
runs again, how long nobody led it, and what being safe from that costs.
Every trial runs in a process of its own and proves its output.

  0 ok   1 regression or broken threshold   2 usage or configuration   3 inconclusive
  4 a trial failed   5 baseline missing or not comparable   6 wrong output   130 interrupted`,
		Example: `  benchrun init > my.toml
  benchrun validate my.toml
  benchrun run my.toml
  benchrun init batch > batch.toml             # a batch job that loses its master`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.runCommand(), a.validateCommand(), a.planCommand(), a.listCommand(), a.reportCommand(), a.initCommand(),
		a.doctorCommand(), a.explainCommand(), a.exportCommand(), a.schemaCommand(), a.versionCommand(), a.completionCommand(), a.trialCommand(), a.compareCommand(), a.gateCommand(), a.trendCommand())
	root.AddCommand(a.nodeCommands()...)
	return root
}

// selection are the flags that choose and change workloads.
type selection struct {
	sets     []string
	only     string
	settings result.Settings
	repeats  int
	warmup   int
	seed     uint64
	builds   []string
}

func (s *selection) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&s.sets, "set", nil, "set a key of the file: `KEY=VALUE`, by its path (repeatable)")
	f.StringVar(&s.only, "only", "", "run only what all terms of `EXPR` choose: cell:GLOB tag:GLOB workload:GLOB, !… negates")
	f.IntVar(&s.repeats, "repeats", 0, "measured blocks, instead of the file's")
	f.IntVar(&s.warmup, "warmup", 0, "warm-up blocks, instead of the file's")
	f.Uint64Var(&s.seed, "seed", 0, "seed, instead of the file's")
	f.StringVar(&s.settings.Target, "target", "", "what executes the job: embedded, or process (master and workers as processes)")
	f.BoolVar(&s.settings.Quick, "quick", false, "one block, no warm-up")
	f.BoolVar(&s.settings.FromScratch, "from-scratch", false, "batch: a new master that cannot read the job's log wipes it and begins the job anew, instead of failing with the place")
	f.StringArrayVar(&s.builds, "build", nil, "run each cell with the executable `NAME=PATH`, too (repeatable)")
}

// read fills the settings in from the flags that were given.
func (s *selection) read(c *cobra.Command) error {
	s.settings.Only = s.only
	if c.Flags().Changed("repeats") {
		s.settings.Repeats = &s.repeats
	}
	if c.Flags().Changed("warmup") {
		s.settings.Warmup = &s.warmup
	}
	if c.Flags().Changed("seed") {
		s.settings.Seed = &s.seed
	}
	return nil
}

func (s *selection) buildList() ([]trial.Build, error) {
	var out []trial.Build
	for _, b := range s.builds {
		name, path, ok := strings.Cut(b, "=")
		if !ok || name == "" || path == "" || strings.ContainsAny(name, "@/, ") {
			return nil, fmt.Errorf("--build %q: write NAME=PATH; a name has no @ / , or space", b)
		}
		out = append(out, trial.Build{Name: name, Path: path})
	}
	return out, nil
}

// load reads files and folders. The error is a spec.Problems with those of all
// files, or about a path.
func (a *app) load(paths, overrides []string) ([]*spec.File, error) {
	names, err := spec.Find(paths)
	if err != nil {
		return nil, err
	}
	var files []*spec.File
	var problems spec.Problems
	for _, name := range names {
		f, err := loadFile(name, overrides)
		var ps spec.Problems
		switch {
		case errors.As(err, &ps):
			problems = append(problems, ps...)
		case err != nil:
			return nil, err
		default:
			files = append(files, f)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return files, nil
}

// loadFile reads one file, and checks what only the catalogue knows of its jobs.
func loadFile(name string, overrides []string) (*spec.File, error) {
	f, err := spec.Load(name, overrides)
	if err != nil {
		return nil, err
	}
	problems, warnings, err := catalog.CheckRecovery(f)
	if err == nil {
		var memory spec.Problems
		memory, err = catalog.CheckMemory(f)
		problems = append(memory, problems...)
	}
	if err == nil && len(problems) > 0 {
		err = problems
	}
	f.Warnings = append(f.Warnings, warnings...)
	return f, err
}

func printProblems(w io.Writer, ps spec.Problems) {
	for i := range ps {
		fmt.Fprint(w, ps[i].Text())
	}
	word := "problems"
	if len(ps) == 1 {
		word = "problem"
	}
	fmt.Fprintf(w, "%d %s\n", len(ps), word)
}

func printWarnings(w io.Writer, files []*spec.File) {
	for _, f := range files {
		for i := range f.Warnings {
			fmt.Fprint(w, "warning: "+f.Warnings[i].Text())
		}
	}
}

// document prints one JSON document.
func (a *app) document(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", b)
	return err
}

// needs gives a usage error that says what is missing.
func needs(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s\nSee: %s --help", c.CommandPath(), what, c.CommandPath())
		}
		return nil
	}
}

// nearest is a hint for a word that is none of a list.
func nearest(word string, list []string) string {
	if n := options.Nearest(word, list); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return "; there are " + strings.Join(list, ", ")
}
