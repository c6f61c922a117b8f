package batch

import (
	"fmt"
	"slices"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// restart is a set of tasks that run again once their attempts have ended and
// the delay is over. A task belongs to the newest restart that concerns it.
type restart struct {
	at      time.Duration
	tasks   []*task
	failed  []*task // because of which
	waiting int     // attempts that have not ended
	global  bool
}

// attemptFailed decides what follows from the failure of an attempt.
func (s *Scheduler) attemptFailed(a *attempt, e TaskChanged) {
	if s.phase != phaseRunning {
		return
	}
	err := e.Err
	if err == nil {
		err = fmt.Errorf("attempt %s was %s", a.id, e.State)
	}
	if e.Class == FailureFatal {
		s.end(scheduling.StatusFailed, err)
		return
	}
	var failed []*task
	if e.Class == FailurePartitionLost {
		if p, output, ok := s.find(e.Partition); ok && p.parts[output].there {
			s.partitionLost(p, output, err.Error())
			failed = append(failed, p)
		}
	}
	// Another execution of the task may still finish.
	if len(a.t.live) == 0 || len(failed) > 0 {
		failed = append(failed, a.t)
	}
	s.fail(err, failed, e.Peer)
}

// partitionsGone: what nobody needs any more is only forgotten.
func (s *Scheduler) partitionsGone(e PartitionsGone) {
	if s.phase == phaseReconciling {
		s.recovery.withdraw(e.Partitions)
	}
	if s.phase != phaseRunning {
		return
	}
	reason := "gone"
	if e.Err != nil {
		reason = e.Err.Error()
	}
	var failed []*task
	for _, id := range e.Partitions {
		if t, output, ok := s.find(id); ok && t.parts[output].there {
			s.partitionLost(t, output, reason)
			if s.needed(t, output) {
				failed = append(failed, t)
			}
		}
	}
	s.fail(fmt.Errorf("%d partitions are gone: %s", len(e.Partitions), reason), failed, "")
}

// workerLost: all that the worker ran has failed and all that it held is lost,
// at once. Consumers need not find out one by one.
func (s *Scheduler) workerLost(e WorkerLost) {
	delete(s.holders, e.ID)
	s.lost = fmt.Errorf("worker %s was lost", e.ID)
	if e.Err != nil {
		s.lost = fmt.Errorf("%w: %w", s.lost, e.Err)
	}
	i := slices.IndexFunc(s.workers, func(w *worker) bool { return w.id == e.ID })
	if i >= 0 {
		s.workers = slices.Delete(s.workers, i, i+1)
	}
	ev := timeline.Of(timeline.WorkerLost)
	ev.Detail = string(e.ID)
	s.emit(Note{ev})
	if s.phase == phaseReconciling {
		if i >= 0 {
			s.recovery.expect--
		}
		s.recovery.dead(e.ID)
		return
	}
	var failed []*task
	for _, a := range s.sortedAttempts() {
		if a.worker != e.ID {
			continue
		}
		if a.canceling {
			a.state = scheduling.TaskCanceled
		} else {
			a.state = scheduling.TaskFailed
		}
		s.noteState(a)
		s.forget(a)
		if !a.canceling && len(a.t.live) == 0 {
			failed = append(failed, a.t)
		}
	}
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			for i := range t.parts {
				if p := t.parts[i]; p.there && p.worker == e.ID {
					s.partitionLost(t, i, "worker-lost")
					if s.needed(t, i) {
						failed = append(failed, t)
					}
				}
			}
		}
	}
	if i >= 0 && s.recording() {
		s.policy.holders()
	}
	if s.phase == phaseRunning {
		s.fail(s.lost, failed, e.ID)
	}
	delete(s.blamed, e.ID)
}

// fail restarts what follows from the failure of tasks, as one failure: of the tasks,
// or of the worker that is to blame.
func (s *Scheduler) fail(err error, failed []*task, blamed Worker) {
	failed = slices.DeleteFunc(failed, func(t *task) bool { return t.restart != nil })
	if len(failed) == 0 {
		return // part of a failure that is being dealt with
	}
	s.restart(err, failed, s.restartSet(failed, true), false, blamed)
}

// blame is a failure of a worker that counts.
type blame struct {
	at    time.Duration
	delay time.Duration // that the restart strategy set
}

// count asks the restart strategy about a failure. A worker that does not answer fails
// everybody who reads from it, and is lost when it has been silent for long enough:
// that is one failure.
func (s *Scheduler) count(blamed Worker) (delay time.Duration, refused string) {
	if b, ok := s.blamed[blamed]; ok && s.now-b.at <= s.cfg.Silence {
		return b.delay, ""
	}
	delay, refused = s.strategy.Failed(s.now)
	if blamed != "" {
		s.blamed[blamed] = blame{s.now, delay}
	}
	return delay, refused
}

// restartAll restarts the job. While that is under way others are part of it.
func (s *Scheduler) restartAll(err error) {
	if s.phase != phaseRunning || s.global != nil {
		return
	}
	all := map[*task]bool{}
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			all[t] = true
		}
	}
	s.restart(err, nil, all, true, "")
}

