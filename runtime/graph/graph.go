package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"benchrun/runtime/record"
)

// Partitioner says how the records of an edge choose their subtask.
type Partitioner string

// The eight partitioners.
const (
	Forward   Partitioner = "forward"
	Rebalance Partitioner = "rebalance"
	Rescale   Partitioner = "rescale"
	Hash      Partitioner = "hash"
	Broadcast Partitioner = "broadcast"
	Shuffle   Partitioner = "shuffle"
	Global    Partitioner = "global"
	Custom    Partitioner = "custom"
)

// Partitioners lists all of them.
func Partitioners() []Partitioner {
	return []Partitioner{Forward, Rebalance, Rescale, Hash, Broadcast, Shuffle, Global, Custom}
}

// Pointwise tells whether a subtask talks to a part of the peers only.
func (p Partitioner) Pointwise() bool { return p == Forward || p == Rescale }

// Node is one operator of the logical job.
type Node struct {
	ID             string
	Operator       string // name in the operator library
	Params         json.RawMessage
	Parallelism    int // 0, in batch mode only: decided at run time
	MaxParallelism int // 0: derived
	Source         bool
}

// Link is one edge of the logical job. Input is 0, or 1 for the second input
// of a two-input operator.
type Link struct {
	From, To    string
	Partitioner Partitioner
	Input       int
}

// Job is the logical job.
type Job struct {
	Name  string
	Nodes []Node
	Links []Link
}

// Operator is one operator inside a vertex.
type Operator struct {
	Node
	Next []Chained // operators of the same vertex that get its output directly
	Outs []int     // Graph.Edges that get its output
}

// Chained is a link inside a vertex.
type Chained struct {
	Operator int // index in Vertex.Operators
	Input    int
}

// Vertex is a chain of operators that share a task. Operators[0] is the head.
type Vertex struct {
	ID             string // id of the head operator
	Operators      []Operator
	Parallelism    int
	MaxParallelism int
	Inputs         []int // Graph.Edges, by gate
	Outputs        []int // Graph.Edges, by partition
}

// Source tells whether the vertex makes records itself.
func (v *Vertex) Source() bool { return v.Operators[0].Source }

// Edge connects two vertices.
type Edge struct {
	ID          string // data-set id
	From, To    int    // vertices
	FromOp      int    // operator of the from vertex that feeds it
	Partitioner Partitioner
	Input       int  // logical input of the head operator
	Gate        int  // position in the to vertex's Inputs
	Partition   int  // position in the from vertex's Outputs
	Unaligned   bool // barriers may overtake data here
}

// Graph is a job as it is deployed.
type Graph struct {
	Name     string
	Vertices []Vertex
	Edges    []Edge
}

// Config holds what the shape of a graph depends on besides the job.
type Config struct {
	Chaining        bool
	ForcedUnaligned bool // allow overtaking on custom edges
	// Batch: every edge between vertices is blocking, and a parallelism may be
	// decided at run time.
	Batch bool
}

// Build checks a job and chains it. All problems are reported together.
func Build(job Job, cfg Config) (*Graph, error) {
	b := &builder{job: job, cfg: cfg, node: map[string]int{}}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b.build(), nil
}

type builder struct {
	job   Job
	cfg   Config
	node  map[string]int
	order []int // topological
}

