package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/runtime/control"
)

// What a cluster of processes does for a batch job.

// Batch implements Running.
func (c *Processes) Batch(ctx context.Context) (*BatchFigures, error) {
	if !c.cfg.Batch {
		return nil, nil
	}
	t, err := c.askLeader(ctx, control.GetLoad{})
	ended := errors.Is(err, errJobEnded) // and its last master was killed
	if err != nil && !ended {
		return nil, fmt.Errorf("figures of the batch job: %w", err)
	}
	load, _ := t.Data.(control.Load)
	c.mu.Lock()
	l := c.mu.past
	c.mu.Unlock()
	l.now(load.Batch)
	l.sum.Ended = l.sum.Ended || ended
	return l.figures(&c.folders), nil
}

// tellForgone tells the master of a batch job, if there is one, whom it need not
// wait for.
func (c *Processes) tellForgone() {
	leader, _ := c.seat.now()
	if leader == nil || !c.cfg.Batch {
		return
	}
	for _, i := range c.folders.forgone() {
		leader.say(control.WorkerGone{Index: i})
	}
}

// lastFigures asks a master that is about to be killed what it has cost.
func (c *Processes) lastFigures(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	t, err := p.ask(ctx, control.GetLoad{})
	l, ok := t.Data.(control.Load)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && ok {
		c.mu.past.died(l.Batch)
	} else {
		c.mu.past.silent()
	}
}

// DropPartition implements Running.
func (c *Processes) DropPartition(ctx context.Context, vertex string, subtask int, struck func(time.Duration)) error {
	if !c.cfg.Batch {
		return errNoPartitions
	}
	return c.strike(ctx, control.DropPartition{Vertex: vertex, Subtask: subtask}, struck)
}

var errNoPartitions = fmt.Errorf("a streaming job has no finished partitions: %w", ErrUnsupported)

// streamingOnly refuses what a batch job has no use for.
func (c *Processes) streamingOnly() error {
	if c.cfg.Batch {
		return errStreaming
	}
	return nil
}
