package scheduling

import "slices"

func (s *Scheduler) taskChanged(e TaskChanged) {
	r := s.runs[e.Task.Vertex]
	if r == nil || r.attempt != e.Task.Attempt || e.Task.Subtask < 0 || e.Task.Subtask >= len(r.states) {
		return // of an execution that is over
	}
	was := r.states[e.Task.Subtask]
	if was.Terminal() || e.State < was && !e.State.Terminal() {
		return // late
	}
	r.states[e.Task.Subtask] = e.State
	if e.State != TaskFailed {
		return
	}
	task := e.Task
	if e.SideEffect && s.stop != nil && s.stop.path != "" {
		// The savepoint is good and does not need what failed.
		r.states[e.Task.Subtask] = TaskFinished
		s.recordException(Exception{At: s.now, Task: &task, Worker: r.workers[task.Subtask], Err: e.Err, Decision: "ignore"})
		return
	}
	s.fail(failure{err: e.Err, fatal: e.Fatal, task: &task, worker: r.workers[task.Subtask]})
}

// loseWorker marks the tasks of a lost worker as failed: nothing more will be
// heard of them.
func (s *Scheduler) loseWorker(e WorkerLost) {
	n := len(s.workers)
	s.workers = slices.DeleteFunc(s.workers, func(w worker) bool { return w.id == e.ID })
	if len(s.workers) == n {
		return
	}
	var first *Task
	for _, v := range s.vertices {
		r := s.runs[v]
		if r == nil {
			continue
		}
		for i, w := range r.workers {
			if w == e.ID && !r.states[i].Terminal() {
				r.states[i] = TaskFailed
				if first == nil {
					first = &Task{v, i, r.attempt}
				}
			}
		}
	}
	switch {
	case s.state == CreatingExecutionGraph && slices.Contains(s.prep.slots, e.ID):
		s.prep = nil
		s.waitForResources()
	case first != nil || s.state == Executing && slices.Contains(s.slots, e.ID):
		// Even if all its tasks had finished: a region that restarts would look
		// for its slots in vain.
		s.fail(failure{err: lost(e), task: first, worker: e.ID, workerLost: true})
	default:
		s.change()
	}
}

// nonTerminal lists the tasks of vertices that have not ended.
func (s *Scheduler) nonTerminal(vertices []string) []Task {
	var ts []Task
	for _, v := range vertices {
		if r := s.runs[v]; r != nil {
			for i, st := range r.states {
				if !st.Terminal() {
					ts = append(ts, Task{v, i, r.attempt})
				}
			}
		}
	}
	return ts
}

func (s *Scheduler) allTerminal(vertices []string) bool { return len(s.nonTerminal(vertices)) == 0 }

func (s *Scheduler) allFinished() bool {
	for _, v := range s.vertices {
		for _, st := range s.runs[v].states {
			if st != TaskFinished {
				return false
			}
		}
	}
	return true
}

// cancelTasks asks for the end of what has not ended and is not being ended.
func (s *Scheduler) cancelTasks(vertices []string) {
	tasks := slices.DeleteFunc(s.nonTerminal(vertices), func(t Task) bool {
		return s.runs[t.Vertex].states[t.Subtask] == TaskCanceling
	})
	if len(tasks) == 0 {
		return
	}
	for _, t := range tasks {
		s.runs[t.Vertex].states[t.Subtask] = TaskCanceling
	}
	s.emit(CancelTasks{Tasks: tasks})
}

// updateCheckpointing follows whether all tasks run.
func (s *Scheduler) updateCheckpointing() {
	if s.state != Executing && s.state != StopWithSavepoint {
		return
	}
	for _, v := range s.vertices {
		for _, st := range s.runs[v].states {
			if st != TaskRunning && st != TaskFinished {
				s.stopCheckpointing()
				return
			}
		}
	}
	if !s.checkpointing {
		s.checkpointing = true
		s.emit(StartCheckpointing{})
	}
}

func (s *Scheduler) stopCheckpointing() {
	if s.checkpointing {
		s.checkpointing = false
		s.emit(StopCheckpointing{})
	}
}
