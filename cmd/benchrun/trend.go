package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"benchrun/harness/result"
	"benchrun/reports/page"
	"benchrun/reports/verdict"

	"github.com/spf13/cobra"
)

func (a *app) trendCommand() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "trend RUN|DIR...",
		Short: "nights in order, with the points at which they changed",
		Long: `Puts runs into the order of their dates and follows the primary metric of each cell.
With two builds a night, what is followed is the ratio to the pinned reference
build that ran in the same blocks, so that the machine's drift cancels. A change
point is told with its date, its size and the revisions around it. It advises: the
exit code is 0.

A DIR stands for the run folders in it.`,
		Example: `  benchrun trend results/nightly/history
  benchrun trend results/runs/2026* --out /tmp/trend`,
		Args: needs("a run folder, or a folder of runs"),
		RunE: func(_ *cobra.Command, args []string) error {
			runs, err := a.loadRuns(args)
			if err != nil {
				return err
			}
			t := verdict.Trends(runs)
			if out != "" {
				if err := page.RenderTrend(out, t); err != nil {
					return exit(result.ExitFailed, err)
				}
				fmt.Fprintf(a.stderr, "page: %s\n", filepath.Join(out, "trend.html"))
			}
			if asJSON {
				return a.document(t)
			}
			return writeTrend(a.stdout, t)
		},
	}
	c.Flags().StringVar(&out, "out", "", "render the page into `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

// loadRuns reads run folders, and those in folders of runs. One that was named
// has to be good; one that was found in a folder may be damaged, which is told:
// a night that died must not end the trend of all others.
func (a *app) loadRuns(paths []string) ([]*result.Loaded, error) {
	var runs []*result.Loaded
	for _, p := range paths {
		if isRun(p) {
			l, err := a.loadRun(p)
			if err != nil {
				return nil, err
			}
			runs = append(runs, l)
			continue
		}
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, fmt.Errorf("%s is no run folder: %w", p, err)
		}
		before := len(runs)
		for _, e := range entries { // sorted by name
			dir := filepath.Join(p, e.Name())
			if !isRun(dir) {
				continue
			}
			l, err := a.loadRun(dir)
			if err != nil {
				fmt.Fprintf(a.stderr, "warning: left out: %v\n", err)
				continue
			}
			runs = append(runs, l)
		}
		if len(runs) == before {
			return nil, fmt.Errorf("%s is no run folder, and holds none that can be read", p)
		}
	}
	return runs, nil
}

func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "run.json"))
	return err == nil
}

// writeTrend prints a line a night and series, changes marked.
func writeTrend(out io.Writer, t *verdict.Trend) error {
	for _, s := range t.Series {
		unit := s.Metric
		if s.Unit == "ratio" {
			unit += ", ratio to the reference build"
		}
		fmt.Fprintf(out, "%s %s: %s\n", s.Workload, s.Cell, unit)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, p := range s.Points {
			n := t.Nights[p.Night]
			interval := ""
			if p.Low != nil && p.High != nil {
				interval = fmt.Sprintf("[%.3f .. %.3f]", *p.Low, *p.High)
			}
			mark := n.Note
			for _, c := range s.Changes {
				if c.Night == p.Night {
					mark = fmt.Sprintf("<- %s: %+.0f %%, p = %.2g, from revision %s to %s  %s", c.Verdict, 100*c.Size, c.P, c.From, c.To, mark)
				}
			}
			fmt.Fprintf(w, "  %s\t%s\t%.3f\t%s\tn = %d\t%s\n", n.Date.UTC().Format("2006-01-02 15:04"), n.Revision, p.Value, interval, p.N, mark)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if len(s.Changes) == 0 {
			fmt.Fprintln(out, "  no change point")
		}
		fmt.Fprintln(out)
	}
	for _, w := range t.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	return nil
}
