package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/worker"
)

// Processes of a batch job.

// batchNode is a process that leads a batch job.
type batchNode struct {
	*node
	lead *leadership
	m    *master.Batch
}

// runBatchMaster takes the job over from its log and runs it until it has to
// leave or another one leads.
func (n *node) runBatchMaster(l *leadership, sub *submission, values options.Values) error {
	if _, err := plant(sub.Delays); err != nil {
		return err
	}
	g, err := chained(sub.Job, values, true)
	if err != nil {
		return err
	}
	if sub.Started == 0 {
		if err := l.check(); err != nil {
			return err
		}
		sub.Started = n.log.Now()
		if err := sub.write(n.State); err != nil {
			return err
		}
	}
	x := &batchNode{node: n, lead: l}
	x.m, err = batchMaster(master.BatchConfig{
		Graph: g, Values: values, Timeline: n.log, Origin: n.log.Origin(), Transport: n.network, Epoch: l.epoch, OutputDir: sub.OutputDir,
		Seed: sub.Seed, FromScratch: sub.FromScratch,
	}, n.State)
	if unread, ok := errors.AsType[*JobLogError](err); ok {
		n.pump.flush()
		n.conn.Send(control.JobEnded{Epoch: l.epoch, Error: unread.Error(), JobLog: true})
		<-n.ctx.Done() // the job has failed with this; the end of the process must not be taken for the reason
	}
	if err != nil {
		return err
	}
	defer x.m.Close()
	n.answers(x.answer)
	if err := l.publish(x.m.Addr()); err != nil {
		return err
	}
	n.conn.Send(control.Leading{Epoch: l.epoch, Addr: x.m.Addr()})
	x.m.Begin(sub.Started, n.Workers, options.HeartbeatTimeout.Get(values))
	return n.watchLeadership(l, x.m.Done(), x.m.Err)
}

func (x *batchNode) answer(what any, tell func(control.Told)) bool {
	at := none
	stamp := func() { at = x.log.Now() }
	switch w := what.(type) {
	case control.GetLoad:
		tell(control.Told{At: none, Data: control.Load{Consumed: x.m.Consumed(), Batch: x.m.Figures()}})
	case control.GetOptions:
		go func() {
			tell(control.Told{At: none, Data: control.Options{Options: x.m.AwaitOptions(x.ctx)}})
		}()
	case control.WorkerGone:
		x.m.WorkerGone(w.Index)
		tell(control.Told{At: none})
	case control.EndSources:
		tell(control.Told{At: none})
	case control.CancelJob:
		x.m.Cancel()
		tell(control.Told{At: none})
	case control.FailSubtask:
		go func() {
			err := x.m.FailTask(x.ctx, w.Vertex, w.Subtask, w.Reason, stamp)
			tell(control.Told{At: at, Error: text(err)})
		}()
	case control.DropPartition:
		go func() {
			err := x.m.DropPartition(x.ctx, w.Vertex, w.Subtask, stamp)
			tell(control.Told{At: at, Error: text(err)})
		}()
	default:
		return false
	}
	return true
}

// runBatchWorker works for one master after the other, with the partitions that
// its folder holds.
func (n *node) runBatchWorker(sub *submission, values options.Values) error {
	if _, err := plant(sub.Delays); err != nil {
		return err
	}
	cfg := batchWorkerConfig(values)
	cfg.Name, cfg.Index, cfg.Dir, cfg.OutputDir, cfg.Slots = n.Name, n.Index, n.Dir, sub.OutputDir, sub.Slots
	cfg.Memory, cfg.Segment, cfg.Network = sub.NetworkMemory, sub.BufferSize, sub.Network
	cfg.Timeline, cfg.Origin, cfg.Transport = n.log, n.log.Origin(), n.network
	cfg.Leader = n.leader
	cfg.Newer = func(epoch int64) bool {
		l, ok, err := findLeader(n.State)
		return err == nil && ok && l.Epoch > epoch
	}
	w, err := worker.StartBatch(cfg)
	if err != nil {
		return err
	}
	n.answers(func(what any, tell func(control.Told)) bool {
		if _, ok := what.(control.GetLoad); !ok {
			return false
		}
		l := w.Load()
		tell(control.Told{At: none, Data: control.Load{Tasks: l.Tasks, SinkRecords: l.SinkRecords, NetBytes: w.NetBytes()}})
		return true
	})
	select {
	case <-w.Gone():
		return w.Cause()
	case <-n.ctx.Done():
		w.Stop()
		return nil
	}
}

// watchLeadership returns when a master's process is to end.
func (n *node) watchLeadership(l *leadership, done <-chan struct{}, outcome func() error) error {
	t := time.NewTicker(leadershipCheck)
	defer t.Stop()
	for {
		select {
		case <-done:
			done = nil
			n.pump.flush()
			n.conn.Send(control.JobEnded{Epoch: l.epoch, Error: text(outcome())})
		case <-t.C:
			if err := l.check(); err != nil {
				return err
			}
		case <-n.ctx.Done():
			return nil
		}
	}
}

// Batch implements Running.
func (c *Processes) Batch(ctx context.Context) (*BatchFigures, error) {
	if !c.cfg.Batch {
		return nil, nil
	}
	t, err := c.askLeader(ctx, control.GetLoad{})
	if err != nil {
		return nil, fmt.Errorf("figures of the batch job: %w", err)
	}
	load, _ := t.Data.(control.Load)
	c.mu.Lock()
	l := c.mu.past
	c.mu.Unlock()
	l.now(load.Batch)
	return l.figures(c.cfg.Timeline), nil
}

// tellDead tells a new master of a batch job which workers it need not wait for.
// It needs the lock.
func (c *Processes) tellDead(leader *process) {
	for _, p := range c.mu.processes {
		if c.cfg.Batch && p.role == RoleWorker && !slices.Contains(c.mu.workers, p) {
			leader.say(control.WorkerGone{Index: p.index})
		}
	}
}

// lastFigures asks a master that is about to be killed.
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

var errNoPartitions = fmt.Errorf("drop-partition: a streaming job has no finished partitions: %w", ErrUnsupported)

// streamingOnly refuses what a batch job has no use for.
func (c *Processes) streamingOnly(what string) error {
	if c.cfg.Batch {
		return fmt.Errorf("%s: %w", what, errStreaming)
	}
	return nil
}
