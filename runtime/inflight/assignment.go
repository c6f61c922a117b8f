package inflight

import (
	"cmp"
	"fmt"
	"slices"

	"benchrun/runtime/graph"
	"benchrun/runtime/snapshot"
)

// Path is the way in which in-flight data come back.
type Path string

// The three recovery paths; PathNone when there was nothing to restore.
const (
	PathNone       Path = "none"
	PathUpstream   Path = "upstream"
	PathDownstream Path = "downstream"
	PathDuring     Path = "during"
)

// Label names a virtual channel: the part of a channel's data that came from
// one old channel.
type Label struct {
	Down, Up int32 // old subtasks
}

// Piece is what one old channel left for a subtask.
type Piece struct {
	Label
	Channel int // channel of the new subtask on which the rest will arrive
	Input   []Chunk
	Output  []Chunk
}

// Chunk is a stored piece of a stream.
type Chunk struct {
	File string
	snapshot.Extent
}

// GateAssignment is what one input gate restores.
type GateAssignment struct {
	Edge     *graph.Edge
	Virtual  []Virtual // all virtual channels that may appear
	Pieces   []Piece   // those with data, grouped by channel
	Identity bool      // same parallelism at both ends: no labels needed
	Redealt  bool      // what comes later on a channel need not continue what is restored on it
	Bytes    int64     // record bytes in Pieces
}

// Virtual is one virtual channel of a gate.
type Virtual struct {
	Label
	Channel int
	Filter  bool // holds records of other subtasks, too
}

// OutputPiece is restored output of one old subpartition, to be sent again.
type OutputPiece struct {
	Label
	Subpartitions []int // new ones that get it
	Chunks        []Chunk
}

// PartitionAssignment is what one result partition restores.
type PartitionAssignment struct {
	Edge   *graph.Edge
	Pieces []OutputPiece
	Bytes  int64
}

// Plan maps the in-flight data of a checkpoint to a graph. It is immutable and
// shared by all subtasks of a worker.
type Plan struct {
	meta *snapshot.Metadata
	g    *graph.Graph
	path Path
	edge []edgePlan // by Graph.Edges
}

type edgePlan struct {
	up, down *snapshot.VertexState
	inputs   [][]oldChannel // [old down][old up]
	outputs  [][]oldChannel // [old up][old down]
	bytes    int64
}

// oldChannel is what one subtask stored of a channel; nil if nothing.
type oldChannel struct {
	*snapshot.ChannelState
	files []string // of its subtask
}

