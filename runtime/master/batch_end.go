package master

import (
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/scheduling/batch"
)

// batchEnd is the end of the job under way.
type batchEnd struct {
	decided  bool                  // nobody needs anything of the job any more
	closing  bool                  // the log is being closed
	terminal *batch.Terminal       // nil: not yet
	workers  map[batch.Worker]bool // that have yet to say what they had left
	unkept   bool                  // the result could not be made durable
	over     bool
}

// leftoverLimit bounds the wait for workers that clean up.
const leftoverLimit = 10 * time.Second

// terminal ends the job on all workers; then it is over here.
func (m *Batch) terminal(x batch.Terminal) {
	m.workers.shut = true
	m.ending.terminal, m.ending.workers = &x, map[batch.Worker]bool{}
	if m.ending.decided {
		for _, w := range m.workers.inOrder() {
			m.ending.workers[w.id] = true
			if !m.silent[w.id] { // else letGo tells it
				w.conn.Send(control.JobOver{Epoch: m.cfg.Epoch})
			}
		}
	}
	m.endLimit.Reset(leftoverLimit)
	m.finishEnd()
}

// letGo answers a worker that comes to say only now what it has: nobody needs that
// any more, and it is no leftover of a job that nobody told to go. If terminal has
// passed it by, this ends the job there.
func (m *Batch) letGo(w *worker, x control.Inventory) {
	settle := control.Settle{Epoch: m.cfg.Epoch}
	for _, h := range x.Partitions {
		settle.Release = append(settle.Release, h.Partition)
	}
	for _, r := range x.Running {
		settle.Cancel = append(settle.Cancel, r.Attempt)
	}
	w.conn.Send(settle)
	if m.ending.workers[w.id] {
		w.conn.Send(control.JobOver{Epoch: m.cfg.Epoch})
	}
}

// cleaned: a worker has nothing of the job any more, or is gone.
func (m *Batch) cleaned(id batch.Worker) {
	delete(m.ending.workers, id)
	m.finishEnd()
}

// leaveUnclean ends the wait for workers that do not answer. What they have left is
// in no figure.
func (m *Batch) leaveUnclean() {
	clear(m.ending.workers)
	m.finishEnd()
}

// resultKept: masters to come know how the job ended, or will not. Then they take
// back what was committed and run the job again, which is right until somebody has
// been told of the end, and nobody starts them after that. So it is no failure of
// the job; the log stays, for it may know.
func (m *Batch) resultKept(err error) { m.ending.unkept = err != nil }

// logClosed: nothing is written any more.
func (m *Batch) logClosed(err error) {
	m.ending.closing = false
	if err != nil {
		m.log.trouble(writesEvents, err)
	}
	m.finishEnd()
}

// finishEnd is called when something that the end waits for has happened.
func (m *Batch) finishEnd() {
	end := &m.ending
	if end.over || end.terminal == nil || end.closing || m.commits.busy || len(end.workers) > 0 {
		return
	}
	end.over = true
	m.endLimit.Stop()
	err := jobError(end.terminal.Status, end.terminal.Err)
	m.work.Go(func() {
		if derr := m.dropOutput(); err == nil {
			err = derr
		}
		m.end(err)
	})
}
