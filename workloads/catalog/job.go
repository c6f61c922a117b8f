package catalog

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
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
	for _, path := range out {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("paths: %w", err)
		}
		if what := irregular(info.Mode()); what != "" {
			return nil, fmt.Errorf("paths: %s is %s and no regular file: it has no end that could be known; write a pattern that leaves it out", path, what)
		}
	}
	return out, nil
}

// irregular says what something is that is no regular file.
func irregular(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return ""
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a folder"
	}
	return "of the kind " + m.Type().String()
}
