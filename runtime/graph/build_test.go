package graph

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// job makes a job from short lines: "a:2" is an operator, "s:2*" a source,
// "a-forward-b" a link, "a-hash-b.1" one to the second input.
func job(lines ...string) Job {
	var j Job
	for _, l := range strings.Fields(strings.Join(lines, " ")) {
		if id, rest, ok := strings.Cut(l, ":"); ok {
			n := Node{ID: id, Operator: "map", Source: strings.HasSuffix(rest, "*")}
			rest = strings.TrimSuffix(rest, "*")
			if p, max, ok := strings.Cut(rest, "/"); ok {
				rest = p
				fmt.Sscan(max, &n.MaxParallelism)
			}
			fmt.Sscan(rest, &n.Parallelism)
			j.Nodes = append(j.Nodes, n)
			continue
		}
		f := strings.Split(l, "-")
		to, input, _ := strings.Cut(f[2], ".")
		k := Link{From: f[0], To: to, Partitioner: Partitioner(f[1])}
		if input == "1" {
			k.Input = 1
		}
		j.Links = append(j.Links, k)
	}
	return j
}

// chains renders vertices as "head+op+op".
func chains(g *Graph) string {
	var out []string
	for _, v := range g.Vertices {
		var ids []string
		for _, o := range v.Operators {
			ids = append(ids, o.ID)
		}
		out = append(out, strings.Join(ids, "+"))
	}
	return strings.Join(out, " ")
}

