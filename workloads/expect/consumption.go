package expect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"benchrun/workloads/spec"
)

// Consumption estimates how many records each task of a bounded job will have
// consumed in the end, sources how many they will have emitted: what progress is
// measured against. Vertices that are chained to the one before them are no
// tasks and are left out. Files are those of each lines source.
//
// Sources, copies and words are exact. What a filter passes and how many keys,
// windows and pairs there are follows from the parameters of the sources, as if
// every key occurred.
func Consumption(w *spec.Workload, files map[string][]string) (map[string]int64, error) {
	nodes := map[string]*node{}
	for i := range w.Vertices {
		nodes[w.Vertices[i].ID] = &node{v: &w.Vertices[i]}
	}
	chained := map[string]bool{}
	for _, e := range w.Edges {
		from := nodes[e.From]
		from.outs = append(from.outs, target{nodes[e.To], e.Input - 1})
		chained[e.To] = chained[e.To] || w.Chained(e)
	}
	order, err := topological(w, nodes)
	if err != nil {
		return nil, err
	}
	in, out := map[*node][]flow{}, map[string]int64{}
	for _, n := range order {
		f, err := n.flow(in[n], files[n.v.ID])
		if err != nil {
			return nil, fmt.Errorf("vertex %s: %w", n.v.ID, err)
		}
		switch {
		case n.v.Kind == spec.Source:
			out[n.v.ID] = f.records
		case !chained[n.v.ID]:
			for _, x := range in[n] {
				out[n.v.ID] += x.records
			}
		}
		for _, t := range n.outs {
			in[t.n] = append(in[t.n], f)
		}
	}
	return out, nil
}

// flow is what goes over an edge.
type flow struct {
	records int64
	keys    int64 // distinct, at most
	span    int64 // of event time, in ms
	text    *text // lines: what is in them
}

// text is what files hold.
type text struct{ lines, words, distinct int64 }

// flow is what comes out of an operator.
func (n *node) flow(in []flow, files []string) (flow, error) {
	if n.v.Kind == spec.Source {
		if n.v.Operator != "lines" {
			r := n.v.Params.Records
			return flow{records: r, keys: min(r, n.v.Params.Keys), span: r}, nil
		}
		t, err := scan(files)
		return flow{records: t.lines, keys: t.lines, text: &t}, err
	}
	var sum flow
	least := int64(math.MaxInt64)
	for _, f := range in {
		sum.records += f.records
		sum.keys = max(sum.keys, f.keys)
		sum.span = max(sum.span, f.span)
		least = min(least, f.records)
		if f.text != nil {
			if sum.text == nil {
				sum.text = &text{}
			}
			sum.text.lines += f.text.lines
			sum.text.words += f.text.words
			sum.text.distinct += f.text.distinct
		}
	}
	p := n.v.Params
	switch n.v.Operator {
	case "filter":
		sum.records = int64(float64(sum.records) * p.Keep)
	case "flat-map":
		sum.records *= int64(p.FanOut)
	case "split-words":
		if sum.text != nil {
			sum = flow{records: sum.text.words, keys: sum.text.distinct}
		}
	case "count-by-key":
		sum.records, sum.text = min(sum.records, sum.keys), nil
	case "window-sum":
		if size := p.Size.Milliseconds(); size > 0 {
			sum.records = min(sum.records, sum.keys*((sum.span+size-1)/size))
		}
	case "join":
		sum.records = least
	}
	return sum, nil
}

// scan counts lines, words and different words of files.
func scan(files []string) (text, error) {
	var t text
	seen := map[uint64]bool{}
	words := &node{v: &spec.Vertex{Operator: "split-words"}}
	words.outs = []target{{&node{v: &spec.Vertex{Operator: "count"}, count: func(key uint64) {
		t.words++
		seen[key] = true
	}}, 0}}
	for _, path := range files {
		if err := scanFile(path, func(line []byte) {
			t.lines++
			words.words(&rec{text: line})
		}); err != nil {
			return t, err
		}
	}
	t.distinct = int64(len(seen))
	return t, nil
}

func scanFile(path string, line func([]byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		b, err := in.ReadBytes('\n')
		if len(b) > 0 {
			line(b)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
