package master

import (
	"fmt"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/source"
)

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

func (m *Batch) newSources() error {
	g := m.cfg.Graph
	for i := range g.Vertices {
		v := &g.Vertices[i]
		if !v.Source() {
			continue
		}
		kind, splits, err := enumeratorKind(v)
		if err != nil {
			return err
		}
		s := &batchSource{vertex: v.ID, kind: kind}
		for _, x := range splits {
			s.ids = append(s.ids, x.ID)
		}
		m.sources[v.ID] = s
	}
	return nil
}

// begin makes the coordinator when the vertex is wide enough to be known.
func (m *Batch) beginSource(s *batchSource, parallelism int) {
	s.c = source.NewCoordinator(s.vertex, parallelism, s.kind)
	s.tasks = make([]sourceTask, parallelism)
	m.step(batch.SplitsDiscovered{Vertex: s.vertex, Splits: s.ids})
}

// sourceDeployed: the readers of a source are on their way.
func (m *Batch) sourceDeployed(x batch.Deploy) {
	if s := m.sources[x.Attempt.Vertex]; s != nil && (s.c == nil || len(s.tasks) != x.Parallelism) {
		m.beginSource(s, x.Parallelism)
	}
}

func (m *Batch) restoreSource(x batch.RestoreCoordinator) {
	s := m.sources[x.Operator]
	if s == nil {
		return
	}
	lives := make([]int, len(s.tasks))
	for i := range s.tasks {
		lives[i] = s.tasks[i].life
	}
	m.beginSource(s, x.Parallelism)
	for i := range s.tasks {
		if i < len(lives) {
			s.tasks[i].life = lives[i] + 1
		}
	}
	m.sourceStep(s, source.Reset{Checkpoint: source.BatchCheckpoint, State: x.State, Parallelism: x.Parallelism, Held: x.Held})
}

func (m *Batch) resetSubtasks(x batch.ResetSubtasks) {
	s := m.sources[x.Operator]
	if s == nil || s.c == nil {
		return
	}
	for _, i := range x.Subtasks {
		t := &s.tasks[i]
		m.sourceStep(s, source.SubtaskFailed{Subtask: i, Attempt: t.life})
		m.sourceStep(s, source.SubtaskReset{Subtask: i, Checkpoint: source.BatchCheckpoint})
		*t = sourceTask{life: t.life + 1}
	}
}

// adopted: an attempt goes on with the splits that it has. It registers again,
// and is then told what it has not been told.
func (m *Batch) adopted(id joblog.AttemptID) {
	s := m.sources[id.Vertex]
	if s == nil || s.c == nil || id.Subtask >= len(s.tasks) {
		return
	}
	t := &s.tasks[id.Subtask]
	if t.readers == nil {
		t.readers = map[joblog.AttemptID]int{}
	}
	if held := s.c.Assigned(id.Subtask); len(held) > 0 && len(t.sent) == 0 {
		// For a second, speculative attempt; this one has them.
		e := source.CoordinatorEvent{}
		for _, x := range held {
			e.Splits, e.IDs = append(e.Splits, x.Data), append(e.IDs, x.ID)
		}
		t.sent = append(t.sent, e)
	}
	t.readers[id] = len(t.sent)
}

// readerEvent takes an event of a reader.
func (m *Batch) readerEvent(x control.FromAttempt) {
	s := m.sources[x.Attempt.Vertex]
	if _, live := m.attempts[x.Attempt]; !live || s == nil || s.c == nil || x.Attempt.Subtask >= len(s.tasks) {
		return
	}
	ev, err := source.DecodeReaderEvent(x.Payload)
	if err != nil {
		m.step(batch.GlobalFailure{Err: err, Fatal: true})
		return
	}
	t := &s.tasks[x.Attempt.Subtask]
	i := x.Attempt.Subtask
	if ev.Register {
		if t.readers == nil {
			t.readers = map[joblog.AttemptID]int{}
		}
		if _, known := t.readers[x.Attempt]; !known {
			t.readers[x.Attempt] = 0
		}
		if !t.registered {
			t.registered = true
			m.sourceStep(s, source.FromReader{Subtask: i, Attempt: t.life, Event: source.ReaderEvent{Register: true}})
		}
		m.feedReaders(s, i)
	}
	// A reader that is adopted may ask before it has heard of that. It registers when
	// it does, and asks again.
	if ev.Request && t.registered {
		m.sourceStep(s, source.FromReader{Subtask: i, Attempt: t.life, Event: source.ReaderEvent{Request: true}})
	}
}

func (m *Batch) sourceStep(s *batchSource, e source.Event) {
	m.loop.enqueue(func() {
		for _, x := range s.c.Step(e) {
			m.sourced(s, x)
		}
	})
}

func (m *Batch) sourced(s *batchSource, x source.Effect) {
	switch x := x.(type) {
	case source.Send:
		t := &s.tasks[x.Subtask]
		if x.Attempt != t.life {
			return
		}
		if len(x.Event.IDs) > 0 {
			m.step(batch.SplitsAssigned{Task: joblog.TaskID{Vertex: s.vertex, Subtask: x.Subtask}, Splits: x.Event.IDs})
		}
		t.sent = append(t.sent, x.Event)
		m.feedReaders(s, x.Subtask)
		// Whoever loses it fails, and its splits are taken back.
		m.sourceStep(s, source.Delivered{Subtask: x.Subtask, Seq: x.Seq})
	case source.FailJob:
		m.step(batch.GlobalFailure{Err: x.Err, Fatal: true})
	case source.FailTask, source.SnapshotDone, source.SnapshotFailed:
	default:
		panic(fmt.Sprintf("master: unknown effect %T", x))
	}
}

// feedReaders sends to each attempt of a subtask what it has not got.
func (m *Batch) feedReaders(s *batchSource, subtask int) {
	t := &s.tasks[subtask]
	for id, n := range t.readers {
		w, live := m.attempts[id]
		if !live {
			delete(t.readers, id)
			continue
		}
		for _, e := range t.sent[n:] {
			m.workers.send(w, control.ToAttempt{Epoch: m.cfg.Epoch, Attempt: id, Payload: source.EncodeCoordinatorEvent(e), Splits: e.IDs})
		}
		t.readers[id] = len(t.sent)
	}
}
