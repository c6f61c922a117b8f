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
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// carryOut carries out one effect of the scheduler.
func (m *Batch) carryOut(x batch.Effect) {
	epoch := m.cfg.Epoch
	switch x := x.(type) {
	case batch.AskInventory:
		m.asked[x.Worker] = true
		m.send(x.Worker, control.AskInventory{Epoch: epoch})
	case batch.SettleInventory:
		for _, id := range x.Adopt {
			if _, own := m.attempts[id]; !own {
				m.attempts[id] = x.Worker
				m.adopted(id)
			}
		}
		m.send(x.Worker, control.Settle{Epoch: epoch, Keep: x.Keep, Release: x.Release, Adopt: x.Adopt, Cancel: x.Cancel})
		for _, p := range x.Release {
			m.untrack(p)
		}
	case batch.ReplayLog:
		m.log.replay()
	case batch.ClearLog:
		m.log.clear()
	case batch.CloseLog:
		m.ends().closing = true
		m.log.do(func() {
			m.log.close(x.Clear, func(err error) {
				m.ends().closing = false
				if err != nil {
					m.ends().err = errors.Join(m.ends().err, err)
				}
				m.finishEnd()
			})
		})
	case batch.RecordResult:
		m.log.do(func() {
			m.log.beside(func() error {
				if err := m.log.folder.err(); err != nil {
					return err
				}
				return m.cfg.Result.Write(x.Result)
			}, func(err error) {
				if err != nil {
					m.ends().err = errors.Join(m.ends().err, fmt.Errorf("keep the job's result: %w", err))
				}
			})
		})
	case batch.Log:
		m.record(x)
	case batch.SnapshotCoordinator:
		if s := m.sources[x.Operator]; s != nil && s.c != nil {
			m.step(batch.SnapshotTaken{Operator: x.Operator, Data: s.c.BatchSnapshot()})
		}
	case batch.RestoreCoordinator:
		m.restoreSource(x)
	case batch.ResetSubtasks:
		m.resetSubtasks(x)
	case batch.InferParallelism:
		n := 0
		if s := m.sources[x.Vertex]; s != nil && batchConfig(m.cfg).Parallelism.SourceDefault <= 0 {
			n = len(s.ids)
		}
		m.step(batch.SourceParallelism{Vertex: x.Vertex, Parallelism: n})
	case batch.Deploy:
		m.deploy(x)
	case batch.Cancel:
		m.send(x.Worker, control.CancelAttempt{Epoch: epoch, Attempt: x.Attempt})
	case batch.Release:
		for _, p := range x.Partitions {
			m.untrack(p)
		}
		m.send(x.Worker, control.ReleasePartitions{Epoch: epoch, Partitions: x.Partitions})
	case batch.CommitOutput:
		m.commits = append(m.commits, x.Attempt)
		m.commitNext()
	case batch.SetTimer:
		m.timer.Reset(max(0, x.At-m.now()))
	case batch.StopTimer:
		m.timer.Stop()
	case batch.JobStatus:
		m.jobEvent(x.Status.String(), x.Err)
	case batch.Note:
		m.note(x.Event)
	case batch.Terminal:
		m.log.do(func() { m.terminal(x) })
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
}

func (m *Batch) jobEvent(state string, err error) {
	e := timeline.Of(timeline.JobState)
	e.State = state
	if err != nil {
		e.Reason = err.Error()
	}
	m.cfg.Timeline.Add(e)
}

// note puts an event of the scheduler into the timeline, with what only the
// carrying out knows.
func (m *Batch) note(e timeline.Event) {
	switch e.Kind {
	case timeline.MasterElected:
		return // it was noted when it happened
	case timeline.WorkerLost:
		return // likewise, with the reason
	case timeline.EventReplayed:
		e.Bytes = m.log.size
		m.cfg.Timeline.Add(e)
		if e.Reason == "" {
			m.jobEvent("RECONCILING", nil)
		}
		return
	case timeline.PartitionLost:
		m.sweep(e)
	case timeline.PartitionKept:
		m.goneOn[attemptKey{joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}, e.Attempt}] = true
	case timeline.TaskState:
		if e.Reason == "adopted" {
			e.Detail, e.Reason = "adopted", ""
			m.goneOn[attemptKey{joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}, e.Attempt}] = true
		}
		t := joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}
		if r := m.results[attemptKey{t, e.Attempt}]; r != nil && e.State == scheduling.TaskFinished.String() {
			e.Records, e.Bytes = r.Records, 0
			for _, d := range r.Results {
				for _, n := range d.Bytes {
					e.Bytes += n
				}
			}
			m.counted(t, r.Records)
			delete(m.results, attemptKey{t, e.Attempt})
		}
	}
	if e.Vertex != "" {
		id := joblog.AttemptID{TaskID: joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}, Epoch: uint64(m.cfg.Epoch), Attempt: e.Attempt}
		if k := (attemptKey{id.TaskID, id.Attempt}); m.goneOn[k] {
			id.Epoch = m.before[k]
		}
		e.Attempt = control.TaskID(id).Attempt
	}
	m.cfg.Timeline.Add(e)
}

