package master

import (
	"fmt"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
)

// sources are the coordinators of the job's source vertices, by vertex.
type sources struct {
	coordinators map[string]*source.Coordinator
	order        []string
	sent         map[uint64]delivery // events that no task has acknowledged
	collecting   map[int64]*collection
}

// delivery is an event on its way to a reader.
type delivery struct {
	vertex  string
	subtask int
	seq     uint64
}

// collection gathers the coordinators' parts of a checkpoint.
type collection struct {
	missing int
	states  []snapshot.CoordinatorState
}

// enumeratorKind says how a source hands out its splits. Files are handed out on
// request, because they differ in size; splits of a sequence all at once, and
// files that are read over and over, too: their readers never come to ask for
// another.
func enumeratorKind(v *graph.Vertex) (kind source.EnumeratorKind, splits []source.Split, err error) {
	head := &v.Operators[0]
	data, err := source.AllSplits(head.Operator, head.Params)
	if err != nil {
		return kind, nil, fmt.Errorf("vertex %s: %w", v.ID, err)
	}
	params, err := source.ParseParams(head.Params)
	if err != nil {
		return kind, nil, fmt.Errorf("vertex %s: %w", v.ID, err)
	}
	splits = source.NewSplits(data)
	if head.Operator == source.Lines && !params.Loop {
		return source.SplitsOnRequest(splits), splits, nil
	}
	return source.StaticSplits(splits), splits, nil
}

// newSources makes the coordinators.
func newSources(g *graph.Graph) (*sources, error) {
	s := &sources{coordinators: map[string]*source.Coordinator{}, sent: map[uint64]delivery{}, collecting: map[int64]*collection{}}
	for i := range g.Vertices {
		v := &g.Vertices[i]
		if !v.Source() {
			continue
		}
		kind, _, err := enumeratorKind(v)
		if err != nil {
			return nil, err
		}
		s.coordinators[v.ID] = source.NewCoordinator(v.ID, v.Parallelism, kind)
		s.order = append(s.order, v.ID)
	}
	return s, nil
}

// source gives an event to a coordinator and carries out what follows.
func (m *Master) source(vertex string, e source.Event) {
	c := m.sources.coordinators[vertex]
	if c == nil {
		return
	}
	m.loop.enqueue(func() {
		for _, x := range c.Step(e) {
			m.sourced(vertex, x)
		}
	})
}

func (m *Master) sourced(vertex string, x source.Effect) {
	switch x := x.(type) {
	case source.Send:
		m.sendToReader(vertex, x)
	case source.SnapshotDone:
		c := m.sources.collecting[x.ID]
		if c == nil {
			return
		}
		c.states = append(c.states, snapshot.CoordinatorState{Operator: vertex, Data: x.Data})
		if c.missing--; c.missing == 0 {
			delete(m.sources.collecting, x.ID)
			m.checkpoint(checkpoint.CoordinatorsAcked{ID: x.ID, States: c.states})
		}
	case source.SnapshotFailed:
		delete(m.sources.collecting, x.ID)
		m.checkpoint(checkpoint.CoordinatorsFailed{ID: x.ID, Err: x.Err})
	case source.FailTask:
		if e := m.tasks[task.ID{Vertex: vertex, Subtask: x.Subtask, Attempt: x.Attempt}]; e != nil && e.worker != nil {
			e.worker.conn.Send(control.FailTask{Epoch: m.cfg.Epoch, Task: e.id, Reason: x.Err.Error()})
		}
	case source.FailJob:
		m.schedule(scheduling.GlobalFailure{Err: x.Err})
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
}

func (m *Master) sendToReader(vertex string, x source.Send) {
	id := task.ID{Vertex: vertex, Subtask: x.Subtask, Attempt: x.Attempt}
	e := m.tasks[id]
	if e == nil || e.worker == nil || e.state.Terminal() {
		m.source(vertex, source.Delivered{Subtask: x.Subtask, Seq: x.Seq, Err: fmt.Errorf("%s (subtask %d) is gone", vertex, x.Subtask)})
		return
	}
	m.nextToken++
	m.sources.sent[m.nextToken] = delivery{vertex, x.Subtask, x.Seq}
	e.worker.conn.Send(control.ToReader{Epoch: m.cfg.Epoch, Seq: m.nextToken, Task: id, Payload: source.EncodeCoordinatorEvent(x.Event)})
}

func (m *Master) readerEvent(x control.FromReader) {
	ev, err := source.DecodeReaderEvent(x.Payload)
	if err != nil {
		m.schedule(scheduling.GlobalFailure{Err: err})
		return
	}
	m.source(x.Task.Vertex, source.FromReader{Subtask: x.Task.Subtask, Attempt: x.Task.Attempt, Event: ev})
}

func (m *Master) readerGot(x control.ReaderGot) {
	d, ok := m.sources.sent[x.Seq]
	if !ok {
		return
	}
	delete(m.sources.sent, x.Seq)
	m.source(d.vertex, source.Delivered{Subtask: d.subtask, Seq: d.seq, Err: textError(x.Error)})
}

func (m *Master) barrierPassed(x control.Passed) {
	m.source(x.Task.Vertex, source.PassedBarrier{Subtask: x.Task.Subtask, ID: x.Checkpoint})
}

// readerOver tells that a source's attempt ended without finishing.
func (m *Master) readerOver(id task.ID) {
	m.source(id.Vertex, source.SubtaskFailed{Subtask: id.Subtask, Attempt: id.Attempt})
}

// snapshotSources asks all coordinators for their part of a checkpoint.
func (m *Master) snapshotSources(id int64) {
	if len(m.sources.order) == 0 {
		m.checkpoint(checkpoint.CoordinatorsAcked{ID: id})
		return
	}
	m.sources.collecting[id] = &collection{missing: len(m.sources.order)}
	for _, v := range m.sources.order {
		m.source(v, source.BeginCheckpoint{ID: id})
	}
}

func (m *Master) sourcesNotified(id int64, completed bool) {
	delete(m.sources.collecting, id)
	for _, v := range m.sources.order {
		if completed {
			m.source(v, source.CheckpointCompleted{ID: id})
		} else {
			m.source(v, source.CheckpointAborted{ID: id})
		}
	}
}

// resetSources brings the coordinators to the checkpoint that is deployed: all
// of a job to its bytes in it, those of a region by taking splits back.
func (m *Master) resetSources(x scheduling.Deploy, p *prepared) {
	for _, id := range x.Vertices {
		v := &p.graph.Vertices[p.graph.Vertex(id)]
		if !v.Source() {
			continue
		}
		if !x.Global {
			for s := range v.Parallelism {
				m.source(id, source.SubtaskReset{Subtask: s, Checkpoint: p.id})
			}
			continue
		}
		reset := source.Reset{Checkpoint: p.id, Parallelism: v.Parallelism}
		if p.meta != nil {
			reset.State, _ = p.meta.Coordinator(id)
		}
		m.source(id, reset)
	}
}
