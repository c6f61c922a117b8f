package batch

import (
	"cmp"
	"slices"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// hardened keeps all that has finished, and leaves nothing behind.
type hardened struct{ s *Scheduler }

// unused empties the log, so that nobody takes it for that of this run.
func (p hardened) unused() { p.s.emit(ClearLog{}) }

// anew: what masters before have committed would be there twice. Nobody has been
// told that the job was over, so it can still be taken back.
func (p hardened) anew() {
	if p.s.cfg.Epoch > 1 {
		p.s.withdraw(nil)
	}
}

func (p hardened) takeover(kept []AttemptID) {
	p.s.log(Log{Event: joblog.EpochStarted{Epoch: p.s.cfg.Epoch, Kept: kept}})
}

// taskFinished: the event says which splits the task contains, so it does not
// need a snapshot to be kept. Snapshots are taken for what enumerators have
// found out, and are events of their own.
func (p hardened) taskFinished(t *task) {
	s := p.s
	complete := t.v.finished == t.v.parallelism
	s.log(Log{Event: t.winner, Cut: complete})
	s.dirty[t.v] = true
	if !complete && s.snapshot != never && s.now-s.snapshot < s.cfg.MinPause {
		return
	}
	s.snapshot = s.now
	for _, v := range s.vertices {
		for _, c := range v.Coordinators {
			if s.dirty[v] && c.Snapshots {
				s.emit(SnapshotCoordinator{Vertex: v.ID, Operator: c.Operator})
			}
		}
	}
	clear(s.dirty)
}

// output waits for the end of the job: until then the task may have to run
// again.
func (hardened) output(*task) {}

// committing: a master before may have committed without the log (recorded), what
// has been run again since.
func (p hardened) committing() {
	s := p.s
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if v.Commits {
				s.completion.todo = append(s.completion.todo, t.winner.Attempt)
			}
		}
	}
	if s.cfg.Epoch > 1 && len(s.completion.todo) > 0 {
		s.withdraw(s.completion.todo)
	}
}

func (hardened) waits() bool { return true }

func (p hardened) finished(e joblog.JobFinished) { p.s.log(Log{Event: e, Cut: true}) }

func (p hardened) holders() {
	e := joblog.WorkerSet{}
	for w := range p.s.holders {
		e.Workers = append(e.Workers, string(w))
	}
	slices.Sort(e.Workers)
	p.s.log(Log{Event: e})
}

// joined: a worker that comes back has something that nobody knows, its slots may be
// taken by it, and what it has need not be made again. It answers before it gets work.
func (p hardened) joined(w Worker) {
	if p.s.cfg.Recovery {
		p.s.worker(w).blocked = p.s.now + p.s.cfg.WorkerTimeout
		p.s.emit(AskInventory{Worker: w})
	}
}

func (hardened) replay(events []joblog.Event) *state {
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
		case joblog.CoordinatorSnapshot:
			st.putSnapshot(e.Snapshot)
		case joblog.EpochStarted:
			// What the master before this event did not keep is void.
			kept := map[AttemptID]bool{}
			for _, a := range e.Kept {
				kept[a] = true
			}
			for _, x := range f.list() {
				if !kept[x.Attempt] {
					f.drop(x.Attempt.TaskID)
				}
			}
		case joblog.WorkerSet:
			st.workers = e.Workers
		case joblog.JobFinished:
			st.ended = &e
		}
	}
	st.finished = f.list()
	return st
}

// restore waits until it is known who goes on with which splits.
func (hardened) restore(*state) {}

func (hardened) unfinished(*vertex, []int) {}

func (hardened) waitsFor(*recovery) string { return "what workers hold" }

// over waits for all workers that the log or this master knows, or for those
// that have their folders, however many partitions are missing.
func (p hardened) over(r *recovery) bool {
	answered := func(w Worker) bool {
		if _, ok := r.inventories[w]; ok || r.gone[w] {
			return true
		}
		return slices.ContainsFunc(r.order, func(x Worker) bool { return slices.Contains(r.inventories[x].Formerly, w) })
	}
	if r.unnamed(p.s.now) {
		return false
	}
	for _, w := range r.state.workers {
		if !answered(Worker(w)) {
			return false
		}
	}
	for _, w := range p.s.workers {
		if !answered(w.id) {
			return false
		}
	}
	return true
}

