package master

import (
	"context"
	"errors"
	"fmt"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/task"
)

// request posts what is answered later, by reply with its token, and waits for
// that.
func (m *Master) request(ctx context.Context, fn func(token uint64)) (path string, err error) {
	type answer struct {
		path string
		err  error
	}
	got := make(chan answer, 1)
	m.loop.post(func() {
		m.nextToken++
		m.replies[m.nextToken] = func(path string, err error) { got <- answer{path, err} }
		fn(m.nextToken)
	})
	select {
	case a := <-got:
		return a.path, a.err
	case <-m.done:
	case <-m.loop.done:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	select {
	case a := <-got:
		return a.path, a.err
	default:
		if m.over() {
			return "", errors.Join(errJobEnded, m.Err())
		}
		return "", errMasterEnded
	}
}

var errJobEnded = errors.New("the job has ended")

func (m *Master) reply(token uint64, path string, err error) {
	if fn := m.replies[token]; fn != nil {
		delete(m.replies, token)
		fn(path, err)
	}
}

// Rescale asks for other parallelisms, by vertex; it returns when the request
// is accepted, not when the job runs with them. accepted is called in the loop
// at the instant before the scheduler acts.
func (m *Master) Rescale(ctx context.Context, parallelism map[string]int, accepted func()) error {
	_, err := m.request(ctx, func(token uint64) {
		wanted := map[string]int{}
		for id, p := range parallelism {
			i := m.graph.Vertex(id)
			if i < 0 {
				m.reply(token, "", fmt.Errorf("no vertex %q", id))
				return
			}
			wanted[m.graph.Vertices[i].ID] = p
		}
		if _, err := m.cfg.Graph.Scale(wanted); err != nil {
			m.reply(token, "", err)
			return
		}
		accepted()
		m.schedule(scheduling.Rescale{Token: token, Parallelism: wanted})
	})
	return err
}

// FailTask makes the current attempt of a subtask throw.
func (m *Master) FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error {
	return m.loop.ask(ctx, func() error {
		if m.ended {
			return errJobEnded
		}
		i := m.graph.Vertex(vertex)
		if i < 0 || subtask >= len(m.live[m.graph.Vertices[i].ID]) {
			return fmt.Errorf("no subtask %d of vertex %q", subtask, vertex)
		}
		e := m.live[m.graph.Vertices[i].ID][subtask]
		accepted()
		if e.worker != nil {
			e.worker.conn.Send(control.FailTask{Epoch: m.cfg.Epoch, Task: e.id, Reason: reason})
		}
		return nil
	})
}

// Savepoint takes one and returns its folder's path in the store. With stop
// the job ends after it.
func (m *Master) Savepoint(ctx context.Context, stop bool) (string, error) {
	return m.request(ctx, func(token uint64) {
		if stop {
			m.schedule(scheduling.StopRequest{Token: token})
			return
		}
		m.checkpoint(checkpoint.TriggerRequest{Token: token, Savepoint: true})
	})
}

// StopSources lets unbounded sources end; the job then finishes by itself.
func (m *Master) StopSources() {
	m.loop.post(func() {
		m.draining = true
		m.eachWorker(nil, func(w *worker, ids []task.ID) {
			w.conn.Send(control.StopSources{Epoch: m.cfg.Epoch, Tasks: ids})
		})
	})
}

// Cancel ends the job.
func (m *Master) Cancel() { m.loop.post(func() { m.schedule(scheduling.CancelJob{}) }) }

// Restoring tells whether an execution that has in-flight data to restore is
// coming up.
func (m *Master) Restoring() bool { return m.restoring.Load() }

// Parallelism is the parallelism of each vertex as deployed now; nil if nobody
// can tell any more.
func (m *Master) Parallelism(ctx context.Context) map[string]int {
	var out map[string]int
	if m.loop.ask(ctx, func() error {
		out = map[string]int{}
		for i := range m.graph.Vertices {
			out[m.graph.Vertices[i].ID] = m.graph.Vertices[i].Parallelism
		}
		return nil
	}) != nil {
		return nil
	}
	return out
}
