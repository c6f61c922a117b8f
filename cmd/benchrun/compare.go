package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"benchrun/harness/result"
	"benchrun/reports/page"
	"benchrun/reports/verdict"

	"github.com/spf13/cobra"
)

func (a *app) compareCommand() *cobra.Command {
	var thresholdsPath, out string
	var asJSON, markdown, all bool
	var offset percentValue
	c := &cobra.Command{
		Use:   "compare BASE NEW",
		Short: "set two runs against each other, with four verdicts",
		Long: `Compares the cells that two runs have in common, metric by metric: faster, slower,
same (the whole interval lies inside the threshold band) or inconclusive. Runs of
different times do not pair: their interval is widened by what a machine drifts
between two runs. Two builds measured block by block in one run tell much more:
name that run twice, or use gate.

The exit code is 0 when the comparison was made, 5 when the runs are not comparable.`,
		Example: `  benchrun compare results/runs/OLD results/runs/NEW
  benchrun compare OLD NEW --out /tmp/page     # the page with the forest plot`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("compare needs two run folders, BASE and NEW\nSee: %s --help", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := a.compare(args[0], args[1], thresholdsPath, float64(offset))
			if err != nil {
				return err
			}
			if out != "" {
				if err := page.RenderComparison(out, d); err != nil {
					return exit(result.ExitFailed, err)
				}
			}
			switch {
			case asJSON:
				err = a.document(d)
			case markdown:
				_, err = io.WriteString(a.stdout, page.ComparisonMarkdown(d))
			default:
				err = writeDecision(a.stdout, d, all)
			}
			if err == nil && out != "" && !asJSON {
				fmt.Fprintf(a.stderr, "page: %s\n", filepath.Join(out, "gate.html"))
			}
			switch {
			case err != nil:
				return err
			case d.Exit == result.ExitBaseline:
				return exit(result.ExitBaseline, nil)
			case len(d.Judged) == 0: // there was nothing to compare
				return exit(result.ExitFailed, nil)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&thresholdsPath, "thresholds", "", "`FILE` of thresholds; default: "+filepath.Join(baselines, "thresholds.toml")+", if it is there")
	f.Var(&offset, "offset", "what two runs may differ by for no reason, `\"10 %\"` by default")
	f.StringVar(&out, "out", "", "render the page into `DIR`")
	f.BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	f.BoolVar(&markdown, "markdown", false, "Markdown on stdout")
	f.BoolVar(&all, "all", false, "all metrics, also those that did not change")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

func (a *app) compare(base, head, thresholdsPath string, offset float64) (*verdict.Decision, error) {
	limits, err := thresholds(thresholdsPath)
	if err != nil {
		return nil, err
	}
	h, err := a.loadRun(head)
	if err != nil {
		return nil, err
	}
	b, err := a.loadRun(base)
	if err != nil {
		return nil, err
	}
	rules := verdict.Rules{Thresholds: limits, Offset: offset}
	switch {
	case sameFolder(base, head):
		if len(h.Run.Builds) < 2 {
			return nil, errors.New("both are the same run, and it has one build: there is nothing to compare")
		}
		return a.asItStands(h, nil, rules), nil
	case h.Run.Run == b.Run.Run:
		return nil, fmt.Errorf("%w: %s and %s are both %s; one is a copy of the other, or was edited", result.ErrSameRun, base, head, h.Run.Run)
	}
	a.misnamed(thresholdsPath, h)
	return a.judge(h, func(string) *result.Loaded { return b }, rules), nil
}

// sameFolder tells whether two paths are one folder.
func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// writeDecision prints a decision for a person. Metrics that only advise are
// shown where they moved.
func writeDecision(out io.Writer, d *verdict.Decision, all bool) error {
	fmt.Fprintf(out, "%s against %s (%s)\n\n", d.Head, d.Base, d.Mode)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "workload\tcell\tmetric\tbase\thead\tratio\tinterval\tn\tthreshold\tverdict")
	for _, j := range d.Judged {
		writeJudged(t, j)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	advisory := d.Advisory
	if !all {
		advisory = slices.DeleteFunc(slices.Clone(advisory), func(j verdict.Judged) bool {
			return j.Verdict != verdict.Slower && j.Verdict != verdict.Faster
		})
	}
	if len(advisory) > 0 {
		what := "Other metrics that moved"
		if all {
			what = "Other metrics"
		}
		fmt.Fprintf(out, "\n%s (they advise, they do not decide):\n", what)
		t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, j := range advisory {
			writeJudged(t, j)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	writeThresholds(out, d)
	if c := d.Controls; c != nil {
		fmt.Fprintf(out, "A/A controls: %d of %d pairs of cells that cannot differ gave an alarm\n", c.Alarms, c.Pairs)
	}
	for _, w := range d.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
	for _, j := range d.Judged {
		if j.Verdict == verdict.Faster || j.Verdict == verdict.Same && j.Cleared {
			fmt.Fprintf(out, "%s %s %s: %s: %s\n", j.Workload, j.Cell, j.Metric, j.Verdict, j.Why)
		}
	}
	for _, r := range d.Reasons {
		fmt.Fprintln(out, r)
	}
	return nil
}

func writeJudged(t io.Writer, j verdict.Judged) {
	value := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return quantity(j.Metric, *v)
	}
	ratio, interval := "-", "-"
	if j.Ratio != nil {
		ratio = fmt.Sprintf("%.3f", *j.Ratio)
	}
	if j.CILow != nil && j.CIHigh != nil {
		interval = fmt.Sprintf("%.3f .. %.3f (%.4g %%)", *j.CILow, *j.CIHigh, 100*j.Level)
	}
	verdictText := string(j.Verdict)
	switch {
	case j.Alarm:
		verdictText += ", to be confirmed"
	case j.Cleared:
		verdictText += ", cleared"
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n", j.Workload, j.Cell, j.Metric, value(j.BaseMedian), value(j.HeadMedian), ratio, interval, j.N, j.Planned, thresholdText(j), verdictText)
}

func thresholdText(j verdict.Judged) string {
	s := fmt.Sprintf("%.4g %%", 100*j.Threshold.Relative)
	if j.Threshold.Absolute > 1e-5 {
		s += " and " + quantity(j.Metric, j.Threshold.Absolute)
	}
	return s
}

// writeThresholds says where each threshold came from.
func writeThresholds(out io.Writer, d *verdict.Decision) {
	var sources []string
	for _, j := range d.Judged {
		s := fmt.Sprintf("threshold of %s, %s: %s from %s", j.Workload, j.Metric, thresholdText(j), j.Threshold.Source)
		if !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
	}
	if len(sources) > 0 {
		fmt.Fprintln(out, strings.Join(sources, "\n"))
	}
}