// NewPlan indexes the in-flight data of a checkpoint. It fails when some edge
// holds data that the new graph cannot take.
func NewPlan(meta *snapshot.Metadata, g *graph.Graph, path Path) (*Plan, error) {
	p := &Plan{meta: meta, g: g, path: path, edge: make([]edgePlan, len(g.Edges))}
	for i := range g.Edges {
		e := &g.Edges[i]
		old := slices.IndexFunc(meta.Edges, func(s snapshot.EdgeState) bool { return s.ID == e.ID })
		if old < 0 {
			continue
		}
		if err := p.index(i, &meta.Edges[old]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// index collects the channels of one edge, found by the data-set id on both
// sides and never by position (FLINK-40269).
func (p *Plan) index(i int, old *snapshot.EdgeState) error {
	e := &p.g.Edges[i]
	ep := edgePlan{up: p.meta.Vertex(old.From), down: p.meta.Vertex(old.To)}
	if ep.up == nil || ep.down == nil {
		return fmt.Errorf("edge %s: checkpoint %d does not describe its vertices", e.ID, p.meta.Checkpoint)
	}
	collect := func(v *snapshot.VertexState, peer int, at int, channels func(*snapshot.SubtaskState) []snapshot.ChannelState) ([][]oldChannel, error) {
		var out [][]oldChannel
		for s := range v.Subtasks {
			st := &v.Subtasks[s] // not always that of subtask s: those that had finished come first
			for c := range channels(st) {
				ch := &channels(st)[c]
				if ch.Gate != at || len(ch.Extents) == 0 {
					continue
				}
				if out == nil {
					out = make([][]oldChannel, v.Parallelism)
				}
				sub := st.Subtask
				if sub >= v.Parallelism || ch.Channel >= peer {
					return nil, fmt.Errorf("edge %s: in-flight data of subtask %d, channel %d do not fit parallelism %d and %d", e.ID, sub, ch.Channel, v.Parallelism, peer)
				}
				if out[sub] == nil {
					out[sub] = make([]oldChannel, peer)
				}
				if out[sub][ch.Channel].ChannelState != nil {
					return nil, fmt.Errorf("edge %s: subtask %d describes channel %d twice; the order of its data is unknown", e.ID, sub, ch.Channel)
				}
				out[sub][ch.Channel] = oldChannel{ch, st.Files}
				ep.bytes += ch.Bytes
			}
		}
		return out, nil
	}
	var err error
	if ep.inputs, err = collect(ep.down, ep.up.Parallelism, old.Gate, func(s *snapshot.SubtaskState) []snapshot.ChannelState { return s.Inputs }); err != nil {
		return err
	}
	if ep.outputs, err = collect(ep.up, ep.down.Parallelism, old.Partition, func(s *snapshot.SubtaskState) []snapshot.ChannelState { return s.Outputs }); err != nil {
		return err
	}
	// An edge without data needs no mapper at all (FLINK-38267).
	if ep.bytes > 0 {
		newUp, newDown := p.g.Vertices[e.From].Parallelism, p.g.Vertices[e.To].Parallelism
		same := ep.up.Parallelism == newUp && ep.down.Parallelism == newDown
		if Downstream(e.Partitioner) == Unsupported && !same {
			return &UnsupportedError{Edge: e.ID, Partitioner: e.Partitioner, Old: ep.down.Parallelism, New: newDown}
		}
	}
	p.edge[i] = ep
	return nil
}

// Path is the recovery path of the plan.
func (p *Plan) Path() Path { return p.path }

// Bytes is the number of record bytes in flight, each counted once.
func (p *Plan) Bytes() (n int64) {
	for i := range p.edge {
		n += p.edge[i].bytes
	}
	return n
}

// Resends tells whether an edge's output is restored upstream, so that its
// consumers have to expect labelled data on their connections.
func (p *Plan) Resends(edge int) bool {
	return p.path == PathUpstream && p.edge[edge].bytes > 0
}

// Gate is what gate of a subtask restores; nil if the edge held nothing.
func (p *Plan) Gate(edge, subtask int) *GateAssignment {
	ep, e := &p.edge[edge], &p.g.Edges[edge]
	if ep.bytes == 0 {
		return nil
	}
	oldUp, oldDown := ep.up.Parallelism, ep.down.Parallelism
	newUp, newDown := p.g.Vertices[e.From].Parallelism, p.g.Vertices[e.To].Parallelism
	a := &GateAssignment{Edge: e, Identity: oldUp == newUp && oldDown == newDown, Redealt: !p.continues(e.From)}
	m := Downstream(e.Partitioner)
	downs := m.Old(oldDown, newDown, subtask)
	if a.Identity {
		downs = []int{subtask}
	}
	for _, d := range downs {
		filter := !a.Identity && m.Ambiguous(oldDown, newDown, d)
		for u := range oldUp {
			v := Virtual{Label: Label{int32(d), int32(u)}, Channel: u % newUp, Filter: filter}
			a.Virtual = append(a.Virtual, v)
			piece := Piece{Label: v.Label, Channel: v.Channel}
			if ep.inputs != nil && ep.inputs[d] != nil {
				piece.Input = ep.inputs[d][u].chunks(&a.Bytes)
			}
			if p.path != PathUpstream && ep.outputs != nil && ep.outputs[u] != nil {
				piece.Output = ep.outputs[u][d].chunks(&a.Bytes)
			}
			if len(piece.Input)+len(piece.Output) > 0 {
				a.Pieces = append(a.Pieces, piece)
			}
		}
	}
	slices.SortStableFunc(a.Pieces, func(x, y Piece) int { return cmp.Compare(x.Channel, y.Channel) })
	return a
}

// continues tells whether each subtask of a vertex goes on where the old one
// with its number stopped: it has its splits, or what comes in can belong to no
// other one.
func (p *Plan) continues(vertex int) bool {
	v := &p.g.Vertices[vertex]
	old := p.meta.Vertex(v.ID)
	if old == nil || old.Parallelism != v.Parallelism {
		return false
	}
	// The splits of a source are dealt out anew when some of its subtasks had
	// finished (state.Redistribute).
	if slices.ContainsFunc(old.Subtasks, func(s snapshot.SubtaskState) bool { return s.Finished }) {
		return false
	}
	for _, e := range v.Inputs {
		if e := &p.g.Edges[e]; e.Partitioner.Pointwise() && !p.continues(e.From) {
			return false
		}
	}
	return true
}

// Partition is what a result partition of a subtask sends again; nil if
// nothing is.
func (p *Plan) Partition(edge, subtask int) *PartitionAssignment {
	ep, e := &p.edge[edge], &p.g.Edges[edge]
	if p.path != PathUpstream || ep.outputs == nil {
		return nil
	}
	oldUp, oldDown := ep.up.Parallelism, ep.down.Parallelism
	newUp, newDown := p.g.Vertices[e.From].Parallelism, p.g.Vertices[e.To].Parallelism
	m := Downstream(e.Partitioner)
	a := &PartitionAssignment{Edge: e}
	for u := subtask; u < oldUp; u += newUp {
		if ep.outputs[u] == nil {
			continue
		}
		for d, ch := range ep.outputs[u] {
			if ch.ChannelState == nil {
				continue
			}
			piece := OutputPiece{Label: Label{int32(d), int32(u)}, Chunks: ch.chunks(&a.Bytes)}
			if oldUp == newUp && oldDown == newDown {
				piece.Subpartitions = []int{d}
			} else {
				for n := range newDown {
					if m.Covers(oldDown, newDown, n, d) {
						piece.Subpartitions = append(piece.Subpartitions, n)
					}
				}
			}
			a.Pieces = append(a.Pieces, piece)
		}
	}
	return a
}

func (c oldChannel) chunks(bytes *int64) []Chunk {
	if c.ChannelState == nil {
		return nil
	}
	out := make([]Chunk, len(c.Extents))
	for i, x := range c.Extents {
		out[i] = Chunk{File: c.files[x.File], Extent: x}
	}
	*bytes += c.Bytes
	return out
}
