package master

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/inflight"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/timeline"
)

// Origin is a checkpoint of another run that the job begins from.
type Origin struct {
	Store   storage.Store
	Folder  string
	Meta    *snapshot.Metadata
	Claimed bool
}

// preparing is an execution whose checkpoint is being chosen and loaded.
type preparing struct {
	execution int
	vertices  []string
	graph     *graph.Graph
}

// prepared is an execution that can be deployed.
type prepared struct {
	graph  *graph.Graph
	store  storage.Store
	folder string
	meta   *snapshot.Metadata // nil: a fresh start
	id     int64
}

// beginFrom makes a checkpoint from outside the first one to restore.
func (m *Master) beginFrom(o *Origin) {
	m.origin = o
	m.checkpoint(checkpoint.Restored{ID: o.Meta.Checkpoint, Folder: o.Folder, Savepoint: o.Meta.Savepoint, Claimed: o.Claimed})
}

// prepare asks which checkpoint to restore; the answer goes on with load.
func (m *Master) prepare(x scheduling.Prepare) {
	base := m.cfg.Graph
	if !x.Global { // the other regions are as they were deployed
		base = m.graph
	}
	g, err := base.Scale(x.Parallelism)
	if err != nil {
		m.schedule(scheduling.Prepared{Execution: x.Execution, Err: fmt.Errorf("scale the job: %w", err), Fatal: true})
		return
	}
	m.checkpoint(checkpoint.JobFailover{})
	m.askRestore(&preparing{execution: x.Execution, vertices: x.Vertices, graph: g})
}

func (m *Master) askRestore(p *preparing) {
	m.nextToken++
	m.restores[m.nextToken] = p
	m.checkpoint(checkpoint.RestoreRequest{Token: m.nextToken})
}

// restoreFrom loads and checks the chosen checkpoint in the background. One
// that is damaged is given up, and the one before is asked for.
func (m *Master) restoreFrom(x checkpoint.RestoreFrom) {
	p := m.restores[x.Token]
	delete(m.restores, x.Token)
	if p == nil {
		return
	}
	if !x.Found && m.origin != nil {
		// It was asked for, so beginning from nothing would be a wrong result.
		err := &MismatchError{m.origin.Meta.Checkpoint, fmt.Sprintf("folder %s is damaged and there is none before it", m.origin.Folder)}
		m.schedule(scheduling.Prepared{Execution: p.execution, Err: err, Fatal: true})
		return
	}
	if !x.Found {
		m.ready(p, &prepared{graph: p.graph})
		return
	}
	store, folder := m.cfg.Checkpoints, x.Checkpoint.Folder
	if m.origin != nil && m.origin.Folder == folder && m.origin.Meta.Checkpoint == x.Checkpoint.ID {
		store = m.origin.Store
	}
	m.background(func() {
		r, err := m.load(p.graph, store, folder)
		if err != nil && !snapshot.IsCorrupt(err) && !isMismatch(err) {
			waitForStorage(m.ctx)
		}
		m.loop.post(func() {
			switch {
			case err == nil:
				m.ready(p, r)
			case snapshot.IsCorrupt(err):
				m.note(timeline.CheckpointFailed, x.Checkpoint.ID, "damaged: "+err.Error())
				m.checkpoint(checkpoint.Damaged{ID: x.Checkpoint.ID})
				m.askRestore(p)
			default:
				m.schedule(scheduling.Prepared{Execution: p.execution, Err: err, Fatal: isMismatch(err)})
			}
		})
	})
}

// waitForStorage keeps storage that is away from being asked again at once,
// whatever the pause of the restart strategy is.
func waitForStorage(ctx context.Context) {
	select {
	case <-time.After(storagePause):
	case <-ctx.Done():
	}
}

const storagePause = 100 * time.Millisecond

// MismatchError says that a checkpoint cannot be restored, now or later.
type MismatchError struct {
	Checkpoint int64
	Problem    string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("checkpoint %d cannot be restored: %s", e.Checkpoint, e.Problem)
}

