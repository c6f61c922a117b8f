package master

import (
	"errors"
	"fmt"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/operator"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
)

// commitNext commits one output after the other beside the loop.
func (m *Batch) commitNext() {
	if m.committing || len(m.commits) == 0 {
		return
	}
	m.committing = true
	batchOf := m.commits
	m.commits = nil
	m.work.Go(func() {
		errs := make([]error, len(batchOf))
		for i, id := range batchOf {
			errs[i] = m.commit(id)
		}
		if errors.Join(errs...) != nil {
			waitForStorage(m.ctx)
		}
		m.loop.post(func() {
			m.committing = false
			for i, id := range batchOf {
				m.step(batch.OutputCommitted{Attempt: id, Err: errs[i]})
			}
			m.commitNext()
		})
	})
}

func (m *Batch) commit(id joblog.AttemptID) error {
	reports, err := control.CommitReports(m.cfg.OutputDir, id)
	if err != nil {
		return err
	}
	for _, r := range reports {
		if f, ok := r.Data.(*operator.FileReport); ok {
			if err := operator.CommitFiles(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// batchEnd is the end of the job under way.
type batchEnd struct {
	closing  bool                  // the log is being closed
	terminal *batch.Terminal       // nil: not yet
	workers  map[batch.Worker]bool // that have yet to say what they had left
	err      error
	over     bool
}

// leftoverLimit bounds the wait for workers that clean up.
const leftoverLimit = 10 * time.Second

// terminal ends the job on all workers; then it is over here.
func (m *Batch) terminal(x batch.Terminal) {
	m.workers.shut = true
	m.ending.terminal, m.ending.workers = &x, map[batch.Worker]bool{}
	if x.Status != scheduling.StatusSuspended {
		for _, w := range m.workers.inOrder() {
			m.ending.workers[w.id] = true
			w.conn.Send(control.JobOver{Epoch: m.cfg.Epoch})
		}
	}
	m.endLimit.Reset(leftoverLimit)
	m.finishEnd()
}

// cleaned: a worker has nothing of the job any more, or is gone.
func (m *Batch) cleaned(id batch.Worker) {
	delete(m.ending.workers, id)
	m.finishEnd()
}

// leaveUnclean ends the wait for workers that do not answer.
func (m *Batch) leaveUnclean() {
	clear(m.ending.workers)
	m.finishEnd()
}

// resultKept: masters to come know how the job ended, or will not.
func (m *Batch) resultKept(err error) {
	if err != nil {
		m.ending.err = errors.Join(m.ending.err, fmt.Errorf("keep the job's result: %w", err))
	}
}

// logClosed: nothing is written any more.
func (m *Batch) logClosed(err error) {
	m.ending.closing = false
	m.ending.err = errors.Join(m.ending.err, err)
	m.finishEnd()
}

// finishEnd is called when something that the end waits for has happened.
func (m *Batch) finishEnd() {
	end := &m.ending
	if end.over || end.terminal == nil || end.closing || len(end.workers) > 0 {
		return
	}
	end.over = true
	m.endLimit.Stop()
	err := jobError(end.terminal.Status, end.terminal.Err)
	if end.terminal.Status == scheduling.StatusFinished {
		err = end.err
	}
	m.work.Go(func() {
		if derr := m.dropOutput(); err == nil {
			err = derr
		}
		m.end(err)
	})
}

// dropOutput removes what attempts have left that do not count.
func (m *Batch) dropOutput() error {
	reports, err := control.ReadReports(m.cfg.OutputDir)
	errs := []error{err, control.DropReports(m.cfg.OutputDir)}
	seen := map[string]bool{}
	for _, r := range reports {
		if f, ok := r.Data.(*operator.FileReport); ok && !seen[f.Dir+"\x00"+f.Prefix] {
			seen[f.Dir+"\x00"+f.Prefix] = true
			errs = append(errs, operator.DropFiles(f))
		}
	}
	return errors.Join(errs...)
}