func (p hardened) settle(r *recovery) {
	s := p.s
	for _, w := range r.order {
		if s.worker(w) == nil {
			continue // it has not joined: nobody could read from it
		}
		for _, h := range r.inventories[w].Partitions {
			ref, ok := r.expected[h.Partition]
			if !ok {
				ref, ok = r.old[h.Partition]
			}
			if ok && len(h.Bytes) == ref.t.v.out[ref.output].subpartitions && !ref.t.parts[ref.output].there {
				s.keep(ref, h, w)
			}
		}
	}
	s.resetMissing(r)
	if !s.cfg.KeepConsumed {
		for _, ref := range r.old {
			if !s.needed(ref.t, ref.output) {
				s.partitionAway(ref.t, ref.output)
			}
		}
	}
	s.run()
	// What the log did not come to say follows from what it says.
	p.takeover(p.keptAttempts())
	s.initializeAll()
	adopted := p.adopt(r)
	p.holders()
	for _, w := range r.order {
		if s.worker(w) != nil {
			p.answer(r.inventories[w], adopted)
		}
	}
	for _, w := range s.workers {
		if _, ok := r.inventories[w.id]; !ok {
			p.joined(w.id) // it is still to say what it has
		}
	}
	s.enqueueAll()
}

func (p hardened) keptAttempts() []AttemptID {
	var kept []AttemptID
	for _, v := range p.s.vertices {
		for _, t := range v.tasks {
			if t.state == finished {
				kept = append(kept, t.winner.Attempt)
			}
		}
	}
	return kept
}

// candidate is an attempt of a master before that may go on.
type candidate struct {
	w     *worker
	x     Execution
	named bool // the log names its worker
}

// candidates of each vertex, the ones to prefer first. A worker that the log does not
// name may be one that the master before had lost: it has given to others what these
// attempts have, unless its log came to say nothing at all. What has finished comes
// before what runs, what is newer before what it was to replace.
func (hardened) candidates(s *Scheduler, r *recovery) map[string][]candidate {
	all := map[string][]candidate{}
	for _, w := range r.order {
		wk := s.worker(w)
		if wk == nil {
			continue
		}
		held := heldBy(r.inventories[w])
		for _, x := range r.inventories[w].Running {
			if x.State != scheduling.TaskFinished || held.all(x.Result.of(x.Attempt)) {
				v := x.Attempt.Vertex
				all[v] = append(all[v], candidate{wk, x, slices.Contains(r.state.workers, string(w))})
			}
		}
	}
	for _, cs := range all {
		slices.SortStableFunc(cs, func(a, b candidate) int {
			return cmp.Or(
				first(a.named, b.named), first(a.x.State == scheduling.TaskFinished, b.x.State == scheduling.TaskFinished),
				cmp.Compare(b.x.Attempt.Epoch, a.x.Attempt.Epoch), cmp.Compare(b.x.Attempt.Attempt, a.x.Attempt.Attempt),
				cmp.Compare(a.x.Attempt.Subtask, b.x.Attempt.Subtask),
			)
		})
	}
	return all
}

// first orders what holds before what does not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// adopt goes on with attempts of the master before, in the order in which they
// read from one another: one that has finished while nobody led, or whose end the
// log does not have yet, makes its consumers' input complete. Coordinators begin
// before the first end of their subtasks is taken. An attempt that has a split which
// is somebody else's does not go on.
func (p hardened) adopt(r *recovery) (adopted map[AttemptID]bool) {
	s := p.s
	adopted = map[AttemptID]bool{}
	candidates := p.candidates(s, r)
	for _, v := range s.vertices {
		var done []Execution
		for _, c := range candidates[v.ID] {
			if !p.adoptable(v, c.x, adopted) || v.Source && v.ledger.Assign(c.x.Attempt.Subtask, c.x.Result.Splits) != nil {
				continue
			}
			p.goOn(v.tasks[c.x.Attempt.Subtask], c)
			adopted[c.x.Attempt] = true
			if c.x.State == scheduling.TaskFinished {
				done = append(done, c.x)
			}
		}
		p.coordinators(v, r.state)
		for _, d := range done {
			s.taskChanged(TaskChanged{Attempt: d.Attempt, State: scheduling.TaskFinished, Result: d.Result})
		}
	}
	return adopted
}

// goOn makes an attempt of a master before one of this master.
func (p hardened) goOn(t *task, c candidate) {
	s := p.s
	a := &attempt{id: c.x.Attempt, t: t, worker: c.w.id, state: c.x.State, since: s.now}
	if a.state == scheduling.TaskFinished {
		a.state = scheduling.TaskRunning // its end follows
	}
	t.state = running
	t.next = max(t.next, a.id.Attempt+1)
	s.track(a, c.w)
	s.holders[c.w.id] = true
	for i, e := range t.v.out {
		if e.Pipelined {
			t.v.out[i].setProducer(t.subtask, Producer{a.id, c.w.id})
		}
	}
	s.emit(Adopted{a.id})
	if c.x.State != scheduling.TaskFinished { // else it does not run, and its end is noted
		s.note(timeline.TaskState, a.id, func(e *timeline.Event) { e.State, e.Detail = a.state.String(), "adopted" })
	}
}

