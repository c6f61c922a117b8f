package checkpoint

import "fmt"

// failures counts failed checkpoints in a row.
type failures struct {
	tolerable   int
	count       int
	seen        map[int64]bool // ids that have been counted
	lastSuccess int64
}

// succeeded begins anew, unless the success is older than the last one.
func (f *failures) succeeded(id int64) {
	if id > f.lastSuccess {
		f.lastSuccess = id
		f.clear()
	}
}

func (f *failures) clear() {
	f.count = 0
	f.seen = nil
}

// failed counts a failure and tells whether there are now too many. An id of 0
// is that of a checkpoint that never got one; each of those counts.
func (f *failures) failed(id int64, r Reason) bool {
	if !r.Counts() || f.tolerable >= Unlimited {
		return false
	}
	if id != 0 {
		if id <= f.lastSuccess || f.seen[id] {
			return false
		}
		if f.seen == nil {
			f.seen = map[int64]bool{}
		}
		f.seen[id] = true
	}
	f.count++
	if f.count <= f.tolerable {
		return false
	}
	f.clear()
	return true
}

// reportFailure tells of a failure and fails the job if it is one too many.
func (c *Coordinator) reportFailure(id int64, r *request, task *Task, err *Error) {
	c.emit(ReportFailed{ID: id, Reason: err.Reason, Task: task, Err: err})
	if c.shutdown {
		return
	}
	switch {
	case task != nil && r.stop:
		// The tasks wait for a notification that will not come.
		c.emit(FailJob{Reason: err.Reason, ID: id, Task: task, Err: fmt.Errorf("stop with savepoint %d: %w", id, err)})
	case task == nil && r.savepoint:
		// The user is told; the job is not to blame.
	case c.failures.failed(id, err.Reason):
		c.emit(FailJob{Reason: err.Reason, ID: id, Task: task,
			Err: fmt.Errorf("more than %d checkpoints in a row failed (execution.checkpointing.tolerable-failed-checkpoints), the last one: %w", c.cfg.TolerableFailures, err)})
	}
}
