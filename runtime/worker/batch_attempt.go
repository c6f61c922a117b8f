package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/joblog"
	"benchrun/runtime/operator"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/shuffle"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/task"
)

// attempt is one execution of a batch task, and what its task tells.
type attempt struct {
	w      *Batch
	id     joblog.AttemptID
	deploy control.DeployAttempt
	job    *batchJob
	over   chan struct{} // closed when nothing of it is left

	mu      sync.Mutex
	t       *task.Task // under Batch.mu, too, when it is set
	state   scheduling.TaskState
	stopped error // before there was a task
	dropped bool  // it was cancelled: whatever it comes to does not count
	splits  []string
	early   [][]byte // events of the split enumerator that came before the task was there
	reports []control.Report
}

var errAttemptCanceled = errors.New("the attempt was cancelled")

func compareAttempts(a, b joblog.AttemptID) int {
	return cmp.Or(cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Subtask, b.Subtask), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Attempt, b.Attempt))
}

// deploy starts an attempt. What that takes is done beside the connection.
func (w *Batch) deploy(m control.DeployAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed || w.mu.job == nil || w.mu.attempts[m.Attempt] != nil {
		return
	}
	a := &attempt{w: w, id: m.Attempt, deploy: m, job: w.mu.job, over: make(chan struct{}), state: scheduling.TaskDeploying}
	v := a.job.graph.Vertex(m.Attempt.Vertex)
	w.mu.attempts[m.Attempt] = a
	if v < 0 || len(m.Inputs) != len(a.job.graph.Vertices[v].Inputs) || len(m.Outputs) != len(a.job.graph.Vertices[v].Outputs) {
		go a.run(nil, fmt.Errorf("deployment of %s does not fit the job", m.Attempt))
		return
	}
	for i := range a.deploy.Inputs {
		if err := a.job.resolve(&a.deploy.Inputs[i]); err != nil {
			go a.run(nil, fmt.Errorf("deployment of %s: %w", m.Attempt, err))
			return
		}
	}
	d := a.deployment(v, w.mu.name)
	go a.run(d, nil)
}

// deployment describes the task. REQUIRES Batch.mu.
func (a *attempt) deployment(v int, self batch.Worker) *task.Deployment {
	w := a.w
	b := &task.Batch{
		Name: operator.AttemptName(a.job.msg.Run, a.id.Epoch, a.id.Attempt), Store: w.store,
		WriterMemory: WriterMemory(w.cfg.Memory, w.cfg.Slots, len(a.deploy.Outputs)),
	}
	for _, in := range a.deploy.Inputs {
		channels := make([]shuffle.Input, len(in.Producers))
		for i, p := range in.Producers {
			channels[i] = shuffle.Input{
				Partition: a.job.partition(batch.PartitionID{DataSet: in.DataSet, Producer: p.Attempt}),
				Range:     shuffle.Range{First: in.Range.FirstSubpartition, Last: in.Range.LastSubpartition},
			}
			if p.Worker != self {
				holder := w.mu.others.called(p.Worker)
				channels[i].Holder = func(ctx context.Context) (*exchange.Client, error) { return w.client(ctx, holder) }
			}
		}
		b.Inputs = append(b.Inputs, channels)
	}
	for _, out := range a.deploy.Outputs {
		b.Outputs = append(b.Outputs, task.BatchOutput{
			ID:            a.job.partition(batch.PartitionID{DataSet: out.DataSet, Producer: a.id}),
			Subpartitions: out.Subpartitions,
		})
	}
	return &task.Deployment{ID: control.TaskID(a.id), Graph: a.job.with(v, a.deploy.Parallelism), Vertex: v, Values: a.job.values, Batch: b}
}

// WriterMemory is what one of the outputs of a task may take of a worker's
// network memory: half of it is shared by all outputs of as many tasks as there
// are slots.
func WriterMemory(memory int64, slots, outputs int) int {
	return int(memory / 2 / int64(slots) / int64(max(1, outputs)))
}

