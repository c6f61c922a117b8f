package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/reports/chart"
)

// twoFaults is a run of a batch job, with job recovery and without, undisturbed or with
// a worker lost and the master right after it. known are the metrics of the first of the
// two, detected whether somebody noticed the second; change changes disturbed trials.
func twoFaults(t *testing.T, known map[string]float64, detected bool, change ...func(*result.Trial)) *workloadView {
	t.Helper()
	l := &result.Loaded{Dir: t.TempDir(), Run: result.Run{
		Schema: 1, Run: "r", State: result.Complete, Builds: map[string]result.Build{"this": {SHA256: "h"}},
		Workloads: []result.Workload{{Name: "w", Primary: "makespan_s", Mode: "batch", ScenarioAxes: []string{"repeat"}}},
	}}
	for _, j := range []bool{false, true} {
		for _, repeat := range []float64{0, 1} {
			c := result.Cell{Workload: "w", Cell: fmt.Sprintf("J=%t,repeat=%v", j, repeat), Flags: map[string]any{"J": j, "repeat": repeat}}
			x := result.Trial{
				Trial: c.Cell, Workload: "w", Cell: c.Cell, Flags: c.Flags, Build: "this", Outcome: result.OK,
				Metrics: map[string]float64{"makespan_s": 4, "wasted_bytes": 0}, Correctness: &result.Correctness{Expected: 1, Received: 1},
			}
			if repeat == 1 {
				kill := result.Fault{Name: "kill", Kind: "kill-jobmanager", T0Us: 2_001_000, RecoveryPath: result.RecoveryFull, Metrics: map[string]float64{
					"control_recovery_s": 0.75, "recovery_schedule_s": 0.25, "time_to_parity_s": 2, "reexecuted_fraction": 1, "avoidable_reexecuted_fraction": 1,
				}}
				if x.Metrics["makespan_s"] = 8; j {
					x.Metrics["makespan_s"], kill.RecoveryPath, kill.Metrics["avoidable_reexecuted_fraction"] = 6, result.RecoveryEventLog, 0
				}
				if detected {
					kill.Metrics["detect_s"], kill.Metrics["recovery_elect_s"] = 0.125, 0.375
				}
				x.Faults = []result.Fault{{Name: "lose", Kind: "kill-worker", T0Us: 2_000_000, Metrics: known}, kill}
				for k, v := range known {
					x.Metrics[k] = v
				}
				for _, c := range change {
					c(&x)
				}
			}
			l.Run.Plan.Cells = append(l.Run.Plan.Cells, c)
			l.Run.Plan.Order = append(l.Run.Plan.Order, result.Slot{Workload: "w", Cell: c.Cell, Build: "this"})
			l.Trials = append(l.Trials, x)
		}
	}
	v, _, err := newView(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Workloads[0]
}

// text is a table as plain lines: the group's name and note, or label and cells.
func (t *table) text() (lines []string) {
	for _, r := range t.Rows {
		words := []string{r.Group, r.Note}
		if r.Group == "" {
			words = []string{r.Label}
			for _, c := range r.Cells {
				words = append(words, c.Text)
			}
		}
		lines = append(lines, strings.Join(words, " | "))
	}
	return lines
}

// What is of the whole trial is not shown as if the first of two faults had caused it,
// and what one fault cost is not shown under the other. Where the second came before
// anything was known of the first, the page says so.
//
// Fails if the rows of the first fault have the makespan, or if a fault of which
// nothing is known has rows.
func TestTwoFaultsOfABatchJob(t *testing.T) {
	silent := "lose | kill-worker; nothing could be measured before the next fault or the end"
	whole := []string{
		"whole trial | from submission to the end of the job",
		"no J, no fault | 1 of 1 | 4.00 |  |  |  |  | – | ✓ proved", "no J, fault | 1 of 1 | 8.00 |  |  |  |  | – | ✓ proved",
		"J, no fault | 1 of 1 | 4.00 |  |  |  |  | ×1.00 | ✓ proved", "J, fault | 1 of 1 | 6.00 |  |  |  |  | ×0.75 | ✓ proved",
	}
	kill := []string{
		"kill | kill-jobmanager; metrics kill.*",
		"no J, fault | 1 of 1 |  | 0.750 | 2.00 | 100 % | full |  | ✓ proved", "J, fault | 1 of 1 |  | 0.750 | 2.00 | 0 % | event-log |  | ✓ proved",
	}
	w := twoFaults(t, nil, true)
	if want := slices.Concat(whole, []string{silent}, kill); !slices.Equal(w.Results.text(), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.Results.text(), "\n"), strings.Join(want, "\n"))
	}
	w = twoFaults(t, map[string]float64{"time_to_parity_s": 0.5}, true)
	lose := []string{
		"lose | kill-worker",
		"no J, fault | 1 of 1 |  | – | 0.500 | – | – |  | ✓ proved", "J, fault | 1 of 1 |  | – | 0.500 | – | – |  | ✓ proved",
	}
	if want := slices.Concat(whole, lose, kill); !slices.Equal(w.Results.text(), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.Results.text(), "\n"), strings.Join(want, "\n"))
	}
}

