package master

import (
	"fmt"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/record"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/source"
	"benchrun/runtime/state"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// checkpointed carries out one effect of the checkpoint coordinator.
func (m *Master) checkpointed(x checkpoint.Effect) {
	switch x := x.(type) {
	case checkpoint.ComputePlan:
		m.checkpoint(m.plan(x.Seq))
	case checkpoint.InitLocation:
		folder := snapshot.Folder(x.ID)
		if x.Savepoint {
			folder = snapshot.SavepointFolderOf(x.ID, m.token)
		}
		m.checkpoint(checkpoint.LocationReady{ID: x.ID, Folder: folder})
	case checkpoint.SnapshotCoordinators:
		m.snapshotSources(x.ID)
	case checkpoint.TriggerTasks:
		m.triggerTasks(x)
	case checkpoint.Finalize:
		m.finalize(x)
	case checkpoint.NotifyComplete:
		m.notify(x.ID, true, x.Tasks)
		m.sourcesNotified(x.ID, true)
	case checkpoint.NotifyAborted:
		m.notify(x.ID, false, x.Tasks)
		m.sourcesNotified(x.ID, false)
	case checkpoint.Discard:
		if m.ended && m.cfg.Keep {
			return
		}
		m.background(func() {
			err := m.cfg.Checkpoints.DeleteAll(x.Folder)
			m.loop.post(func() { m.checkpoint(checkpoint.Discarded{ID: x.ID, Err: err}) })
		})
	case checkpoint.DiscardState:
		m.discardState(x)
	case checkpoint.FailJob:
		m.failJob(x)
	case checkpoint.SetTimer:
		m.at(m.checkpointAt, x.At)
	case checkpoint.StopTimer:
		m.checkpointAt.Stop()
	case checkpoint.Reply:
		path := ""
		if x.Err == nil {
			path = m.cfg.Checkpoints.URL() + "/" + x.Result.Folder
		}
		m.reply(x.Token, path, x.Err)
	case checkpoint.RestoreFrom:
		m.restoreFrom(x)
	case checkpoint.ReportTriggered:
		detail := ""
		if x.Savepoint {
			detail = "savepoint"
		}
		m.note(timeline.CheckpointTriggered, x.ID, detail)
	case checkpoint.ReportCompleted:
		m.completed(x.Checkpoint)
	case checkpoint.ReportFailed:
		e := timeline.Of(timeline.CheckpointFailed)
		if x.ID > 0 {
			e.Checkpoint = x.ID
		}
		e.Reason = x.Reason.String()
		if x.Err != nil {
			e.Detail = x.Err.Error()
		}
		m.cfg.Timeline.Add(e)
		m.schedule(scheduling.CheckpointFailed{PreFlight: x.Reason.PreFlight()})
	case checkpoint.ReportDiscardFailed:
		m.note(timeline.CheckpointFailed, x.ID, fmt.Sprintf("folder %s could not be deleted: %v", x.Folder, x.Err))
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
}

func (m *Master) note(k timeline.Kind, id int64, detail string) {
	e := timeline.Of(k)
	e.Checkpoint, e.Detail = id, detail
	m.cfg.Timeline.Add(e)
}

// plan says which tasks take part: the trigger goes to those that nobody
// upstream can send a barrier.
func (m *Master) plan(seq uint64) checkpoint.Event {
	p := checkpoint.PlanComputed{Seq: seq}
	g := m.graph
	for i := range g.Vertices {
		v := &g.Vertices[i]
		finished := 0
		for s, e := range m.live[v.ID] {
			switch {
			case e.state == task.Finished:
				finished++
				p.Finished = append(p.Finished, checkpoint.Task(e.id))
			case e.state != task.Running:
				return checkpoint.PlanRejected{Seq: seq, Reason: checkpoint.NotAllRequiredTasksRunning,
					Err: fmt.Errorf("%s (%d/%d) is %s", v.ID, s+1, v.Parallelism, e.state)}
			default:
				p.Ack = append(p.Ack, checkpoint.Task(e.id))
				if !m.hasRunningUpstream(i, s) {
					p.Trigger = append(p.Trigger, checkpoint.Task(e.id))
				}
			}
		}
		if finished > 0 && finished == len(m.live[v.ID]) {
			p.FullyFinished = append(p.FullyFinished, v.ID)
		}
	}
	return p
}

func (m *Master) hasRunningUpstream(vertex, subtask int) bool {
	g := m.graph
	for _, e := range g.Vertices[vertex].Inputs {
		edge := &g.Edges[e]
		up := &g.Vertices[edge.From]
		first, last := graph.Sources(edge.Partitioner, up.Parallelism, g.Vertices[vertex].Parallelism, subtask)
		for u := first; u <= last; u++ {
			if m.live[up.ID][u].state == task.Running {
				return true
			}
		}
	}
	return false
}

func ids(tasks []checkpoint.Task) []task.ID {
	out := make([]task.ID, len(tasks))
	for i, t := range tasks {
		out[i] = task.ID(t)
	}
	return out
}

func (m *Master) triggerTasks(x checkpoint.TriggerTasks) {
	ev := record.Event{Kind: record.Barrier, Checkpoint: x.ID, Triggered: time.Now().UnixNano(), Options: record.Options{
		Unaligned: x.Options.Kind != checkpoint.Aligned, Savepoint: x.Options.Savepoint, Terminate: x.Options.Stop, Drain: x.Options.Drain,
	}}
	if x.Options.Kind == checkpoint.AlignedWithTimeout {
		ev.Options.Timeout = x.Options.AlignedTimeout
	}
	m.eachWorker(ids(x.Tasks), func(w *worker, ids []task.ID) {
		w.conn.Send(control.Trigger{Epoch: m.cfg.Epoch, Event: ev, Tasks: ids})
	})
}

func (m *Master) notify(id int64, completed bool, tasks []checkpoint.Task) {
	m.eachWorker(ids(tasks), func(w *worker, ids []task.ID) {
		w.conn.Send(control.Notify{Epoch: m.cfg.Epoch, Checkpoint: id, Completed: completed, Tasks: ids})
	})
}

// finalize writes the metadata in the background.
func (m *Master) finalize(x checkpoint.Finalize) {
	meta := m.metadata(x)
	m.settled[x.ID] = m.results.finished(ids(x.Plan.Finished))
	var resultsErr error
	meta.Results, resultsErr = m.encodeResults(m.settled[x.ID])
	m.sizes[x.ID] = [2]int64{meta.InFlightBytes(), meta.StateBytes()}
	m.background(func() {
		err := resultsErr
		if err == nil && m.cfg.Leads != nil {
			err = m.cfg.Leads()
		}
		if err == nil {
			err = snapshot.Write(m.cfg.Checkpoints, x.Folder, meta)
		}
		m.loop.post(func() {
			if err != nil {
				m.checkpoint(checkpoint.FinalizeFailed{ID: x.ID, Err: err, UnknownOutcome: snapshot.IsUnknownOutcome(err)})
				return
			}
			m.checkpoint(checkpoint.Finalized{ID: x.ID})
		})
	})
}

func (m *Master) metadata(x checkpoint.Finalize) *snapshot.Metadata {
	meta := &snapshot.Metadata{
		Checkpoint: x.ID, Savepoint: x.Savepoint, Unaligned: x.Unaligned, Epoch: m.cfg.Epoch,
		TriggeredUnixNano: m.cfg.Origin.Add(x.Triggered).UnixNano(), Coordinators: x.Coordinators,
	}
	fully := map[string]bool{}
	for _, v := range x.Plan.FullyFinished {
		fully[v] = true
	}
	at := map[string]int{}
	for i := range m.graph.Vertices {
		v := &m.graph.Vertices[i]
		s := snapshot.VertexState{ID: v.ID, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism, FullyFinished: fully[v.ID]}
		for _, op := range v.Operators {
			s.Operators = append(s.Operators, op.ID)
			s.Kinds = append(s.Kinds, op.Operator)
		}
		at[v.ID] = i
		meta.Vertices = append(meta.Vertices, s)
	}
	for _, t := range x.Plan.Finished {
		v := &meta.Vertices[at[t.Vertex]]
		v.Subtasks = append(v.Subtasks, snapshot.SubtaskState{Subtask: t.Subtask, Finished: true, Operators: m.lastSplits(task.ID(t))})
	}
	for _, t := range x.Plan.Ack {
		if st := x.States[t]; st != nil {
			v := &meta.Vertices[at[t.Vertex]]
			v.Subtasks = append(v.Subtasks, *st)
		}
	}
	for _, e := range m.graph.Edges {
		meta.Edges = append(meta.Edges, snapshot.EdgeState{
			ID: e.ID, From: m.graph.Vertices[e.From].ID, To: m.graph.Vertices[e.To].ID, Partitioner: string(e.Partitioner), Gate: e.Gate, Partition: e.Partition,
		})
	}
	return meta
}

// lastSplits is where the splits of a source that has finished stood: whoever
// restores the checkpoint has to know which records were emitted.
func (m *Master) lastSplits(id task.ID) []snapshot.OperatorState {
	for _, x := range append(m.results.of(id), m.results.reports[id]...) {
		if s, ok := x.Data.(*task.SourceReport); ok {
			b := state.AppendItems(nil, s.Splits)
			return []snapshot.OperatorState{{Operator: x.Operator, List: []snapshot.ListHandle{{
				Name: source.SplitsState, Mode: snapshot.Split, Items: len(s.Splits),
				Handle: snapshot.Handle{Inline: b, Length: int64(len(b)), CRC: snapshot.Checksum(b)},
			}}}}
		}
	}
	return nil
}

func (m *Master) completed(c checkpoint.Completed) {
	e := timeline.Of(timeline.CheckpointCompleted)
	sizes := m.sizes[c.ID]
	delete(m.sizes, c.ID)
	e.Checkpoint, e.Bytes = c.ID, sizes[0]
	e.Detail = fmt.Sprintf("size=%d", sizes[0]+sizes[1])
	if c.Savepoint {
		e.Detail = "savepoint " + e.Detail
	}
	m.cfg.Timeline.Add(e)
	if !c.Savepoint {
		for id := range m.settled {
			if id < c.ID-64 {
				delete(m.settled, id)
			}
		}
	}
	m.schedule(scheduling.CheckpointCompleted{})
}

// discardState deletes what came late for a checkpoint that nobody has.
func (m *Master) discardState(x checkpoint.DiscardState) {
	folder := x.Folder
	if folder == "" {
		folder = snapshot.Folder(x.ID)
	}
	for _, c := range m.coord.Completed() {
		if c.Folder == folder {
			return
		}
	}
	if x.Folder != "" {
		return // others may still complete it; its folder goes as a whole
	}
	m.background(func() { m.cfg.Checkpoints.DeleteAll(folder) })
}

// failJob handles too many failed checkpoints.
func (m *Master) failJob(x checkpoint.FailJob) {
	err := fmt.Errorf("checkpoint %d failed: %s", x.ID, x.Reason)
	if x.Err != nil {
		err = fmt.Errorf("checkpoint %d failed: %s: %w", x.ID, x.Reason, x.Err)
	}
	m.schedule(scheduling.GlobalFailure{Err: fmt.Errorf("exceeded the tolerable number of failed checkpoints: %w", err)})
}
