package main

import (
	"bytes"
	"strings"
	"testing"

	"benchrun/harness/result"
)

// twoFaults is a run of a batch job whose second cell loses a worker, and its master
// before that is known in one of two trials.
func twoFaults() *result.Loaded {
	l := &result.Loaded{}
	l.Run.Builds = map[string]result.Build{"default": {}}
	l.Run.Workloads = []result.Workload{{Name: "job", Mode: "batch", Primary: "makespan_s"}}
	trial := func(cell string, block int, whole map[string]float64, faults ...result.Fault) {
		if block == 0 {
			l.Run.Plan.Cells = append(l.Run.Plan.Cells, result.Cell{Workload: "job", Cell: cell})
		}
		l.Run.Plan.Order = append(l.Run.Plan.Order, result.Slot{Workload: "job", Cell: cell, Build: "default", Block: block})
		t := result.Trial{Workload: "job", Cell: cell, Build: "default", Block: block, Outcome: result.OK, Metrics: whole, Faults: faults}
		if len(faults) > 0 {
			for k, v := range faults[0].Metrics {
				t.Metrics[k] = v
			}
			t.RecoveryPath = faults[0].RecoveryPath
		}
		l.Trials = append(l.Trials, t)
	}
	kill := func(control, parity, avoidable float64) result.Fault {
		return result.Fault{Name: "kill", Kind: "kill-jobmanager", RecoveryPath: result.RecoveryEventLog,
			Metrics: map[string]float64{"control_recovery_s": control, "time_to_parity_s": parity, "avoidable_reexecuted_fraction": avoidable}}
	}
	lose := result.Fault{Name: "lose", Kind: "kill-worker"}
	known := lose
	known.Metrics = map[string]float64{"time_to_parity_s": 9, "reexecuted_fraction": 0.5, "avoidable_reexecuted_fraction": 0.25}
	for block := range 2 {
		trial("repeat=0", block, map[string]float64{"makespan_s": 4})
	}
	trial("repeat=1", 0, map[string]float64{"makespan_s": 5}, lose, kill(1, 2, 0))
	trial("repeat=1", 1, map[string]float64{"makespan_s": 7}, known, kill(3, 4, 0.5))
	return l
}

// A row of the table never mixes faults: what has no step in front belongs to the first
// fault or to the whole trial.
//
// Fails if a metric that the first fault has not is taken from a later one, or the
// recovery path.
func TestTableKeepsFaultsApart(t *testing.T) {
	var b bytes.Buffer
	writeTables(&b, twoFaults())
	want := `job: medians of the trials that are ok, warm-ups left out
cell       ok    makespan   parity    avoidably redone   kill.control recovery   kill.parity   kill.avoidably redone   kill.recovery   output
repeat=0   2/2   4.000 s    -         -                  -                       -             -                       -               unproved
repeat=1   2/2   6.000 s    9.000 s   25 %               2.000 s                 3.000 s       25 %                    event-log       unproved

`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A metric of a later fault that is judged has its column although no trial has it, and
// of many faults the first few are shown.
//
// Fails if the number of columns grows with the scenario.
func TestTableOfManyFaults(t *testing.T) {
	l := twoFaults()
	l.Run.Workloads[0].Primary = "kill.reexecuted_fraction"
	last := &l.Trials[len(l.Trials)-1]
	for _, name := range []string{"kill#2", "kill#3", "kill#4", "kill#5"} {
		f := last.Faults[1]
		f.Name = name
		last.Faults = append(last.Faults, f)
	}
	var b bytes.Buffer
	writeTables(&b, l)
	got := b.String()
	for _, want := range []string{" kill#3.parity ", " kill.reexecuted_fraction ", "\nfaults that come later, see the report: 2 more\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "kill#4") {
		t.Errorf("it has columns of all faults:\n%s", got)
	}
}
