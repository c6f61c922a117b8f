package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
)

// leadershipCheck is how often a master looks whether it still leads.
const leadershipCheck = 50 * time.Millisecond

// masterNode is a process that leads, or waits to.
type masterNode struct {
	*node
	lead   *leadership
	sub    *submission
	m      *master.Master
	saving sync.Mutex // of the submission
}

// runMaster waits for the leadership, takes the job over from the state folder
// and runs it until it has to leave or another one leads.
func (n *node) runMaster() error {
	l, err := lead(n.ctx, n.State)
	if err != nil {
		if n.ctx.Err() != nil {
			return nil // it never got to lead
		}
		return err
	}
	defer l.release()
	x := &masterNode{node: n, lead: l}
	e := timeline.Of(timeline.MasterElected)
	e.Detail = fmt.Sprintf("%s epoch=%d", n.Name, l.epoch)
	n.log.Add(e)
	if sub, values, err := readSubmission(n.State, n.Cluster); err == nil && sub.Batch {
		return n.runBatchMaster(l, sub, values)
	}
	start, err := x.prepare()
	if err != nil {
		return err
	}
	defer x.m.Close()
	n.answers(x.answer)
	if err := l.publish(x.m.Addr()); err != nil {
		return err
	}
	n.conn.Send(control.Leading{Epoch: l.epoch, Addr: x.m.Addr()})
	x.m.Begin(start)
	return x.watchLeadership(l, x.m.Done(), x.m.Err)
}

// prepare makes the master for the job in the state folder.
func (x *masterNode) prepare() (master.Start, error) {
	var start master.Start
	sub, values, err := readSubmission(x.State, x.Cluster)
	if err != nil {
		return start, err
	}
	if _, err := plant(sub.Delays); err != nil {
		return start, err
	}
	x.sub = sub
	g, err := buildGraph(sub.Job, values)
	if err != nil {
		return start, err
	}
	if len(sub.Parallelism) > 0 {
		if g, err = g.Scale(sub.Parallelism); err != nil {
			return start, fmt.Errorf("parallelism of the last rescale: %w", err)
		}
	}
	if err := x.openStorage(sub.Storage); err != nil {
		return start, err
	}
	start = master.Start{Started: sub.Started, Workers: x.Workers, Limit: options.HeartbeatTimeout.Get(values)}
	cfg := master.Config{
		Graph: g, Values: values, Checkpoints: x.store, Timeline: x.log, Origin: x.log.Origin(), Transport: x.network,
		Epoch: x.lead.epoch, Leads: x.lead.check, Seed: sub.Seed, Keep: sub.Keep,
	}
	if x.lead.epoch > 1 {
		if start.Takeover, err = master.Inventory(x.store); err != nil {
			return start, err
		}
		cfg.FirstID = start.Takeover.NextID
	}
	if start.Takeover == nil || len(start.Takeover.Completed) == 0 {
		if start.Origin, err = originOf(values); err != nil {
			return start, err
		}
	}
	if start.Started == 0 {
		start.Started = x.log.Now()
		if err := x.save(func() { sub.Started = start.Started }); err != nil {
			return start, err
		}
	}
	x.m, err = master.New(cfg)
	return start, err
}

// save changes the submission for masters to come.
func (x *masterNode) save(change func()) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	if err := x.lead.check(); err != nil {
		return err
	}
	change()
	return x.sub.write(x.State)
}

// answer carries out a request.
func (x *masterNode) answer(what any, tell func(control.Told)) bool {
	at := none
	stamp := func() { at = x.log.Now() }
	switch w := what.(type) {
	case control.GetLoad:
		tell(control.Told{At: none, Data: control.Load{Restoring: x.m.Restoring()}})
	case control.GetOptions:
		tell(control.Told{At: none, Data: control.Options{Options: x.m.Options()}})
	case control.EndSources:
		x.m.StopSources()
		tell(control.Told{At: none})
	case control.CancelJob:
		x.m.Cancel()
		tell(control.Told{At: none})
	case control.GetReports:
		go func() {
			tell(control.Told{At: none, Data: control.Reports{Reports: x.m.Reports(x.ctx)}})
		}()
	case control.Rescale:
		go func() {
			err := x.rescale(w.Parallelism, stamp)
			tell(control.Told{At: at, Error: text(err)})
		}()
	case control.FailSubtask:
		go func() {
			err := x.m.FailTask(x.ctx, w.Vertex, w.Subtask, w.Reason, stamp)
			tell(control.Told{At: at, Error: text(err)})
		}()
	case control.TakeSavepoint:
		go func() {
			path, err := x.m.Savepoint(x.ctx, w.Stop)
			tell(control.Told{At: none, Path: path, Error: text(err)})
		}()
	default:
		return false
	}
	return true
}

// rescale acts and makes the wish durable: who was told that it is accepted
// finds it in force under the next master, too.
func (x *masterNode) rescale(parallelism map[string]int, accepted func()) error {
	if err := x.m.Rescale(context.WithoutCancel(x.ctx), parallelism, accepted); err != nil {
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