// restart lets a set of tasks run again because of those that failed.
func (s *Scheduler) restart(err error, failed []*task, set map[*task]bool, global bool, blamed Worker) {
	delay, refused := s.count(blamed)
	if refused != "" {
		s.end(scheduling.StatusFailed, fmt.Errorf("%w (no restart: %s)", err, refused))
		return
	}
	if pause := s.pace(failed, global); delay == 0 {
		delay = pause
	}
	s.setStatus(scheduling.StatusRestarting, err)
	r := &restart{at: s.now + delay, tasks: sorted(set), failed: slices.Clone(failed), global: global}
	for _, t := range r.tasks {
		if t.restart != nil {
			t.restart.waiting -= len(t.live)
			if slices.Contains(t.restart.failed, t) {
				r.failed = append(r.failed, t)
			}
		} else {
			t.v.restarting++
		}
		t.restart = r
		r.waiting += len(t.live)
	}
	for _, t := range r.tasks {
		for _, a := range slices.Clone(t.live) {
			s.cancel(a)
		}
	}
	s.restarts = append(s.restarts, r)
	if global {
		s.global = r
	}
}

// restartSet closes over the three rules: the regions of the failed tasks; the
// producers of inputs that are not there (unless all are taken to be there);
// the consumers of all of these. Vertices that restart as a whole are added
// until nothing changes.
func (s *Scheduler) restartSet(failed []*task, availability bool) map[*task]bool {
	set := map[*task]bool{}
	scanned := map[*edge]uint8{} // edges between all, of which one look is enough
	queue := slices.Clone(failed)
	widened := map[*vertex]bool{}
	add := func(t *task) {
		for _, m := range t.group() {
			if !set[m] {
				queue = append(queue, m)
			}
		}
	}
	for {
		if len(queue) == 0 {
			if queue = s.widen(set, widened); len(queue) == 0 {
				return set
			}
		}
		t := queue[0]
		queue = queue[1:]
		if set[t] {
			continue
		}
		set[t] = true
		add(t)
		for _, e := range t.v.in {
			if !availability || e.Pipelined || e.consumers == nil && scanned[e]&1 != 0 {
				continue
			}
			scanned[e] |= 1
			r := e.ranges[t.subtask]
			for p := r.FirstPartition; p <= r.LastPartition; p++ {
				if from := e.from.tasks[p]; from.state == finished && !from.parts[e.output].there {
					add(from)
				}
			}
		}
		for _, e := range t.v.out {
			if e.to.parallelism == 0 || e.consumers == nil && scanned[e]&2 != 0 {
				continue
			}
			scanned[e] |= 2
			r := e.readers(t.subtask)
			for i := r.first; i <= r.last; i++ {
				if to := e.to.tasks[i]; to.state != created {
					add(to)
				}
			}
		}
	}
}

// widen adds the tasks of vertices that restart as a whole, once.
func (s *Scheduler) widen(set map[*task]bool, widened map[*vertex]bool) (more []*task) {
	for _, v := range s.vertices {
		if s.fragile[v] && !widened[v] && slices.ContainsFunc(v.tasks, func(t *task) bool { return set[t] }) {
			widened[v] = true
			more = append(more, v.tasks...)
		}
	}
	return more
}

// advanceRestarts resets tasks whose attempts have all ended.
func (s *Scheduler) advanceRestarts() {
	if len(s.restarts) == 0 {
		return
	}
	s.restarts = slices.DeleteFunc(s.restarts, func(r *restart) bool {
		if r.waiting > 0 || s.now < r.at {
			return false
		}
		mine := slices.DeleteFunc(r.tasks, func(t *task) bool { return t.restart != r })
		if r.global {
			s.global = nil
			s.resetCoordinators()
		}
		s.reset(mine, !r.global)
		return true
	})
}

// resetCoordinators begins all of them anew: there is no checkpoint to fall back
// to, and what they handed out is handed out again.
func (s *Scheduler) resetCoordinators() {
	for _, v := range s.vertices {
		v.ledger.Reset()
		for _, c := range v.Coordinators {
			if v.parallelism > 0 {
				s.emit(RestoreCoordinator{Vertex: v.ID, Operator: c.Operator, Parallelism: v.parallelism})
			}
		}
	}
}

// reset brings tasks back to the beginning, in one step: the log, the
// coordinators and the workers hear of all of them at once. tell: coordinators
// take back the splits of single subtasks.
func (s *Scheduler) reset(tasks []*task, tell bool) {
	tasks = slices.DeleteFunc(tasks, func(t *task) bool {
		if t.restart != nil {
			t.restart = nil
			t.v.restarting--
		}
		if t.state == created {
			s.candidates = append(s.candidates, t)
		}
		return t.state == created
	})
	if len(tasks) == 0 {
		return
	}
	if s.recording() {
		e := joblog.VerticesReset{}
		for _, t := range tasks {
			e.Tasks = append(e.Tasks, t.id())
		}
		s.log(Log{Event: e})
	}
	r := releases{}
	for _, t := range tasks {
		if t.state == finished {
			t.v.finished--
			for i := range t.parts {
				if t.parts[i].there {
					r.add(t.parts[i].worker, t.partition(i))
					s.partitionAway(t, i)
				}
				t.parts[i] = part{}
			}
		}
		t.v.ledger.Return(t.subtask)
		t.state = created
		s.candidates = append(s.candidates, t)
	}
	s.releaseEach(r)
	for _, v := range s.vertices {
		var subtasks []int
		for _, t := range tasks {
			if t.v == v {
				subtasks = append(subtasks, t.subtask)
			}
		}
		if len(subtasks) == 0 {
			continue
		}
		if len(subtasks) == v.parallelism {
			delete(s.fragile, v)
		}
		switch {
		case !tell:
		case s.phase == phaseReconciling:
			s.policy.unfinished(v, subtasks)
		default:
			s.tellReset(v, subtasks)
		}
	}
}

func (s *Scheduler) tellReset(v *vertex, subtasks []int) {
	for _, c := range v.Coordinators {
		s.emit(ResetSubtasks{Vertex: v.ID, Operator: c.Operator, Subtasks: subtasks})
	}
}
