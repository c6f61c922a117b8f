package master

import (
	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// workerMessage implements members.
func (m *Master) workerMessage(_ *worker, msg any) {
	switch x := msg.(type) {
	case control.Heartbeat:
	case control.InUse:
		m.inUse(x.Options)
	case control.TaskState:
		m.taskState(x)
	case control.Acknowledge:
		st, err := snapshot.DecodeSubtask("acknowledgement of "+x.Task.Vertex, x.State)
		if err != nil {
			m.checkpoint(checkpoint.Decline{Task: checkpoint.Task(x.Task), ID: x.Checkpoint, Reason: checkpoint.CheckpointDeclined, Err: err})
			return
		}
		m.checkpoint(checkpoint.Ack{Task: checkpoint.Task(x.Task), ID: x.Checkpoint, State: st})
	case control.Passed:
		m.barrierPassed(x)
	case control.Decline:
		reason, err := checkpoint.ParseReason(x.Reason)
		if err != nil {
			reason = checkpoint.CheckpointDeclined
		}
		m.checkpoint(checkpoint.Decline{Task: checkpoint.Task(x.Task), ID: x.Checkpoint, Reason: reason, Err: textError(x.Error)})
	case control.Ended:
		m.checkpoint(checkpoint.EndOfData{})
	case control.FromReader:
		m.readerEvent(x)
	case control.ReaderGot:
		m.readerGot(x)
	case control.Report:
		m.results.reports[x.Task] = append(m.results.reports[x.Task], x)
	}
}

// workerJoined implements members.
func (m *Master) workerJoined(w *worker) {
	if m.waiting == nil {
		m.schedule(scheduling.WorkerAdded{ID: w.id, Slots: w.slots})
		return
	}
	m.waiting.joined = append(m.waiting.joined, w)
	if len(m.waiting.joined) >= m.waiting.workers {
		m.workersComplete()
	}
}

// workerLost implements members.
func (m *Master) workerLost(w *worker, err error) {
	for _, x := range m.tasks {
		if x.worker == w && !x.state.Terminal() {
			x.state = task.Failed
			m.readerOver(x.id)
			m.checkpoint(checkpoint.TaskFailed{Task: checkpoint.Task(x.id)})
		}
	}
	m.schedule(scheduling.WorkerLost{ID: w.id, Err: err})
}

// taskState follows the life of an attempt.
func (m *Master) taskState(x control.TaskState) {
	e := m.tasks[x.Task]
	if e == nil || e.state.Terminal() {
		return
	}
	e.state = x.State
	s, err := scheduling.ParseTaskState(string(x.State))
	if err != nil {
		return
	}
	if x.State == task.Failed || x.State == task.Canceled {
		m.readerOver(x.Task)
	}
	if x.Corrupt && m.restored > 0 {
		// Without this the job would restore it for ever.
		m.note(timeline.CheckpointFailed, m.restored, "damaged: "+x.Error)
		m.checkpoint(checkpoint.Damaged{ID: m.restored})
		m.restored = 0
	}
	if x.State == task.Failed {
		m.checkpoint(checkpoint.TaskFailed{Task: checkpoint.Task(x.Task)})
	}
	m.schedule(scheduling.TaskChanged{Task: scheduling.Task(x.Task), State: s, Err: textError(x.Error)})
}

// eachWorker groups tasks by worker; all that are not over with nil.
func (m *Master) eachWorker(ids []task.ID, fn func(w *worker, ids []task.ID)) {
	by := map[*worker][]task.ID{}
	var order []*worker
	add := func(e *execution) {
		if e == nil || e.worker == nil || e.worker.lost {
			return
		}
		if by[e.worker] == nil {
			order = append(order, e.worker)
		}
		by[e.worker] = append(by[e.worker], e.id)
	}
	if ids == nil {
		for i := range m.graph.Vertices {
			for _, e := range m.live[m.graph.Vertices[i].ID] {
				if !e.state.Terminal() {
					add(e)
				}
			}
		}
	}
	for _, id := range ids {
		add(m.tasks[id])
	}
	for _, w := range order {
		fn(w, by[w])
	}
}
