package spec

import (
	"fmt"
	"slices"
	"strings"

	"benchrun/runtime/options"
)

// checkGraph checks the shape of the job.
func (d *decoder) checkGraph() {
	w := d.w
	for i := range w.Edges {
		e, s := &w.Edges[i], d.edges[i]
		from, to := w.Vertex(e.From), w.Vertex(e.To)
		if from == nil || to == nil || d.wrong.edges[i] {
			continue
		}
		if from.Kind == Sink {
			s.fail("from", fmt.Sprintf("%q is a sink: nothing comes out of it", e.From), "")
		}
		if to.Kind == Source {
			s.fail("to", fmt.Sprintf("%q is a source: nothing goes into it", e.To), "")
		}
		if e.Partitioner == "forward" && !w.canEqual(from.Parallelism, to.Parallelism) {
			s.fail("partitioner", fmt.Sprintf("forward needs equal parallelism, but %s has %d and %s has %d", e.From, from.Parallelism, e.To, to.Parallelism),
				"use rebalance or rescale, or make them equal")
		}
		if e.Partitioner == "custom" && options.UnalignedEnabled.Get(w.Options) && !options.UnalignedForced.Get(w.Options) {
			d.r.warn(s.problem("partitioner", fmt.Sprintf("checkpoints of %s stay aligned: barriers do not overtake on a custom edge", e.To), "set options."+quoteSegment(options.UnalignedForced.Key())+" = true"))
		}
		op, _ := LookupOperator(to.Operator)
		if op.Keyed && e.Partitioner != "hash" {
			s.fail("partitioner", fmt.Sprintf("%s keeps state by key: its input must be partitioned by hash, not %s", to.Operator, e.Partitioner), `write partitioner = "hash"`)
		}
		for j := range w.Edges[:i] {
			if w.Edges[j].To == e.To && to.Kind == TwoInput {
				e.Input = 2
			}
		}
		if to.Operator == "broadcast-map" && e.Input == 2 && e.Partitioner != "broadcast" {
			if s.has("partitioner") {
				s.fail("partitioner", "input 2 of a broadcast-map is broadcast", `write partitioner = "broadcast"`)
			}
			e.Partitioner = "broadcast"
		}
	}
	if d.wrong.shape {
		return
	}
	for i, v := range w.Vertices {
		d.checkDegree(v, d.vertices[i])
	}
	d.checkReach()
	d.checkCycles()
}

func (d *decoder) checkDegree(v Vertex, s *section) {
	if v.Kind == "" || v.ID == "" {
		return
	}
	in, out := len(d.w.Inputs(v.ID)), len(d.w.Outputs(v.ID))
	at := s.n.keyAt
	if id := s.n.get("id"); id != nil {
		at = id.at
	}
	fail := func(message, hint string) { d.r.add(at.problem(s.path, "", message, hint)) }
	switch {
	case v.Kind == TwoInput && in != 2:
		fail(fmt.Sprintf("%s takes exactly two inputs, but %d edges go into it", v.Operator, in), "input 1 is the first edge in the file")
	case (v.Kind == Transform || v.Kind == Sink) && in == 0:
		fail("nothing goes into it: no edge leads here", "add [[workload.edge]] with to = \""+v.ID+"\"")
	}
	if v.Kind != Sink && out == 0 {
		fail("its output goes nowhere: no edge starts here", "add [[workload.edge]] with from = \""+v.ID+"\"")
	}
}

// checkReach reports vertices that have inputs but no way from a source.
func (d *decoder) checkReach() {
	reached := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if reached[id] {
			return
		}
		reached[id] = true
		for _, e := range d.w.Outputs(id) {
			visit(e.To)
		}
	}
	for _, v := range d.w.Vertices {
		if v.Kind == Source || v.Kind == "" {
			visit(v.ID)
		}
	}
	for i, v := range d.w.Vertices {
		if v.ID != "" && !reached[v.ID] && len(d.w.Inputs(v.ID)) > 0 {
			s := d.vertices[i]
			d.r.add(s.n.get("id").at.problem(s.path, "", "is unreachable: no way leads from a source to it", ""))
		}
	}
	if len(d.w.Vertices) > 0 && !slices.ContainsFunc(d.w.Vertices, func(v Vertex) bool { return v.Kind == Source || v.Kind == "" }) {
		d.r.add(d.vertices[0].n.keyAt.problem("workload.vertex", "", "the job has no source", "sources are sequence and lines"))
	}
	if len(d.w.Vertices) > 0 && !slices.ContainsFunc(d.w.Vertices, func(v Vertex) bool { return v.Kind == Sink || v.Kind == "" }) {
		d.r.add(d.vertices[0].n.keyAt.problem("workload.vertex", "", "the job has no sink", "sinks are verify-sink, file-sink and discard"))
	}
}

// checkCycles reports one cycle, at the edge that closes it.
func (d *decoder) checkCycles() {
	const (
		fresh = iota
		open
		done
	)
	state := map[string]int{}
	var path []string
	var visit func(id string) bool
	visit = func(id string) bool {
		state[id] = open
		path = append(path, id)
		for i, e := range d.w.Edges {
			if e.From != id || d.w.Vertex(e.To) == nil {
				continue
			}
			switch state[e.To] {
			case open:
				at := slices.Index(path, e.To)
				d.edges[i].fail("to", "closes a cycle: "+strings.Join(append(slices.Clone(path[at:]), e.To), " -> "), "remove one of these edges")
				return false
			case fresh:
				if !visit(e.To) {
					return false
				}
			}
		}
		path = path[:len(path)-1]
		state[id] = done
		return true
	}
	for _, v := range d.w.Vertices {
		if state[v.ID] == fresh && !visit(v.ID) {
			return
		}
	}
}

// parallelism is the initial parallelism by vertex.
func (w *Workload) parallelism() map[string]int {
	now := map[string]int{}
	for _, v := range w.Vertices {
		now[v.ID] = v.Parallelism
	}
	return now
}

func maxParallelism(now map[string]int) (int, string) {
	most, id := 0, ""
	for v, p := range now {
		if p > most || p == most && v < id {
			most, id = p, v
		}
	}
	return most, id
}

// stages lists the parallelism by vertex at the start and after each rescale.
func (w *Workload) stages() []map[string]int {
	now := w.parallelism()
	out := []map[string]int{now}
	for _, step := range w.Steps {
		if step.Do == nil || step.Do.Kind != "rescale" {
			continue
		}
		next := map[string]int{}
		for k, v := range now {
			next[k] = v
		}
		for k, v := range step.Do.Parallelism {
			next[k] = v
		}
		out = append(out, next)
		now = next
	}
	return out
}
