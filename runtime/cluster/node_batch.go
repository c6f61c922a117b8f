package cluster

import (
	"errors"

	"benchrun/runtime/control"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/worker"
)

// Processes of a batch job.

// batch takes the job over from its log.
func (x *masterNode) batch() (*takeover, error) {
	g, err := chained(x.sub.Job, x.values, true)
	if err != nil {
		return nil, err
	}
	m, err := batchMaster(master.BatchConfig{
		Graph: g, Values: x.values, Timeline: x.log, Origin: x.log.Origin(), Transport: x.network, Epoch: x.lead.epoch, OutputDir: x.sub.OutputDir,
		Run: x.sub.ID, Leads: x.lead.check, Seed: x.sub.Seed, FromScratch: x.sub.FromScratch,
	}, x.State)
	if unread, ok := errors.AsType[*JobLogError](err); ok {
		x.pump.flush()
		x.conn.Send(control.JobEnded{Epoch: x.lead.epoch, Error: unread.Error(), JobLog: true})
		<-x.ctx.Done() // the job has failed with this; the end of the process must not be taken for the reason
	}
	if err != nil {
		return nil, err
	}
	return &takeover{
		jobMaster: m,
		begin:     func() { m.Begin(x.sub.Started, x.Workers, options.HeartbeatTimeout.Get(x.values)) },
		answer:    func(what any, tell func(control.Told)) bool { return x.answerBatch(m, what, tell) },
	}, nil
}

func (x *masterNode) answerBatch(m *master.Batch, what any, tell func(control.Told)) bool {
	switch w := what.(type) {
	case control.GetLoad:
		tell(control.Told{At: none, Data: control.Load{Consumed: m.Consumed(), Batch: m.Figures()}})
	case control.GetOptions:
		go func() {
			tell(control.Told{At: none, Data: control.Options{Options: m.AwaitOptions(x.ctx)}})
		}()
	case control.WorkerGone:
		m.WorkerGone(w.Index)
		tell(control.Told{At: none})
	case control.EndSources: // they end by themselves
		tell(control.Told{At: none})
	case control.DropPartition:
		x.act(tell, func(stamp func()) error { return m.DropPartition(x.ctx, w.Vertex, w.Subtask, stamp) })
	default:
		return false
	}
	return true
}

// runBatchWorker works for one master after the other, with the partitions that
// its folder holds.
func (n *node) runBatchWorker(sub *submission, values options.Values) error {
	cfg := n.place(sub, values).batch()
	cfg.Leader = n.leader
	cfg.Newer = func(epoch int64) bool { return newerLeads(n.State, epoch) }
	w, err := worker.StartBatch(cfg)
	if err != nil {
		return err
	}
	n.answers(func(what any, tell func(control.Told)) bool {
		if _, ok := what.(control.GetLoad); !ok {
			return false
		}
		tell(control.Told{At: none, Data: counters(w.Load(), w.NetBytes())})
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
