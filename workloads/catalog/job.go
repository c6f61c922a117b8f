package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/workloads/spec"
)

// Job builds the logical job of a workload.
func Job(w *spec.Workload) (graph.Job, error) { return job(w, files) }

// unread stands for the files of a source where only the shape of a job is asked for.
func unread(v *spec.Vertex) ([]string, error) { return v.Params.Paths, nil }

// job builds it with the files that sources read, as find knows them.
func job(w *spec.Workload, find func(*spec.Vertex) ([]string, error)) (graph.Job, error) {
	job := graph.Job{Name: w.Name}
	for i := range w.Vertices {
		n, err := node(w, i, find)
		if err != nil {
			return job, fmt.Errorf("vertex %q: %w", w.Vertices[i].ID, err)
		}
		job.Nodes = append(job.Nodes, n)
	}
	for _, e := range w.Edges {
		job.Links = append(job.Links, graph.Link{From: e.From, To: e.To, Partitioner: graph.Partitioner(e.Partitioner), Input: e.Input - 1})
	}
	return job, nil
}

func node(w *spec.Workload, i int, find func(*spec.Vertex) ([]string, error)) (graph.Node, error) {
	v := &w.Vertices[i]
	n := graph.Node{ID: v.ID, Operator: v.Operator, Parallelism: v.Parallelism, MaxParallelism: w.MaxParallelism, Source: v.Kind == spec.Source}
	var params any
	if n.Source {
		p, err := sourceParams(v, uint16(i), find)
		if err != nil {
			return n, err
		}
		params = p
	} else {
		params = operator.Params{
			Cost: int64(v.Params.Cost), Burn: v.Params.CostKind == "cpu", StateSize: int(v.Params.StateSize),
			Keep: v.Params.Keep, FanOut: v.Params.FanOut, Size: v.Params.Size.Milliseconds(), Path: v.Params.Path, Source: uint16(i),
		}
	}
	var err error
	n.Params, err = json.Marshal(params)
	return n, err
}

func sourceParams(v *spec.Vertex, id uint16, find func(*spec.Vertex) ([]string, error)) (source.Params, error) {
	p := source.Params{
		Source: id, Rate: v.Params.Rate, Records: uint64(v.Params.Records), RecordSize: int(v.Params.RecordSize),
		Keys: uint64(v.Params.Keys), Skew: v.Params.KeySkew, Splits: v.Params.Splits, Loop: v.Params.Loop,
	}
	if v.Operator != source.Lines {
		return p, nil
	}
	var err error
	p.Files, err = find(v)
	return p, err
}

// Files lists the files of each lines source, in the order of its splits.
func Files(w *spec.Workload) (map[string][]string, error) {
	out := map[string][]string{}
	for i := range w.Vertices {
		v := &w.Vertices[i]
		if v.Operator != source.Lines {
			continue
		}
		list, err := files(v)
		if err != nil {
			return nil, fmt.Errorf("vertex %q: %w", v.ID, err)
		}
		out[v.ID] = list
	}
	return out, nil
}

func files(v *spec.Vertex) ([]string, error) {
	var out []string
	for _, pattern := range v.Params.Paths {
		found, err := doublestar.FilepathGlob(pattern, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("paths: %q: %w", pattern, err)
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) == 0 {
		return nil, fmt.Errorf("paths: no file matches %q", v.Params.Paths)
	}
	return out, nil
}
