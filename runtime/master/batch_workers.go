package master

import (
	"fmt"
	"maps"
	"net"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/timeline"
)

func (m *Batch) accept() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.welcome(c)
	}
}

// welcome starts the connection of a worker that has yet to say hello.
func (m *Batch) welcome(c net.Conn) {
	w := &batchWorker{}
	ready := make(chan struct{})
	w.conn = control.NewConn(c, func() {}, func(msg any) {
		w.heard.Store(int64(m.now())) // see Master.welcome
		<-ready
		m.post(func() { m.message(w, msg) })
	}, func(err error) {
		<-ready
		m.shared.Lock()
		delete(m.shared.conns, w.conn)
		m.shared.Unlock()
		m.post(func() { m.workerLost(w, err) })
	})
	m.shared.Lock()
	over := m.shared.conns == nil
	if !over {
		m.shared.conns[w.conn] = true
	}
	m.shared.Unlock()
	close(ready)
	if over {
		w.conn.Close(true)
	}
}

func workerName(index int) batch.Worker { return batch.Worker(fmt.Sprintf("worker-%d", index)) }

func (m *Batch) send(name batch.Worker, msg any) {
	if w := m.workers[name]; w != nil {
		w.conn.Send(msg)
	}
}

func (m *Batch) message(w *batchWorker, msg any) {
	if h, ok := msg.(control.Hello); ok {
		m.join(w, h)
		return
	}
	if w.lost || w.name == "" {
		return // what a lost worker still says does not count
	}
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
		m.shared.Lock()
		m.shared.leftover += x.Bytes
		m.shared.Unlock()
		delete(m.ends().workers, w.name)
		m.finishEnd()
	}
}

// inUse notes the options that a worker's tasks run with; where workers disagree
// the value says so.
func (m *Batch) inUse(options map[string]any) {
	m.shared.Lock()
	defer m.shared.Unlock()
	if m.shared.options == nil {
		m.shared.options = maps.Clone(options)
		close(m.reported)
		return
	}
	for k, v := range options {
		if old, ok := m.shared.options[k]; ok && old != v {
			m.shared.options[k] = fmt.Sprintf("%v on one worker, %v on another", old, v)
		}
	}
}

func (m *Batch) join(w *batchWorker, h control.Hello) {
	if w.name != "" || m.ending != nil && m.ending.terminal != nil {
		return
	}
	w.index = h.Index
	if m.joined[w.index] || w.index < 0 {
		for w.index = 0; m.joined[w.index]; w.index++ {
		}
	}
	m.joined[w.index] = true
	w.name = workerName(w.index)
	w.addr, w.slots = h.DataAddr, h.Slots
	m.workers[w.name] = w
	w.conn.Send(control.Welcome{Epoch: m.cfg.Epoch, Worker: w.index})
	if !m.announced {
		return // Begin introduces it
	}
	m.introduce(w)
	if !m.begun && len(m.workers) >= m.waiting {
		m.start()
	}
}

// introduce tells a worker of the job, everybody of the worker, and the scheduler
// of its slots.
func (m *Batch) introduce(w *batchWorker) {
	w.conn.Send(control.BatchJob{
		Epoch: m.cfg.Epoch, Job: m.cfg.Job, Graph: *m.cfg.Graph, Options: m.cfg.Values.Map(), Started: m.started,
	})
	addrs := map[batch.Worker]string{}
	for name, x := range m.workers {
		addrs[name] = x.addr
	}
	for _, x := range m.workers {
		x.conn.Send(control.Peers{Epoch: m.cfg.Epoch, Addrs: addrs})
	}
	m.step(batch.WorkerJoined{ID: w.name, Slots: w.slots})
	if m.begun {
		m.sweepWorker(w)
	}
}

// sweepWorker asks a worker for what it has if the scheduler does not: it may
// still work for a master that left no log, and its folder may be that of one
// that died. What nobody knows of has to go.
func (m *Batch) sweepWorker(w *batchWorker) {
	m.enqueue(func() {
		if !m.asked[w.name] {
			m.send(w.name, control.AskInventory{Epoch: m.cfg.Epoch})
		}
	})
}

// workerLost handles the end of a connection, or silence.
func (m *Batch) workerLost(w *batchWorker, err error) {
	if w.lost || w.name == "" {
		return
	}
	w.lost = true
	delete(m.workers, w.name)
	m.dead[w.name] = true // the scheduler may not have begun
	e := timeline.Of(timeline.WorkerLost)
	e.Detail, e.Reason = string(w.name), err.Error()
	m.cfg.Timeline.Add(e)
	m.work.Go(func() { w.conn.Close(true) })
	for id, name := range m.attempts {
		if name == w.name {
			m.attemptOver(id)
		}
	}
	for task, parts := range m.partitions {
		for id, name := range parts {
			if name == w.name {
				delete(m.partitions[task], id)
			}
		}
	}
	m.step(batch.WorkerLost{ID: w.name, Err: fmt.Errorf("%s was lost: %w", w.name, err)})
	if m.ending != nil && m.ending.terminal != nil {
		delete(m.ending.workers, w.name)
		m.finishEnd()
	}
}

// watchHeartbeats loses workers that have been silent for too long.
func (m *Batch) watchHeartbeats() {
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

// inventoried takes what a worker has. While the log is being replayed it waits:
// an attempt may go on only if what it reads is what counts.
func (m *Batch) inventoried(w *batchWorker, x control.Inventory) {
	if m.log.hasEvents() && !m.replayed {
		m.early = append(m.early, func() { m.inventoried(w, x) })
		return
	}
	if w.lost {
		return
	}
	for i := range x.Partitions {
		m.track(x.Partitions[i].Partition, w.name)
		m.ofBefore(x.Partitions[i].Partition.Producer)
	}
	var running []batch.Execution
	for i := range x.Running {
		r := &x.Running[i].Execution
		if r.Attempt.Epoch < uint64(m.cfg.Epoch) && !m.current(x.Running[i].Inputs) {
			m.send(w.name, control.CancelAttempt{Epoch: m.cfg.Epoch, Attempt: r.Attempt})
			continue
		}
		running = append(running, *r)
		m.ofBefore(r.Attempt)
		if r.State == scheduling.TaskFinished {
			m.results[attemptKey{r.Attempt.TaskID, r.Attempt.Attempt}] = &r.Result
		}
	}
	m.step(batch.Inventory{Worker: w.name, Epoch: uint64(x.Epoch), Partitions: x.Partitions, Running: running})
}

// current tells whether attempts are the ones that the log says have finished. An
// attempt that reads others' output was to be cancelled, or its worker was taken
// for dead; what it read has been made anew since.
func (m *Batch) current(inputs []joblog.AttemptID) bool {
	for _, id := range inputs {
		if m.winners[id.TaskID] != id {
			return false
		}
	}
	return true
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
func (m *Batch) attemptState(w *batchWorker, x control.AttemptState) {
	if x.State.Terminal() {
		m.attemptOver(x.Attempt)
	}
	if x.State == scheduling.TaskFinished {
		m.results[attemptKey{x.Attempt.TaskID, x.Attempt.Attempt}] = &x.Result
		for _, r := range x.Result.Results {
			m.track(batch.PartitionID{DataSet: r.DataSet, Producer: x.Attempt}, w.name)
		}
	}
	e := batch.TaskChanged{
		Attempt: x.Attempt, State: x.State, Err: textError(x.Error), Class: x.Class, Partition: x.Partition, Result: x.Result, Worker: w.name,
	}
	m.step(e)
	m.enqueue(func() { delete(m.results, attemptKey{x.Attempt.TaskID, x.Attempt.Attempt}) })
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
