package result

import (
	"strings"
	"testing"
)

// A metric of which a trial says why it is absent does not fail the run, unless it is
// the primary one and no trial of the cell that counts has it.
//
// Fails if Exit does not look for the reason, if a reason excuses a primary metric of
// which there is no sample, if a sample of another cell, of a warm-up or of a trial that
// failed counts, or if the metric of a later fault is not found.
func TestAbsentWithAReason(t *testing.T) {
	const metric, later = "control_recovery_s", "again.control_recovery_s"
	const reason = "no task was left to run"
	// Of a trial: has it, says why not, says nothing.
	const has, why, nothing = "has", "why", "nothing"
	for name, c := range map[string]struct {
		expected, primary string
		a0, b0, a1, b1    string
		spoil             func([]*Trial)
		want              Exit
		reasons           int
	}{
		"all say why":                 {metric, "makespan_s", why, why, why, why, nil, ExitOK, 0},
		"one says nothing":            {metric, "makespan_s", nothing, why, why, why, nil, ExitFailed, 1},
		"primary, all say why":        {metric, metric, why, why, why, why, nil, ExitFailed, 4},
		"primary, one cell lacks it":  {metric, metric, has, why, has, why, nil, ExitFailed, 2},
		"primary, each cell has one":  {metric, metric, has, why, why, has, nil, ExitOK, 0},
		"primary, one says nothing":   {metric, metric, has, nothing, has, has, nil, ExitFailed, 1},
		"primary, in a warm-up":       {metric, metric, has, has, why, has, func(all []*Trial) { all[0].Warmup = true }, ExitFailed, 1},
		"primary, in one that failed": {metric, metric, has, has, why, has, func(all []*Trial) { all[0].Outcome = Failed }, ExitFailed, 2},
		"primary of a later fault": {later, later, why, has, why, has, func(all []*Trial) {
			for _, x := range all {
				x.Faults = []Fault{{Name: "rescale"}, {Name: "again", Metrics: x.Metrics}}
				x.Metrics = nil
				if w, ok := x.Absent[metric]; ok {
					x.Absent = map[string]string{later: w}
				}
			}
		}, ExitFailed, 2},
		"not expected": {"makespan_s", metric, why, why, why, why, func(all []*Trial) {
			for _, x := range all {
				x.Metrics = map[string]float64{"makespan_s": 1}
			}
		}, ExitOK, 0},
	} {
		l := &Loaded{Run: *newRun(slot("a", 0), slot("b", 0), slot("a", 1), slot("b", 1))}
		l.Run.Workloads = []Workload{{Name: "w", Primary: c.primary, Expected: []string{c.expected}}}
		lines := goodLines()
		for i, x := range []string{c.a0, c.b0, c.a1, c.b1} {
			lines[i].Metrics = map[string]float64{}
			switch x {
			case has:
				lines[i].Metrics[metric] = 1
			case why:
				lines[i].Absent = map[string]string{metric: reason}
			}
		}
		if c.spoil != nil {
			c.spoil(lines)
		}
		for _, x := range lines {
			l.Trials = append(l.Trials, *x)
		}
		code, reasons := l.Exit(ExitInterrupted)
		if code != c.want || len(reasons) != c.reasons {
			t.Errorf("%s: %d %q", name, code, reasons)
		}
		if strings.HasPrefix(name, "primary, all") && len(reasons) > 0 && !strings.HasSuffix(reasons[0], ": "+reason) {
			t.Errorf("%s: the reason is not told: %q", name, reasons[0])
		}
	}
}
