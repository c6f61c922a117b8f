package trial

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/workloads/spec"
)

const fakeMatrix = `
[matrix]
"execution.checkpointing.timeout" = ["1 min", "2 min", "3 min"]
`

// begin makes a campaign of three cells and two builds whose trials are played
// by this test binary.
func begin(t *testing.T, warmup, repeats string) *Campaign {
	t.Helper()
	f, err := spec.Parse("fake.toml", "/dir", []byte(fakeHead+quickSteps+fakeMatrix), []string{"run.warmup=" + warmup, "run.repeats=" + repeats})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(plan.Input{Files: []*spec.File{f}, Builds: []string{"base", "head"}})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Session{
		Out: t.TempDir(), Plan: p, Self: exe, Sets: []string{"run.warmup=" + warmup, "run.repeats=" + repeats},
		Builds: []Build{{Name: "base", Path: exe}, {Name: "head", Path: exe, Delays: map[string]time.Duration{"task/restore": 5 * time.Millisecond}}},
	}.Begin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Folder.Close() })
	played(c)
	return c
}

func played(c *Campaign) {
	c.Args, c.Env = []string{"-test.run=^$"}, append(os.Environ(), roleVariable+"=ok")
}

// watch records what a campaign tells.
type watch struct {
	begun []result.Slot
	left  []result.LeftOut
}

func (w *watch) Begin(s result.Slot, _ string, _, _ int)    { w.begun = append(w.begun, s) }
func (w *watch) Phase(string)                               {}
func (w *watch) End(*result.Trial)                          {}
func (w *watch) LeftOut(cells []result.LeftOut, trials int) { w.left = cells }

// Fails if the budget is not counted down, if a warm-up leaves the plan, or if
// run.json keeps the slots that have no room.
func TestBudgetLeavesCellsOut(t *testing.T) {
	c := begin(t, "1", "2")
	w := &watch{}
	c.Watch, c.Budget = w, time.Hour
	// The first cell takes a second a trial, the others an hour.
	c.walls = map[result.Slot]time.Duration{}
	for i, cell := range c.Run.Plan.Cells {
		c.walls[result.Slot{Workload: cell.Workload, Cell: cell.Cell}] = []time.Duration{time.Second, time.Hour, time.Hour}[i]
	}
	if err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := result.Load(c.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Run.Plan.LeftOut) != 2 || !slices.Equal(l.Run.Plan.LeftOut, w.left) {
		t.Errorf("left out %+v, told %+v", l.Run.Plan.LeftOut, w.left)
	}
	if want := 3*2 + 2*2; len(l.Trials) != want || l.Run.Plan.Trials != want || len(l.Run.Plan.Order) != want || l.Run.State != result.Complete || len(l.Missing) != 0 {
		t.Errorf("%d trials, plan %d, state %s, %d missing; want %d", len(l.Trials), l.Run.Plan.Trials, l.Run.State, len(l.Missing), want)
	}
	for _, x := range l.Trials {
		if x.HostBefore == nil || x.HostAfter == nil {
			t.Errorf("trial %s was not put between two looks at the host", x.Trial)
		}
	}
}

func TestBudgetTooSmall(t *testing.T) {
	c := begin(t, "0", "2")
	c.Budget = time.Millisecond
	if err := c.Execute(t.Context()); !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "the cheapest takes about") {
		t.Errorf("error %v", err)
	}
}

// Fails if new blocks are not in run.json before they run, if they share a
// number with old ones, or if a run with holes is extended.
func TestExtend(t *testing.T) {
	c := begin(t, "1", "2")
	if got := c.Run.Builds["head"].DelaysUs["task/restore"]; got != 5000 {
		t.Errorf("run.json says that the planted delay is %d us", got)
	}
	order := slices.Clone(c.Slots)
	c.Slots = order[:4]
	if err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Folder.Close()
	cells := c.Run.Plan.Cells[1:2]
	x := Extend{Dir: c.Folder.Dir(), Cells: cells, Blocks: 3}
	if _, err := x.Begin(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "14 planned trials are missing") {
		t.Fatalf("error %v", err)
	}
	r, err := Resume{Dir: c.Folder.Dir()}.Begin()
	if err != nil {
		t.Fatal(err)
	}
	played(r)
	if err := r.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Folder.Close()
	e, err := x.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Folder.Close()
	played(e)
	w := &watch{}
	e.Watch = w
	if err := e.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := result.Load(e.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(w.begun) != 6 || len(l.Trials) != 18+6 || l.Run.Plan.Trials != 24 || l.Run.State != result.Complete || len(l.Warnings) > 0 {
		t.Errorf("%d trials begun, %d there, %d planned, %s, warnings %q", len(w.begun), len(l.Trials), l.Run.Plan.Trials, l.Run.State, l.Warnings)
	}
	for _, s := range w.begun {
		if s.Cell != cells[0].Cell || s.Block < 3 || s.Block > 5 || s.Warmup {
			t.Errorf("slot %+v", s)
		}
	}
}

// TestExtendGoesOn: a run has one second look, which is gone on with where it
// was cut off.
//
// Fails if Extend refuses a run that misses trials of its second look alone, if
// it adds blocks a second time, or if run.json does not say where the look begins.
func TestExtendGoesOn(t *testing.T) {
	c := begin(t, "0", "1")
	if err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Folder.Close()
	x := Extend{Dir: c.Folder.Dir(), Cells: c.Run.Plan.Cells[:1], Blocks: 2}
	for _, want := range []struct{ missing, lines int }{{4, 7}, {3, 10}, {0, 10}} {
		e, err := x.Begin()
		if err != nil {
			t.Fatal(err)
		}
		played(e)
		if len(e.Slots) != want.missing || e.Run.Plan.Trials != 10 {
			t.Errorf("%d slots to run of %d planned, want %d of 10", len(e.Slots), e.Run.Plan.Trials, want.missing)
		}
		if want.missing == 4 {
			e.Slots = e.Slots[:1]
		}
		err = e.Execute(t.Context())
		e.Folder.Close()
		if err != nil {
			t.Fatal(err)
		}
		l, err := result.Load(e.Folder.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if look := l.Run.Plan.SecondLook; len(l.Lines) != want.lines || look == nil || *look != (result.SecondLook{From: 6, Blocks: 2}) {
			t.Errorf("%d lines, want %d; second look %+v", len(l.Lines), want.lines, look)
		}
		x.Blocks, x.Cells = 5, c.Run.Plan.Cells // of no account now
	}
}

// Fails if a trial goes on although its timeline cannot be written.
func TestFullDiskStopsTheTrial(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	full := func(path string) (*os.File, error) {
		if strings.HasSuffix(path, ".jsonl") {
			path = "/dev/full"
		}
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	}
	_, err := (&Runner{Folder: testFolder(t), Grace: 100 * time.Millisecond, create: full}).Run(t.Context(), testTask("talks-on", "0001-fake", time.Hour))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
}
