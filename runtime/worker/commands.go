package worker

import (
	"errors"
	"fmt"

	"benchrun/runtime/control"
	"benchrun/runtime/inflight"
	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/state"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// carryOut implements kind.
func (w *Worker) carryOut(_ *service, m control.Command) {
	switch m := m.(type) {
	case control.Deploy:
		w.deploy(&m)
	case control.Cancel:
		w.each(m.Tasks, (*task.Task).Cancel)
	case control.Trigger:
		for _, id := range m.Tasks {
			if t := w.task(id); t != nil {
				t.TriggerCheckpoint(m.Event)
			} else {
				w.Decline(id, m.Event.Checkpoint, "CHECKPOINT_DECLINED_TASK_CLOSING", nil)
			}
		}
	case control.Notify:
		w.each(m.Tasks, func(t *task.Task) {
			if m.Completed {
				t.CheckpointCompleted(m.Checkpoint)
			} else {
				t.CheckpointAborted(m.Checkpoint)
			}
		})
	case control.ToReader:
		err := errors.New("no such task")
		if t := w.task(m.Task); t != nil {
			err = t.OperatorEvent(m.Payload)
		}
		w.master.conn.Send(control.ReaderGot{Seq: m.Seq, Error: message(err)})
	case control.StopSources:
		w.uncharged.Store(true)
		w.each(m.Tasks, (*task.Task).StopSource)
	case control.FailTask:
		if t := w.task(m.Task); t != nil {
			t.Fail(errors.New(m.Reason))
		}
	case control.Forget:
		w.forget(m.Execution)
	}
}

func (w *Worker) task(id task.ID) *task.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.mu.tasks[id]; e != nil {
		return e.t
	}
	return nil
}

func (w *Worker) each(ids []task.ID, fn func(*task.Task)) {
	for _, id := range ids {
		if t := w.task(id); t != nil {
			fn(t)
		}
	}
}

// forget releases the finished tasks of an execution.
func (w *Worker) forget(execution int) {
	w.mu.Lock()
	var old []*entry
	for id, e := range w.mu.tasks {
		if e.execution == execution && e.over {
			old = append(old, e)
			delete(w.mu.tasks, id)
		}
	}
	w.mu.Unlock()
	for _, e := range old {
		go func() {
			<-e.t.Done()
			e.t.Release()
		}()
	}
}

// deploy creates all tasks, then starts them. A task that cannot be created
// fails like one that fails later.
func (w *Worker) deploy(m *control.Deploy) {
	w.mu.Lock()
	for i, a := range m.Addrs {
		w.mu.addrs[i] = a
	}
	index := w.mu.index
	closed := w.mu.closed
	w.mu.Unlock()
	if closed {
		return
	}
	values, errs := options.Parse(m.Options)
	err := errors.Join(errs...)
	w.send(control.InUse{Execution: m.Execution, Options: values.Map()})
	var restore *task.Restore
	if err == nil {
		restore, err = w.restore(m, values)
	}
	env := task.Env{
		Global: w.global, Recovery: w.recovery, Server: w.server, Client: w.client, Worker: index, Writer: w.writer,
		Checkpoints: w.cfg.Checkpoints, SpillDir: w.cfg.Dir, Filling: w.filling, OutputDir: w.cfg.OutputDir, Network: w.cfg.Network,
		Timeline: w.cfg.Timeline, Uncharged: &w.uncharged, Pause: w.freezer.pause, Start: w.cfg.Origin.Add(m.Started),
	}
	w.uncharged.Store(m.Draining)
	var created []*task.Task
	for _, s := range m.Tasks {
		w.State(s.ID, task.Deploying, nil)
		if err != nil {
			w.State(s.ID, task.Failed, err)
			continue
		}
		t, e := task.New(task.Deployment{
			ID: s.ID, Execution: m.Execution, Graph: &m.Graph, Vertex: s.Vertex, Placement: m.Placement, Values: values,
			Restore: restore, Draining: m.Draining, SavepointToken: m.SavepointToken,
		}, env, w)
		if e != nil {
			err = e // its peers could not run without it
			w.State(s.ID, task.Failed, fmt.Errorf("deployment: %w", e))
			continue
		}
		created = append(created, t)
	}
	w.mu.Lock()
	for _, t := range created {
		w.mu.tasks[t.ID()] = &entry{t: t, execution: m.Execution}
	}
	w.mu.Unlock()
	for _, t := range created {
		go func() {
			t.Run()
		}()
	}
	if restore != nil {
		go func() { // the files stay open as long as somebody may read them
			for _, t := range created {
				t.WaitOpened()
			}
			restore.Files.Release()
			restore.Forget()
		}()
	}
}

