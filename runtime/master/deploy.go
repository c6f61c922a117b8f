package master

import (
	"errors"
	"fmt"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/task"
)

// scheduled carries out one effect of the scheduler.
func (m *Master) scheduled(x scheduling.Effect) {
	switch x := x.(type) {
	case scheduling.StateChanged:
	case scheduling.JobStatus:
		jobEvent(m.cfg.Timeline, x.Status.String(), x.Err)
	case scheduling.Prepare:
		m.prepare(x)
	case scheduling.Deploy:
		m.deploy(x)
	case scheduling.CancelTasks:
		ids := make([]task.ID, len(x.Tasks))
		for i, t := range x.Tasks {
			ids[i] = task.ID(t)
		}
		m.eachWorker(ids, func(w *worker, ids []task.ID) {
			w.conn.Send(control.Cancel{Epoch: m.cfg.Epoch, Tasks: ids})
		})
	case scheduling.StartCheckpointing:
		m.restoring.Store(false)
		m.checkpoint(checkpoint.Start{})
	case scheduling.StopCheckpointing:
		m.checkpoint(checkpoint.Stop{})
	case scheduling.TakeSavepoint:
		m.checkpoint(checkpoint.TriggerRequest{Token: m.stopToken(x.Token), Savepoint: true, Stop: true, Drain: x.Drain})
	case scheduling.Reply:
		m.reply(x.Token, x.Path, x.Err)
	case scheduling.SetTimer:
		m.at(m.scheduleAt, x.At)
	case scheduling.StopTimer:
		m.scheduleAt.Stop()
	case scheduling.Terminal:
		m.terminal(x)
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
}

// stopToken makes the token of the savepoint that stops the job: its result
// goes back to the scheduler.
func (m *Master) stopToken(scheduler uint64) uint64 {
	m.nextToken++
	m.replies[m.nextToken] = func(path string, err error) {
		m.schedule(scheduling.SavepointDone{Token: scheduler, Path: path, Err: err})
	}
	return m.nextToken
}

// deploy starts the tasks of an execution, one message a worker.
func (m *Master) deploy(x scheduling.Deploy) {
	p := m.prepared[x.Execution]
	delete(m.prepared, x.Execution)
	if x.Global {
		clear(m.prepared) // executions that others took the place of
	}
	if p == nil {
		m.schedule(scheduling.GlobalFailure{Err: fmt.Errorf("execution %d was not prepared", x.Execution)})
		return
	}
	m.graph = p.graph
	deployed := map[string]bool{}
	for _, v := range x.Vertices {
		deployed[v] = true
	}
	d := control.Deploy{
		Epoch: m.cfg.Epoch, Execution: x.Execution, Graph: *p.graph, Options: m.options, Addrs: map[int]string{},
		Started: m.started, Draining: m.draining, SavepointToken: m.token,
	}
	if p.meta != nil {
		d.RestoreURL, d.RestoreFolder = p.store.URL(), p.folder
	}
	byWorker := map[*worker][]control.TaskSpec{}
	var order []*worker
	d.Placement = make([][]int, len(p.graph.Vertices))
	for i := range p.graph.Vertices {
		v := &p.graph.Vertices[i]
		d.Placement[i] = make([]int, v.Parallelism)
		for s := range v.Parallelism {
			d.Placement[i][s] = -1
		}
		if !deployed[v.ID] {
			continue
		}
		m.forgetVertex(v.ID)
		live := make([]*execution, v.Parallelism)
		for s := range v.Parallelism {
			w := m.workers.joined[x.Slots[s]]
			e := &execution{id: task.ID{Vertex: v.ID, Subtask: s, Attempt: x.Attempts[v.ID]}, worker: w, state: task.Deploying}
			m.tasks[e.id] = e
			live[s] = e
			if w == nil {
				continue // its loss is an event that follows
			}
			d.Placement[i][s] = w.index
			d.Addrs[w.index] = w.addr
			if byWorker[w] == nil {
				order = append(order, w)
			}
			byWorker[w] = append(byWorker[w], control.TaskSpec{ID: e.id, Vertex: i})
		}
		m.live[v.ID] = live
	}
	m.resetSources(x, p)
	for _, w := range order {
		msg := d
		msg.Tasks = byWorker[w]
		w.conn.Send(msg)
	}
}

// forgetVertex drops the attempts of a vertex that are over for good.
func (m *Master) forgetVertex(vertex string) {
	for _, e := range m.live[vertex] {
		delete(m.tasks, e.id)
	}
	delete(m.live, vertex)
}

// terminal ends the job.
func (m *Master) terminal(x scheduling.Terminal) {
	if m.ended {
		return
	}
	m.ended = true
	status := checkpoint.Finished
	switch x.Status {
	case scheduling.StatusCanceled:
		status = checkpoint.Canceled
	case scheduling.StatusFailed:
		status = checkpoint.Failed
	case scheduling.StatusSuspended:
		status = checkpoint.Suspended
	}
	m.checkpoint(checkpoint.Shutdown{Status: status})
	m.loop.enqueue(func() { // after what the coordinator still wants
		m.end(jobError(x.Status, x.Err))
	})
}

// jobError is the outcome of a job that ended with a status; reason may be nil.
func jobError(status scheduling.Status, reason error) error {
	switch {
	case status == scheduling.StatusCanceled:
		return ErrCanceled
	case status == scheduling.StatusFailed && reason == nil:
		return errors.New("the job has failed")
	}
	return reason
}

// ErrCanceled is the outcome of a job that was cancelled on request.
var ErrCanceled = errors.New("the job was cancelled")
