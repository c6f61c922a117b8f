package export

import (
	"encoding/json"
	"fmt"
	"io"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// Document is the JSON form of some runs.
type Document struct {
	Schema int   `json:"schema"`
	Runs   []Run `json:"runs"`
}

// Run is one run of a Document.
type Run struct {
	Run      result.Run        `json:"run"`
	Trials   []result.Trial    `json:"trials"` // the lines that count
	Missing  []result.Slot     `json:"missing"`
	Unusable []result.Unusable `json:"unusable"`
	Summary  *result.Summary   `json:"summary"`
	Warnings []string          `json:"warnings"`
}

// JSON writes one document. Verdicts rest on the thresholds; nil: the default of
// each metric.
func JSON(w io.Writer, runs []*result.Loaded, thresholds verdict.Thresholds) error {
	d := Document{Schema: result.Schema, Runs: []Run{}}
	for _, l := range runs {
		r := Run{Run: l.Run, Trials: l.Trials, Missing: l.Missing, Unusable: l.Unusable, Summary: verdict.SummarizeWith(l, thresholds), Warnings: l.Warnings}
		r.Trials, r.Missing, r.Unusable, r.Warnings = list(r.Trials), list(r.Missing), list(r.Unusable), list(r.Warnings)
		d.Runs = append(d.Runs, r)
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("export as json: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// list makes nothing an empty list, which readers can go through.
func list[T any](x []T) []T {
	if x == nil {
		return []T{}
	}
	return x
}
