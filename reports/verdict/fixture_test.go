package verdict

import (
	"fmt"
	"testing"
	"time"

	"benchrun/harness/result"
)

const primary = "time_to_first_checkpoint_s"

// lab makes runs by hand: every block holds each cell once a build.
type lab struct {
	name      string
	cells     []string
	builds    []string // base first; one: no base build
	blocks    int
	more      map[string]int // further blocks of a cell
	workloads []string       // empty: w
	metric    string         // empty: primary
	inert     [][]string
	// value of a trial; an outcome that is not ok has none, an empty one is missing.
	value func(cell, build string, block int) (float64, result.Outcome)
}

func (l lab) run() *result.Loaded {
	if l.name == "" {
		l.name = "r"
	}
	if len(l.builds) == 0 {
		l.builds = []string{"base", "head"}
	}
	if len(l.cells) == 0 {
		l.cells = []string{"D=false", "D=true"}
	}
	if len(l.workloads) == 0 {
		l.workloads = []string{"w"}
	}
	if l.metric == "" {
		l.metric = primary
	}
	out := &result.Loaded{Run: result.Run{
		Schema: result.Schema, Run: l.name, State: result.Complete, Seed: 42, Builds: map[string]result.Build{},
		Machine: result.Machine{Hostname: "lab", CPUModel: "cpu", Cores: 2, MemoryBytes: 8 << 30, Kernel: "6.12.1"},
		Started: time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC),
	}}
	r := &out.Run
	if len(l.builds) > 1 {
		r.BaseBuild = l.builds[0]
	}
	for _, b := range l.builds {
		r.Builds[b] = result.Build{Path: "/" + b, SHA256: "hash of " + b, Revision: "rev-" + b}
	}
	for _, w := range l.workloads {
		r.Workloads = append(r.Workloads, result.Workload{Name: w, Primary: l.metric, SHA256: "hash", Text: "name = \"" + w + "\"\n", Inert: l.inert})
		for _, c := range l.cells {
			r.Plan.Cells = append(r.Plan.Cells, result.Cell{Workload: w, Cell: c})
		}
	}
	for _, w := range l.workloads {
		for _, c := range l.cells {
			for b := range l.blocks + l.more[c] {
				for _, build := range l.builds {
					s := result.Slot{Workload: w, Cell: c, Build: build, Block: b}
					r.Plan.Order = append(r.Plan.Order, s)
					v, outcome := l.value(c, build, b)
					if outcome == "" {
						out.Missing = append(out.Missing, s)
						continue
					}
					t := result.Trial{Trial: fmt.Sprintf("t%d", len(out.Trials)), Workload: w, Cell: c, Build: build, Block: b, Outcome: outcome}
					if outcome == result.OK {
						t.Metrics = map[string]float64{l.metric: v}
					} else {
						t.Reason, t.Phase = "because", "rescale"
					}
					out.Trials = append(out.Trials, t)
				}
			}
		}
	}
	r.Plan.Trials = len(r.Plan.Order)
	return out
}

// jitter is a small spread that is the same for every run.
func jitter(block int) float64 { return 1 + 0.01*float64(block%5-2) }

// times gives the head build another factor than the base build.
func times(factor float64) func(cell, build string, block int) (float64, result.Outcome) {
	return func(_, build string, block int) (float64, result.Outcome) {
		if build == "head" {
			return factor * jitter(block+2), result.OK
		}
		return jitter(block), result.OK
	}
}

func verdictOf(t *testing.T, d *Decision, cell string) Judged {
	t.Helper()
	for _, j := range d.Judged {
		if j.Cell == cell {
			return j
		}
	}
	t.Fatalf("%s is not judged: %+v", cell, d)
	return Judged{}
}
