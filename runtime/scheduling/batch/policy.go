package batch

import (
	"benchrun/runtime/joblog"
)

// policy is what differs between the modes: what is logged when, how a log is
// understood, and how a new master makes up its mind about what is left.
type policy interface {
	// unused: there is a log, and recovery is off.
	unused()
	// anew: the job begins from nothing, under whichever master.
	anew()
	// takeover: from here on this master writes; these attempts it has kept.
	takeover(kept []AttemptID)
	// taskFinished logs the end of a task.
	taskFinished(t *task)
	// output: a task has finished whose output may be committed.
	output(t *task)
	// committing: all tasks have finished; what of their output is to be committed.
	committing()
	// waits tells whether what cannot be undone waits for the log.
	waits() bool
	// finished logs the end of the job.
	finished(e joblog.JobFinished)
	// holders: the workers that hold something have changed.
	holders()
	// joined: a worker has joined a job that goes on after a takeover.
	joined(w Worker)

	// replay says what the events of a log come to.
	replay(events []joblog.Event) *state
	// restore begins the coordinators anew, before anything is known of workers.
	restore(st *state)
	// unfinished: the finished tasks of a vertex are kept, the others have lost
	// their splits.
	unfinished(v *vertex, subtasks []int)
	// waitsFor says what a new master waits for.
	waitsFor(r *recovery) string
	// over tells whether there is nothing more to wait for.
	over(r *recovery) bool
	// settle decides about all that was reported, and goes on.
	settle(r *recovery)
	// late answers an inventory for which nobody waited any more.
	late(e Inventory)
	// fallback: the log or the reports cannot be used.
	fallback(err error)
}

// state is what a log comes to.
type state struct {
	initialized map[string]joblog.JobVertexInitialized
	finished    []joblog.VertexFinished // in order
	snapshots   []joblog.Snapshot       // the newest of each operator, in order
	workers     []string
	ended       *joblog.JobFinished
	events      int
}

// snapshot is the state of an operator, nil if there is none.
func (st *state) snapshot(operator string) []byte {
	for _, s := range st.snapshots {
		if s.Operator == operator {
			return s.Data
		}
	}
	return nil
}

// putSnapshot replaces the snapshot of an operator.
func (st *state) putSnapshot(s joblog.Snapshot) {
	for i := range st.snapshots {
		if st.snapshots[i].Operator == s.Operator {
			st.snapshots[i] = s
			return
		}
	}
	st.snapshots = append(st.snapshots, s)
}

// finishedTasks are finished tasks in the order in which they finished.
type finishedTasks struct {
	order []joblog.VertexFinished
	index map[TaskID]int
}

func (f *finishedTasks) put(e joblog.VertexFinished) {
	if f.index == nil {
		f.index = map[TaskID]int{}
	}
	f.drop(e.Attempt.TaskID)
	f.index[e.Attempt.TaskID] = len(f.order)
	f.order = append(f.order, e)
}

func (f *finishedTasks) drop(t TaskID) {
	if i, ok := f.index[t]; ok {
		f.order[i] = joblog.VertexFinished{}
		delete(f.index, t)
	}
}

func (f *finishedTasks) list() []joblog.VertexFinished {
	out := make([]joblog.VertexFinished, 0, len(f.index))
	for i, e := range f.order {
		if at, ok := f.index[e.Attempt.TaskID]; ok && at == i {
			out = append(out, e)
		}
	}
	return out
}