// sweep releases what is left of a partition that is lost, where its worker is
// not.
func (m *Batch) sweep(e timeline.Event) {
	for id, w := range m.partitions[joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}] {
		if id.DataSet == e.Detail && id.Producer.Attempt == e.Attempt {
			m.untrack(id)
			m.send(w, control.ReleasePartitions{Epoch: m.cfg.Epoch, Partitions: []batch.PartitionID{id}})
		}
	}
}

// record appends to the log. Snapshots are taken at once.
func (m *Batch) record(x batch.Log) {
	entry := joblog.Entry{Event: x.Event, Cut: x.Cut}
	if x.Wait {
		entry.Snapshots = joblog.NewPending()
		var all []joblog.Snapshot
		for _, op := range x.Snapshots {
			if s := m.sources[op]; s != nil && s.c != nil {
				all = append(all, joblog.Snapshot{Operator: op, Data: s.c.BatchSnapshot()})
			}
		}
		entry.Snapshots.Complete(all, nil)
	}
	switch e := x.Event.(type) {
	case joblog.VerticesReset:
		for _, t := range e.Tasks {
			m.forgetTask(t)
			delete(m.cut, t.Vertex)
		}
	case joblog.VertexFinished:
		if x.Cut {
			m.cut[e.Attempt.Vertex] = true
		}
	}
	m.log.append(entry)
	if x.Cut && len(m.cut) == len(m.cfg.Graph.Vertices) {
		m.log.hurry() // the job's end waits for the log
	}
}

// forgetTask: what a task had done does not count any more.
func (m *Batch) forgetTask(t joblog.TaskID) {
	m.shared.Lock()
	delete(m.shared.finished[t.Vertex], t.Subtask)
	m.shared.Unlock()
}

func (m *Batch) deploy(x batch.Deploy) {
	m.attempts[x.Attempt] = x.Worker
	m.forgetTask(x.Attempt.TaskID)
	m.sourceDeployed(x)
	m.send(x.Worker, control.DeployAttempt{
		Epoch: m.cfg.Epoch, Attempt: x.Attempt, Parallelism: x.Parallelism, Inputs: x.Inputs, Outputs: x.Outputs,
	})
}

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
		m.post(func() {
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
	closing  bool // the log is being closed
	terminal *batch.Terminal
	workers  map[batch.Worker]bool // that have yet to say what they had left
	limit    *time.Timer
	err      error
	over     bool
}

func (m *Batch) ends() *batchEnd {
	if m.ending == nil {
		m.ending = &batchEnd{limit: time.AfterFunc(time.Hour, func() {})}
		m.ending.limit.Stop()
	}
	return m.ending
}

// leftoverLimit bounds the wait for workers that clean up.
const leftoverLimit = 10 * time.Second

// terminal ends the job on all workers; then it is over here.
func (m *Batch) terminal(x batch.Terminal) {
	end := m.ends()
	end.terminal, end.workers = &x, map[batch.Worker]bool{}
	if x.Status != scheduling.StatusSuspended {
		for name := range m.workers {
			end.workers[name] = true
			m.send(name, control.JobOver{Epoch: m.cfg.Epoch})
		}
	}
	end.limit.Stop()
	end.limit = time.AfterFunc(leftoverLimit, func() {
		m.post(func() {
			clear(end.workers)
			m.finishEnd()
		})
	})
	m.finishEnd()
}

// finishEnd is called when something that the end waits for has happened.
func (m *Batch) finishEnd() {
	end := m.ends()
	if end.over || end.terminal == nil || end.closing || len(end.workers) > 0 {
		return
	}
	end.over = true
	end.limit.Stop()
	err := end.terminal.Err
	switch end.terminal.Status {
	case scheduling.StatusFailed:
		if err == nil {
			err = errors.New("the job has failed")
		}
	case scheduling.StatusCanceled:
		err = ErrCanceled
	case scheduling.StatusFinished:
		err = end.err
	}
	m.work.Go(func() {
		if derr := m.dropOutput(); err == nil {
			err = derr
		}
		m.shared.Lock()
		m.shared.err, m.shared.ended = err, true
		m.shared.Unlock()
		close(m.done)
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

// Sources.

// batchSource is the coordinator of one source vertex. It knows a subtask by a
// life, not by an attempt: several attempts of a subtask may run at a time, and
// all of them get the same splits in the same order.
type batchSource struct {
	vertex string
	kind   source.EnumeratorKind
	ids    []string
	c      *source.Coordinator
	tasks  []sourceTask
}

type sourceTask struct {
	life       int
	registered bool
	sent       []source.CoordinatorEvent
	readers    map[joblog.AttemptID]int // how many of sent each has got
}