// restore loads the checkpoint that an execution starts from.
func (w *Worker) restore(m *control.Deploy, values options.Values) (*task.Restore, error) {
	if m.RestoreFolder == "" {
		return nil, nil
	}
	store := w.cfg.Checkpoints
	if m.RestoreURL != store.URL() {
		var err error
		if store, err = storage.Open(m.RestoreURL); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
	}
	meta, err := snapshot.Load(store, m.RestoreFolder)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	r := &task.Restore{Store: store, Folder: m.RestoreFolder, Meta: meta, Files: inflight.NewFiles(store, m.RestoreFolder)}
	if r.Plan, err = inflight.PlanFor(meta, &m.Graph, values); err != nil {
		r.Files.Release()
		return nil, fmt.Errorf("restore: %w", err)
	}
	return r, nil
}

// What tasks report. A worker that was killed says nothing.

func (w *Worker) send(m any) {
	if !w.killed.Load() {
		w.master.conn.Send(m)
	}
}

// State implements task.Listener.
func (w *Worker) State(id task.ID, s task.State, err error) {
	if w.killed.Load() {
		return
	}
	if s.Terminal() {
		w.mu.Lock()
		if e := w.mu.tasks[id]; e != nil {
			e.over = true
			if s != task.Finished {
				delete(w.mu.tasks, id)
			}
		}
		w.mu.Unlock()
	}
	e := timeline.Task(timeline.TaskState, id.Vertex, id.Subtask, id.Attempt)
	e.State, e.Reason = string(s), message(err)
	w.cfg.Timeline.Add(e)
	w.master.conn.Send(control.TaskState{Task: id, State: s, Error: message(err), Corrupt: isCorrupt(err)})
}

// isCorrupt tells whether a task failed because of the bytes of a checkpoint.
func isCorrupt(err error) bool {
	var c *state.CorruptError
	return snapshot.IsCorrupt(err) || errors.As(err, &c)
}

// Acknowledge implements task.Listener.
func (w *Worker) Acknowledge(id task.ID, checkpoint int64, s *snapshot.SubtaskState) {
	if w.killed.Load() {
		return
	}
	e := timeline.Task(timeline.CheckpointAcknowledged, id.Vertex, id.Subtask, id.Attempt)
	e.Checkpoint, e.Bytes = checkpoint, s.InFlightBytes
	w.cfg.Timeline.Add(e)
	w.master.conn.Send(control.Acknowledge{Task: id, Checkpoint: checkpoint, State: snapshot.EncodeSubtask(s)})
}

// Passed implements task.Listener.
func (w *Worker) Passed(id task.ID, checkpoint int64) {
	w.send(control.Passed{Task: id, Checkpoint: checkpoint})
}

// Decline implements task.Listener.
func (w *Worker) Decline(id task.ID, checkpoint int64, reason string, err error) {
	if w.killed.Load() {
		return
	}
	e := timeline.Task(timeline.CheckpointDeclined, id.Vertex, id.Subtask, id.Attempt)
	e.Checkpoint, e.Reason, e.Detail = checkpoint, reason, message(err)
	w.cfg.Timeline.Add(e)
	w.master.conn.Send(control.Decline{Task: id, Checkpoint: checkpoint, Reason: reason, Error: message(err)})
}

// Ended implements task.Listener.
func (w *Worker) Ended(id task.ID) { w.send(control.Ended{Task: id}) }

// OperatorEvent implements task.Listener.
func (w *Worker) OperatorEvent(id task.ID, payload []byte) {
	w.send(control.FromReader{Task: id, Payload: payload})
}

// Report implements task.Listener.
func (w *Worker) Report(id task.ID, operator string, report any) {
	w.send(control.Report{Task: id, Operator: operator, Data: report})
}
