package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/storage"
)

// What can be done to a cluster of processes and its job.

// Rescale implements Running.
func (c *Processes) Rescale(ctx context.Context, parallelism map[string]int, struck func(time.Duration)) error {
	if err := c.streamingOnly(); err != nil {
		return err
	}
	return c.strike(ctx, control.Rescale{Parallelism: parallelism}, struck)
}

// FailTask implements Running.
func (c *Processes) FailTask(ctx context.Context, vertex string, subtask int, reason string, struck func(time.Duration)) error {
	return c.strike(ctx, control.FailSubtask{Vertex: vertex, Subtask: subtask, Reason: reason}, struck)
}

// strike has the master act; it says when it did.
func (c *Processes) strike(ctx context.Context, what any, struck func(time.Duration)) error {
	t, err := c.askLeader(ctx, what)
	if t.At >= 0 {
		struck(t.At)
	}
	return err
}

func (c *Processes) victim(i int) (*process, error) {
	live, loads := c.loads(false)
	return victim(live, func(k int) int { return loads[k].Tasks }, i)
}

// KillWorker implements Running: kill -9.
func (c *Processes) KillWorker(i int, replaceAfter time.Duration, struck func()) error {
	p, err := c.victim(i)
	if err != nil {
		return err
	}
	if !c.workers.claim(p) {
		return fmt.Errorf("%s is being killed already, or has ended", p.name)
	}
	p.bequeath(replaceAfter >= 0)
	if replaceAfter >= 0 {
		c.folders.keep(p.dir)
	}
	struck()
	p.kill()
	c.say("kill -9 of %s (process %d)", p.name, p.cmd.Process.Pid)
	c.workers.leave(p, p.lastLoad())
	if replaceAfter < 0 {
		return nil
	}
	c.later.do(replaceAfter, func() {
		<-p.exited // its folder is the new one's
		if _, err := c.startWorker(p.dir); err != nil {
			c.say("%v", err)
			c.end(fmt.Errorf("no worker after kill-worker: %w", err))
		}
	})
	return nil
}

// FreezeWorker implements Running: SIGSTOP, and SIGCONT when the time is over.
func (c *Processes) FreezeWorker(i int, d time.Duration, struck func()) error {
	p, err := c.victim(i)
	if err != nil {
		return err
	}
	struck()
	if err := p.freeze(true); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	c.say("SIGSTOP to %s (process %d) for %v", p.name, p.cmd.Process.Pid, d)
	c.later.do(d, func() {
		if err := p.freeze(false); err != nil {
			c.say("freeze-worker: %s goes on: %v", p.name, err)
		}
	})
	return nil
}

// KillMaster kills the master with kill -9 and starts another one on the same
// state folder after a time.
func (c *Processes) KillMaster(downFor time.Duration, struck func()) error {
	c.mu.Lock()
	p, _ := c.seat.now()
	leads := p != nil
	if leads {
		c.seat.leave(p)
	} else {
		p = c.mu.master
	}
	c.mu.Unlock()
	if p.over() {
		return fmt.Errorf("there is no master to kill: %s is dead", p.name)
	}
	if c.cfg.Batch && leads { // else it has recorded nothing
		c.lastFigures(p)
	}
	struck()
	p.kill()
	c.say("kill -9 of %s (process %d)", p.name, p.cmd.Process.Pid)
	c.later.do(downFor, func() {
		if _, err := c.startMaster(); err != nil {
			c.end(fmt.Errorf("no master after kill-jobmanager: %w", err))
		}
	})
	return nil
}

// say writes a line for a person.
func (c *Processes) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%8.3f s  %s\n", c.cfg.Timeline.Now().Seconds(), fmt.Sprintf(format, args...))
}

