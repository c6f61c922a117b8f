package batch

import (
	"fmt"
	"slices"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// recovery is the work of a master that takes a job over.
type recovery struct {
	state       *state // once the log is replayed
	inventories map[Worker]Inventory
	order       []Worker // in which they came
	gone        map[Worker]bool
	expected    map[PartitionID]ref // partitions that somebody still has to read
	old         map[PartitionID]ref // of finished tasks, that nobody has to read
	unfinished  map[PartitionID]ref // of tasks that have not finished, by this master's names
	missing     int                 // of expected
	deadline    time.Duration
	expect      int           // workers that are said to live
	patience    time.Duration // when those that the log does not name are given up
	settled     bool
}

// ref is the partition of a task.
type ref struct {
	t      *task
	output int
}

func newRecovery(expect int, patience time.Duration) *recovery {
	return &recovery{inventories: map[Worker]Inventory{}, gone: map[Worker]bool{}, deadline: never, expect: expect, patience: patience}
}

// unnamed tells whether there may be workers that the log had no time to name.
func (r *recovery) unnamed(now time.Duration) bool {
	return r.state != nil && len(r.state.workers) < r.expect && len(r.inventories) < r.expect && now < r.patience
}

// dead: a worker will not answer, and what it answered is gone.
func (r *recovery) dead(w Worker) {
	r.gone[w] = true
	if _, ok := r.inventories[w]; ok {
		delete(r.inventories, w)
		r.order = slices.DeleteFunc(r.order, func(x Worker) bool { return x == w })
		r.count()
	}
}

// changed: an attempt of the master before goes on while this one waits, so what
// its worker has answered is no longer true.
func (r *recovery) changed(e TaskChanged) {
	if e.Class == FailurePartitionLost {
		r.withdraw([]PartitionID{e.Partition})
	}
	for _, w := range r.order {
		inv := r.inventories[w]
		i := slices.IndexFunc(inv.Running, func(x Execution) bool { return x.Attempt == e.Attempt })
		if i < 0 {
			continue
		}
		switch {
		case e.State == scheduling.TaskFinished:
			inv.Running[i].State, inv.Running[i].Result = e.State, e.Result
			for _, x := range e.Result.Results {
				inv.Partitions = append(inv.Partitions, Held{PartitionID{x.DataSet, e.Attempt}, x.Bytes})
			}
		case e.State.Terminal():
			inv.Running = slices.Delete(inv.Running, i, i+1)
		default:
			inv.Running[i].State = e.State
		}
		r.inventories[w] = inv
	}
}

// withdraw: partitions that were reported are gone again.
func (r *recovery) withdraw(ids []PartitionID) {
	gone := map[PartitionID]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	for _, w := range r.order {
		inv := r.inventories[w]
		inv.Partitions = slices.DeleteFunc(inv.Partitions, func(h Held) bool { return gone[h.Partition] })
		r.inventories[w] = inv
	}
	r.count()
}

// heldSet is what a worker has, to look things up in.
type heldSet map[PartitionID]bool

func heldBy(e Inventory) heldSet {
	h := make(heldSet, len(e.Partitions))
	for i := range e.Partitions {
		h[e.Partitions[i].Partition] = true
	}
	return h
}

// all tells whether all these partitions are among it.
func (h heldSet) all(ids []PartitionID) bool {
	return !slices.ContainsFunc(ids, func(id PartitionID) bool { return !h[id] })
}

// count counts the expected partitions that nobody has reported.
func (r *recovery) count() {
	seen := map[PartitionID]bool{}
	for _, w := range r.order {
		for _, h := range r.inventories[w].Partitions {
			if _, ok := r.expected[h.Partition]; ok {
				seen[h.Partition] = true
			}
		}
	}
	r.missing = len(r.expected) - len(seen)
}

// replayed takes the log and prepares the job as it says.
func (s *Scheduler) replayed(e Replayed) {
	r := s.recovery
	if s.phase != phaseReconciling || r == nil || r.state != nil {
		return
	}
	if e.Err != nil {
		s.policy.fallback(fmt.Errorf("replay the job log: %w", e.Err))
		return
	}
	st := s.policy.replay(e.Events)
	st.events = len(e.Events)
	ev := timeline.Of(timeline.EventReplayed)
	ev.Records = int64(st.events)
	ev.Detail = fmt.Sprintf("%d finished tasks", len(st.finished))
	s.emit(Note{ev})
	if st.ended != nil {
		s.emit(RecordResult{*st.ended})
		r.dismiss(s)
		s.ended(st.ended)
		return
	}
	if err := s.apply(st); err != nil {
		s.policy.fallback(fmt.Errorf("apply the job log: %w", err))
		return
	}
	r.state = st
	s.policy.restore(st)
	s.dropPartial()
	s.classify()
	r.count()
	r.deadline = s.now + s.cfg.WorkerTimeout
	s.emit(Note{timeline.Job("RECONCILING", fmt.Sprintf("waits at most %v for %s", s.cfg.WorkerTimeout, s.policy.waitsFor(r)))})
}

// dismiss tells workers that nobody needs what they have said they hold.
func (r *recovery) dismiss(s *Scheduler) {
	for _, w := range r.order {
		a := SettleInventory{Worker: w}
		for _, h := range r.inventories[w].Partitions {
			a.Release = append(a.Release, h.Partition)
		}
		for _, x := range r.inventories[w].Running {
			a.Cancel = append(a.Cancel, x.Attempt)
		}
		s.emit(a)
	}
}

// ended: the job was over before this master began.
func (s *Scheduler) ended(e *joblog.JobFinished) {
	status, err := scheduling.StatusFailed, error(nil)
	for st := scheduling.StatusCreated; st <= scheduling.StatusFailed; st++ {
		if st.String() == e.Status {
			status = st
		}
	}
	if e.Error != "" {
		err = fmt.Errorf("before the master was lost: %s", e.Error)
	}
	s.emit(CloseLog{Clear: true})
	s.terminal(status, err)
}

// apply makes the vertices and the finished tasks of a log.
func (s *Scheduler) apply(st *state) error {
	for _, v := range s.vertices {
		e, ok := st.initialized[v.ID]
		if !ok || slices.ContainsFunc(v.in, func(in *edge) bool { return in.from.parallelism == 0 }) {
			continue
		}
		ranges := map[string][]joblog.InputRange{}
		for _, in := range e.Inputs {
			ranges[in.DataSet] = in.Subtasks
		}
		if err := v.fits(e, ranges); err != nil {
			return fmt.Errorf("vertex %q: %w", v.ID, err)
		}
		v.initialize(s.cfg.Parallelism, e.Parallelism, nil, ranges)
	}
	for _, e := range st.finished {
		v := s.byID[e.Attempt.Vertex]
		if v == nil || e.Attempt.Subtask < 0 || e.Attempt.Subtask >= len(v.tasks) {
			return fmt.Errorf("task %s has finished and is not part of the job", e.Attempt.TaskID)
		}
		t := v.tasks[e.Attempt.Subtask]
		if err := s.checkResult(&attempt{id: e.Attempt, t: t}, Result{Results: e.Results}); err != nil {
			return err
		}
		s.setFinished(t, e)
		t.next = e.Attempt.Attempt + 1
		if v.Source {
			if err := v.ledger.Finish(t.subtask, e.Splits); err != nil {
				return err
			}
		}
		for i, out := range v.out {
			out.setProducer(t.subtask, Producer{e.Attempt, Worker(e.Worker)})
			t.parts[i].worker = Worker(e.Worker)
		}
	}
	return nil
}

// fits checks what a log says of a vertex against the job.
func (v *vertex) fits(e joblog.JobVertexInitialized, ranges map[string][]joblog.InputRange) error {
	if e.Parallelism < 1 || v.Parallelism > 0 && v.Parallelism != e.Parallelism {
		return fmt.Errorf("the log has parallelism %d, the job %d", e.Parallelism, v.Parallelism)
	}
	for _, in := range v.in {
		rs := ranges[in.DataSet]
		if len(rs) != e.Parallelism {
			return fmt.Errorf("the log maps input %s for %d tasks of %d", in.DataSet, len(rs), e.Parallelism)
		}
		for _, r := range rs {
			if r.FirstPartition < 0 || r.FirstPartition > r.LastPartition || r.LastPartition >= in.from.parallelism ||
				r.FirstSubpartition < 0 || r.LastSubpartition >= in.subpartitions {
				return fmt.Errorf("the log maps input %s to %+v, which is not there", in.DataSet, r)
			}
		}
	}
	return nil
}

// dropPartial resets finished tasks that cannot be kept without their
// neighbours: of vertices whose coordinators cannot give single subtasks' splits
// back, and of regions that are connected by pipelines. Everything is taken to
// be there; what is not is found later.
func (s *Scheduler) dropPartial() {
	var failed []*task
	for _, v := range s.vertices {
		if v.parallelism == 0 {
			continue
		}
		for _, t := range v.tasks {
			if t.state == finished && slices.ContainsFunc(t.group(), func(m *task) bool { return m.state != finished }) {
				failed = append(failed, t)
			}
		}
		if len(v.Coordinators) == 0 {
			continue
		}
		able := !slices.ContainsFunc(v.Coordinators, func(c Coordinator) bool { return !c.Snapshots })
		switch {
		case able:
			var subtasks []int
			for _, t := range v.tasks {
				if t.state != finished {
					subtasks = append(subtasks, t.subtask)
				}
			}
			if len(subtasks) > 0 {
				s.policy.unfinished(v, subtasks)
			}
		case v.finished == v.parallelism:
			s.fragile[v] = true
		default:
			for _, t := range v.tasks {
				if t.state == finished {
					failed = append(failed, t)
				}
			}
		}
	}
	if len(failed) > 0 {
		s.reset(sorted(s.restartSet(failed, false)), true)
	}
}

// classify says of each partition whether it is to be kept.
func (s *Scheduler) classify() {
	r := s.recovery
	r.expected, r.old, r.unfinished = map[PartitionID]ref{}, map[PartitionID]ref{}, map[PartitionID]ref{}
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			for i, e := range v.out {
				switch {
				case e.Pipelined:
				case t.state != finished:
					own := AttemptID{TaskID: t.id(), Epoch: s.cfg.Epoch, Attempt: t.next}
					r.unfinished[PartitionID{e.DataSet, own}] = ref{t, i}
				case s.needed(t, i):
					r.expected[t.partition(i)] = ref{t, i}
				default:
					r.old[t.partition(i)] = ref{t, i}
				}
			}
		}
	}
}

