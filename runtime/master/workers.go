package master

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// workerConn is a worker as the master knows it.
type workerConn struct {
	id    scheduling.Worker
	index int
	conn  *control.Conn
	addr  string
	slots int
	heard atomic.Int64 // when the last message came, on the cluster's clock
	lost  bool
}

func (m *Master) accept() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.welcome(c)
	}
}

// welcome starts the connection of a worker that has yet to say hello.
func (m *Master) welcome(c net.Conn) {
	w := &workerConn{}
	ready := make(chan struct{})
	conn := control.NewConn(c, func() {}, func(msg any) {
		// Stamped here and not in the loop: a master that is behind with its work
		// must not take its workers for silent.
		w.heard.Store(int64(m.now()))
		<-ready
		m.post(func() { m.message(w, msg) })
	}, func(err error) {
		<-ready
		m.post(func() { m.workerLost(w, err) })
	})
	w.conn = conn
	close(ready)
}

func (m *Master) message(w *workerConn, msg any) {
	if h, ok := msg.(control.Hello); ok {
		m.join(w, h)
		return
	}
	if w.lost || w.id == "" {
		return // what a lost worker still says does not count
	}
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

func textError(s string) error {
	if s == "" {
		return nil
	}
	return errors.New(s)
}

func (m *Master) join(w *workerConn, h control.Hello) {
	if w.id != "" {
		return // once is enough
	}
	// An index is used once, because results and addresses go by it.
	w.index = h.Index
	if m.joined[w.index] || w.index < 0 {
		for w.index = 0; m.joined[w.index]; w.index++ {
		}
	}
	m.joined[w.index] = true
	w.id = scheduling.Worker(fmt.Sprintf("worker-%d", w.index))
	w.addr, w.slots = h.DataAddr, h.Slots
	m.workers[w.id] = w
	w.conn.Send(control.Welcome{Epoch: m.cfg.Epoch, Worker: w.index})
	if m.waiting == nil {
		m.schedule(scheduling.WorkerAdded{ID: w.id, Slots: h.Slots})
		return
	}
	m.waiting.joined = append(m.waiting.joined, w)
	if len(m.waiting.joined) >= m.waiting.workers {
		m.workersComplete()
	}
}

// workerLost handles the end of a connection, or silence.
func (m *Master) workerLost(w *workerConn, err error) {
	if w.lost || w.id == "" {
		return
	}
	w.lost = true
	delete(m.workers, w.id)
	e := timeline.Of(timeline.WorkerLost)
	e.Detail, e.Reason = string(w.id), err.Error()
	m.cfg.Timeline.Add(e)
	m.background(func() { w.conn.Close(true) }) // a worker that comes back finds the door shut
	for _, x := range m.tasks {
		if x.worker == w && !x.state.Terminal() {
			x.state = task.Failed
			m.readerOver(x.id)
			m.checkpoint(checkpoint.TaskFailed{Task: checkpoint.Task(x.id)})
		}
	}
	m.schedule(scheduling.WorkerLost{ID: w.id, Err: fmt.Errorf("%s was lost: %w", w.id, err)})
}

// watchHeartbeats loses workers that have been silent for too long.
func (m *Master) watchHeartbeats() {
	limit := options.HeartbeatTimeout.Get(m.cfg.Values)
	t := time.NewTicker(max(limit/10, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.post(func() {
				for _, w := range m.workers {
					if silent := m.now() - time.Duration(w.heard.Load()); silent > limit {
						m.workerLost(w, fmt.Errorf("no heartbeat for %v (%s is %v)", silent.Round(time.Millisecond), options.HeartbeatTimeout.Key(), limit))
					}
				}
			})
		case <-m.ctx.Done():
			return
		}
	}
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
func (m *Master) eachWorker(ids []task.ID, fn func(w *workerConn, ids []task.ID)) {
	by := map[*workerConn][]task.ID{}
	var order []*workerConn
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
