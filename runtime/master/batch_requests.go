package master

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling/batch"
)

// WorkerGone tells that a worker's process has ended. A master that takes a job
// over must not wait for one that it never meets.
func (m *Batch) WorkerGone(index int) {
	m.loop.post(func() {
		name := workerID(index)
		if m.workers.joined[name] != nil || m.dead[name] {
			return // its connection tells
		}
		m.dead[name] = true
		if m.replayed {
			m.step(batch.WorkerLost{ID: name, Err: errProcessEnded})
		}
	})
}

var errProcessEnded = errors.New("its process has ended")

// Cancel ends the job.
func (m *Batch) Cancel() { m.schedule(batch.CancelJob{}) }

// FailTask makes the running attempts of a subtask throw.
func (m *Batch) FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error {
	return m.loop.ask(ctx, func() error {
		var found []joblog.AttemptID
		for id := range m.attempts {
			if m.vertexID(vertex) == id.Vertex && id.Subtask == subtask {
				found = append(found, id)
			}
		}
		if len(found) == 0 {
			return fmt.Errorf("subtask %d of vertex %q does not run", subtask, vertex)
		}
		accepted()
		for _, id := range found {
			m.workers.send(m.attempts[id], control.CancelAttempt{Epoch: m.cfg.Epoch, Attempt: id, Failure: reason})
		}
		return nil
	})
}

// DropPartition deletes what a finished subtask has left on its worker's disk,
// as a failing disk would: nobody is told.
func (m *Batch) DropPartition(ctx context.Context, vertex string, subtask int, accepted func()) error {
	return m.loop.ask(ctx, func() error {
		parts := m.partitions[joblog.TaskID{Vertex: m.vertexID(vertex), Subtask: subtask}]
		if len(parts) == 0 {
			return fmt.Errorf("subtask %d of vertex %q holds no finished partition now", subtask, vertex)
		}
		accepted()
		for id, w := range parts {
			m.workers.send(w, control.DropData{Epoch: m.cfg.Epoch, Partition: id})
		}
		return nil
	})
}

// vertexID is the vertex that an operator is chained in.
func (m *Batch) vertexID(operator string) string {
	if i := m.cfg.Graph.Vertex(operator); i >= 0 {
		return m.cfg.Graph.Vertices[i].ID
	}
	return operator
}

// AwaitOptions is Options once a worker has reported some.
func (m *Batch) AwaitOptions(ctx context.Context) map[string]any {
	select {
	case <-m.reported:
	case <-m.loop.done:
	case <-ctx.Done():
	}
	return m.Options()
}

// Consumed are the records that tasks have read so far, and that count: those of
// finished tasks and of those that run, by vertex.
func (m *Batch) Consumed() map[string]int64 {
	m.shared.Lock()
	defer m.shared.Unlock()
	out := map[string]int64{}
	for v, tasks := range m.shared.finished {
		for _, n := range tasks {
			out[v] += n
		}
	}
	best := map[joblog.TaskID]int64{} // of several attempts the one that is ahead
	for id, n := range m.shared.counts {
		if _, finished := m.shared.finished[id.Vertex][id.Subtask]; !finished {
			best[id.TaskID] = max(best[id.TaskID], n)
		}
	}
	for id, n := range best {
		out[id.Vertex] += n
	}
	return out
}

// Figures are what recording has cost so far, and where it stands.
func (m *Batch) Figures() control.BatchFigures {
	m.shared.Lock()
	defer m.shared.Unlock()
	f := m.shared.past
	if m.shared.store != nil {
		f = addStats(f, m.shared.store.Stats())
	}
	f.Leftover, f.Heard, f.Ended = m.shared.leftover, slices.Clone(m.shared.heard), m.over()
	return f
}

// Reports are what the operators of a finished job reported.
func (m *Batch) Reports(context.Context) ([]control.Report, error) {
	return control.ReadReports(m.reports())
}