// How long nobody led is said where somebody noticed the loss, and else left out.
//
// Fails if what is not known is taken for no time.
func TestOutageThatNobodyNoticed(t *testing.T) {
	for detected, want := range map[bool]string{
		true:  "With job recovery the next master had a task running 0.75 s after the loss, of which nobody led for 0.50 s; nothing was done again whose output was still there.",
		false: "With job recovery the next master had a task running 0.75 s after the loss; nothing was done again whose output was still there.",
	} {
		if w := twoFaults(t, nil, detected); !slices.Contains(w.Headline, want) {
			t.Errorf("%q", w.Headline)
		}
	}
}

// A new master tells the ends of tasks again that had finished before: their work is
// there once.
//
// Fails if each end counts.
func TestUsefulWorkThatIsToldAgain(t *testing.T) {
	var events []result.Event
	add := func(ms int64, kind, state string, subtask int, records int64) {
		events = append(events, result.Event{TUs: 1000 * ms, Kind: kind, Vertex: "a", Subtask: subtask, State: state, Records: records})
	}
	add(0, "job-state", "RUNNING", 0, -1)
	for i := range 2 {
		add(1, "task-state", "DEPLOYING", i, -1)
	}
	add(100, "task-state", "FINISHED", 0, 50)
	add(110, "fault", "kill-jobmanager", 0, -1)
	add(200, "task-state", "FINISHED", 0, 50)
	add(300, "task-state", "FINISHED", 1, 50)
	p, _ := progress(newStory(&result.Trial{Outcome: result.OK}, events))
	var shares []float64
	for _, s := range p.Steps {
		shares = append(shares, s.Share)
	}
	if !slices.Equal(shares, []float64{0.5, 1}) {
		t.Errorf("shares %v", shares)
	}
}

// The second of two masters is lost before a task runs: nobody leads from the first
// loss on, and the page says of which of the two it has the times.
//
// Fails if an outage that was never over is none, or if what another fault made tasks do
// again is said of the loss of a master.
func TestMasterLostTwice(t *testing.T) {
	w := twoFaults(t, nil, true, func(x *result.Trial) {
		x.Faults[0].Kind, x.Faults[0].Name = result.KillMaster, "first"
		x.Faults = append(x.Faults, result.Fault{Name: "lose", Kind: "kill-worker", T0Us: 4_000_000, Metrics: map[string]float64{"avoidable_reexecuted_fraction": 0.5}})
	})
	for _, want := range []string{
		"With job recovery the next master had a task running 0.75 s after its predecessor was lost (kill), of which nobody led for 0.50 s; nothing was done again whose output was still there.",
		"After the loss of the master (step first) another fault came before a task ran.",
	} {
		if !slices.Contains(w.Headline, want) {
			t.Errorf("%q is not in %q", want, w.Headline)
		}
	}
	p, _ := progress(newStory(&w.columns[3].Trials[0], []result.Event{{TUs: 500_000, Kind: "job-state", State: "RUNNING"}}))
	if want := []chart.Outage{{From: 1.5, To: 1.501}, {From: 1.501, To: 2.251}}; !slices.Equal(p.Outages, want) {
		t.Errorf("outages %v", p.Outages)
	}
}
