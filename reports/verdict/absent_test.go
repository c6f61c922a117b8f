package verdict

import (
	"testing"

	"benchrun/harness/result"
)

// A primary metric that no trial of a cell has fails the gate, whatever the trials say of
// it; that one trial says why it has none does not, whether the workload names its
// primary metric or not.
//
// Fails if a reason excuses all trials of a cell, if the gate asks only where the workload
// expects the metric or only where it does not, or if it does not look for the reason.
func TestPrimaryAbsentWithAReason(t *testing.T) {
	one := func(block int) bool { return block == 3 }
	every := func(int) bool { return true }
	for name, c := range map[string]struct {
		lacks    func(block int) bool // trials of the head in D=true
		why      bool
		expected []string
		want     result.Exit
	}{
		"all, named":            {every, true, []string{primary}, result.ExitFailed},
		"all, by default":       {every, true, nil, result.ExitFailed},
		"one, named":            {one, true, []string{primary}, result.ExitOK},
		"one, by default":       {one, true, nil, result.ExitOK},
		"no reason, named":      {one, false, []string{primary}, result.ExitFailed},
		"no reason, by default": {one, false, nil, result.ExitFailed},
	} {
		run := lab{blocks: 12, value: times(1)}.run()
		run.Run.Workloads[0].Expected = c.expected
		for i := range run.Trials {
			x := &run.Trials[i]
			if x.Build != "head" || x.Cell != "D=true" || !c.lacks(x.Block) {
				continue
			}
			x.Metrics = map[string]float64{"detect_s": 1}
			if c.why {
				x.Absent = map[string]string{primary: "no task was left to run"}
			}
		}
		if d := Decide(run, nil, Rules{}); d.Exit != c.want || (c.want == result.ExitFailed) != (d.Outcome == "failed") {
			t.Errorf("%s: exit %d, %q", name, d.Exit, d.Reasons)
		}
	}
}
