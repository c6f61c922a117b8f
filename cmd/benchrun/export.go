package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/export"
	"benchrun/reports/page"

	"github.com/spf13/cobra"
)

// exportFormats write runs, in the order of the help.
var exportFormats = []struct {
	name  string
	write func(w io.Writer, runs []*result.Loaded) error
}{
	{"json", exportJSON},
	{"csv", export.CSV},
	{"benchfmt", export.Benchfmt},
	{"markdown", exportMarkdown},
	{"junit", exportJUnit},
}

func exportNames() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return names
}

func (a *app) exportCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "export RUN...",
		Short: "write the raw samples of runs for other tools",
		Long: `Writes the raw samples of run folders to stdout:

  json      run, trials and summary in one document
  csv       a line a trial and metric; trials that are not ok have no value
  benchfmt  the Go benchmark format, for benchstat
  markdown  the summary of a run for a pull request
  junit     a run as test cases, for CI; one run`,
		Example: `  benchrun export results/runs/20260102T030405Z-quickstart-1a2b3c4d --format csv > samples.csv
  benchrun export RUN --format benchfmt | benchstat -col /R -`,
		Args: needs("a run folder"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, f := range exportFormats {
				if f.name != format {
					continue
				}
				runs, err := result.LoadAll(args...)
				if err != nil {
					return err
				}
				for _, l := range runs {
					for _, w := range l.Warnings {
						fmt.Fprintf(a.stderr, "warning: %s: %s\n", l.Run.Run, w)
					}
				}
				return f.write(a.stdout, runs)
			}
			return fmt.Errorf("there is no format %q%s", format, nearest(format, exportNames()))
		},
	}
	c.Flags().StringVar(&format, "format", "json", "`FORMAT`: "+strings.Join(exportNames(), ", "))
	return c
}

func exportJSON(w io.Writer, runs []*result.Loaded) error {
	t, err := thresholds("")
	if err != nil {
		return err
	}
	return export.JSON(w, runs, t)
}

func exportMarkdown(w io.Writer, runs []*result.Loaded) error {
	t, err := thresholds("")
	if err != nil {
		return err
	}
	for _, l := range runs {
		text, err := page.Markdown(l, t)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Dir, err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func exportJUnit(w io.Writer, runs []*result.Loaded) error {
	if len(runs) > 1 {
		return errors.New("junit is one document a run: export them one by one")
	}
	t, err := thresholds("")
	if err != nil {
		return err
	}
	b, err := page.JUnit(runs[0], t)
	if err != nil {
		return fmt.Errorf("%s: %w", runs[0].Dir, err)
	}
	_, err = w.Write(b)
	return err
}
