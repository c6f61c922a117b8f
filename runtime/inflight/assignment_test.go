package inflight

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
)

// described is metadata without files, for plans.
type described struct{ snapshot.Metadata }

func (m *described) vertex(id string, parallelism int) *described {
	v := snapshot.VertexState{ID: id, Parallelism: parallelism, MaxParallelism: maxParallelism, Operators: []string{id}}
	for s := range parallelism {
		v.Subtasks = append(v.Subtasks, snapshot.SubtaskState{Subtask: s, Files: []string{id + "-file"}})
	}
	m.Vertices = append(m.Vertices, v)
	return m
}

func (m *described) edge(id, from, to string, p graph.Partitioner, gate, partition int) *described {
	m.Edges = append(m.Edges, snapshot.EdgeState{ID: id, From: from, To: to, Partitioner: string(p), Gate: gate, Partition: partition})
	return m
}

func channelState(gate, ch int, bytes int32) snapshot.ChannelState {
	return snapshot.ChannelState{Gate: gate, Channel: ch, Bytes: int64(bytes), Extents: []snapshot.Extent{{Offset: 8, Length: bytes}}}
}

func (m *described) input(vertex string, subtask, gate, ch int, bytes int32) *described {
	s := &m.Vertex(vertex).Subtasks[subtask]
	s.Inputs = append(s.Inputs, channelState(gate, ch, bytes))
	s.InFlightBytes += int64(bytes)
	return m
}

func (m *described) output(vertex string, subtask, partition, sub int, bytes int32) *described {
	s := &m.Vertex(vertex).Subtasks[subtask]
	s.Outputs = append(s.Outputs, channelState(partition, sub, bytes))
	s.InFlightBytes += int64(bytes)
	return m
}

