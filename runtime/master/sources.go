package master

import (
	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/source"
)

// sourceState is the split enumerator of one source vertex.
type sourceState struct {
	vertex   int
	restored bool // splits are in the readers' state
}

func (m *Master) resetSources(x scheduling.Deploy, p *prepared) {
	for _, id := range x.Vertices {
		i := p.graph.Vertex(id)
		if v := &p.graph.Vertices[i]; v.Source() {
			m.sources[v.ID] = &sourceState{vertex: i, restored: p.meta != nil}
		}
	}
}

func (m *Master) readerEvent(x control.FromReader) {
	s := m.sources[x.Task.Vertex]
	e := m.tasks[x.Task]
	if s == nil || e == nil || e.worker == nil {
		return
	}
	ev := source.CoordinatorEvent{NoMore: true}
	v := &m.graph.Vertices[s.vertex]
	if !s.restored {
		splits, err := source.AllSplits(v.Operators[0].Operator, v.Operators[0].Params)
		if err != nil {
			m.schedule(scheduling.GlobalFailure{Err: err, Fatal: true})
			return
		}
		for i := x.Task.Subtask; i < len(splits); i += v.Parallelism {
			ev.Splits = append(ev.Splits, splits[i])
		}
	}
	m.nextToken++
	e.worker.conn.Send(control.ToReader{Epoch: m.cfg.Epoch, Seq: m.nextToken, Task: x.Task, Payload: source.EncodeCoordinatorEvent(ev)})
}

func (m *Master) readerGot(control.ReaderGot) {}

func (m *Master) barrierPassed(control.Passed) {}

func (m *Master) snapshotSources(id int64) {
	m.checkpoint(checkpoint.CoordinatorsAcked{ID: id})
}

func (m *Master) sourcesNotified(int64, bool) {}
