package batch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

func (w *worker) free(now time.Duration) int {
	if now < w.blocked {
		return 0
	}
	return w.slots - w.used
}

func (s *Scheduler) worker(id Worker) *worker {
	for _, w := range s.workers {
		if w.id == id {
			return w
		}
	}
	return nil
}

// freest is the worker with the most free slots, the first that joined among
// equals; nil if none has any. The one to avoid is not taken.
func (s *Scheduler) freest(avoid Worker) *worker {
	var best *worker
	for _, w := range s.workers {
		if n := w.free(s.now); n > 0 && w.id != avoid && (best == nil || n > best.free(s.now)) {
			best = w
		}
	}
	return best
}

func (s *Scheduler) workerJoined(e WorkerJoined) {
	if s.worker(e.ID) != nil {
		return
	}
	s.workers = append(s.workers, &worker{id: e.ID, slots: e.Slots})
	if s.phase == phaseReconciling {
		s.emit(AskInventory{Worker: e.ID})
	} else if s.phase != phaseCreated {
		s.policy.joined(e.ID)
	}
}

// hold notes that a worker has something of the job.
func (s *Scheduler) hold(id Worker) {
	if !s.holders[id] {
		s.holders[id] = true
		if s.recording() {
			s.policy.holders()
		}
	}
}

// deploy starts an attempt of a task.
func (s *Scheduler) deploy(t *task, w *worker, speculative bool) {
	a := &attempt{
		id: AttemptID{TaskID: t.id(), Epoch: s.cfg.Epoch, Attempt: t.next}, t: t,
		worker: w.id, state: scheduling.TaskDeploying, since: s.now,
	}
	t.next++
	s.hold(w.id)
	s.track(a, w)
	for i, e := range t.v.out {
		if e.Pipelined {
			t.v.out[i].setProducer(t.subtask, Producer{a.id, w.id})
		}
	}
	s.noteState(a)
	s.emit(Deploy{Attempt: a.id, Worker: w.id, Parallelism: t.v.parallelism, Inputs: t.inputsOf(), Outputs: t.outputs(), Speculative: speculative})
}

// track takes an attempt among those that have not ended.
func (s *Scheduler) track(a *attempt, w *worker) {
	a.t.live = append(a.t.live, a)
	s.attempts[a.id] = a
	w.used++
}

// forget drops an attempt that has ended.
func (s *Scheduler) forget(a *attempt) {
	a.t.live = slices.DeleteFunc(a.t.live, func(x *attempt) bool { return x == a })
	delete(s.attempts, a.id)
	if a.t.restart != nil {
		a.t.restart.waiting--
	}
	if w := s.worker(a.worker); w != nil {
		w.used--
	}
}

func (s *Scheduler) cancel(a *attempt) {
	if a.canceling {
		return
	}
	a.canceling = true
	a.state = scheduling.TaskCanceling
	s.noteState(a)
	s.emit(Cancel{Attempt: a.id, Worker: a.worker})
}

func (s *Scheduler) sortedAttempts() []*attempt {
	out := make([]*attempt, 0, len(s.attempts))
	for _, a := range s.attempts {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *attempt) int { return cmp.Or(byPlace(a.t, b.t), cmp.Compare(a.id.Attempt, b.id.Attempt)) })
	return out
}

func (s *Scheduler) noteState(a *attempt) {
	s.note(timeline.TaskState, a.id, func(e *timeline.Event) { e.State, e.Detail = a.state.String(), string(a.worker) })
}

// noteEnd is noteState of an attempt that has ended; one that finished tells what
// it has read and written, one that failed why.
func (s *Scheduler) noteEnd(a *attempt, c TaskChanged) {
	if a.state != scheduling.TaskFinished {
		s.note(timeline.TaskState, a.id, func(e *timeline.Event) {
			e.State, e.Detail = a.state.String(), string(a.worker)
			if c.Err != nil {
				e.Reason = c.Err.Error()
			}
		})
		return
	}
	s.note(timeline.TaskState, a.id, func(e *timeline.Event) {
		e.State, e.Detail, e.Records, e.Bytes = a.state.String(), string(a.worker), c.Result.Records, 0
		for _, x := range c.Result.Results {
			for _, n := range x.Bytes {
				e.Bytes += n
			}
		}
	})
}

