package master

import (
	"fmt"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/timeline"
)

// carryOut carries out one effect of the scheduler.
func (m *Batch) carryOut(x batch.Effect) {
	epoch := m.cfg.Epoch
	switch x := x.(type) {
	case batch.AskInventory:
		m.asked[x.Worker] = true
		m.askInventory(x.Worker)
	case batch.SettleInventory:
		for _, id := range x.Adopt {
			if _, own := m.attempts[id]; !own {
				m.attempts[id] = x.Worker
				m.loop.enqueue(func() { m.adopted(id) }) // behind the reset of its coordinator, which knows its splits
			}
		}
		m.workers.send(x.Worker, control.Settle{Epoch: epoch, Keep: x.Keep, Release: x.Release, Adopt: x.Adopt, Cancel: x.Cancel})
		for _, p := range x.Release {
			m.untrack(p)
		}
	case batch.Adopted:
		m.goneOn[attemptKey{x.Attempt.TaskID, x.Attempt.Attempt}] = true
	case batch.ReplayLog:
		m.log.replay()
	case batch.ClearLog:
		m.log.clear()
	case batch.CloseLog:
		m.ending.closing = true
		m.log.do(func() { m.log.close(x.Clear && !m.ending.unkept, m.logClosed) })
	case batch.RecordResult:
		m.log.keepResult(x.Result)
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
		m.workers.send(x.Worker, control.CancelAttempt{Epoch: epoch, Attempt: x.Attempt})
	case batch.Release:
		for _, p := range x.Partitions {
			m.untrack(p)
		}
		m.workers.send(x.Worker, control.ReleasePartitions{Epoch: epoch, Partitions: x.Partitions})
	case batch.CommitOutput:
		m.commits.rounds = append(m.commits.rounds, x.Attempts)
		m.commitNext()
	case batch.WithdrawOutput:
		m.withdraw(x.Keep)
	case batch.SetTimer:
		m.scheduleAt.Reset(max(0, x.At-m.now()))
	case batch.StopTimer:
		m.scheduleAt.Stop()
	case batch.JobStatus:
		jobEvent(m.cfg.Timeline, x.Status.String(), x.Err)
	case batch.Note:
		m.note(x.Event)
	case batch.Terminal:
		m.ending.decided = x.Status != scheduling.StatusSuspended
		m.log.do(func() { m.terminal(x) })
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
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
		if m.log.torn != "" {
			e.Detail += "; cut off as the end of what was written: " + m.log.torn
		}
		m.cfg.Timeline.Add(e)
		return
	case timeline.PartitionLost:
		m.sweep(e)
	case timeline.PartitionKept:
		if k := (attemptKey{joblog.TaskID{Vertex: e.Vertex, Subtask: e.Subtask}, e.Attempt}); m.before[k] > 0 {
			m.goneOn[k] = true // else it is of this master
		}
	case timeline.TaskState:
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
			m.workers.send(w, control.ReleasePartitions{Epoch: m.cfg.Epoch, Partitions: []batch.PartitionID{id}})
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
		}
	case joblog.VertexFinished: // perhaps again: its output has come back
		m.counted(e.Attempt.TaskID, e.Records)
	}
	m.log.append(entry)
}

// forgetTask: what a task had done does not count any more.
func (m *Batch) forgetTask(t joblog.TaskID) {
	m.shared.Lock()
	delete(m.shared.finished[t.Vertex], t.Subtask)
	m.shared.Unlock()
}
