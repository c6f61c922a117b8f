package page

import (
	"fmt"
	"slices"
	"testing"

	"benchrun/harness/result"
)

// lostMasters is a workload of two cells, without and with J, whose master dies so
// many times; nothing of the scenario is an axis.
func lostMasters(t *testing.T, times int) *workloadView {
	t.Helper()
	l := &result.Loaded{Dir: t.TempDir(), Run: result.Run{
		Schema: 1, Run: "r", State: result.Complete, Builds: map[string]result.Build{"this": {SHA256: "h"}},
		Workloads: []result.Workload{{Name: "w", Primary: "makespan_s", Mode: "batch"}},
	}}
	for _, j := range []bool{false, true} {
		c := result.Cell{Workload: "w", Cell: fmt.Sprintf("J=%t", j), Flags: map[string]any{"J": j}}
		l.Run.Plan.Cells = append(l.Run.Plan.Cells, c)
		l.Run.Plan.Order = append(l.Run.Plan.Order, result.Slot{Workload: "w", Cell: c.Cell, Build: "this"})
		makespan := map[bool]float64{false: 8, true: 4}[j]
		x := result.Trial{Trial: c.Cell, Workload: "w", Cell: c.Cell, Flags: c.Flags, Build: "this", Outcome: result.OK, Metrics: map[string]float64{"makespan_s": makespan}}
		for k := range times {
			x.Faults = append(x.Faults, result.Fault{Name: fmt.Sprintf("kill-%d", k+1), Kind: result.KillMaster, Metrics: map[string]float64{
				"control_recovery_s": 0.5, "reexecuted_fraction": 1.25, "avoidable_reexecuted_fraction": 1.25,
			}})
		}
		l.Trials = append(l.Trials, x)
	}
	v, _, err := newView(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Workloads[0]
}

// How often a master was lost is said, and a cell is not called after a fault that
// every cell has.
//
// Fails if the losses of a trial are counted once, or if cells are told from
// undisturbed ones that there are not.
func TestMastersLostSeveralTimes(t *testing.T) {
	for times, want := range map[int]string{
		1: "After the loss of the master the job took 4.0 s with job recovery (J) and 8.0 s without: 50 % less.",
		3: "After three losses of the master the job took 4.0 s with job recovery (J) and 8.0 s without: 50 % less.",
		9: "After 9 losses of the master the job took 4.0 s with job recovery (J) and 8.0 s without: 50 % less.",
	} {
		w := lostMasters(t, times)
		if w.Headline[0] != want {
			t.Errorf("%d: %q", times, w.Headline[0])
		}
		if labels := []string{"no J", "J"}; !slices.Equal(w.labels, labels) {
			t.Errorf("%d: labels %q", times, w.labels)
		}
	}
}