// taskChanged takes news of an attempt. Those of attempts that are gone count
// for nothing, except that what they left has to go.
func (s *Scheduler) taskChanged(e TaskChanged) {
	if s.phase == phaseReconciling {
		s.recovery.changed(e)
		return
	}
	a := s.attempts[e.Attempt]
	if a == nil {
		s.stranger(e)
		return
	}
	if !e.State.Terminal() {
		if !a.canceling && a.state != e.State {
			a.state = e.State
			s.noteState(a)
		}
		return
	}
	if e.State == scheduling.TaskFinished && !a.canceling {
		if err := s.checkResult(a, e.Result); err != nil {
			e.State, e.Err, e.Class = scheduling.TaskFailed, err, FailureFatal
		} else if err := a.t.unread(e.Result.Splits); err != nil {
			// It was at its end when another execution was given more: it does not count.
			e.State, e.Err, e.Class = scheduling.TaskFailed, err, FailureTask
			s.emit(Cancel{Attempt: a.id, Worker: a.worker})
			s.release(a.worker, e.Result.of(a.id))
		}
	}
	a.state = e.State
	s.noteEnd(a, e)
	s.forget(a)
	switch {
	case e.State == scheduling.TaskFinished && !a.canceling:
		s.taskFinished(a, e.Result)
	case e.State == scheduling.TaskFinished:
		// It was too fast for the cancellation: nobody will read what it left.
		s.release(a.worker, e.Result.of(a.id))
	case e.State == scheduling.TaskFailed && !a.canceling, e.State == scheduling.TaskCanceled && !a.canceling:
		s.attemptFailed(a, e)
	}
}

// stranger: an attempt that is not ours, or not any more, has to go with all it
// leaves. What was told twice is not one.
func (s *Scheduler) stranger(e TaskChanged) {
	switch {
	case s.won(e.Attempt):
	case s.worker(e.Worker) == nil:
	case !e.State.Terminal():
		s.emit(Cancel{Attempt: e.Attempt, Worker: e.Worker})
	case e.State == scheduling.TaskFinished:
		s.release(e.Worker, e.Result.of(e.Attempt))
	}
}

// won tells whether an attempt has finished and counts.
func (s *Scheduler) won(a AttemptID) bool {
	v := s.byID[a.Vertex]
	if v == nil || a.Subtask < 0 || a.Subtask >= len(v.tasks) {
		return false
	}
	t := v.tasks[a.Subtask]
	return t.state == finished && t.winner.Attempt == a
}

// of names the partitions of a result.
func (r Result) of(a AttemptID) []PartitionID {
	var ids []PartitionID
	for _, x := range r.Results {
		ids = append(ids, PartitionID{x.DataSet, a})
	}
	return ids
}

// checkResult refuses results that do not fit the job: they would spoil the
// parallelism of others.
func (s *Scheduler) checkResult(a *attempt, r Result) error {
	blocking := 0
	for _, e := range a.t.v.out {
		if !e.Pipelined {
			blocking++
		}
	}
	if len(r.Results) != blocking {
		return fmt.Errorf("%s reports %d data sets, it has %d", a.id, len(r.Results), blocking)
	}
	for _, x := range r.Results {
		e := s.byData[x.DataSet]
		if e == nil || e.from != a.t.v || e.Pipelined || len(x.Bytes) != e.subpartitions {
			return fmt.Errorf("%s reports data set %q with %d subpartitions, which it has not", a.id, x.DataSet, len(x.Bytes))
		}
	}
	return nil
}

// taskFinished: an attempt has finished first, and counts.
func (s *Scheduler) taskFinished(a *attempt, r Result) {
	t := a.t
	v := t.v
	if v.Source {
		if err := v.ledger.Finish(t.subtask, r.Splits); err != nil {
			s.end(scheduling.StatusFailed, err)
			return
		}
	}
	s.setFinished(t, joblog.VertexFinished{Attempt: a.id, Worker: string(a.worker),
		Records: r.Records, BytesIn: r.BytesIn, Results: r.Results, Splits: r.Splits})
	v.durations = append(v.durations, s.now-a.since)
	for _, other := range slices.Clone(t.live) {
		s.cancel(other)
	}
	if s.recording() {
		s.policy.taskFinished(t)
	}
	s.policy.output(t)
	for i, e := range v.out {
		if !e.Pipelined {
			s.partitionThere(t, i, a.worker)
		}
	}
	s.releaseConsumed(t)
	s.initializeAll()
	s.wakeConsumers(t)
}

// setFinished gives a task the identity of the attempt that counts.
func (s *Scheduler) setFinished(t *task, e joblog.VertexFinished) {
	t.state, t.winner = finished, e
	s.finishes++
	t.since = s.finishes
	t.setbacks, s.setbacks = 0, 0
	t.v.finished++
	for _, r := range e.Results {
		if x := s.byData[r.DataSet]; x != nil && x.from == t.v {
			t.parts[x.output].bytes = r.Bytes
		}
	}
}

// wakeConsumers looks again at the tasks that read what a task has left.
func (s *Scheduler) wakeConsumers(t *task) {
	for _, e := range t.v.out {
		if e.Pipelined || e.to.parallelism == 0 {
			continue
		}
		if e.consumers == nil {
			// All read all: nothing changes before the last one.
			if e.available == e.from.parallelism {
				s.candidates = append(s.candidates, e.to.tasks...)
			}
			continue
		}
		r := e.readers(t.subtask)
		for i := r.first; i <= r.last; i++ {
			s.candidates = append(s.candidates, e.to.tasks[i])
		}
	}
}