func isMismatch(err error) bool {
	var u *inflight.UnsupportedError
	var e *MismatchError
	return errors.As(err, &u) || errors.As(err, &e)
}

// load reads the metadata, looks whether the files are there, and checks that
// the state can be assigned to the graph.
func (m *Master) load(g *graph.Graph, store storage.Store, folder string) (*prepared, error) {
	meta, err := snapshot.Load(store, folder)
	if err != nil {
		return nil, err
	}
	if err := snapshot.Check(store, folder, meta); err != nil {
		return nil, err
	}
	if err := fits(meta, g, options.IgnoreUnclaimedState.Get(m.cfg.Values)); err != nil {
		return nil, err
	}
	if _, err := inflight.PlanFor(meta, g, m.cfg.Values); err != nil {
		return nil, err
	}
	return &prepared{graph: g, store: store, folder: folder, meta: meta, id: meta.Checkpoint}, nil
}

// fits checks operators and maximum parallelism.
func fits(meta *snapshot.Metadata, g *graph.Graph, ignoreUnclaimed bool) error {
	bad := func(format string, a ...any) error {
		return &MismatchError{meta.Checkpoint, fmt.Sprintf(format, a...)}
	}
	known, kinds := map[string]*graph.Vertex{}, map[string]string{}
	for i := range g.Vertices {
		for _, op := range g.Vertices[i].Operators {
			known[op.ID], kinds[op.ID] = &g.Vertices[i], op.Operator
		}
	}
	for i := range meta.Vertices {
		old := &meta.Vertices[i]
		for k, op := range old.Operators {
			v := known[op]
			if v == nil {
				if ignoreUnclaimed || !hasState(old, op) {
					continue
				}
				return bad("it holds state of operator %q, which the job has not; give the operator that id, or set %s = true to drop the state", op, options.IgnoreUnclaimedState.Key())
			}
			if kind := old.Kinds[k]; kind != "" && kind != kinds[op] {
				return bad("operator %q was a %s there and is a %s now, which cannot read its state; give the new operator another id", op, kind, kinds[op])
			}
			if v.MaxParallelism != old.MaxParallelism {
				return bad("operator %q had max-parallelism %d there and has %d now; key groups cannot be split, so set workload.max-parallelism = %d", op, old.MaxParallelism, v.MaxParallelism, old.MaxParallelism)
			}
		}
	}
	return nil
}

func hasState(v *snapshot.VertexState, operator string) bool {
	for s := range v.Subtasks {
		for _, o := range v.Subtasks[s].Operators {
			if o.Operator == operator && (len(o.Keyed) > 0 || len(o.List) > 0) {
				return true
			}
		}
	}
	return false
}

// ready records what is restored and lets the scheduler deploy.
func (m *Master) ready(p *preparing, r *prepared) {
	if m.ended {
		return
	}
	m.prepared[p.execution] = r
	if r.meta != nil {
		if err := m.adoptResults(r.id, r.meta.Results); err != nil {
			m.schedule(scheduling.Prepared{Execution: p.execution, Err: &MismatchError{r.id, err.Error()}, Fatal: true})
			return
		}
	}
	e := timeline.Of(timeline.RestoreAssigned)
	if r.meta != nil {
		e.Checkpoint, e.Bytes = r.id, r.meta.InFlightBytes()
		e.Detail = fmt.Sprintf("folder=%s size=%d", r.folder, r.meta.InFlightBytes()+r.meta.StateBytes())
		m.checkpoint(checkpoint.Restored{ID: r.id, Folder: r.folder, Savepoint: r.meta.Savepoint})
		if options.WithoutChannelStateCheckpoint.Get(m.cfg.Values) == r.id {
			e.Bytes = 0
		}
	}
	if r.meta != nil || m.deployedOnce {
		m.cfg.Timeline.Add(e)
	}
	m.deployedOnce = true
	m.keepSettled(r, p.vertices)
	m.restored = r.id
	m.restoring.Store(e.Bytes > 0)
	m.schedule(scheduling.Prepared{Execution: p.execution})
}
