package batch

import (
	"slices"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
)

// What tasks do: they read splits and end.

// pull lets a source's attempt read splits until there are none, or one.
func (w *world) pull(a AttemptID, all bool) {
	if w.s.attempts[a] == nil {
		return // a coordinator does not serve attempts that its master does not know
	}
	for _, v := range w.cfg.Vertices {
		if v.ID != a.Vertex {
			continue
		}
		for _, c := range v.Coordinators {
			e := w.enumerators[c.Operator]
			for len(e.free) > 0 {
				e.has[a.Subtask] = append(e.has[a.Subtask], e.free[0])
				for other := range w.s.attempts { // all executions of a subtask read the same
					if other.TaskID == a.TaskID {
						w.splitsOf[other] = append(w.splitsOf[other], e.free[0])
					}
				}
				e.free = e.free[1:]
				if !all {
					break
				}
			}
		}
	}
}

// finish ends an attempt with the same number of bytes in each subpartition.
// Untold: there is no master to hear of it.
func (w *world) finish(id Worker, a AttemptID, bytes int64, untold bool) []Effect {
	site := w.workers[id]
	d := site.running[a]
	if !w.early {
		w.pull(a, true)
	}
	r := Result{Records: 1, Splits: slices.Clone(w.splitsOf[a])}
	if w.unread {
		w.step(SplitsAssigned{Task: a.TaskID, Splits: r.Splits})
		r.Splits = r.Splits[1:]
	}
	for _, o := range d.Outputs {
		if o.Pipelined {
			continue
		}
		b := make([]int64, o.Subpartitions)
		for i := range b {
			b[i] = bytes
		}
		r.Results = append(r.Results, joblog.Result{DataSet: o.DataSet, Bytes: b})
		site.partitions[PartitionID{o.DataSet, a}] = b
	}
	delete(site.running, a)
	if w.cfg.Mode != Faithful {
		site.done[a] = r
	}
	if untold {
		return nil
	}
	return w.step(TaskChanged{Attempt: a, Worker: id, State: scheduling.TaskFinished, Result: r})
}
