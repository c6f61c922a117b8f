package verdict

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"benchrun/harness/result"
)

// batchRun is a run of a batch workload: cells J x kill, where kill=0 has no
// fault. makespan gives the time of a trial, 0: it failed.
func batchRun(blocks int, axes []string, makespan func(j bool, kill float64, block int) float64) *result.Loaded {
	out := &result.Loaded{Run: result.Run{
		Schema: result.Schema, Run: "r", State: result.Complete, Seed: 1, Builds: map[string]result.Build{"this": {SHA256: "h"}},
		Workloads: []result.Workload{{Name: "w", Primary: "makespan_s", Mode: "batch", ScenarioAxes: axes}},
	}}
	for _, j := range []bool{false, true} {
		for _, kill := range []float64{0, 0.5} {
			cell := fmt.Sprintf("J=%t,kill=%v", j, kill)
			out.Run.Plan.Cells = append(out.Run.Plan.Cells, result.Cell{Workload: "w", Cell: cell, Flags: map[string]any{"J": j, "kill": kill}})
			for b := range blocks {
				out.Run.Plan.Order = append(out.Run.Plan.Order, result.Slot{Workload: "w", Cell: cell, Build: "this", Block: b})
				t := result.Trial{Trial: fmt.Sprintf("%s-%d", cell, b), Workload: "w", Cell: cell, Build: "this", Block: b, Outcome: result.OK}
				v := makespan(j, kill, b)
				if v == 0 {
					t.Outcome = result.Failed
				} else {
					t.Metrics = map[string]float64{"makespan_s": v}
				}
				if kill > 0 {
					t.Faults = []result.Fault{{Name: "kill", Kind: "kill-jobmanager", Metrics: map[string]float64{"detect_s": 0.5, "recovery_elect_s": 0.5}}}
				}
				out.Trials = append(out.Trials, t)
			}
		}
	}
	return out
}

// Fails if the ratio is the wrong way round, if blocks are not paired, or if the
// outage is held against recovery.
func TestDerived(t *testing.T) {
	// Without fault 10 s and 10.2 s; a kill costs a restart 6 s, recovery 1 s of
	// outage and 2 s of work. Blocks drift, their ratios do not.
	l := batchRun(6, []string{"kill"}, func(j bool, kill float64, block int) float64 {
		d := float64(block)
		switch {
		case kill == 0 && !j:
			return 10 + d
		case kill == 0:
			return (10 + d) * 1.02
		case !j:
			return 16 + d
		}
		return 13 + d
	})
	s := Summarize(l)
	got := s.Workloads["w"].Derived
	want := map[string]map[string]float64{
		"J=true,kill=0":   {"steady_overhead_ratio": 1.02},
		"J=true,kill=0.5": {"recovery_efficiency": 0.6}, // (16-13) of (16-11)
	}
	for cell, metrics := range want {
		for m, v := range metrics {
			if math.Abs(got[cell][m]-v) > 1e-9 {
				t.Errorf("%s: %s = %v, not %v", cell, m, got[cell][m], v)
			}
		}
	}
	if len(got) != 2 || len(got["J=true,kill=0"]) != 1 || len(got["J=true,kill=0.5"]) != 1 {
		t.Errorf("derived %v", got)
	}
	b, err := json.Marshal(s)
	if err != nil || !json.Valid(b) {
		t.Error(err)
	}
}

// What cannot be known is absent: without the other trials of the block, without
// a control that runs the same job, and where a restart took no time.
func TestDerivedIsAbsent(t *testing.T) {
	for name, l := range map[string]*result.Loaded{
		"no block has both": batchRun(4, []string{"kill"}, func(j bool, kill float64, block int) float64 {
			if j == (block%2 == 0) {
				return 0
			}
			return 10
		}),
		"the restart was as quick as can be": batchRun(4, []string{"kill"}, func(j bool, kill float64, block int) float64 {
			if kill == 0 && j {
				return 0
			}
			return 10
		}),
	} {
		if d := Summarize(l).Workloads["w"].Derived; len(d) > 0 {
			t.Errorf("%s: %v", name, d)
		}
	}
	// kill is an option of the job here: no cell without a fault runs the same.
	l := batchRun(4, nil, func(j bool, kill float64, block int) float64 { return 10 + 5*kill })
	if d := Summarize(l).Workloads["w"].Derived; len(d["J=true,kill=0.5"]) > 0 {
		t.Errorf("another job is no control: %v", d)
	}
}

// Fails if the floor does not know how many pairs it is for, or takes a drift of
// the blocks for noise of each.
func TestNoiseFloor(t *testing.T) {
	c := func(values ...float64) *Column {
		c := &Column{}
		for i, v := range values {
			c.Trials = append(c.Trials, result.Trial{Block: i, Outcome: result.OK, Metrics: map[string]float64{"makespan_s": v}})
		}
		return c
	}
	if f, ok := NoiseFloor(c(10, 10, 10, 10, 10), 5); !ok || f != 1 {
		t.Errorf("no noise: %v %t", f, ok)
	}
	noisy := c(10, 10.5, 10, 10.4, 10.1, 10.6, 10, 10.5, 10.2)
	few, _ := NoiseFloor(noisy, 4)
	many, ok := NoiseFloor(noisy, 64)
	if !ok || few <= many || many <= 1 || math.Abs(math.Log(few)/math.Log(many)-4) > 1e-9 {
		t.Errorf("4 pairs %v, 64 pairs %v", few, many)
	}
	if f, ok := NoiseFloor(c(10, 11, 12.1, 13.31), 8); !ok || f > 1.0001 {
		t.Errorf("a steady drift: %v %t", f, ok)
	}
	if _, ok := NoiseFloor(c(10, 11), 8); ok {
		t.Error("one neighbour is no noise")
	}
}

// How long no master led is the sum of what each death of one cost: as the phases say,
// or as the times of the faults do where the next master died, too, before it led.
//
// Fails if what is not known counts as no time.
func TestOutage(t *testing.T) {
	fault := func(kind string, t0 int64, metrics map[string]float64) result.Fault {
		return result.Fault{Kind: kind, T0Us: t0, Metrics: metrics}
	}
	type metrics = map[string]float64
	for name, x := range map[string]struct {
		faults []result.Fault
		want   float64
		known  bool
	}{
		"none":                     {nil, 0, true},
		"a worker":                 {[]result.Fault{fault("kill-worker", 0, nil)}, 0, true},
		"noticed":                  {[]result.Fault{fault("kill-jobmanager", 0, metrics{"detect_s": 0.25, "recovery_elect_s": 0.5})}, 0.75, true},
		"not noticed":              {[]result.Fault{fault("kill-jobmanager", 0, metrics{"control_recovery_s": 2, "recovery_replay_s": 0.25, "recovery_wait_s": 0.5, "recovery_schedule_s": 0.25})}, 1, true},
		"twice":                    {[]result.Fault{fault("kill-jobmanager", 0, metrics{"detect_s": 0.25}), fault("kill-jobmanager", 500_000, metrics{"detect_s": 0.25, "recovery_elect_s": 0.5})}, 1.25, true},
		"a worker before the next": {[]result.Fault{fault("kill-jobmanager", 0, metrics{"detect_s": 0.25}), fault("kill-worker", 500_000, nil)}, 0, false},
		"nobody led any more":      {[]result.Fault{fault("kill-jobmanager", 0, metrics{"detect_s": 0.25})}, 0, false},
	} {
		if got, known := outage(&result.Trial{Faults: x.faults}); got != x.want || known != x.known {
			t.Errorf("%s: %v, %t", name, got, known)
		}
	}
}
