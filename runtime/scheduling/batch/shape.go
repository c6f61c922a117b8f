package batch

import (
	"errors"
	"fmt"
)

// check refuses jobs that cannot run at all.
func check(cfg Config) error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	place, inputs := map[string]int{}, map[string]int{}
	for i, v := range cfg.Vertices {
		if _, twice := place[v.ID]; twice {
			bad("vertex %q is there twice", v.ID)
		}
		place[v.ID] = i
	}
	data := map[string]bool{}
	for _, e := range cfg.Edges {
		from, okF := place[e.From]
		to, okT := place[e.To]
		switch {
		case !okF || !okT:
			bad("data set %q leads from %q to %q, which are not both there", e.DataSet, e.From, e.To)
		case from >= to:
			bad("data set %q leads from %q back to %q", e.DataSet, e.From, e.To)
		case data[e.DataSet]:
			bad("data set %q is there twice", e.DataSet)
		case e.Pipelined && cfg.Mode == Faithful:
			bad("vertex %q: its input %q is pipelined; the adaptive batch scheduler takes blocking data sets only", e.To, e.DataSet)
		case e.Pipelined && (cfg.Vertices[from].Parallelism == 0 || cfg.Vertices[to].Parallelism == 0):
			bad("vertex %q: its input %q is pipelined, so the parallelism of both sides must be fixed", e.To, e.DataSet)
		}
		data[e.DataSet] = true
		inputs[e.To]++
	}
	for _, v := range cfg.Vertices {
		switch {
		case !v.Source && inputs[v.ID] == 0:
			bad("vertex %q has no input", v.ID)
		case v.Parallelism < 0 || v.MaxParallelism < 0:
			bad("vertex %q has a negative parallelism", v.ID)
		}
	}
	if cfg.Mode != Hardened && cfg.Mode != Faithful {
		bad("unknown mode %q", cfg.Mode)
	}
	if cfg.Epoch == 0 {
		bad("the master has no epoch")
	}
	if cfg.Parallelism.Min > cfg.Parallelism.Max {
		bad("the lowest parallelism is %d, the highest %d", cfg.Parallelism.Min, cfg.Parallelism.Max)
	}
	return errors.Join(errs...)
}

// Recoverable says, before a job starts, what recovery could not do for it. An
// empty list: everything that finished is kept.
func Recoverable(cfg Config) []Problem {
	var out []Problem
	for _, v := range cfg.Vertices {
		if v.Source && len(v.Coordinators) == 0 {
			out = append(out, Problem{Vertex: v.ID, Reason: "the source has no split coordinator, so nobody knows after a loss of the master which splits its tasks have read"})
		}
		for _, c := range v.Coordinators {
			if !c.Snapshots {
				out = append(out, Problem{Vertex: v.ID, Partial: true,
					Reason: fmt.Sprintf("coordinator %q takes no snapshots outside checkpoints: unless all tasks of the vertex have finished, all run again", c.Operator)})
			}
		}
	}
	for _, e := range cfg.Edges {
		if !e.Pipelined {
			continue
		}
		p := Problem{Vertex: e.To, Partial: true, Reason: fmt.Sprintf("its input %q is pipelined: what is connected by it runs again unless all of it has finished", e.DataSet)}
		if cfg.Mode == Faithful {
			p.Partial, p.Reason = false, fmt.Sprintf("its input %q is pipelined, and the adaptive batch scheduler takes blocking data sets only", e.DataSet)
		}
		out = append(out, p)
	}
	return out
}
