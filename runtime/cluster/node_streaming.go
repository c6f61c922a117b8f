package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"benchrun/runtime/control"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/worker"
)

// Processes of a streaming job.

// streaming takes the job over from the newest complete checkpoint.
func (x *masterNode) streaming() (*takeover, error) {
	g, err := buildGraph(x.sub.Job, x.values)
	if err != nil {
		return nil, err
	}
	if len(x.sub.Parallelism) > 0 {
		if g, err = g.Scale(x.sub.Parallelism); err != nil {
			return nil, fmt.Errorf("parallelism of the last rescale: %w", err)
		}
	}
	if err := x.openStorage(x.sub.Storage); err != nil {
		return nil, err
	}
	start := master.Start{Started: x.sub.Started, Workers: x.Workers, Limit: options.HeartbeatTimeout.Get(x.values)}
	cfg := master.Config{
		Graph: g, Values: x.values, Checkpoints: x.store, Timeline: x.log, Origin: x.log.Origin(), Transport: x.network,
		Epoch: x.lead.epoch, Leads: x.lead.check, Seed: x.sub.Seed, Keep: x.sub.Keep,
	}
	if x.lead.epoch > 1 {
		if start.Takeover, err = master.Inventory(x.store); err != nil {
			return nil, err
		}
		cfg.FirstID = start.Takeover.NextID
	}
	if start.Takeover == nil || len(start.Takeover.Completed) == 0 {
		if start.Origin, err = originOf(x.values); err != nil {
			return nil, err
		}
	}
	m, err := master.New(cfg)
	if err != nil {
		return nil, err
	}
	return &takeover{
		jobMaster: m,
		begin:     func() { m.Begin(start) },
		answer:    func(what any, tell func(control.Told)) bool { return x.answerStreaming(m, what, tell) },
	}, nil
}

func (x *masterNode) answerStreaming(m *master.Master, what any, tell func(control.Told)) bool {
	switch w := what.(type) {
	case control.GetLoad:
		tell(control.Told{At: none, Data: control.Load{Restoring: m.Restoring()}})
	case control.GetOptions:
		tell(control.Told{At: none, Data: control.Options{Options: m.Options()}})
	case control.EndSources:
		m.StopSources()
		tell(control.Told{At: none})
	case control.GetReports:
		go func() {
			tell(control.Told{At: none, Data: control.Reports{Reports: m.Reports(x.ctx)}})
		}()
	case control.Rescale:
		x.act(tell, func(stamp func()) error { return x.rescale(m, w.Parallelism, stamp) })
	case control.TakeSavepoint:
		go func() {
			path, err := m.Savepoint(x.ctx, w.Stop)
			tell(control.Told{At: none, Path: path, Error: text(err)})
		}()
	default:
		return false
	}
	return true
}

// rescale acts and makes the wish durable: who was told that it is accepted
// finds it in force under the next master, too.
func (x *masterNode) rescale(m *master.Master, parallelism map[string]int, accepted func()) error {
	if err := m.Rescale(context.WithoutCancel(x.ctx), parallelism, accepted); err != nil {
		return err
	}
	return x.save(func() {
		all := maps.Clone(x.sub.Parallelism)
		if all == nil {
			all = map[string]int{}
		}
		maps.Copy(all, parallelism)
		x.sub.Parallelism = all
	})
}

// streamingNode is a process that works for one master after the other. Nothing
// of what it did for one is left when it joins the next.
type streamingNode struct {
	*node

	mu struct {
		sync.Mutex
		w    *worker.Worker
		past control.Load // sink records and bytes under masters before
	}
}

// runStreamingWorker joins whoever leads until it has to leave.
func (n *node) runStreamingWorker(sub *submission, values options.Values) error {
	if err := n.openStorage(sub.Storage); err != nil {
		return err
	}
	x := &streamingNode{node: n}
	n.answers(x.answer)
	cfg := n.place(sub, values).streaming(n.store)
	return worker.Follow(n.ctx, n.leader, false, func(addr string, epoch int64) (bool, error) {
		cfg.Master = addr
		return x.serve(cfg, epoch)
	})
}

// serve works for a master as long as it leads and wants us; served is false if
// it could not be reached.
func (x *streamingNode) serve(cfg worker.Config, epoch int64) (served bool, err error) {
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
	x.mu.past.SinkRecords += w.Load(false).SinkRecords
	x.mu.past.NetBytes += w.NetBytes()
	x.mu.Unlock()
	if err := w.Cause(); err != nil {
		return true, fmt.Errorf("master of epoch %d: %w", epoch, err)
	}
	return true, nil
}

// watchLeader leaves a master that says nothing any more while another leads:
// its connection may stay open for ever.
func (x *streamingNode) watchLeader(ctx context.Context, w *worker.Worker, epoch int64) {
	for pause(ctx, leadershipCheck) {
		if newerLeads(x.State, epoch) {
			w.Kill()
			return
		}
	}
}

func (x *streamingNode) answer(what any, tell func(control.Told)) bool {
	q, ok := what.(control.GetLoad)
	if !ok {
		return false
	}
	x.mu.Lock()
	w, past := x.mu.w, x.mu.past
	x.mu.Unlock()
	var l control.Load
	if w != nil {
		l = counters(w.Load(q.Queued), w.NetBytes())
	}
	l.SinkRecords += past.SinkRecords
	l.NetBytes += past.NetBytes
	// Events that led to these counters are sent before them.
	tell(control.Told{At: none, Data: l})
	return true
}
