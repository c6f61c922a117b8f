package checkpoint

import (
	"fmt"
	"slices"
)

func (c *Coordinator) acknowledge(e Ack) {
	p := c.find(e.ID)
	if p == nil {
		c.late(e)
		return
	}
	if p.stage != triggered || !p.waiting[e.Task] {
		if _, twice := p.states[e.Task]; !twice {
			// Not a task of this checkpoint: another attempt of one, perhaps.
			c.emit(DiscardState{ID: p.id, Folder: p.folder, Task: e.Task, State: e.State})
		}
		return
	}
	delete(p.waiting, e.Task)
	p.states[e.Task] = e.State
	c.finalizeIfDone(p)
}

// late handles an acknowledgement for a checkpoint that is not pending.
func (c *Coordinator) late(e Ack) {
	if c.isCompleted(e.ID) {
		return // a second message; the state is in use
	}
	for _, r := range c.ring {
		if r.id == e.ID {
			// The folder came back to life when the task wrote to it.
			if r.folder != "" {
				c.discard(e.ID, r.folder)
			}
			return
		}
	}
	c.emit(DiscardState{ID: e.ID, Task: e.Task, State: e.State})
}

func (c *Coordinator) finalizeIfDone(p *pending) {
	if p.stage != triggered || len(p.waiting) > 0 {
		return
	}
	p.stage = finalizing
	p.deadline = never // what is durable cannot expire
	c.emit(Finalize{
		ID: p.id, Folder: p.folder, Savepoint: p.req.savepoint, Unaligned: p.options.Kind != Aligned,
		Triggered: p.begun, Plan: p.plan, States: p.states, Coordinators: p.operators,
	})
}

func (c *Coordinator) decline(e Decline) {
	p := c.at(e.ID, triggered)
	if p == nil {
		return
	}
	if _, known := p.states[e.Task]; !known && !p.waiting[e.Task] {
		return // another attempt
	}
	r := e.Reason
	if r == NoReason {
		r = CheckpointDeclined
	}
	c.abort(p, &e.Task, fail(r, e.Err))
}

func (c *Coordinator) taskFailed(t Task) {
	for {
		i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.stage != finalizing && p.waiting[t] })
		if i < 0 {
			return
		}
		c.abort(c.pending[i], nil, fail(TaskFailure, fmt.Errorf("%s failed", t)))
	}
}

// complete ends a checkpoint whose metadata is durable.
func (c *Coordinator) complete(p *pending) {
	k := Completed{ID: p.id, Folder: p.folder, Savepoint: p.req.savepoint, Triggered: p.begun, Finished: c.now}
	newest := p.id > c.latest()
	var subsumed int64
	if !k.Savepoint || p.req.stop {
		// A savepoint that stops the job commits what is in it, so a restart
		// must not go back behind it. It belongs to the user all the same.
		k.keep = k.Savepoint
		subsumed = c.insertCompleted(k)
		c.forceFull = false
	}
	c.reply(p.req, k, nil)
	c.failures.succeeded(p.id)
	c.emit(ReportCompleted{Checkpoint: k})
	c.remove(p)
	c.completedOnce, c.lastCompletion = true, c.now
	if !k.Savepoint || p.req.stop {
		c.subsumeOlder(p.id)
	}
	// A plain savepoint commits nothing; an older checkpoint that was slow to
	// become durable has been committed with the newer one.
	if newest && (!k.Savepoint || p.req.stop) {
		c.emit(NotifyComplete{ID: p.id, Subsumed: subsumed, Tasks: p.plan.Ack})
	}
	if c.shutdown {
		c.dropCompleted()
	}
	if p.req.stop {
		c.resumeAfterStop = false
	}
	c.answerRestores()
	c.poll()
}

// insertCompleted adds to the completed checkpoints and deletes the oldest
// beyond the number to keep. It returns the last one deleted, or 0.
func (c *Coordinator) insertCompleted(k Completed) (subsumed int64) {
	at, _ := slices.BinarySearchFunc(c.completed, k.ID, func(x Completed, id int64) int { return int(x.ID - id) })
	c.completed = slices.Insert(c.completed, at, k)
	for i := 0; len(c.completed) > c.cfg.Retained && i < len(c.completed)-1; {
		old := c.completed[i]
		if !old.Savepoint && !slices.ContainsFunc(c.completed[i+1:], func(x Completed) bool { return !x.Savepoint }) {
			i++ // the last real checkpoint stays
			continue
		}
		c.completed = slices.Delete(c.completed, i, i+1)
		if !old.keep {
			c.discard(old.ID, old.Folder)
			subsumed = old.ID
		}
	}
	return subsumed
}

// subsumeOlder aborts pending checkpoints that a newer one has made useless.
func (c *Coordinator) subsumeOlder(id int64) {
	for {
		i := slices.IndexFunc(c.pending, func(p *pending) bool {
			return p.id < id && p.stage != finalizing && !p.req.savepoint
		})
		if i < 0 {
			return
		}
		c.abort(c.pending[i], nil, fail(CheckpointSubsumed, fmt.Errorf("checkpoint %d is complete", id)))
	}
}

// abort ends a pending checkpoint without success. task is who is to blame, or
// nil.
func (c *Coordinator) abort(p *pending, task *Task, err *Error) {
	c.remove(p)
	c.ring = append(c.ring, ended{p.id, p.folder})
	if len(c.ring) > maxEnded {
		c.ring = c.ring[1:]
	}
	c.reportFailure(p.id, p.req, task, err)
	if p.folder != "" {
		c.discard(p.id, p.folder)
	}
	c.emit(NotifyAborted{ID: p.id, Latest: c.latest(), Tasks: p.plan.Ack})
	c.reply(p.req, Completed{}, err)
	c.ended(p.req)
	c.answerRestores()
	c.poll()
}

// remove takes a checkpoint out of the pending ones and frees the trigger if
// it holds it.
func (c *Coordinator) remove(p *pending) {
	c.pending = slices.DeleteFunc(c.pending, func(x *pending) bool { return x == p })
	if c.trigger == p {
		c.trigger = nil
	}
}

// discard deletes a folder.
func (c *Coordinator) discard(id int64, folder string) {
	if k := c.cleaning[id]; k != nil {
		k.again = true
		return
	}
	c.cleaning[id] = &cleanup{folder: folder, at: never}
	c.emit(Discard{ID: id, Folder: folder})
}

func (c *Coordinator) discarded(e Discarded) {
	k := c.cleaning[e.ID]
	if k == nil || k.at != never {
		return
	}
	if e.Err != nil {
		k.tries++
		final := k.tries >= discardTries
		c.emit(ReportDiscardFailed{ID: e.ID, Folder: k.folder, Err: e.Err, Final: final})
		if !final {
			k.at = c.now + discardDelay<<(k.tries-1)
			c.poll() // it holds up nothing while it waits
			return
		}
	} else if k.again {
		k.again = false
		c.emit(Discard{ID: e.ID, Folder: k.folder})
		return
	}
	delete(c.cleaning, e.ID)
	c.poll()
}