func (a *attempt) run(d *task.Deployment, err error) {
	w := a.w
	defer close(a.over)
	var t *task.Task
	if err == nil {
		t, err = task.New(*d, task.Env{
			Global: w.global, Server: w.server, SpillDir: w.spill(), OutputDir: w.cfg.OutputDir, Network: w.cfg.Network, Timeline: w.cfg.Timeline,
			Uncharged: &w.charged, Pause: w.freezer.pause, Start: w.cfg.Origin.Add(a.job.msg.Started),
		}, a)
	}
	if err != nil {
		a.State(task.ID{}, task.Failed, fmt.Errorf("deployment: %w", err))
		return
	}
	w.mu.Lock()
	a.mu.Lock()
	a.t = t
	stopped := a.stopped
	for _, event := range a.early { // under the lock: no later one comes before
		err = errors.Join(err, t.OperatorEvent(event))
	}
	a.early = nil
	a.mu.Unlock()
	w.mu.Unlock()
	switch {
	case errors.Is(stopped, errAttemptCanceled):
		t.Cancel()
	case stopped != nil:
		t.Fail(stopped)
	case err != nil:
		t.Fail(lostEvent(err))
	}
	t.Run()
}

func (a *attempt) cancel() { a.stop(errAttemptCanceled) }

func (a *attempt) fail(err error) { a.stop(err) }

func (a *attempt) stop(err error) {
	a.mu.Lock()
	t := a.t
	if t == nil && a.stopped == nil {
		a.stopped = err
	}
	a.dropped = a.dropped || errors.Is(err, errAttemptCanceled)
	a.mu.Unlock()
	switch {
	case t == nil:
	case errors.Is(err, errAttemptCanceled):
		t.Cancel()
	default:
		t.Fail(err)
	}
}

// adopt goes on under a new master.
func (a *attempt) adopt() {
	a.mu.Lock()
	t, state := a.t, a.state
	a.mu.Unlock()
	if !state.Terminal() {
		a.w.tell(control.AttemptState{Attempt: a.id, State: state})
	}
	if t != nil {
		t.Reconnect()
	}
}

// coordinatorEvent hands splits to the reader. Whoever takes an inventory finds
// them here from this moment on.
func (a *attempt) coordinatorEvent(m control.ToAttempt) {
	a.mu.Lock()
	t := a.t
	a.splits = append(a.splits, m.Splits...)
	if t == nil {
		a.early = append(a.early, m.Payload)
	}
	a.mu.Unlock()
	if t == nil {
		return
	}
	if err := t.OperatorEvent(m.Payload); err != nil {
		a.fail(lostEvent(err))
	}
}

func lostEvent(err error) error {
	return fmt.Errorf("an event of the split enumerator was lost: %w", err)
}

// execution describes a running attempt for an inventory. REQUIRES Batch.mu.
func (a *attempt) execution() (x batch.Execution, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Terminal() || a.stopped != nil || a.dropped {
		return x, false
	}
	return batch.Execution{
		Attempt: a.id, Parallelism: a.deploy.Parallelism, State: a.state, Result: batch.Result{Splits: append([]string(nil), a.splits...)},
	}, true
}

// producers are the attempts whose output this one reads. Under a master that
// takes others for the ones that count it must not go on.
func (a *attempt) producers() (out []joblog.AttemptID) {
	for _, in := range a.deploy.Inputs {
		for _, p := range in.Producers {
			out = append(out, p.Attempt)
		}
	}
	return out
}

// doneAttempt has finished, and perhaps no master knows.
type doneAttempt struct {
	state  control.AttemptState
	inputs []joblog.AttemptID
}

// tell sends to the master of the day, if there is one.
func (w *Batch) tell(m any) {
	if w.killed.Load() {
		return
	}
	w.mu.Lock()
	conn := w.mu.conn
	w.mu.Unlock()
	if conn != nil {
		conn.Send(m)
	}
}