func build(t *testing.T, j graph.Job) *graph.Graph {
	t.Helper()
	g, err := graph.Build(j, graph.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func node(id string, p int) graph.Node {
	return graph.Node{ID: id, Parallelism: p, MaxParallelism: maxParallelism, Source: strings.HasPrefix(id, "s")}
}

// What each subtask gets is written out for one downscale of both ends: two
// upstream subtasks become one, three downstream ones two.
func TestAssignmentOfADownscale(t *testing.T) {
	m := (&described{}).vertex("s", 2).vertex("b", 3).edge("s->b#0", "s", "b", graph.Hash, 0, 0).
		input("b", 0, 0, 1, 10).input("b", 1, 0, 0, 20).output("s", 1, 0, 1, 40).output("s", 0, 0, 2, 80)
	g := edgeGraph(t, graph.Hash, 1, 2)
	g.Edges[0].ID = "s->b#0"
	chunk := func(file string, bytes int32) []Chunk {
		return []Chunk{{File: file, Extent: snapshot.Extent{Offset: 8, Length: bytes}}}
	}
	for _, path := range []Path{PathUpstream, PathDownstream} {
		p, err := NewPlan(&m.Metadata, g, path)
		if err != nil {
			t.Fatal(err)
		}
		if p.Bytes() != 150 {
			t.Errorf("%d bytes in flight, want 150", p.Bytes())
		}
		// 3 -> 2: subtask 0 gets 0 and 1, subtask 1 gets 1 and 2; only 1 is both's.
		want := [][]Virtual{
			{{Label{0, 0}, 0, false}, {Label{0, 1}, 0, false}, {Label{1, 0}, 0, true}, {Label{1, 1}, 0, true}},
			{{Label{1, 0}, 0, true}, {Label{1, 1}, 0, true}, {Label{2, 0}, 0, false}, {Label{2, 1}, 0, false}},
		}
		pieces := [][]Piece{
			{{Label: Label{0, 1}, Input: chunk("b-file", 10)}, {Label: Label{1, 0}, Input: chunk("b-file", 20)}},
			{{Label: Label{1, 0}, Input: chunk("b-file", 20)}},
		}
		bytes := []int64{30, 20}
		if path == PathDownstream {
			pieces[0] = append(pieces[0], Piece{Label: Label{1, 1}, Output: chunk("s-file", 40)})
			pieces[1] = append(pieces[1], Piece{Label: Label{1, 1}, Output: chunk("s-file", 40)}, Piece{Label: Label{2, 0}, Output: chunk("s-file", 80)})
			bytes = []int64{70, 140}
		}
		for n := range 2 {
			a := p.Gate(0, n)
			if !reflect.DeepEqual(a.Virtual, want[n]) || !reflect.DeepEqual(a.Pieces, pieces[n]) || a.Bytes != bytes[n] || a.Identity {
				t.Errorf("%s, subtask %d: %+v", path, n, a)
			}
		}
		a := p.Partition(0, 0)
		if path == PathDownstream {
			if a != nil || p.Resends(0) {
				t.Errorf("output is sent again downstream: %+v", a)
			}
			continue
		}
		out := []OutputPiece{
			{Label: Label{2, 0}, Subpartitions: []int{1}, Chunks: chunk("s-file", 80)},
			{Label: Label{1, 1}, Subpartitions: []int{0, 1}, Chunks: chunk("s-file", 40)},
		}
		if !p.Resends(0) || !reflect.DeepEqual(a.Pieces, out) || a.Bytes != 120 {
			t.Errorf("output: %+v", a)
		}
	}
}

// At the same parallelism nothing is filtered and every channel keeps its own.
func TestAssignmentOfTheSame(t *testing.T) {
	m := (&described{}).vertex("s", 2).vertex("b", 3).edge("s->b#0", "s", "b", graph.Hash, 0, 0).
		input("b", 1, 0, 1, 10).output("s", 1, 0, 1, 20).output("s", 0, 0, 2, 5)
	g := edgeGraph(t, graph.Hash, 2, 3)
	g.Edges[0].ID = "s->b#0"
	p, err := NewPlan(&m.Metadata, g, PathDownstream)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []int64{0, 30, 5} {
		a := p.Gate(0, n)
		if !a.Identity || a.Bytes != want {
			t.Errorf("subtask %d: %d bytes, identity %v; want %d", n, a.Bytes, a.Identity, want)
		}
		for _, v := range a.Virtual {
			if v.Filter || int(v.Down) != n || int(v.Up) != v.Channel {
				t.Errorf("subtask %d: virtual channel %+v", n, v)
			}
		}
	}
}

// Subtasks that had finished stand first in the metadata, so a subtask's place
// is not its number.
func TestAssignmentWithFinishedSubtasks(t *testing.T) {
	m := (&described{}).vertex("s", 1).vertex("b", 3).edge("s->b#0", "s", "b", graph.Rebalance, 0, 0).
		input("b", 0, 0, 0, 10).input("b", 1, 0, 0, 20)
	b := m.Vertex("b")
	for i := range b.Subtasks {
		b.Subtasks[i].Files[0] = "file-of-" + string(rune('0'+i))
	}
	b.Subtasks[2] = snapshot.SubtaskState{Subtask: 2, Finished: true}
	b.Subtasks[0], b.Subtasks[1], b.Subtasks[2] = b.Subtasks[2], b.Subtasks[0], b.Subtasks[1]
	g := edgeGraph(t, graph.Rebalance, 1, 3)
	g.Edges[0].ID = "s->b#0"
	p, err := NewPlan(&m.Metadata, g, PathDownstream)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"file-of-0", "file-of-1", ""} {
		a := p.Gate(0, n)
		if want == "" {
			if len(a.Pieces) != 0 {
				t.Errorf("subtask %d gets %+v", n, a.Pieces)
			}
			continue
		}
		if len(a.Pieces) != 1 || a.Pieces[0].Input[0].File != want || int(a.Pieces[0].Down) != n {
			t.Errorf("subtask %d gets %+v, want what %s holds", n, a.Pieces, want)
		}
	}
}

// A checkpoint that does not fit itself is refused; what it says twice has no
// order (CS-17).
func TestMalformedDescriptions(t *testing.T) {
	good := func() *described {
		return (&described{}).vertex("s", 2).vertex("b", 2).edge("s->b#0", "s", "b", graph.Hash, 0, 0).input("b", 0, 0, 0, 1)
	}
	g := edgeGraph(t, graph.Hash, 2, 2)
	g.Edges[0].ID = "s->b#0"
	for want, m := range map[string]*described{
		"":                             good(),
		"describes channel 0 twice":    good().input("b", 0, 0, 0, 1),
		"do not fit parallelism":       good().input("b", 1, 0, 2, 1),
		"does not describe its vertic": {snapshot.Metadata{Edges: good().Edges, Vertices: good().Vertices[:1]}},
	} {
		_, err := NewPlan(&m.Metadata, g, PathUpstream)
		if want == "" && err == nil {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s->b#0") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	m := good()
	m.Vertex("b").Subtasks[1].Subtask = 5
	m.input("b", 1, 0, 0, 1)
	if _, err := NewPlan(&m.Metadata, g, PathUpstream); err == nil {
		t.Error("subtask 5 of 2 was believed")
	}
}

// Two edges join the same vertices; both were looked for by the place of the
// peer, and one got the other's data.
//
// Mutation: NewPlan finds the old edge by From and To.
func TestFLINK40269_EdgesAreFoundByID(t *testing.T) {
	m := (&described{}).vertex("s", 2).vertex("b", 2).
		edge("s->b#0", "s", "b", graph.Hash, 0, 0).edge("s->b#1", "s", "b", graph.Rebalance, 1, 1).
		input("b", 0, 0, 1, 10).input("b", 0, 1, 1, 20).output("s", 1, 0, 0, 40).output("s", 1, 1, 0, 80)
	g := build(t, graph.Job{
		Nodes: []graph.Node{node("s", 2), node("b", 4)},
		Links: []graph.Link{{From: "s", To: "b", Partitioner: graph.Hash}, {From: "s", To: "b", Partitioner: graph.Rebalance, Input: 1}},
	})
	// The new graph may number them the other way round.
	g.Edges[0], g.Edges[1] = g.Edges[1], g.Edges[0]
	p, err := NewPlan(&m.Metadata, g, PathDownstream)
	if err != nil {
		t.Fatal(err)
	}
	for e, want := range map[string]int64{"s->b#0": 50, "s->b#1": 100} {
		i := 0
		if g.Edges[1].ID == e {
			i = 1
		}
		if got := p.Gate(i, 0).Bytes; got != want {
			t.Errorf("edge %s: %d bytes for subtask 0, want %d", e, got, want)
		}
	}
}

// A task with a pointwise edge that holds nothing could not be restored: its
// mapper was asked all the same.
//
// Mutation: Plan.index asks for a mapper whatever the edge holds.
func TestFLINK38267_EdgeWithoutDataNeedsNoMapper(t *testing.T) {
	m := (&described{}).vertex("s", 2).vertex("b", 2).vertex("c", 2).
		edge("s->b#0", "s", "b", graph.Hash, 0, 0).edge("b->c#0", "b", "c", graph.Rescale, 0, 0).
		input("b", 0, 0, 1, 10)
	g := build(t, graph.Job{
		Nodes: []graph.Node{node("s", 2), node("b", 3), node("c", 5)},
		Links: []graph.Link{{From: "s", To: "b", Partitioner: graph.Hash}, {From: "b", To: "c", Partitioner: graph.Rescale}},
	})
	p, err := NewPlan(&m.Metadata, g, PathUpstream)
	if err != nil {
		t.Fatal(err)
	}
	if p.Gate(1, 0) != nil || p.Partition(1, 0) != nil || p.Resends(1) {
		t.Error("the empty edge restores something")
	}
	m.input("c", 0, 0, 0, 1)
	var unsupported *UnsupportedError
	if _, err := NewPlan(&m.Metadata, g, PathUpstream); !errors.As(err, &unsupported) || unsupported.Edge != "b->c#0" || unsupported.Partitioner != graph.Rescale {
		t.Errorf("error %v, want one that names the edge", err)
	}
	same := build(t, graph.Job{
		Nodes: []graph.Node{node("s", 2), node("b", 2), node("c", 2)},
		Links: []graph.Link{{From: "s", To: "b", Partitioner: graph.Hash}, {From: "b", To: "c", Partitioner: graph.Rescale}},
	})
	if _, err := NewPlan(&m.Metadata, same, PathUpstream); err != nil {
		t.Errorf("at the same parallelism: %v", err)
	}
}

// A vertex without any state between two that have some got no data.
//
// Mutation: Plan.index skips an edge whose downstream vertex has no operator
// state.
func TestFLINK31963_StatelessMiddle(t *testing.T) {
	m := (&described{}).vertex("s", 1).vertex("b", 2).vertex("c", 2).
		edge("s->b#0", "s", "b", graph.Rebalance, 0, 0).edge("b->c#0", "b", "c", graph.Hash, 0, 0).
		output("s", 0, 0, 1, 10).input("c", 1, 0, 0, 20)
	g := build(t, graph.Job{
		Nodes: []graph.Node{node("s", 1), node("b", 3), node("c", 1)},
		Links: []graph.Link{{From: "s", To: "b", Partitioner: graph.Rebalance}, {From: "b", To: "c", Partitioner: graph.Hash}},
	})
	p, err := NewPlan(&m.Metadata, g, PathUpstream)
	if err != nil {
		t.Fatal(err)
	}
	if a := p.Partition(0, 0); a == nil || a.Bytes != 10 || len(a.Pieces[0].Subpartitions) != 1 || a.Pieces[0].Subpartitions[0] != 1 {
		t.Errorf("output towards the middle: %+v", a)
	}
	if a := p.Gate(0, 1); a == nil || len(a.Virtual) != 1 {
		t.Errorf("the middle expects %+v", a)
	}
	if a := p.Gate(1, 0); a == nil || a.Bytes != 20 {
		t.Errorf("behind the middle: %+v", a)
	}
}

// The copy of the partitioner that tells restored records apart was not set up
// for the new parallelism.
//
// Mutation: NewDemux sets the selector up for the number of channels.
func TestFLINK35351_CustomPartitionerIsSetUp(t *testing.T) {
	a := &GateAssignment{Edge: &graph.Edge{ID: "e", Partitioner: graph.Custom}, Virtual: []Virtual{{Filter: true}}}
	seen := map[uint64]int{}
	for n := range 3 {
		d := NewDemux(a, 1, n, 3, maxParallelism)
		if err := d.Select(Label{}); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(50) {
			d.Feed(element(0, i))
			body, err := d.Next()
			if err != nil {
				t.Fatal(err)
			}
			if body == nil {
				continue
			}
			var r record.Record
			r.Get(body)
			if seen[i]++; exchange.NewSelector(graph.Custom, 3, maxParallelism, 2).Select(&r) != n {
				t.Errorf("record %d is kept by subtask %d, its producer would send it elsewhere", i, n)
			}
		}
	}
	for i := range uint64(50) {
		if seen[i] != 1 {
			t.Errorf("record %d is kept by %d subtasks", i, seen[i])
		}
	}
}

func TestLabelsAreChecked(t *testing.T) {
	a := &GateAssignment{Edge: &graph.Edge{ID: "a->b#0", Partitioner: graph.Hash}, Virtual: []Virtual{{Label: Label{0, 0}, Channel: 0}, {Label: Label{0, 1}, Channel: 1}}}
	d := NewDemux(a, 2, 0, 1, maxParallelism)
	if d.Current(0) {
		t.Error("something is selected before anything was")
	}
	if err := d.SelectOn(1, Label{0, 0}); err == nil || !strings.Contains(err.Error(), "belongs to channel 0") {
		t.Errorf("label on the wrong channel: %v", err)
	}
	if err := d.SelectOn(0, Label{0, 0}); err != nil || !d.Current(0) || d.Current(1) {
		t.Errorf("select: %v", err)
	}
	d.Current(0)
	d.Feed(element(1, 1)[:10])
	if body, err := d.Next(); body != nil || err != nil {
		t.Errorf("half an element: %v, %v", body, err)
	}
	if err := d.Empty(); err == nil || !strings.Contains(err.Error(), "0->0") || !strings.Contains(err.Error(), "10 bytes") {
		t.Errorf("stream that ends inside an element: %v", err)
	}
	d.Feed([]byte{0xff, 0xff, 0xff, 0xff, 0xff})
	bad := NewDemux(a, 2, 0, 1, maxParallelism)
	bad.Select(Label{0, 0})
	bad.Feed([]byte{2, 0, 0, 0, 9, 9})
	if _, err := bad.Next(); err == nil || !strings.Contains(err.Error(), "a->b#0") {
		t.Errorf("corrupt stream: %v", err)
	}
}

// A subtask continues the old one of its number if its own parallelism is what it
// was, none had finished, and that is so of all that feed it pointwise.
//
// Fails if Plan.continues leaves one of the three out.
func TestWhoContinues(t *testing.T) {
	job := func(s, m, p int, edge graph.Partitioner) *graph.Graph {
		return build(t, graph.Job{
			Nodes: []graph.Node{node("s", s), node("m", m), node("b", p)},
			Links: []graph.Link{{From: "s", To: "m", Partitioner: edge}, {From: "m", To: "b", Partitioner: graph.Hash}},
		})
	}
	finished := func(m *described) { m.Vertex("m").Subtasks[1].Finished = true }
	for _, x := range []struct {
		name    string
		edge    graph.Partitioner
		s, m, b int
		change  func(*described)
		redealt bool
	}{
		{name: "same", edge: graph.Hash, s: 2, m: 4, b: 3},
		{name: "consumer", edge: graph.Hash, s: 2, m: 4, b: 5},
		{name: "producer", edge: graph.Hash, s: 2, m: 3, b: 3, redealt: true},
		{name: "all feed it", edge: graph.Hash, s: 3, m: 4, b: 3},
		{name: "pointwise", edge: graph.Rescale, s: 2, m: 4, b: 3},
		{name: "pointwise rescaled", edge: graph.Rescale, s: 4, m: 4, b: 3, redealt: true},
		{name: "finished", edge: graph.Hash, s: 2, m: 4, b: 3, change: finished, redealt: true},
	} {
		m := (&described{}).vertex("s", 2).vertex("m", 4).vertex("b", 3).edge("m->b#0", "m", "b", graph.Hash, 0, 0).input("b", 0, 0, 1, 10)
		if x.change != nil {
			x.change(m)
		}
		p, err := NewPlan(&m.Metadata, job(x.s, x.m, x.b, x.edge), PathDuring)
		if err != nil {
			t.Fatal(err)
		}
		if a := p.Gate(1, 0); a == nil || a.Redealt != x.redealt {
			t.Errorf("%s: %+v, want redealt %v", x.name, a, x.redealt)
		}
	}
}

// Statuses are not handed on. Watermarks of channels that others go on with are
// held back, and are the smallest of all old channels in the end.
func TestMarksOfOldChannels(t *testing.T) {
	edge := &graph.Edge{ID: "e", Partitioner: graph.Rebalance}
	virtual := []Virtual{{Label: Label{0, 0}}, {Label: Label{0, 1}, Channel: 1}}
	var idle [record.StatusSize]byte
	record.PutStatus(idle[:], false)
	for _, redealt := range []bool{false, true} {
		d := NewDemux(&GateAssignment{Edge: edge, Virtual: virtual, Redealt: redealt}, 2, 0, 1, maxParallelism)
		for up, w := range []int64{20, 10} {
			if t0, ok := d.HeldBack(); ok {
				t.Errorf("watermark %d before all old channels have one", t0)
			}
			var mark [record.WatermarkSize]byte
			record.PutWatermark(mark[:], w)
			if err := d.Select(Label{0, int32(up)}); err != nil {
				t.Fatal(err)
			}
			d.Feed(append(idle[:], mark[:]...))
			body, err := d.Next()
			if err != nil || (body == nil) != redealt || body != nil && record.WatermarkTime(body) != w {
				t.Errorf("redealt %v, watermark %d: handed on %v, %v", redealt, w, body, err)
			}
		}
		if w, ok := d.HeldBack(); ok != redealt || ok && w != 10 {
			t.Errorf("redealt %v: %d, %v is held back", redealt, w, ok)
		}
	}
}