// FailStorage implements Running: every process, and each that starts in the
// meantime, sees the fault.
func (c *Processes) FailStorage(kind string, d time.Duration) error {
	if err := c.streamingOnly(); err != nil {
		return err
	}
	if _, err := storage.ParseFaultKind(kind); err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.fault, c.mu.faultEnd = kind, time.Now().Add(d)
	c.mu.Unlock()
	all := c.workers.all()
	if leader, _ := c.seat.now(); leader != nil {
		all = append(all, leader)
	}
	for _, p := range all {
		p.say(control.BreakStorage{Kind: kind, For: d})
	}
	return nil
}

// Savepoint implements Running.
func (c *Processes) Savepoint(ctx context.Context, stop bool) (string, error) {
	if err := c.streamingOnly(); err != nil {
		return "", err
	}
	t, err := c.askLeader(ctx, control.TakeSavepoint{Stop: stop})
	return t.Path, err
}

// StopSources implements Running. It holds for masters to come, too.
func (c *Processes) StopSources(ctx context.Context) error {
	if c.cfg.Batch {
		return nil // they end by themselves
	}
	c.mu.Lock()
	c.mu.draining = true
	p, _ := c.seat.now()
	c.mu.Unlock()
	if p == nil {
		return nil // the next one is told
	}
	_, err := p.ask(ctx, control.EndSources{})
	return err
}

// Cancel implements Running.
func (c *Processes) Cancel(ctx context.Context) error {
	_, err := c.askLeader(ctx, control.CancelJob{})
	return err
}

// Options implements Running.
func (c *Processes) Options() map[string]any {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	t, err := c.askLeader(ctx, control.GetOptions{})
	if err != nil {
		c.say("options of the running tasks: %v", err)
		return nil
	}
	o, _ := t.Data.(control.Options)
	return o.Options
}

// Reports implements Running.
func (c *Processes) Reports(ctx context.Context) ([]control.Report, error) {
	if c.cfg.Batch {
		return control.ReadReports(control.ReportsOf(c.cfg.Dir, c.sub.ID))
	}
	t, err := c.askLeader(ctx, control.GetReports{})
	if err != nil {
		return nil, fmt.Errorf("reports of the operators: %w", err)
	}
	r, _ := t.Data.(control.Reports)
	return r.Reports, nil
}

// loadTimeout bounds a look at counters.
const loadTimeout = 200 * time.Millisecond

// loads asks the live workers for their counters. Of one that does not answer,
// because it is frozen or just dying, those told last count.
func (c *Processes) loads(queued bool) ([]*process, []control.Load) {
	live := c.workers.all()
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	loads := make([]control.Load, len(live))
	var wg sync.WaitGroup
	for i, p := range live {
		if !p.live() {
			loads[i] = p.lastLoad()
			continue
		}
		wg.Go(func() {
			loads[i] = p.lastLoad()
			if t, err := p.ask(ctx, control.GetLoad{Queued: queued}); err == nil {
				if l, ok := t.Data.(control.Load); ok {
					loads[i] = l
					p.remember(l)
				}
			}
		})
	}
	wg.Wait()
	return live, loads
}

// Status implements Running.
func (c *Processes) Status() Status {
	s := c.workers.status()
	leader, _ := c.seat.now()
	leading := make(chan control.Load, 1)
	go func() { leading <- c.leaderLoad(leader) }()
	_, loads := c.loads(true)
	for _, l := range loads {
		s.add(l)
	}
	l := <-leading
	s.Restoring, s.Consumed = l.Restoring && !c.over(), l.Consumed
	return s
}

// leaderLoad asks the leader. What is to be thought while there is none, or it
// does not answer: something may have to be restored, and a batch job is where it
// was.
func (c *Processes) leaderLoad(leader *process) control.Load {
	if leader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		t, err := leader.ask(ctx, control.GetLoad{})
		if l, ok := t.Data.(control.Load); ok && err == nil {
			c.mu.Lock()
			c.mu.consumed = l.Consumed
			c.mu.Unlock()
			return l
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return control.Load{Restoring: true, Consumed: c.mu.consumed}
}