// inventory takes what a worker has. Answers to another master's question do
// not count.
func (s *Scheduler) inventory(e Inventory) {
	switch r := s.recovery; {
	case e.Epoch != s.cfg.Epoch:
	case s.phase == phaseReconciling:
		if _, twice := r.inventories[e.Worker]; !twice {
			r.order = append(r.order, e.Worker)
		}
		e.Partitions, e.Running = slices.Clone(e.Partitions), slices.Clone(e.Running) // changed and withdraw edit them
		r.inventories[e.Worker] = e
		if r.expected != nil {
			r.count()
		}
	case s.phase == phaseRunning || s.phase == phaseCommitting || s.phase == phaseEnding:
		s.policy.late(e)
	}
}

// advanceRecovery goes on when there is nothing more to wait for.
func (s *Scheduler) advanceRecovery() {
	r := s.recovery
	if r.state == nil || !s.policy.over(r) && s.now < r.deadline {
		return
	}
	r.settled = true
	s.policy.settle(r)
}

// keep notes that a partition is still there.
func (s *Scheduler) keep(p ref, h Held, w Worker) {
	s.partitionThere(p.t, p.output, w)
	s.holders[w] = true
	p.t.parts[p.output].bytes = h.Bytes
	s.note(timeline.PartitionKept, h.Partition.Producer, func(e *timeline.Event) {
		e.Bytes, e.Detail = sum(h.Bytes), h.Partition.DataSet
	})
}

// resetMissing runs the producers of lost partitions again.
func (s *Scheduler) resetMissing(r *recovery) {
	var failed []*task
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			lost := false
			for i := range v.out {
				if _, expected := r.expected[PartitionID{v.out[i].DataSet, t.winner.Attempt}]; !expected || t.state != finished || t.parts[i].there {
					continue
				}
				lost = true
				s.partitionLost(t, i, "not-reported")
			}
			if lost {
				failed = append(failed, t)
			}
		}
	}
	if len(failed) > 0 {
		s.reset(sorted(s.restartSet(failed, true)), true)
	}
}

// enqueueAll looks at all tasks that have not begun.
func (s *Scheduler) enqueueAll() {
	s.candidates = s.candidates[:0]
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if t.state == created {
				s.candidates = append(s.candidates, t)
			}
		}
	}
}