// State implements task.Listener.
func (a *attempt) State(_ task.ID, s task.State, err error) {
	state, perr := scheduling.ParseTaskState(string(s))
	if perr != nil {
		return
	}
	m := control.AttemptState{Attempt: a.id, State: state, Error: message(err), Parallelism: a.deploy.Parallelism}
	switch s {
	case task.Finished:
		if err := a.finished(&m); err != nil {
			for _, f := range a.t.Finished() {
				err = errors.Join(err, a.w.store.Release(f.ID))
			}
			m = control.AttemptState{Attempt: a.id, State: scheduling.TaskFailed, Error: message(err)}
		}
	case task.Failed:
		m.Class, m.Partition, m.Peer = a.classify(err)
	}
	w := a.w
	if w.killed.Load() {
		return
	}
	w.mu.Lock()
	a.mu.Lock()
	a.state = m.State
	dropped := a.dropped
	a.mu.Unlock()
	if m.State.Terminal() {
		delete(w.mu.attempts, a.id)
		if a.t != nil {
			w.mu.sunk += a.t.Arrived()
		}
		if m.State == scheduling.TaskFinished && !dropped && w.cfg.Adoption {
			w.mu.done[a.id] = &doneAttempt{state: m, inputs: a.producers()}
		}
	}
	if w.mu.conn != nil {
		w.mu.conn.Send(m) // under the lock: an inventory is sent before or after it
	}
	w.mu.Unlock()
}

// finished fills in what the attempt has done, and makes its reports durable:
// they are the proof of what came out.
func (a *attempt) finished(m *control.AttemptState) error {
	a.mu.Lock()
	reports, splits := a.reports, slices.Clone(a.splits[:min(a.t.Taken(), len(a.splits))])
	a.mu.Unlock()
	if len(reports) > 0 {
		if err := control.WriteReports(control.ReportsOf(a.w.cfg.OutputDir, a.job.msg.Run), a.id, reports); err != nil {
			return err
		}
	}
	m.Result = batch.Result{Records: a.t.Consumed(), BytesIn: a.t.BytesIn(), Splits: splits}
	for _, f := range a.t.Finished() {
		var records int64
		for _, n := range f.Records {
			records += n
		}
		m.Result.Results = append(m.Result.Results, joblog.Result{DataSet: f.ID.Dataset, Bytes: f.Bytes})
		m.Records = append(m.Records, records)
	}
	return nil
}

// classify says what a failure tells about others: a partition that is lost, a worker
// to which the connection broke.
func (a *attempt) classify(err error) (batch.FailureClass, batch.PartitionID, batch.Worker) {
	if id, lost := shuffle.Lost(err); lost {
		return batch.FailurePartitionLost, a.job.name(id), ""
	}
	if transfer, ok := errors.AsType[*exchange.TransferError](err); ok {
		return batch.FailureTransfer, batch.PartitionID{}, a.w.nameOf(transfer.Worker)
	}
	return batch.FailureTask, batch.PartitionID{}, ""
}

// OperatorEvent implements task.Listener.
func (a *attempt) OperatorEvent(_ task.ID, payload []byte) {
	a.w.tell(control.FromAttempt{Attempt: a.id, Payload: payload})
}

// Report implements task.Listener.
func (a *attempt) Report(id task.ID, operator string, report any) {
	a.mu.Lock()
	a.reports = append(a.reports, control.Report{Task: id, Operator: operator, Data: report})
	a.mu.Unlock()
}

// The rest of task.Listener concerns checkpoints, of which a batch job has none.

func (a *attempt) Acknowledge(task.ID, int64, *snapshot.SubtaskState) {}
func (a *attempt) Passed(task.ID, int64)                              {}
func (a *attempt) Decline(task.ID, int64, string, error)              {}
func (a *attempt) Ended(task.ID)                                      {}