// adoptable tells whether an attempt may go on with its task: it is what this master
// would start, and what it reads is what counts. Else it was to be cancelled, or
// its worker was taken for dead, and what it read has been made anew since. Tasks that
// pipelines connect would have to go on together: they begin anew.
func (p hardened) adoptable(v *vertex, x Execution, adopted map[AttemptID]bool) bool {
	if x.Attempt.Subtask < 0 || x.Attempt.Subtask >= len(v.tasks) {
		return false
	}
	t := v.tasks[x.Attempt.Subtask]
	if t.state != created || len(t.group()) > 1 || !t.consumable() || x.Attempt.Epoch >= p.s.cfg.Epoch || x.Parallelism != v.parallelism ||
		x.State > scheduling.TaskRunning && x.State != scheduling.TaskFinished ||
		slices.ContainsFunc(v.Coordinators, func(c Coordinator) bool { return !c.Snapshots }) {
		return false
	}
	for _, id := range x.Inputs {
		if !adopted[id] && !p.s.won(id) {
			return false
		}
	}
	return x.State != scheduling.TaskFinished || p.s.checkResult(&attempt{id: x.Attempt, t: t}, x.Result) == nil
}

// coordinators of a vertex begin from their newest snapshot. The splits of
// finished and adopted subtasks are no longer theirs to give.
func (p hardened) coordinators(v *vertex, st *state) {
	if v.parallelism == 0 {
		return
	}
	for _, c := range v.Coordinators {
		e := RestoreCoordinator{Vertex: v.ID, Operator: c.Operator, Parallelism: v.parallelism, State: st.snapshot(c.Operator), Held: map[int][]string{}}
		for _, t := range v.tasks {
			if t.state != created {
				e.Held[t.subtask] = v.ledger.Of(t.subtask)
			}
		}
		p.s.emit(e)
	}
}

// answer gives a worker its lists: everything that it has is in one of them.
func (p hardened) answer(e Inventory, live map[AttemptID]bool) {
	a := SettleInventory{Worker: e.Worker}
	for _, x := range e.Running {
		if live[x.Attempt] {
			a.Adopt = append(a.Adopt, x.Attempt)
		} else {
			a.Cancel = append(a.Cancel, x.Attempt)
		}
	}
	for _, h := range e.Partitions {
		t, output, ok := p.s.find(h.Partition)
		if ok && t.parts[output].there && t.parts[output].worker == e.Worker || p.s.attempts[h.Partition.Producer] != nil {
			a.Keep = append(a.Keep, h.Partition)
		} else {
			a.Release = append(a.Release, h.Partition)
		}
	}
	p.s.emit(a)
}

// late: what is not known by now is not needed, unless it was given up too early.
func (p hardened) late(e Inventory) {
	p.s.returned(e)
	live := map[AttemptID]bool{}
	for _, x := range e.Running {
		// One that has finished is remembered until the log has its end.
		live[x.Attempt] = p.s.attempts[x.Attempt] != nil || p.s.won(x.Attempt)
	}
	p.answer(e, live)
	if w := p.s.worker(e.Worker); w != nil {
		w.blocked = 0
	}
}

// fallback begins anew: nothing that is in the log counts, nothing that workers
// have is kept. It is not the job that failed.
func (p hardened) fallback(err error) {
	s := p.s
	r := s.recovery
	for _, v := range s.vertices {
		v.parallelism, v.tasks, v.finished, v.inferring, v.durations = 0, nil, 0, false, nil
		v.ledger = NewLedger(v.ID)
		for _, e := range v.out {
			e.ranges, e.consumers, e.producers, e.available = nil, nil, nil, 0
		}
	}
	clear(s.fragile)
	r.settled = true
	s.emit(JobStatus{Status: scheduling.StatusRestarting, Err: err})
	s.emit(ClearLog{})
	p.anew()
	s.status = scheduling.StatusRestarting
	s.run()
	p.takeover(nil)
	s.initializeAll()
	s.resetCoordinators()
	for _, w := range r.order {
		if s.worker(w) != nil {
			p.answer(r.inventories[w], nil)
		}
	}
}