func (b *builder) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	for i, n := range b.job.Nodes {
		if _, twice := b.node[n.ID]; twice {
			bad("vertex %q is defined twice", n.ID)
		}
		b.node[n.ID] = i
		maxp := n.MaxParallelism
		if maxp == 0 {
			maxp = record.DefaultMaxParallelism(n.Parallelism)
		}
		if maxp < 1 || maxp > record.MaxParallelismBound {
			bad("vertex %q: maximum parallelism %d is outside 1..%d", n.ID, maxp, record.MaxParallelismBound)
			continue
		}
		if b.cfg.Batch && n.Parallelism == 0 {
			continue
		}
		if n.Parallelism < 1 || n.Parallelism > maxp {
			bad("vertex %q: parallelism %d is outside 1..%d (maximum parallelism)", n.ID, n.Parallelism, maxp)
		}
	}
	indeg := make([]int, len(b.job.Nodes))
	out := make([][]int, len(b.job.Nodes))
	for _, l := range b.job.Links {
		f, okF := b.node[l.From]
		t, okT := b.node[l.To]
		switch {
		case !okF:
			bad("edge %s->%s: no vertex %q", l.From, l.To, l.From)
		case !okT:
			bad("edge %s->%s: no vertex %q", l.From, l.To, l.To)
		case !slices.Contains(Partitioners(), l.Partitioner):
			bad("edge %s->%s: unknown partitioner %q", l.From, l.To, l.Partitioner)
		case b.job.Nodes[t].Source:
			bad("edge %s->%s: a source has no inputs", l.From, l.To)
		case l.Partitioner == Forward && !b.equal(f, t):
			bad("edge %s->%s: forward needs equal parallelism, not %d and %d", l.From, l.To, b.job.Nodes[f].Parallelism, b.job.Nodes[t].Parallelism)
		default:
			out[f] = append(out[f], t)
			indeg[t]++
		}
	}
	for i, n := range b.job.Nodes {
		if !n.Source && indeg[i] == 0 {
			bad("vertex %q has no input", n.ID)
		}
		if indeg[i] == 0 {
			b.order = append(b.order, i)
		}
	}
	for k := 0; k < len(b.order); k++ {
		for _, t := range out[b.order[k]] {
			if indeg[t]--; indeg[t] == 0 {
				b.order = append(b.order, t)
			}
		}
	}
	if len(errs) == 0 && len(b.order) < len(b.job.Nodes) {
		bad("the job has a cycle")
	}
	return errors.Join(errs...)
}

// equal tells whether two nodes have, or may get, the same parallelism.
func (b *builder) equal(f, t int) bool {
	p, q := b.job.Nodes[f].Parallelism, b.job.Nodes[t].Parallelism
	return p == q || b.cfg.Batch && (p == 0 || q == 0)
}

func (b *builder) build() *Graph {
	g := &Graph{Name: b.job.Name}
	inputs := map[string]int{}
	for _, l := range b.job.Links {
		inputs[l.To]++
	}
	chainable := func(l Link) bool {
		f, t := b.job.Nodes[b.node[l.From]], b.job.Nodes[b.node[l.To]]
		return b.cfg.Chaining && l.Partitioner == Forward && inputs[l.To] == 1 &&
			f.Parallelism == t.Parallelism && maxParallelism(f) == maxParallelism(t)
	}
	chainedTo := map[string]string{} // operator -> the one it is chained behind
	for _, l := range b.job.Links {
		if chainable(l) {
			chainedTo[l.To] = l.From
		}
	}
	type place struct{ vertex, op int }
	where := map[string]place{}
	for _, i := range b.order {
		n := b.job.Nodes[i]
		n.MaxParallelism = maxParallelism(n)
		if from, ok := chainedTo[n.ID]; ok {
			p := where[from]
			v := &g.Vertices[p.vertex]
			v.Operators = append(v.Operators, Operator{Node: n})
			where[n.ID] = place{p.vertex, len(v.Operators) - 1}
			continue
		}
		g.Vertices = append(g.Vertices, Vertex{ID: n.ID, Operators: []Operator{{Node: n}}, Parallelism: n.Parallelism, MaxParallelism: n.MaxParallelism})
		where[n.ID] = place{len(g.Vertices) - 1, 0}
	}
	ordinal := map[[2]string]int{}
	for _, l := range b.job.Links {
		f, t := where[l.From], where[l.To]
		if chainable(l) {
			op := &g.Vertices[f.vertex].Operators[f.op]
			op.Next = append(op.Next, Chained{Operator: t.op, Input: l.Input})
			continue
		}
		k := [2]string{l.From, l.To}
		from, to := &g.Vertices[f.vertex], &g.Vertices[t.vertex]
		e := Edge{
			ID: fmt.Sprintf("%s->%s#%d", l.From, l.To, ordinal[k]), From: f.vertex, To: t.vertex, FromOp: f.op,
			Partitioner: l.Partitioner, Input: l.Input, Gate: len(to.Inputs), Partition: len(from.Outputs),
		}
		ordinal[k]++
		i := len(g.Edges)
		g.Edges = append(g.Edges, e)
		from.Outputs = append(from.Outputs, i)
		from.Operators[f.op].Outs = append(from.Operators[f.op].Outs, i)
		to.Inputs = append(to.Inputs, i)
	}
	g.markUnaligned(b.cfg)
	return g
}

