package trial

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"benchrun/harness/plan"
	"benchrun/harness/probe"
	"benchrun/harness/result"
	"benchrun/workloads/spec"
)

// Resume continues a run.
type Resume struct {
	Dir         string
	Self        string // this executable
	Force       bool   // although the executable or the machine is another one
	RetryFailed bool   // also trials that failed, timed out or were misconfigured
	Sweep       Sweeper
}

// Begin opens the run folder and makes the campaign of what is missing.
func (r Resume) Begin() (*Campaign, error) {
	c, loaded, err := reopen(r.Dir, r.Self, r.Force, r.Sweep)
	if err != nil {
		return nil, err
	}
	c.Slots = r.slots(loaded)
	return c, nil
}

// Extend adds blocks to cells of a run that has been measured, so that a second
// look rests on more than the first. A run has one second look: where it was
// begun, Extend goes on with it, and Cells and Blocks are those it began with.
type Extend struct {
	Dir    string
	Self   string // this executable
	Cells  []result.Cell
	Blocks int
	Force  bool // although an executable or the machine is another one
	Sweep  Sweeper
}

// Begin opens the run folder and makes the campaign of the new blocks. The
// plan of the run grows by them when the campaign is executed.
func (x Extend) Begin() (*Campaign, error) {
	c, loaded, err := reopen(x.Dir, x.Self, x.Force, x.Sweep)
	if err != nil {
		return nil, err
	}
	first, second := loaded.MissingByLook()
	if len(first) > 0 {
		c.Folder.Close()
		return nil, fmt.Errorf("%w: %d planned trials are missing; go on with the run first: benchrun run --resume %s", ErrRefused, len(first), x.Dir)
	}
	if c.Run.Plan.SecondLook != nil {
		c.Slots = second
		return c, nil
	}
	c.Run.Plan.SecondLook = &result.SecondLook{From: len(c.Run.Plan.Order), Blocks: x.Blocks}
	c.Slots = plan.More(c.Run, x.Cells, func(workload string) uint64 { return c.Files[workload].Run.Seed }, x.Blocks)
	c.Run.Plan.Order = append(c.Run.Plan.Order, c.Slots...)
	c.Run.Plan.Trials = len(c.Run.Plan.Order)
	return c, nil
}

// reopen opens the folder of a run with all that its trials need. The campaign
// has no slots yet. The run is read under its lock: before, another process may
// be writing it.
func reopen(dir, self string, force bool, sinks Sweeper) (*Campaign, *result.Loaded, error) {
	folder, err := result.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	c, loaded, err := reread(folder, self, force, sinks)
	if err != nil {
		folder.Close()
		return nil, nil, err
	}
	return c, loaded, nil
}

func reread(folder *result.Folder, self string, force bool, sinks Sweeper) (*Campaign, *result.Loaded, error) {
	loaded, err := result.Load(folder.Dir())
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	run := &loaded.Run
	exes := map[string]string{}
	for name, b := range run.Builds {
		path := b.Path
		if name == plan.DefaultBuild && run.BaseBuild == "" {
			path = self
		}
		sum, err := HashFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: build %s: %w", ErrRefused, name, err)
		}
		if sum != b.SHA256 && !force {
			return nil, nil, fmt.Errorf("%w: the build %s (%s) is another binary than the one that began the run; its trials would not be comparable. --force runs them all the same", ErrRefused, name, path)
		}
		exes[name] = path
	}
	if why, same := probe.Same(run.Machine, probe.Machine()); !same && !force {
		return nil, nil, fmt.Errorf("%w: the run began on another machine (%s). --force runs the rest here all the same", ErrRefused, why)
	}
	files := map[string]*spec.File{}
	for _, w := range run.Workloads {
		f, err := spec.Parse(w.File, w.Dir, []byte(w.Text), Overrides(run.Settings, run.Overrides))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: the workload %s as the run began with it: %w", ErrRefused, w.Name, err)
		}
		files[w.Name] = f
	}
	if err := sweep(folder, loaded, files, sinks); err != nil {
		return nil, nil, err
	}
	last, err := lastNumber(folder, loaded)
	if err != nil {
		return nil, nil, err
	}
	return &Campaign{Folder: folder, Run: run, Files: files, Exe: exes, Before: last, Sweep: sinks}, loaded, nil
}

// lastNumber finds the largest number that a trial of the run has had, whether
// or not its line can be read: a new trial must not take the files of an old one.
func lastNumber(folder *result.Folder, l *result.Loaded) (int, error) {
	last := 0
	see := func(id string) {
		digits, _, _ := strings.Cut(id, "-")
		if n, err := strconv.ParseUint(digits, 10, 31); err == nil {
			last = max(last, int(n))
		}
	}
	for _, t := range l.Lines {
		see(t.Trial)
	}
	for _, u := range l.Unusable {
		see(u.Trial)
	}
	for _, sub := range []string{"events", "logs"} {
		entries, err := os.ReadDir(folder.Path(sub))
		if err != nil {
			return 0, fmt.Errorf("files of earlier trials: %w", err)
		}
		for _, e := range entries {
			see(e.Name())
		}
	}
	return last, nil
}

// slots lists what is to run, in the order of the plan.
func (r Resume) slots(l *result.Loaded) []result.Slot {
	want := map[result.Slot]bool{}
	for _, s := range l.Missing {
		want[s] = true
	}
	if r.RetryFailed {
		for _, t := range l.Trials {
			switch t.Outcome {
			case result.Failed, result.Timeout, result.Misconfigured:
				want[t.Key()] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(l.Run.Plan.Order), func(s result.Slot) bool { return !want[s] })
}
