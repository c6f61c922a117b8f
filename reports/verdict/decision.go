package verdict

import (
	"slices"
	"strings"

	"benchrun/harness/result"
)

// Threshold is a band with the place that it came from.
type Threshold struct {
	Band
	Source string `json:"source"` // "results/baselines/thresholds.toml:12", "default"
}

// Thresholds finds the threshold of a metric of a workload.
type Thresholds func(workload, metric string) Threshold

// Modes of a decision.
const (
	Interleaved = "interleaved" // two builds, block by block, in one run
	Sequential  = "sequential"  // two runs of different times
)

// Rules are how a gate judges.
type Rules struct {
	Thresholds Thresholds // nil: DefaultBand everywhere
	Screen     bool       // the first of two looks: lenient, its alarms are run again
	Confirmed  bool       // the second look: old and new blocks of what alarmed, pooled
	Offset     float64    // between runs of different times, 0.1: ten percent; 0: DefaultOffset
	// Alarmed are the cells that the first look alarmed on, for the second to clear.
	Alarmed []result.Cell
}

// DefaultOffset is what may lie between two runs of different times without
// the program having changed.
const DefaultOffset = 0.10

// Decision is what a gate or a comparison found: the document of
// `benchrun gate --json` and of `benchrun compare --json`.
type Decision struct {
	Schema   int         `json:"schema"`
	Run      string      `json:"run"`
	Baseline string      `json:"baseline,omitempty"` // run; absent in a run with two builds
	Mode     string      `json:"mode"`
	Base     string      `json:"base"` // build, or run
	Head     string      `json:"head"`
	Exit     result.Exit `json:"exit"`
	Outcome  string      `json:"outcome"`            // of the exit code, in a word
	Judged   []Judged    `json:"judged"`             // primary metrics, in the order of the plan
	Advisory []Judged    `json:"advisory"`           // the others
	Reasons  []string    `json:"reasons"`            // of the exit code, in words
	Warnings []string    `json:"warnings,omitempty"` // that change no exit code
	Controls *Controls   `json:"controls,omitempty"`
}

// Judged is one metric of one cell, head against base.
type Judged struct {
	Workload   string        `json:"workload"`
	Cell       string        `json:"cell"`            // with more than two builds cell@build
	Build      string        `json:"build,omitempty"` // of the head
	Metric     string        `json:"metric"`
	Unit       string        `json:"unit"`
	Better     result.Better `json:"better"`
	N          int           `json:"n"`       // pairs; sequential: the smaller number of samples
	Planned    int           `json:"planned"` // pairs
	BaseFailed int           `json:"base_failed"`
	HeadFailed int           `json:"head_failed"`
	BaseMedian *float64      `json:"base_median,omitempty"`
	HeadMedian *float64      `json:"head_median,omitempty"`
	Ratio      *float64      `json:"ratio,omitempty"` // head to base
	CILow      *float64      `json:"ci_low,omitempty"`
	CIHigh     *float64      `json:"ci_high,omitempty"`
	Level      float64       `json:"level"` // of the interval, after the correction for the number of cells; for same it is SameLevel
	// Second opinions. The verdict rests on the interval, and in cells whose
	// noise is beyond all measure on the sign-flip test as well.
	Shift     *float64 `json:"hodges_lehmann,omitempty"` // ratio
	ShiftLow  *float64 `json:"hodges_lehmann_low,omitempty"`
	ShiftHigh *float64 `json:"hodges_lehmann_high,omitempty"`
	P         *float64 `json:"p_sign_flip,omitempty"` // two-sided
	// MannWhitney and Delta are of two runs of different times: the two-sided p,
	// and Cliff's delta, 1 if every sample of the head is larger.
	MannWhitney *float64  `json:"p_mann_whitney,omitempty"`
	Delta       *float64  `json:"cliffs_delta,omitempty"`
	Noise       *float64  `json:"noise,omitempty"` // smallest relative change that this many pairs can show
	Threshold   Threshold `json:"threshold"`
	Verdict     Verdict   `json:"verdict"`
	Alarm       bool      `json:"alarm,omitempty"`   // of a screen: to be run again
	Cleared     bool      `json:"cleared,omitempty"` // alarmed at the first look, not after the second
	Why         string    `json:"why"`               // in words and numbers

	plain bool // few pairs leave no doubt
}

// Controls are the pairs of cells that cannot differ by their options: what
// they show is the false-alarm rate of the night.
type Controls struct {
	Pairs  int      `json:"pairs"`
	Alarms int      `json:"alarms"`
	Cells  []Judged `json:"cells"`
}

// Alarmed lists the workload and cell of what a screen wants to be run again.
func (d *Decision) Alarmed() []result.Cell {
	var out []result.Cell
	for _, j := range d.Judged {
		if j.Alarm {
			c := result.Cell{Workload: j.Workload, Cell: j.cell()}
			if !slices.ContainsFunc(out, func(o result.Cell) bool { return o.Workload == c.Workload && o.Cell == c.Cell }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// cell is the cell as the plan names it.
func (j *Judged) cell() string { return strings.TrimSuffix(j.Cell, "@"+j.Build) }