// markUnaligned decides per edge whether barriers may overtake: pointwise and
// broadcast edges cannot be redistributed, and one such input turns all inputs
// of its task off (FLINK-22815, apache/flink PR 26938).
func (g *Graph) markUnaligned(cfg Config) {
	for i := range g.Vertices {
		ok := true
		for _, e := range g.Vertices[i].Inputs {
			switch p := g.Edges[e].Partitioner; {
			case p.Pointwise(), p == Broadcast, p == Custom && !cfg.ForcedUnaligned:
				ok = false
			}
		}
		for _, e := range g.Vertices[i].Inputs {
			g.Edges[e].Unaligned = ok
		}
	}
}

func maxParallelism(n Node) int {
	if n.MaxParallelism > 0 {
		return n.MaxParallelism
	}
	return record.DefaultMaxParallelism(n.Parallelism)
}

// Vertex finds a vertex by its id, or by the id of any operator chained in it;
// -1 if there is none.
func (g *Graph) Vertex(id string) int {
	for i := range g.Vertices {
		for _, op := range g.Vertices[i].Operators {
			if op.ID == id {
				return i
			}
		}
	}
	return -1
}

// Scale returns a copy with other parallelisms, by vertex or operator id.
// Forward edges must still connect equal parallelisms.
func (g *Graph) Scale(parallelism map[string]int) (*Graph, error) {
	out := *g
	out.Vertices = slices.Clone(g.Vertices)
	by := map[int]string{} // vertex -> the id that named it
	for _, id := range slices.Sorted(maps.Keys(parallelism)) {
		p, i := parallelism[id], g.Vertex(id)
		if i < 0 {
			return nil, fmt.Errorf("no vertex %q", id)
		}
		if v := &out.Vertices[i]; p < 1 || p > v.MaxParallelism {
			return nil, fmt.Errorf("parallelism %d of vertex %q is outside 1..%d (its maximum parallelism)", p, id, v.MaxParallelism)
		}
		if other, twice := by[i]; twice && parallelism[other] != p {
			return nil, fmt.Errorf("%q and %q share a task, their parallelism cannot be %d and %d", other, id, parallelism[other], p)
		}
		by[i] = id
		out.Vertices[i].Parallelism = p
	}
	for _, e := range out.Edges {
		f, t := &out.Vertices[e.From], &out.Vertices[e.To]
		if e.Partitioner == Forward && f.Parallelism != t.Parallelism {
			return nil, fmt.Errorf("forward edge %s needs equal parallelism, not %d and %d", e.ID, f.Parallelism, t.Parallelism)
		}
	}
	return &out, nil
}

// Regions groups vertices that are connected by pipelined edges: they fail and
// restart together.
func (g *Graph) Regions() [][]int {
	parent := make([]int, len(g.Vertices))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for _, e := range g.Edges {
		parent[find(e.From)] = find(e.To)
	}
	byRoot := map[int]int{}
	var regions [][]int
	for i := range g.Vertices {
		r := find(i)
		k, ok := byRoot[r]
		if !ok {
			k = len(regions)
			byRoot[r] = k
			regions = append(regions, nil)
		}
		regions[k] = append(regions[k], i)
	}
	return regions
}
