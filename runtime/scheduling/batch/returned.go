package batch

import (
	"slices"

	"benchrun/runtime/timeline"
)

// A worker that was lost may come back, or another one to its folder, with partitions
// that have been given up. They count again as long as nobody has begun to do without
// them: their producers are yet to run again, and so is everything that these read.

// returned takes back what a worker has of finished tasks that are to run again.
func (s *Scheduler) returned(e Inventory) {
	if s.phase != phaseRunning || s.worker(e.Worker) == nil {
		return
	}
	held := map[PartitionID]Held{}
	for _, h := range e.Partitions {
		held[h.Partition] = h
	}
	// Tasks that have not been reset: their restart waits for something.
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if t.state == finished {
				s.regain(t, held, e.Worker)
			}
		}
	}
	for _, r := range s.restarts {
		s.narrow(r)
	}
	s.restarts = slices.DeleteFunc(s.restarts, func(r *restart) bool { return len(r.tasks) == 0 && !r.global })
	// Tasks that have: first those that others have read.
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if s.untouched(t, held) {
				s.revive(t, held, e.Worker)
			}
		}
	}
	for _, h := range e.Partitions {
		t, output, ok := s.producer(h.Partition)
		if ok && t.lost == h.Partition.Producer && !(t.state == finished && t.parts[output].there && t.winner.Attempt == t.lost) {
			s.note(timeline.PartitionKept, h.Partition.Producer, func(e *timeline.Event) {
				e.Bytes, e.Detail, e.Reason = sum(h.Bytes), h.Partition.DataSet, timeline.TooLate
			})
		}
	}
	s.initializeAll()
}

// regain begins to track again what somebody needs of a finished task.
func (s *Scheduler) regain(t *task, held map[PartitionID]Held, w Worker) {
	for i, e := range t.v.out {
		h, ok := held[t.partition(i)]
		if ok && !t.parts[i].there && len(h.Bytes) == e.subpartitions && s.needed(t, i) {
			s.hold(w)
			s.keep(ref{t, i}, h, w)
		}
	}
}

// narrow takes out of a restart what is no reason for it any more, with all that
// followed from that. Attempts that are being cancelled have to run again.
func (s *Scheduler) narrow(r *restart) {
	if r.global {
		return
	}
	mine := func(t *task) bool { return t.restart == r }
	r.failed = slices.DeleteFunc(r.failed, func(t *task) bool {
		return !mine(t) || t.state == finished && !slices.ContainsFunc(t.v.out, func(e *edge) bool {
			return !e.Pipelined && !t.parts[e.output].there && s.needed(t, e.output)
		})
	})
	base := slices.Clone(r.failed)
	for _, t := range r.tasks {
		if mine(t) && t.state == running {
			base = append(base, t)
		}
	}
	set := s.restartSet(base, true)
	r.tasks = slices.DeleteFunc(r.tasks, func(t *task) bool {
		if !mine(t) || set[t] {
			return !mine(t)
		}
		r.waiting -= len(t.live)
		t.restart = nil
		t.v.restarting--
		s.candidates = append(s.candidates, t)
		s.wakeConsumers(t)
		return true
	})
}

// untouched tells whether a task was reset, does not run again, and can be what it was: all of its output is there, and what it has read is what counts.
// Splits that were given back may be anybody's.
func (s *Scheduler) untouched(t *task, held map[PartitionID]Held) bool {
	if t.state != created || t.restart != nil || t.region != nil || t.since == 0 ||
		t.v.Source || len(t.v.Coordinators) > 0 || len(t.v.out) == 0 {
		return false
	}
	for i, e := range t.v.out {
		if h, ok := held[t.partition(i)]; !ok || len(h.Bytes) != e.subpartitions {
			return false
		}
	}
	for _, e := range t.v.in {
		r := e.ranges[t.subtask]
		for p := r.FirstPartition; p <= r.LastPartition; p++ {
			if from := e.from.tasks[p]; from.state != finished || from.restart != nil || from.since > t.since {
				return false
			}
		}
	}
	return true
}

// revive makes a task that was reset finished again.
func (s *Scheduler) revive(t *task, held map[PartitionID]Held, w Worker) {
	since, x := t.since, t.winner
	x.Worker = string(w)
	s.hold(w)
	s.setFinished(t, x)
	t.since = since
	if s.recording() {
		s.policy.taskFinished(t)
	}
	for i := range t.v.out {
		s.keep(ref{t, i}, held[t.partition(i)], w)
	}
	s.releaseConsumed(t)
	s.wakeConsumers(t)
}
