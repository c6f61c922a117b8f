package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"benchrun/harness/result"
	"benchrun/reports/page"

	"github.com/spf13/cobra"
)

func (a *app) reportCommand() *cobra.Command {
	var index bool
	c := &cobra.Command{
		Use:   "report RUN...",
		Short: "render the report of runs again from their raw samples",
		Long: `Renders HTML, PNG, Markdown and summary.json of run folders again, from run.json,
trials.jsonl and the events. It never measures; the same samples give the same bytes.

With --index the arguments are folders with runs somewhere below them, and each
gets an index.html over what is there.`,
		Example: `  benchrun report results/runs/20260102T030405Z-quickstart-1a2b3c4d
  benchrun report --index results/runs`,
		Args: needs("a run folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				if err := a.report(dir, index); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&index, "index", false, "write an index over the runs below each folder")
	return c
}

func (a *app) report(dir string, index bool) error {
	name := "report.html"
	if index {
		name = "index.html"
		err := page.RenderIndex(dir)
		if errors.Is(err, page.ErrNoRuns) || errors.Is(err, fs.ErrNotExist) {
			return err // another folder was meant
		}
		if err != nil {
			return exit(result.ExitFailed, err)
		}
	} else {
		l, err := a.loadRun(dir)
		if err != nil {
			return err
		}
		for _, gap := range page.Gaps(l) {
			fmt.Fprintf(a.stderr, "warning: %s: %s\n", filepath.Base(dir), gap)
		}
		if a.render == nil {
			return errors.New("this build renders no reports")
		}
		if err := a.render(dir); err != nil {
			return exit(result.ExitFailed, fmt.Errorf("report of %s: %w", dir, err))
		}
	}
	fmt.Fprintf(a.stdout, "report: %s\n", filepath.Join(dir, name))
	return nil
}

// loadRun reads a run folder and prints what is odd about it.
func (a *app) loadRun(dir string) (*result.Loaded, error) {
	l, err := result.Load(dir)
	if err != nil {
		return nil, err
	}
	for _, w := range l.Warnings {
		fmt.Fprintf(a.stderr, "warning: %s: %s\n", filepath.Base(dir), w)
	}
	return l, nil
}
