package verdict

import (
	"fmt"
	"strings"
	"testing"

	"benchrun/harness/result"
)

// A cell that the run's budget left out of the plan has no verdict and costs
// no exit code; that it is missing is said.
//
// Fails if Decide judges columns without a planned trial.
func TestLeftOutCellsAreNotJudged(t *testing.T) {
	run := func(name string, builds ...string) *result.Loaded {
		l := &result.Loaded{Run: result.Run{Schema: 1, Run: name, Builds: map[string]result.Build{}, BaseBuild: builds[0], Machine: result.Machine{CPUModel: "m", Cores: 2, MemoryBytes: 1 << 30},
			Workloads: []result.Workload{{Name: "w", Primary: "time_to_running_s", SHA256: "x", Text: "x"}}}}
		for _, b := range builds {
			l.Run.Builds[b] = result.Build{SHA256: b}
		}
		for _, cell := range []string{"a", "b"} {
			l.Run.Plan.Cells = append(l.Run.Plan.Cells, result.Cell{Workload: "w", Cell: cell})
			for block := range 9 {
				if block > 0 && cell == "b" {
					break // its warm-up ran before it was left out
				}
				for _, b := range builds {
					s := result.Slot{Workload: "w", Cell: cell, Build: b, Block: block, Warmup: block == 0}
					l.Run.Plan.Order = append(l.Run.Plan.Order, s)
					l.Trials = append(l.Trials, result.Trial{Trial: fmt.Sprint(len(l.Trials)), Workload: "w", Cell: cell, Build: b, Block: block, Warmup: s.Warmup, Outcome: result.OK,
						Metrics: map[string]float64{"time_to_running_s": 1 + 0.001*float64(block)}})
				}
			}
		}
		return l
	}
	check := func(name string, d *Decision) {
		if len(d.Judged) != 1 || d.Judged[0].Cell != "a" || d.Exit != result.ExitOK {
			t.Errorf("%s: judged %+v, exit %d: %q", name, d.Judged, d.Exit, d.Reasons)
		}
		if !strings.Contains(strings.Join(d.Warnings, "\n"), "w b: left out") {
			t.Errorf("%s: warnings %q", name, d.Warnings)
		}
	}
	check("two builds", Decide(run("r", "base", "head"), nil, Rules{}))
	base := run("before", "this")
	check("two runs", Decide(run("r", "this"), func(string) *result.Loaded { return base }, Rules{}))
}
