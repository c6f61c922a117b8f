package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"benchrun/runtime/control"
	"benchrun/runtime/options"
	"benchrun/runtime/worker"
)

// workerNode is a process that works for one master after the other. Nothing
// of what it did for one is left when it joins the next.
type workerNode struct {
	*node

	mu struct {
		sync.Mutex
		w    *worker.Worker
		sunk int64 // sink records of tasks under masters before
		net  int64
	}
}

// runWorker joins whoever leads until it has to leave.
func (n *node) runWorker() error {
	sub, values, err := readSubmission(n.State, n.Cluster)
	if err != nil {
		return err
	}
	if sub.Batch {
		return n.runBatchWorker(sub, values)
	}
	if _, err := plant(sub.Delays); err != nil {
		return err
	}
	if err := n.openStorage(sub.Storage); err != nil {
		return err
	}
	x := &workerNode{node: n}
	n.answers(x.answer)
	cfg := worker.Config{
		Name: n.Name, Index: n.Index, Slots: sub.Slots, Memory: sub.NetworkMemory, Segment: sub.BufferSize, Network: sub.Network,
		Checkpoints: n.store, Dir: n.Dir, OutputDir: sub.OutputDir, Timeline: n.log, Origin: n.log.Origin(), Transport: n.network,
		Heartbeat: options.HeartbeatInterval.Get(values), Tick: tick(values), PerFile: options.MaxSubtasksPerChannelStateFile.Get(values),
	}
	return worker.Follow(n.ctx, n.leader, false, func(addr string, epoch int64) (bool, error) {
		cfg.Master = addr
		return x.serve(cfg, epoch)
	})
}

// leader is a worker.Leader.
func (n *node) leader(ctx context.Context, after int64) (addr string, epoch int64, err error) {
	l, err := awaitLeader(ctx, n.State, after)
	return l.Addr, l.Epoch, err
}

// serve works for a master as long as it leads and wants us; served is false if
// it could not be reached.
func (x *workerNode) serve(cfg worker.Config, epoch int64) (served bool, err error) {
	cfg.MinEpoch = epoch
	w, err := worker.Start(cfg)
	if err != nil {
		return errors.Is(err, worker.ErrStaleMaster), err
	}
	x.mu.Lock()
	x.mu.w = w
	x.mu.Unlock()
	newer, cancel := context.WithCancel(x.ctx)
	var watch sync.WaitGroup
	watch.Go(func() { x.watchLeader(newer, w, epoch) })
	select {
	case <-w.Gone():
	case <-x.ctx.Done():
		w.Stop()
	}
	cancel()
	watch.Wait()
	x.mu.Lock()
	x.mu.w = nil
	x.mu.sunk += w.Load(false).SinkRecords
	x.mu.net += w.NetBytes()
	x.mu.Unlock()
	if err := w.Cause(); err != nil {
		return true, fmt.Errorf("master of epoch %d: %w", epoch, err)
	}
	return true, nil
}

// watchLeader leaves a master that says nothing any more while another leads:
// its connection may stay open for ever.
func (x *workerNode) watchLeader(ctx context.Context, w *worker.Worker, epoch int64) {
	for pause(ctx, leadershipCheck) {
		if l, ok, err := findLeader(x.State); err == nil && ok && l.Epoch > epoch {
			w.Kill()
			return
		}
	}
}

func (x *workerNode) answer(what any, tell func(control.Told)) bool {
	q, ok := what.(control.GetLoad)
	if !ok {
		return false
	}
	x.mu.Lock()
	w := x.mu.w
	l := control.Load{SinkRecords: x.mu.sunk, NetBytes: x.mu.net}
	x.mu.Unlock()
	if w != nil {
		now := w.Load(q.Queued)
		l.Tasks, l.QueuedBytes, l.Restored, l.Drained = now.Tasks, now.QueuedBytes, now.Restored, now.Drained
		l.SinkRecords += now.SinkRecords
		l.NetBytes += w.NetBytes()
	}
	// Events that led to these counters are sent before them.
	tell(control.Told{At: none, Data: l})
	return true
}
