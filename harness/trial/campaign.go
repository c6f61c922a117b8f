package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/probe"
	"benchrun/harness/result"
	"benchrun/workloads/spec"
)

// ErrRunTimeout is the cause when the time of a whole run is over.
var ErrRunTimeout = errors.New("the run's --timeout passed")

// ErrInterrupted is the cause when a person stops a run.
var ErrInterrupted = errors.New("interrupted")

// ErrBudget means that not even one cell fits into the time of a run.
var ErrBudget = errors.New("the budget is too small")

// Campaign runs trials of a plan one after the other, in a run folder.
type Campaign struct {
	Folder  *result.Folder
	Run     *result.Run           // run.json; kept up to date
	Files   map[string]*spec.File // by workload
	Exe     map[string]string     // build -> executable
	Args    []string              // of the child; empty: "trial"
	Env     []string              // of the child; empty: this process's
	Slots   []result.Slot         // to run now, in order
	Before  int                   // largest number of a trial that the folder holds already
	Keep    bool
	Timeout time.Duration // of all slots together; 0: none
	// Budget is the time for all slots together, 0: none. Once the warm-ups have
	// shown what a trial takes, the cells that do not fit leave the plan.
	Budget time.Duration
	Watch  Watcher // may be nil
	Sweep  Sweeper // nil: what trials that were killed leave outside of the run's folder stays

	walls map[result.Slot]time.Duration // of trials so far, without block
}

// Watcher is told how a campaign goes on. It is called from one goroutine at a
// time and must not block.
type Watcher interface {
	Begin(s result.Slot, trial string, n, of int) // n from 1
	Phase(step string)
	End(t *result.Trial)
	LeftOut(cells []result.LeftOut, of int) // that the budget has no room for
}

// Execute runs the slots. A slot that ctx or the run's time cuts off gets an
// interrupted line; those after it get none. The error is that cause, one that
// wraps ErrProtocol, or that of a file of the run folder.
func (c *Campaign) Execute(ctx context.Context) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, ErrRunTimeout)
		defer cancel()
	}
	c.Run.State, c.Run.Ended = result.Running, nil
	if err := c.Folder.WriteRun(c.Run); err != nil {
		return err
	}
	err := c.all(ctx)
	loaded, lerr := result.Load(c.Folder.Dir())
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	c.Run.State = result.Interrupted
	if len(loaded.Missing) == 0 {
		c.Run.State = result.Complete
	}
	ended := time.Now().UTC()
	c.Run.Ended = &ended
	return errors.Join(err, c.Folder.WriteRun(c.Run))
}

func (c *Campaign) all(ctx context.Context) error {
	runner := &Runner{Folder: c.Folder, Keep: c.Keep}
	began, fitted := time.Now(), c.Budget == 0
	var host *result.HostProbe // after the trial before
	for i := 0; i < len(c.Slots); i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !fitted && !c.Slots[i].Warmup {
			fitted = true
			if err := c.fit(i, c.Budget-time.Since(began)); err != nil {
				return err
			}
		}
		s := c.Slots[i]
		n := c.Before + i + 1
		task, err := c.task(s, n)
		if err != nil {
			return err
		}
		runner.Notify = func(m Message) { c.notify(s, m) }
		if c.Watch != nil {
			c.Watch.Begin(s, task.Request.Trial, i+1, len(c.Slots))
		}
		if host == nil {
			host = probe.Quick()
		}
		t, err := runner.Run(ctx, task)
		if err != nil {
			return err
		}
		t.HostBefore, t.HostAfter = host, probe.Quick()
		host = t.HostAfter
		if err := c.Folder.AppendTrial(t); err != nil {
			return err
		}
		if c.Watch != nil {
			c.Watch.End(t)
		}
		c.keepTime(s, t)
		if err := c.learn(s.Build, t); err != nil {
			return err
		}
	}
	return nil
}

// keepTime remembers what a trial took.
func (c *Campaign) keepTime(s result.Slot, t *result.Trial) {
	if c.walls == nil {
		c.walls = map[result.Slot]time.Duration{}
	}
	key := result.Slot{Workload: s.Workload, Cell: s.Cell}
	c.walls[key] = max(c.walls[key], time.Duration(t.WallS*float64(time.Second)))
}

// fit makes the slots from the i-th on fit into the time that is left, and
// writes down what is left out.
func (c *Campaign) fit(i int, left time.Duration) error {
	cost := func(s result.Slot) time.Duration {
		if d, ok := c.walls[result.Slot{Workload: s.Workload, Cell: s.Cell}]; ok {
			return d
		}
		if f := c.Files[s.Workload]; f != nil {
			if w, err := f.Resolve(s.Cell); err == nil {
				return plan.TrialTime(w)
			}
		}
		return 0
	}
	kept, out, err := plan.Fit(c.Run.Plan.Cells, c.Slots[i:], cost, left)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBudget, err)
	}
	if len(out) == 0 {
		return nil
	}
	c.Slots = append(c.Slots[:i:i], kept...)
	c.Run.Plan.Order, c.Run.Plan.Trials, c.Run.Plan.LeftOut = c.Slots, len(c.Slots), out
	if c.Watch != nil {
		c.Watch.LeftOut(out, len(c.Slots))
	}
	return c.Folder.WriteRun(c.Run)
}

func (c *Campaign) task(s result.Slot, n int) (Task, error) {
	f := c.Files[s.Workload]
	if f == nil {
		return Task{}, fmt.Errorf("the plan names the workload %s, which is not loaded", s.Workload)
	}
	w, err := f.Resolve(s.Cell)
	if err != nil {
		return Task{}, err
	}
	id := fmt.Sprintf("%04d-%s", n, s.Workload)
	job := submission(c.Run.Run, id)
	sweep := func() error {
		if c.Sweep == nil {
			return nil
		}
		return c.Sweep(private(w, id, job), job)
	}
	return Task{
		Sweep: sweep,
		Exe:   c.Exe[s.Build], Args: c.Args, Env: c.Env, Timeout: w.Run.TrialTimeout,
		Workload: s.Workload, Flags: w.Cell.Flags, Target: w.Cluster.Target,
		Request: Request{
			Trial: id, Submission: job, File: f.Path, Dir: f.Dir, Text: string(f.Text), Overrides: f.Overrides,
			Cell: s.Cell, Build: s.Build, Block: s.Block, Warmup: s.Warmup, Order: n, Keep: c.Keep,
			FromScratch: c.Run.Settings.FromScratch,
			DelaysUs:    c.Run.Builds[s.Build].DelaysUs,
		},
	}, nil
}

// notify passes phases on. It runs on the goroutine that reads the child.
func (c *Campaign) notify(s result.Slot, m Message) {
	if m.Phase != "" && c.Watch != nil {
		c.Watch.Phase(m.Phase)
	}
	if m.Hello != nil && m.Hello.Target != "" && c.Run.Targets[m.Hello.Target] == "" {
		c.Run.Targets[m.Hello.Target] = m.Hello.Version
	}
}

// learn keeps in run.json what only a child knows: its revision, and the
// target's version.
func (c *Campaign) learn(build string, t *result.Trial) error {
	b := c.Run.Builds[build]
	if b.Revision != "" || t.Revision == "" {
		return nil
	}
	b.Revision = t.Revision
	c.Run.Builds[build] = b
	return c.Folder.WriteRun(c.Run)
}
