package checkpoint

import (
	"maps"
	"slices"

	"benchrun/runtime/snapshot"
)

// begin takes a request off the queue's head to the planning stage.
func (c *Coordinator) begin(r *request) {
	if err := c.precheck(r); err != nil {
		c.failRequest(r, err)
		return
	}
	c.seq++
	c.trigger = &pending{planSeq: c.seq, req: r, begun: c.now, deadline: never}
	c.emit(ComputePlan{Seq: c.seq})
}

// precheck is done before planning and again after it, for the job may have
// stopped in between.
func (c *Coordinator) precheck(r *request) *Error {
	if c.shutdown {
		return fail(CoordinatorShutdown, nil)
	}
	if r.periodic && !c.periodic {
		return fail(PeriodicSchedulerShutdown, nil)
	}
	return nil
}

// planned finds the checkpoint that waits for this plan.
func (c *Coordinator) planned(seq uint64) *pending {
	if p := c.trigger; p != nil && p.stage == planning && p.planSeq == seq {
		return p
	}
	return nil
}

func (c *Coordinator) failPlan(p *pending, err *Error) {
	c.trigger = nil
	c.failRequest(p.req, err)
	c.poll()
}

// register gives a planned checkpoint its id.
func (c *Coordinator) register(p *pending, plan PlanComputed) {
	if err := c.precheck(p.req); err != nil {
		c.failPlan(p, err)
		return
	}
	p.plan = plan
	p.id = c.nextID
	c.nextID++
	p.stage = locating
	p.deadline = c.now + c.cfg.Timeout
	p.waiting = make(map[Task]bool, len(plan.Ack))
	for _, t := range plan.Ack {
		p.waiting[t] = true
	}
	p.states = make(map[Task]*snapshot.SubtaskState, len(plan.Ack))
	c.pending = append(c.pending, p)
	c.emit(ReportTriggered{ID: p.id, Savepoint: p.req.savepoint})
	c.emit(InitLocation{ID: p.id, Savepoint: p.req.savepoint})
}

func (c *Coordinator) located(e LocationReady) {
	p := c.at(e.ID, locating)
	if p == nil {
		if c.find(e.ID) == nil && !c.isCompleted(e.ID) {
			// It was aborted meanwhile: nobody else knows of the folder.
			c.discard(e.ID, e.Folder)
		}
		return
	}
	p.folder = e.Folder
	p.stage = coordinating
	c.emit(SnapshotCoordinators{ID: p.id})
}

// send sends the trigger to the tasks, which ends the trigger phase.
func (c *Coordinator) send(p *pending) {
	p.stage = triggered
	p.options = Options{
		Savepoint: p.req.savepoint,
		Stop:      p.req.stop,
		Drain:     p.req.drain,
		Full:      c.forceFull && !p.req.savepoint,
		Folder:    p.folder,
	}
	if c.cfg.Unaligned && !p.req.savepoint { // savepoints are always aligned
		p.options.Kind = Unaligned
		if c.cfg.AlignedTimeout > 0 {
			p.options.Kind, p.options.AlignedTimeout = AlignedWithTimeout, c.cfg.AlignedTimeout
		}
	}
	c.emit(TriggerTasks{ID: p.id, Options: p.options, Tasks: p.plan.Trigger})
	c.trigger = nil
	c.finalizeIfDone(p)
	c.poll()
}

// find gives the pending checkpoint with that id, or nil.
func (c *Coordinator) find(id int64) *pending {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}

// at is find for one in that stage.
func (c *Coordinator) at(id int64, s stage) *pending {
	if p := c.find(id); p != nil && p.stage == s {
		return p
	}
	return nil
}

func (c *Coordinator) isCompleted(id int64) bool {
	return slices.ContainsFunc(c.completed, func(k Completed) bool { return k.ID == id })
}

func (c *Coordinator) cleaningIDs() []int64 { return slices.Sorted(maps.Keys(c.cleaning)) }

// deletions is the number of deletions in progress. Those that wait for another
// try do not hold up new checkpoints.
func (c *Coordinator) deletions() int {
	n := 0
	for _, k := range c.cleaning {
		if k.at == never {
			n++
		}
	}
	return n
}
