package page

import (
	"fmt"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

func ptr(v float64) *float64 { return &v }

// judged is a metric of a cell with a ratio and a half-width of its interval.
func judged(workload, cell string, v verdict.Verdict, ratio, half, base float64) verdict.Judged {
	why := map[verdict.Verdict]string{
		verdict.Slower:       "the interval excludes no change and the median is beyond the threshold of ±10 %",
		verdict.Faster:       "the interval excludes no change and the median is beyond the threshold of ±10 %",
		verdict.Same:         "the whole interval lies inside ±10 %",
		verdict.Inconclusive: "the interval includes no change and reaches beyond ±10 %",
	}[v]
	return verdict.Judged{
		Workload: workload, Cell: cell, Metric: "time_to_first_checkpoint_s", Unit: "s", Better: result.Lower, N: 8, Planned: 8,
		BaseMedian: ptr(base), HeadMedian: ptr(base * ratio), Ratio: ptr(ratio), CILow: ptr(ratio / (1 + half)), CIHigh: ptr(ratio * (1 + half)), Level: 0.9875,
		Shift: ptr(ratio * 1.01), P: ptr(0.0078), Noise: ptr(half), Threshold: verdict.Threshold{Band: verdict.Band{Relative: 0.10, Absolute: 2e-6}, Source: "results/baselines/thresholds.toml:12"},
		Verdict: v, Why: why,
	}
}

// slowed is a gate that found one slow-down of three cells.
func slowed() *verdict.Decision {
	d := &verdict.Decision{
		Schema: 1, Run: "20260304T050607Z-quickstart-0a1b2c3d", Mode: verdict.Interleaved, Base: "base", Head: "head", Exit: result.ExitRegression, Outcome: "slower",
		Judged: []verdict.Judged{
			judged("quickstart", "R=false,D=false", verdict.Same, 1.01, 0.03, 2.1),
			judged("quickstart", "R=true,D=false", verdict.Inconclusive, 1.08, 0.14, 1.7),
			judged("quickstart", "R=true,D=true", verdict.Slower, 1.22, 0.05, 0.13),
			judged("chain", "default", verdict.Faster, 0.7, 0.05, 4),
		},
		Reasons:  []string{"quickstart, R+D, first checkpoint: slower"},
		Warnings: []string{"the machine was busy during 2 of 64 trials"},
	}
	a := judged("quickstart", "R=true,D=true", verdict.Slower, 1.3, 0.05, 0.03)
	a.Metric = "time_to_running_s"
	d.Advisory = []verdict.Judged{a}
	d.Controls = &verdict.Controls{Pairs: 1, Cells: []verdict.Judged{judged("quickstart", "D=true", verdict.Same, 1.0, 0.04, 2)}}
	return d
}

// tenNights have one slow-down, in the seventh.
func tenNights() *verdict.Trend {
	t := &verdict.Trend{Schema: 1}
	s := verdict.Series{Workload: "quickstart", Cell: "R=true,D=true", Metric: "time_to_first_checkpoint_s", Unit: "ratio", Better: "lower"}
	for i := range 10 {
		n := verdict.Night{Run: fmt.Sprintf("202603%02dT020000Z-nightly-%08x", i+1, i), Date: time.Date(2026, 3, i+1, 2, 0, 0, 0, time.UTC), Revision: fmt.Sprintf("%x%033x", 0xabc1230+i*0x1101, i), Reference: "v1.0", Machine: "Some CPU, 8 cores"}
		if i == 3 {
			n.Note = "kernel 6.1 → 6.2"
		}
		t.Nights = append(t.Nights, n)
		v := 1 + 0.01*float64(i%3)
		if i >= 6 {
			v += 0.2
		}
		s.Points = append(s.Points, verdict.Point{Night: i, Value: v, Low: ptr(v * 0.96), High: ptr(v * 1.05), N: 8})
	}
	s.Changes = []verdict.Change{{Night: 6, Date: t.Nights[6].Date, Before: 1.01, After: 1.21, Size: 0.198, P: 0.002, Verdict: verdict.Slower, From: t.Nights[5].Revision, To: t.Nights[6].Revision}}
	t.Series = []verdict.Series{s}
	return t
}
