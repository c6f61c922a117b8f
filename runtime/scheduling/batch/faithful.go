package batch

import (
	"fmt"
	"slices"

	"benchrun/runtime/joblog"
)

// faithful does what Flink 1.20 does, with its weaknesses.
type faithful struct{ s *Scheduler }

// unused leaves the log where it is; enabled later it would be replayed.
func (faithful) unused() {}

func (faithful) takeover([]AttemptID) {}

// taskFinished ties a snapshot of all coordinators that changed to this event if
// the vertex is complete or the last one is long ago.
func (p faithful) taskFinished(t *task) {
	s := p.s
	complete := t.v.finished == t.v.parallelism
	s.dirty[t.v] = true
	l := Log{Event: t.winner, Cut: complete}
	l.Event = withoutSplits(t.winner)
	if complete || s.snapshot == never || s.now-s.snapshot >= s.cfg.MinPause {
		for _, v := range s.vertices {
			if !s.dirty[v] {
				continue
			}
			for _, c := range v.Coordinators {
				if c.Snapshots {
					l.Snapshots = append(l.Snapshots, c.Operator)
				}
			}
		}
		l.Wait = true
		s.snapshot = s.now
		clear(s.dirty)
	}
	s.log(l)
}

// withoutSplits: this log relies on the coordinators to know who has read what.
func withoutSplits(e joblog.VertexFinished) joblog.VertexFinished {
	e.Splits = nil
	return e
}

// output commits at once; if the master dies before the log is durable the task
// runs, and commits, again. The job does not end before that is confirmed.
func (p faithful) output(t *task) {
	if t.v.Commits {
		p.s.completion.todo = append(p.s.completion.todo, t.winner.Attempt)
		p.s.commit([]AttemptID{t.winner.Attempt})
	}
}

// anew leaves what was committed: it comes twice.
func (faithful) anew() {}

func (faithful) committing() {}

func (faithful) waits() bool { return false }

func (faithful) finished(joblog.JobFinished) {}

func (faithful) holders() {}

func (p faithful) joined(w Worker) {
	if p.s.recovery != nil {
		p.s.emit(AskInventory{Worker: w})
	}
}

// replay drops the last finished tasks that no snapshot follows. A reset takes
// away a task with the snapshots that came with it.
func (faithful) replay(events []joblog.Event) *state {
	st := &state{initialized: map[string]joblog.JobVertexInitialized{}}
	var f finishedTasks
	for _, e := range events {
		switch e := e.(type) {
		case joblog.VertexFinished:
			f.put(e)
		case joblog.VerticesReset:
			for _, t := range e.Tasks {
				f.drop(t)
			}
		case joblog.JobVertexInitialized:
			st.initialized[e.Vertex] = e
		}
	}
	st.finished = f.list()
	for n := len(st.finished); n > 0 && !st.finished[n-1].Snapshotted; n = len(st.finished) {
		st.finished = st.finished[:n-1]
	}
	for _, e := range st.finished {
		for _, snap := range e.Snapshots {
			st.putSnapshot(snap)
		}
	}
	return st
}

// restore resets, for each snapshot, every coordinator of its vertex to what
// this snapshot says of it.
func (p faithful) restore(st *state) {
	for _, snap := range st.snapshots {
		for _, v := range p.s.vertices {
			if !slices.ContainsFunc(v.Coordinators, func(c Coordinator) bool { return c.Operator == snap.Operator }) || v.parallelism == 0 {
				continue
			}
			for _, c := range v.Coordinators {
				if !c.Snapshots {
					continue
				}
				var data []byte
				if c.Operator == snap.Operator {
					data = snap.Data
				}
				p.s.emit(RestoreCoordinator{Vertex: v.ID, Operator: c.Operator, Parallelism: v.parallelism, State: data})
			}
		}
	}
}

func (p faithful) unfinished(v *vertex, subtasks []int) { p.s.tellReset(v, subtasks) }

func (faithful) waitsFor(r *recovery) string {
	return fmt.Sprintf("all of %d partitions of finished tasks, released ones too", len(r.expected))
}

// over waits until every expected partition is there, whoever has answered.
func (faithful) over(r *recovery) bool { return r.missing == 0 }

func (p faithful) settle(r *recovery) {
	s := p.s
	if err := p.reconcile(r); err != nil {
		p.fallback(fmt.Errorf("reconcile: %w", err))
	}
	s.run()
	// Who has finished has committed, but for what the master before was still
	// about to do.
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if t.state == finished {
				p.output(t)
			}
		}
	}
	// Sources are asked for their parallelism, other vertices are not initialized.
	for _, v := range s.vertices {
		if v.parallelism == 0 && v.Parallelism == 0 && len(v.in) == 0 && !v.inferring {
			v.inferring = true
			s.emit(InferParallelism{Vertex: v.ID})
		}
	}
	s.enqueueAll()
}

// reconcile keeps what was expected and releases what unfinished tasks left, by
// the names that this master would give it.
func (p faithful) reconcile(r *recovery) error {
	s := p.s
	for _, w := range r.order {
		var release []PartitionID
		for _, h := range r.inventories[w].Partitions {
			if ref, ok := r.expected[h.Partition]; ok {
				if n := ref.t.v.out[ref.output].subpartitions; len(h.Bytes) != n {
					return fmt.Errorf("worker %s reports %d subpartitions of %s, it has %d", w, len(h.Bytes), h.Partition, n)
				}
				s.keep(ref, h, w)
			}
			if _, ok := r.unfinished[h.Partition]; ok {
				release = append(release, h.Partition)
			}
		}
		s.release(w, release)
	}
	s.resetMissing(r)
	return nil
}

// late: whatever comes after the wait is released.
func (p faithful) late(e Inventory) {
	if r := p.s.recovery; r == nil || slices.Contains(r.order, e.Worker) {
		return // a report is read once
	}
	var ids []PartitionID
	for _, h := range e.Partitions {
		ids = append(ids, h.Partition)
	}
	p.s.release(e.Worker, ids)
}

// fallback wipes the log and restarts everything, which counts as a failure.
func (p faithful) fallback(err error) {
	s := p.s
	s.emit(ClearLog{})
	s.run()
	s.initializeAll()
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			t.next = max(t.next, 1)
		}
	}
	s.restartAll(err)
}
