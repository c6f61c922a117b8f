package master

import (
	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
)

// workerMessage implements members.
func (m *Batch) workerMessage(w *worker, msg any) {
	switch x := msg.(type) {
	case control.Heartbeat:
	case control.InUse:
		m.inUse(x.Options)
	case control.Inventory:
		m.inventoried(w, x)
	case control.AttemptState:
		m.attemptState(w, x)
	case control.FromAttempt:
		m.readerEvent(x)
	case control.Counts:
		m.shared.Lock()
		for _, c := range x.Attempts {
			if _, live := m.attempts[c.Attempt]; live {
				m.shared.counts[c.Attempt] = c.Consumed
			}
		}
		m.shared.Unlock()
	case control.Leftover:
		if x.Bytes != control.LeftoverUnknown {
			m.shared.Lock()
			m.shared.leftover += x.Bytes
			m.shared.heard = append(m.shared.heard, w.came)
			m.shared.Unlock()
		}
		m.cleaned(w.id)
	}
}

// workerJoined implements members.
func (m *Batch) workerJoined(w *worker) {
	if !m.announced {
		return // Begin introduces it
	}
	m.introduce(w)
	if len(m.workers.joined) >= m.waiting {
		m.joined()
	}
}

// introduce tells a worker of the job, everybody of the worker, and the scheduler
// of its slots.
func (m *Batch) introduce(w *worker) {
	w.conn.Send(control.BatchJob{
		Epoch: m.cfg.Epoch, Job: m.cfg.Job, Run: m.cfg.Run, Graph: *m.cfg.Graph, Options: m.cfg.Values.Map(), Started: m.started,
	})
	all := m.workers.inOrder()
	peers := make([]control.Peer, len(all))
	for i, x := range all {
		peers[i] = control.Peer{Name: x.id, Identity: x.self, Addr: x.addr}
	}
	for _, x := range all {
		x.conn.Send(control.Peers{Epoch: m.cfg.Epoch, Workers: peers})
	}
	m.step(batch.WorkerJoined{ID: w.id, Slots: w.slots})
	if m.begun {
		m.sweepWorker(w)
	}
}

// sweepWorker asks a worker for what it has if the scheduler does not: it may
// still work for a master that left no log, and its folder may be that of one
// that died. What nobody knows of has to go.
func (m *Batch) sweepWorker(w *worker) {
	m.loop.enqueue(func() {
		if !m.asked[w.id] {
			m.askInventory(w.id)
		}
	})
}

func (m *Batch) askInventory(id batch.Worker) {
	m.silent[id] = true
	m.workers.send(id, control.AskInventory{Epoch: m.cfg.Epoch})
}

// workerLost implements members.
func (m *Batch) workerLost(w *worker, err error) {
	delete(m.told, w.id)
	delete(m.silent, w.id)
	m.dead[w.id] = true // the scheduler may not have begun
	for id, name := range m.attempts {
		if name == w.id {
			m.attemptOver(id)
		}
	}
	for task, parts := range m.partitions {
		for id, name := range parts {
			if name == w.id {
				delete(m.partitions[task], id)
			}
		}
	}
	m.step(batch.WorkerLost{ID: w.id, Err: err})
	m.cleaned(w.id)
}

// inventoried takes what a worker has.
func (m *Batch) inventoried(w *worker, x control.Inventory) {
	delete(m.silent, w.id)
	if m.ending.decided {
		m.letGo(w, x)
		return
	}
	for i := range x.Partitions {
		m.track(x.Partitions[i].Partition, w.id)
		m.ofBefore(x.Partitions[i].Partition.Producer)
	}
	var running []batch.Execution
	for i := range x.Running {
		r := &x.Running[i]
		if m.faithful && r.Attempt.Epoch < uint64(m.cfg.Epoch) {
			m.workers.send(w.id, control.CancelAttempt{Epoch: m.cfg.Epoch, Attempt: r.Attempt})
			continue
		}
		running = append(running, *r)
		m.ofBefore(r.Attempt)
		if r.State == scheduling.TaskFinished {
			m.results[attemptKey{r.Attempt.TaskID, r.Attempt.Attempt}] = &r.Result
		}
	}
	m.step(batch.Inventory{Worker: w.id, Epoch: uint64(x.Epoch), Formerly: x.Formerly, Partitions: x.Partitions, Running: running})
}

// attemptKey is an attempt as the scheduler's events name it, without its epoch.
type attemptKey struct {
	joblog.TaskID
	attempt int
}

func (m *Batch) ofBefore(id joblog.AttemptID) {
	k := attemptKey{id.TaskID, id.Attempt}
	if id.Epoch < uint64(m.cfg.Epoch) {
		m.before[k] = max(m.before[k], id.Epoch)
	}
}

// track notes where a partition is, for DropPartition.
func (m *Batch) track(p batch.PartitionID, w batch.Worker) {
	t := p.Producer.TaskID
	if m.partitions[t] == nil {
		m.partitions[t] = map[batch.PartitionID]batch.Worker{}
	}
	m.partitions[t][p] = w
}

func (m *Batch) untrack(p batch.PartitionID) {
	t := p.Producer.TaskID
	delete(m.partitions[t], p)
	if len(m.partitions[t]) == 0 {
		delete(m.partitions, t)
	}
}

// attemptState follows the life of an attempt.
func (m *Batch) attemptState(w *worker, x control.AttemptState) {
	if x.State.Terminal() {
		m.attemptOver(x.Attempt)
	}
	if x.State == scheduling.TaskFinished {
		m.results[attemptKey{x.Attempt.TaskID, x.Attempt.Attempt}] = &x.Result
		for _, r := range x.Result.Results {
			m.track(batch.PartitionID{DataSet: r.DataSet, Producer: x.Attempt}, w.id)
		}
	}
	e := batch.TaskChanged{
		Attempt: x.Attempt, State: x.State, Err: textError(x.Error), Class: x.Class, Partition: x.Partition, Peer: x.Peer, Result: x.Result, Worker: w.id,
	}
	m.step(e)
	m.loop.enqueue(func() { delete(m.results, attemptKey{x.Attempt.TaskID, x.Attempt.Attempt}) })
}

// counted: a task has finished, and what it has read counts.
func (m *Batch) counted(t joblog.TaskID, records int64) {
	m.shared.Lock()
	defer m.shared.Unlock()
	if m.shared.finished[t.Vertex] == nil {
		m.shared.finished[t.Vertex] = map[int]int64{}
	}
	m.shared.finished[t.Vertex][t.Subtask] = records
}

// attemptOver: an attempt has ended; its counter and its reader go.
func (m *Batch) attemptOver(id joblog.AttemptID) {
	delete(m.attempts, id)
	m.shared.Lock()
	delete(m.shared.counts, id)
	m.shared.Unlock()
}
