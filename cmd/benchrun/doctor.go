package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"benchrun/harness/probe"
	"benchrun/harness/result"

	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	var out string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "is this machine fit to measure on?",
		Long: `Looks at the machine for some seconds: CPU, memory, loopback, fsync, clock, load,
limits, and the noise between equal pieces of work, which no comparison of trials
can beat. Each line is ok, a notice or bad, with the figure, what would be good and
what to do. The exit code is 0 unless no trial could run at all (4).`,
		Example: "  benchrun doctor\n  benchrun doctor --json --out /data/runs",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			d := probe.Diagnose(probe.Examine(out))
			if asJSON {
				if err := a.document(d); err != nil {
					return err
				}
			} else if err := a.printDiagnosis(d); err != nil {
				return err
			}
			if !d.Possible {
				return exit(result.ExitFailed, errors.New("no trial could run here"))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	c.Flags().StringVar(&out, "out", filepath.Join("results", "runs"), "folder where results will go")
	return c
}

func (a *app) printDiagnosis(d *probe.Diagnosis) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	counts := map[probe.Status]int{}
	for _, f := range d.Findings {
		counts[f.Status]++
		limit := ""
		if f.Status != probe.StatusOK && f.Limit != "" {
			limit = " (good: " + f.Limit + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s\n", f.Status, f.Check, f.Value, limit)
		if f.Advice != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", f.Advice)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	word := "fit to measure on"
	switch {
	case !d.Possible:
		word = "not fit: no trial could run"
	case !d.Fit:
		word = "not fit to measure on: results will be noisy or wrong"
	case counts[probe.StatusNotice] > 0:
		word = "fit to measure on, with " + count(counts[probe.StatusNotice], "notice")
	}
	_, err := fmt.Fprintf(a.stdout, "this machine is %s\n", word)
	return err
}
