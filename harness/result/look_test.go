package result

import (
	"slices"
	"strings"
	"testing"
)

// TestLooks: a second look that was cut off is told apart from the first.
//
// Fails if FirstLook keeps the plan, a trial or a hole of the second look, or if
// Again lists a cell of the first look alone.
func TestLooks(t *testing.T) {
	order := []Slot{slot("a", 0), slot("b", 0), slot("a", 1), slot("b", 1), slot("b", 2), slot("b", 3)}
	run := newRun(order...)
	run.State = Interrupted
	run.Plan.SecondLook = &SecondLook{From: 4, Blocks: 2}
	f := create(t, run)
	defer f.Close()
	for i, s := range order[:5] {
		if err := f.AppendTrial(line(string(rune('1'+i)), s, OK, nil)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if first, second := l.MissingByLook(); len(first) != 0 || !slices.Equal(second, order[5:]) {
		t.Errorf("missing %v and %v", first, second)
	}
	if again := l.Run.Plan.Again(); len(again) != 1 || again[0].Cell != "b" {
		t.Errorf("again %v", again)
	}
	cut := l.FirstLook()
	if len(cut.Trials) != 4 || len(cut.Lines) != 4 || len(cut.Missing) != 0 || cut.Run.Plan.Trials != 4 || len(cut.Run.Plan.Order) != 4 || cut.Run.Plan.SecondLook != nil || cut.Run.State != Complete {
		t.Errorf("%+v", cut)
	}
	settled := l.Settled()
	if len(settled.Trials) != 4 || len(settled.Missing) != 0 || len(settled.Warnings) != len(l.Warnings)+1 || !strings.Contains(settled.Warnings[len(l.Warnings)], "1 of its 2 trials are missing") {
		t.Errorf("settled: %d trials, missing %v, warnings %q", len(settled.Trials), settled.Missing, settled.Warnings)
	}
	if settled.Settled() != settled {
		t.Error("what is settled is settled again")
	}
	if code, reasons := cut.Exit(ExitFailed); code != ExitOK {
		t.Errorf("exit %d: %v", code, reasons)
	}
	if len(l.Trials) != 5 || l.Run.Plan.SecondLook == nil || l.Run.Plan.Trials != 6 {
		t.Errorf("the run itself was changed: %+v", l.Run.Plan)
	}
}

// TestSecondLookOutOfPlace: a mark that points out of the plan is a warning.
//
// Fails if checkRun believes it: Again then reads beyond the order.
func TestSecondLookOutOfPlace(t *testing.T) {
	for _, from := range []int{-1, 0, 1, 99} {
		run := newRun(slot("a", 0))
		run.Plan.SecondLook = &SecondLook{From: from, Blocks: 1}
		f := create(t, run)
		l, err := Load(f.Dir())
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if l.Run.Plan.SecondLook != nil || len(l.Run.Plan.Again()) != 0 || l.FirstLook() != l || !strings.Contains(strings.Join(l.Warnings, "\n"), "the second look begins at") {
			t.Errorf("from %d: %+v, warnings %q", from, l.Run.Plan.SecondLook, l.Warnings)
		}
	}
}
