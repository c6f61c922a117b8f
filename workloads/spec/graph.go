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

// checkSteps checks the scenario against the job: vertices, subtasks, workers,
// and the parallelism that rescales lead to.
func (d *decoder) checkSteps() {
	w := d.w
	now := w.parallelism()
	recovers := options.RecoveryPath.Get(w.Options) != ""
	workers := w.Cluster.Workers
	for i, step := range w.Steps {
		o, s := step.Do, d.steps[i]
		if o == nil {
			continue
		}
		if o.When != nil && (o.When.DuringRecovery || o.When.Restored >= 0 && w.Mode == Streaming) && !recovers {
			s.fail("when", "can never come: nothing recovers before this step", "put a fault before it")
		}
		switch o.Kind {
		case "rescale":
			changes := len(o.Parallelism) == 0 // then something else is wrong
			for id, p := range o.Parallelism {
				changes = changes || now[id] != p
				now[id] = p
			}
			if !changes {
				s.fail("parallelism", "changes nothing: every vertex has this parallelism already", "")
			}
			for j, e := range w.Edges {
				if e.Partitioner == "forward" && !d.wrong.edges[j] && now[e.From] != now[e.To] && now[e.From] > 0 && now[e.To] > 0 {
					s.fail("parallelism", fmt.Sprintf("the edge %s -> %s is forward and needs equal parallelism, but they would have %d and %d", e.From, e.To, now[e.From], now[e.To]),
						"rescale both, or give the edge the partitioner rescale or rebalance")
				}
			}
		case "fail-task", "drop-partition":
			if o.Vertex == "" || d.wrong.shape {
				break
			}
			if w.Vertex(o.Vertex) == nil {
				hint := "vertices are " + strings.Join(d.vertexIDs(), ", ")
				if near := options.Nearest(o.Vertex, d.vertexIDs()); near != "" {
					hint = fmt.Sprintf("did you mean %q?", near)
				}
				s.fail("vertex", "there is no such vertex", hint)
			} else if o.Kind == "drop-partition" && len(w.Outputs(o.Vertex)) == 0 {
				s.fail("vertex", fmt.Sprintf("%s is a sink: it leaves no partition that could be lost", o.Vertex), "")
			} else if o.Subtask >= now[o.Vertex] && now[o.Vertex] > 0 {
				s.fail("subtask", fmt.Sprintf("%s has %d subtasks at this step, 0 to %d", o.Vertex, now[o.Vertex], now[o.Vertex]-1), "")
			}
		case "kill-jobmanager":
			if w.Cluster.Target == "embedded" && w.Mode == Streaming {
				d.r.warn(s.problem("do", "the master of a streaming job on target \"embedded\" lives in the process that measures and cannot be killed: the trials will be unsupported", `set cluster.target = "process", or run with --target process`))
			}
		case "kill-worker", "freeze-worker":
			if o.Worker >= workers {
				s.fail("worker", fmt.Sprintf("there are %d workers at this step, 0 to %d", workers, workers-1), "")
			}
			if o.Kind == "kill-worker" && o.ReplaceAfter < 0 {
				workers--
				d.checkRemaining(s, workers, now)
			}
		}
		recovers = recovers || o.IsFault()
	}
}

// checkRemaining warns when a job cannot go on after a worker is gone.
func (d *decoder) checkRemaining(s *section, workers int, now map[string]int) {
	need, vertex := maxParallelism(now)
	if d.w.Mode == Batch {
		need, vertex = 1, "a task" // they run in waves
	}
	if have := workers * d.w.Cluster.SlotsPerWorker; have < need {
		d.r.warn(s.problem("do", fmt.Sprintf("after this %d slots are left, but %s needs %d: the job cannot go on at its parallelism", max(0, have), vertex, need),
			"set replace-after, or raise cluster.slots-per-worker"))
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