func build(t *testing.T, chaining bool, lines ...string) *Graph {
	t.Helper()
	g, err := Build(job(lines...), Config{Chaining: chaining})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestChaining(t *testing.T) {
	for _, c := range []struct {
		name, job, want string
		off             bool
	}{
		{"forward", "s:2* a:2 b:2 s-forward-a a-forward-b", "s+a+b", false},
		{"switched off", "s:2* a:2 b:2 s-forward-a a-forward-b", "s a b", true},
		{"only forward", "s:2* a:2 b:2 s-rebalance-a a-forward-b", "s a+b", false},
		{"rescale is no forward", "s:2* a:2 s-rescale-a", "s a", false},
		{"several outputs", "s:2* a:2 b:2 s-forward-a s-forward-b", "s+a+b", false},
		{"one of several outputs", "s:2* a:2 b:3 s-forward-a s-hash-b", "s+a b", false},
		{"one input only", "s:2* t:2* j:2 k:2 s-forward-j t-forward-j.1 j-forward-k", "s t j+k", false},
		{"diamond", "s:2* a:2 b:2 j:2 s-forward-a s-forward-b a-forward-j b-forward-j.1", "s+a+b j", false},
		{"twice between the same", "s:2* j:2 s-forward-j s-forward-j.1", "s j", false},
		{"unequal maximum parallelism", "s:2/4* a:2/8 s-forward-a", "s a", false},
		{"declared in any order", "b:1 a:1 s:1* a-forward-b s-forward-a", "s+a+b", false},
	} {
		g, err := Build(job(c.job), Config{Chaining: !c.off})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := chains(g); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestChainedOperatorsKnowWhereTheirOutputGoes(t *testing.T) {
	g := build(t, true, "s:2* a:2 b:2 out:3 s-forward-a s-forward-b a-hash-out b-hash-out.1 s-rebalance-out")
	v := &g.Vertices[g.Vertex("a")]
	if len(v.Operators) != 3 || !reflect.DeepEqual(v.Operators[0].Next, []Chained{{1, 0}, {2, 0}}) {
		t.Fatalf("chain %s, head feeds %v", chains(g), v.Operators[0].Next)
	}
	for i, e := range g.Edges {
		if e.Partition != i || v.Outputs[i] != i || e.Gate != i {
			t.Errorf("edge %s: partition %d, gate %d", e.ID, e.Partition, e.Gate)
		}
		if !reflect.DeepEqual(v.Operators[e.FromOp].Outs, []int{i}) {
			t.Errorf("edge %s: operator %s puts out to %v", e.ID, v.Operators[e.FromOp].ID, v.Operators[e.FromOp].Outs)
		}
	}
	if g.Edges[1].Input != 1 || g.Edges[1].ID != "b->out#0" {
		t.Errorf("edge %+v", g.Edges[1])
	}
	if !v.Source() || g.Vertices[g.Vertex("out")].Source() || g.Vertex("nobody") != -1 {
		t.Error("sources or vertices mixed up")
	}
}

// FLINK-40269: two edges between the same vertices must not share an id.
func TestFLINK40269_EdgeIDs(t *testing.T) {
	g := build(t, true, "s:2* j:2 s-hash-j s-hash-j.1 s-rebalance-j")
	var ids []string
	for _, e := range g.Edges {
		ids = append(ids, e.ID)
	}
	if got := strings.Join(ids, " "); got != "s->j#0 s->j#1 s->j#2" {
		t.Error(got)
	}
	// Also when different operators of one chain feed them.
	g = build(t, true, "s:2* a:2 j:2 s-forward-a s-hash-j a-hash-j.1")
	if a, b := g.Edges[0].ID, g.Edges[1].ID; a != "s->j#0" || b != "a->j#0" {
		t.Error(a, b)
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Build(job("s:2* s:2* a:0 b:200/100 c:1 d:40000 big:1/40000 s-forward-c x-hash-c c-hash-y s-odd-a a-hash-s"), Config{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"s" is defined twice`, `vertex "a": parallelism 0`, `vertex "b": parallelism 200 is outside 1..100`, `vertex "d": parallelism 40000`,
		`s->c: forward needs equal parallelism, not 2 and 1`, `x->c: no vertex "x"`, `c->y: no vertex "y"`, `unknown partitioner "odd"`,
		`a->s: a source has no inputs`, `vertex "b" has no input`, `vertex "big": maximum parallelism 40000 is outside 1..32768`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestCycleIsAnError(t *testing.T) {
	_, err := Build(job("s:1* a:1 b:1 s-hash-a a-hash-b b-hash-a.1"), Config{Chaining: true})
	if err == nil || !strings.Contains(err.Error(), "cycle") {
		t.Error(err)
	}
}

func TestScale(t *testing.T) {
	g := build(t, true, "s:2* a:2 b:3/8 c:3/8 s-forward-a a-hash-b b-forward-c")
	h, err := g.Scale(map[string]int{"c": 5, "s": 4})
	if err != nil {
		t.Fatal(err)
	}
	if p := h.Vertices[h.Vertex("b")].Parallelism; p != 5 {
		t.Errorf("b has %d", p)
	}
	if p := g.Vertices[g.Vertex("b")].Parallelism; p != 3 {
		t.Errorf("the original was changed to %d", p)
	}
	for _, c := range []struct {
		to   map[string]int
		want string
	}{
		{map[string]int{"x": 1}, `no vertex "x"`},
		{map[string]int{"b": 0}, `outside 1..8`},
		{map[string]int{"b": 9}, `outside 1..8`},
		{map[string]int{"b": 4, "c": 5}, `"b" and "c" share`},
	} {
		for range 20 { // whatever the order of the map
			if _, err := g.Scale(c.to); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v: %v, want %s", c.to, err, c.want)
			}
		}
	}
	if _, err := g.Scale(map[string]int{"b": 4, "c": 4}); err != nil {
		t.Error(err)
	}
	g = build(t, false, "s:2* a:2 s-forward-a")
	if _, err := g.Scale(map[string]int{"a": 3}); err == nil || !strings.Contains(err.Error(), "forward edge s->a#0") {
		t.Error(err)
	}
	if _, err := g.Scale(map[string]int{"a": 3, "s": 3}); err != nil {
		t.Error(err)
	}
}

// FLINK-22815 and its sequel: pointwise, broadcast and custom edges cannot be
// unaligned, and one of them turns off all inputs of its task.
func TestUnalignedMarks(t *testing.T) {
	for _, p := range Partitioners() {
		for _, forced := range []bool{false, true} {
			want := p == Rebalance || p == Hash || p == Shuffle || p == Global || p == Custom && forced
			g, err := Build(job("s:2* t:2* j:2 k:2", fmt.Sprintf("s-%s-j", p), "t-hash-j.1 j-hash-k"), Config{ForcedUnaligned: forced})
			if err != nil {
				t.Fatal(err)
			}
			if g.Edges[0].Unaligned != want || g.Edges[1].Unaligned != want {
				t.Errorf("%s, forced %v: %v, its neighbour %v", p, forced, g.Edges[0].Unaligned, g.Edges[1].Unaligned)
			}
			if !g.Edges[2].Unaligned {
				t.Errorf("%s: a task further down lost its unaligned input", p)
			}
		}
	}
}

func TestRegions(t *testing.T) {
	g := build(t, true, "s:1* t:1* u:1* a:1 b:1 c:1 s-hash-a t-hash-b a-hash-c u-hash-c.1")
	var got [][]string
	for _, r := range g.Regions() {
		var ids []string
		for _, i := range r {
			ids = append(ids, g.Vertices[i].ID)
		}
		got = append(got, ids)
	}
	if want := [][]string{{"s", "u", "a", "c"}, {"t", "b"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Whatever the job: each operator is in one vertex, and each link is either
// inside of one or an edge, with consistent places at both ends.
func TestBuildKeepsEveryLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		var j Job
		linked := map[int]bool{}
		for i := range n {
			for f := range i {
				if rapid.IntRange(0, 2).Draw(t, "link") == 0 {
					p := rapid.SampledFrom(Partitioners()).Draw(t, "partitioner")
					j.Links = append(j.Links, Link{From: fmt.Sprint("n", f), To: fmt.Sprint("n", i), Partitioner: p})
					linked[i] = true
				}
			}
			j.Nodes = append(j.Nodes, Node{ID: fmt.Sprint("n", i), Parallelism: 2, Source: !linked[i]})
		}
		g, err := Build(j, Config{Chaining: rapid.Bool().Draw(t, "chaining")})
		if err != nil {
			t.Fatal(err)
		}
		ops, links := 0, len(g.Edges)
		for vi, v := range g.Vertices {
			ops += len(v.Operators)
			for _, o := range v.Operators {
				links += len(o.Next)
				if g.Vertex(o.ID) != vi {
					t.Fatalf("%s is in two vertices", o.ID)
				}
				if o.Source && o.ID != v.ID {
					t.Fatalf("source %s is no head", o.ID)
				}
			}
			for gate, e := range v.Inputs {
				if g.Edges[e].To != vi || g.Edges[e].Gate != gate {
					t.Fatalf("gate %d of %s: %+v", gate, v.ID, g.Edges[e])
				}
			}
			for part, e := range v.Outputs {
				if g.Edges[e].From != vi || g.Edges[e].Partition != part {
					t.Fatalf("partition %d of %s: %+v", part, v.ID, g.Edges[e])
				}
			}
		}
		if ops != n || links != len(j.Links) {
			t.Fatalf("%d of %d operators, %d of %d links", ops, n, links, len(j.Links))
		}
	})
}
