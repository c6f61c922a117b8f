package expect

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"

	"benchrun/workloads/spec"
)

// Position is where one split of a source stood in the end. Sequences count
// Emitted per Split; lines have a Path, whole Passes and Emitted lines.
type Position struct {
	Split   int
	Emitted uint64
	Path    string
	Pass    int
	Files   int // number of files of the source
}

// rec is a record in the model.
type rec struct {
	source uint16
	copy   uint32
	number uint64
	key    uint64
	value  int64
	time   int64
	text   []byte
	agg    bool
}

// values says what is known of a stream's values.
type values int

const (
	exact   values = iota // of every record
	final                 // of the last record of each key
	unknown               // they depend on the order of arrival
)

// node is one operator of the model.
type node struct {
	v      *spec.Vertex
	id     uint16
	outs   []target
	mode   values // of what it puts out
	sums   map[uint64]int64
	left   map[[2]uint64]rec
	right  map[[2]uint64]rec
	window map[[2]uint64]int64
	sink   *Expected
	batch  bool
	count  func(key uint64) // instead of anything else
}

type target struct {
	n     *node
	input int // 0 or 1
}

// mix spreads a number; see the runtime's documentation of "mix(number)".
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// textKey is the key of a text.
func textKey(b []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range b {
		h ^= uint64(c)
		h *= 0x100000001b3
	}
	return mix(h)
}

// Compute runs the model and returns what each proving sink must have seen.
func Compute(w *spec.Workload, positions map[string][]Position) (map[string]*Expected, error) {
	nodes := map[string]*node{}
	for i := range w.Vertices {
		v := &w.Vertices[i]
		n := &node{v: v, id: uint16(i), batch: w.Mode == spec.Batch}
		if op, _ := spec.LookupOperator(v.Operator); op.Proves {
			n.sink = newExpected()
		}
		switch v.Operator {
		case "keyed-sum", "count-by-key":
			n.sums = map[uint64]int64{}
		case "join":
			n.left, n.right = map[[2]uint64]rec{}, map[[2]uint64]rec{}
		case "window-sum":
			n.window = map[[2]uint64]int64{}
		}
		nodes[v.ID] = n
	}
	for _, e := range w.Edges {
		from := nodes[e.From]
		from.outs = append(from.outs, target{nodes[e.To], e.Input - 1})
	}
	order, err := topological(w, nodes)
	if err != nil {
		return nil, err
	}
	in := map[*node]values{}
	for _, n := range order {
		n.mode = n.outputMode(in[n])
		if n.sink != nil {
			n.sink.mode = in[n]
		}
		for _, t := range n.outs {
			in[t.n] = max(in[t.n], n.mode)
		}
	}
	// Aggregates are only complete when everything upstream is, so nodes end
	// in topological order.
	for _, n := range order {
		if n.v.Kind == spec.Source {
			if err := emitSource(n, positions[n.v.ID]); err != nil {
				return nil, fmt.Errorf("source %s: %w", n.v.ID, err)
			}
		}
	}
	for _, n := range order {
		n.end()
	}
	out := map[string]*Expected{}
	for id, n := range nodes {
		if n.sink != nil {
			out[id] = n.sink
		}
	}
	return out, nil
}

// outputMode is what is known of an operator's output, given its input.
func (n *node) outputMode(in values) values {
	switch n.v.Operator {
	case "keyed-sum", "count-by-key":
		if n.counts() {
			return exact // there are no running values
		}
		if n.v.Operator == "keyed-sum" && in != exact {
			return unknown
		}
		return final
	case "filter", "join", "window-sum":
		if in != exact {
			return unknown
		}
	case "split-words":
		return exact // values start anew
	}
	return in
}

func topological(w *spec.Workload, nodes map[string]*node) ([]*node, error) {
	indeg := map[*node]int{}
	for _, e := range w.Edges {
		indeg[nodes[e.To]]++
	}
	var order []*node
	for i := range w.Vertices {
		if n := nodes[w.Vertices[i].ID]; indeg[n] == 0 {
			order = append(order, n)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, t := range order[i].outs {
			if indeg[t.n]--; indeg[t.n] == 0 {
				order = append(order, t.n)
			}
		}
	}
	if len(order) != len(nodes) {
		return nil, errors.New("the job has a cycle")
	}
	return order, nil
}

// counts tells whether an operator emits one count a key, at the end.
func (n *node) counts() bool { return n.batch && n.v.Operator == "count-by-key" }

func (n *node) emit(r *rec) {
	for _, t := range n.outs {
		t.n.process(t.input, r)
	}
}

// process is the reference behaviour of every operator.
func (n *node) process(input int, r *rec) {
	if n.sink != nil {
		n.sink.add(r)
		return
	}
	if n.count != nil {
		n.count(r.key)
		return
	}
	switch n.v.Operator {
	case "map", "co-map", "broadcast-map", "sort":
		n.emit(r)
	case "filter":
		if n.v.Params.Keep >= 1 || mix(r.number) <= uint64(n.v.Params.Keep*(1<<63)*2) {
			n.emit(r)
		}
	case "flat-map":
		for i := range uint32(n.v.Params.FanOut) {
			c := *r
			c.copy = r.copy*uint32(n.v.Params.FanOut) + i
			n.emit(&c)
		}
	case "split-words":
		n.words(r)
	case "keyed-sum", "count-by-key":
		add := r.value
		if n.v.Operator == "count-by-key" {
			add = 1
		}
		n.sums[r.key] += add
		if n.counts() {
			return
		}
		c := *r
		c.value = 0 // the running value; the final one follows at the end
		n.emit(&c)
	case "window-sum":
		n.window[[2]uint64{r.key, uint64(r.time / n.v.Params.Size.Milliseconds())}] += r.value
	case "join":
		k := [2]uint64{r.key, r.number}
		mine, other := n.left, n.right
		if input == 1 {
			mine, other = other, mine
		}
		if o, ok := other[k]; ok {
			pair := *r
			if input == 1 {
				pair.source, pair.copy = o.source, o.copy
			}
			pair.value += o.value
			delete(other, k)
			n.emit(&pair)
			return
		}
		c := *r
		c.text = nil
		mine[k] = c
	}
}

func (n *node) words(r *rec) {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
	}
	for at := 0; at < len(r.text); {
		if !word(r.text[at]) {
			at++
			continue
		}
		end := at
		for end < len(r.text) && word(r.text[end]) {
			end++
		}
		c := *r
		c.text = r.text[at:end]
		c.key, c.value = textKey(c.text), 1
		c.number = r.number + uint64(at)
		n.emit(&c)
		at = end
	}
}

// end puts out what an operator keeps until everything has arrived.
func (n *node) end() {
	switch {
	case n.counts():
		for k, v := range n.sums {
			n.emit(&rec{key: k, value: v, source: n.id, agg: true})
		}
	case n.sums != nil:
		n.finals(n.sums)
	}
	for k, sum := range n.window {
		size := n.v.Params.Size.Milliseconds()
		n.emit(&rec{key: k[0], number: k[1], value: sum, time: int64(k[1]+1)*size - 1, source: n.id, agg: true})
	}
}

// finals tells sinks behind a keyed operator the final value of each key.
func (n *node) finals(sums map[uint64]int64) {
	for _, t := range n.outs {
		switch {
		case t.n.sink != nil:
			for k, v := range sums {
				t.n.sink.final(k, v)
			}
		case t.n.mode == final:
			if t.n.sums == nil {
				t.n.finals(sums)
			}
		}
	}
}

// emitSource replays a source up to where it stood.
func emitSource(n *node, positions []Position) error {
	if n.v.Operator == "lines" {
		for _, p := range positions {
			for pass := 0; pass <= p.Pass; pass++ {
				limit := int64(-1)
				if pass == p.Pass {
					limit = int64(p.Emitted)
				}
				if err := emitLines(n, p, pass, limit); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var zipf []float64
	if z := n.v.Params.KeySkew; z > 0 {
		zipf = make([]float64, n.v.Params.Keys)
		sum := 0.0
		for i := range zipf {
			sum += math.Pow(float64(i+1), -z)
			zipf[i] = sum
		}
		for i := range zipf {
			zipf[i] /= sum
		}
	}
	keys, total := uint64(n.v.Params.Keys), uint64(n.v.Params.Splits)
	var r rec
	for _, p := range positions {
		for k := range p.Emitted {
			number := uint64(p.Split) + k*total
			h := mix(number)
			r = rec{source: n.id, number: number, time: int64(number), value: int64(h >> 56)}
			if zipf == nil {
				r.key = h % keys
			} else {
				u := float64(h>>11) / (1 << 53)
				r.key = uint64(min(sort.Search(len(zipf), func(i int) bool { return zipf[i] > u }), len(zipf)-1))
			}
			n.emit(&r)
		}
	}
	return nil
}

// emitLines reads a file; limit < 0 is all of it.
func emitLines(n *node, p Position, pass int, limit int64) error {
	f, err := os.Open(p.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	place := uint64(0)
	for line := uint64(0); limit < 0 || int64(line) < limit; line++ {
		b, err := in.ReadBytes('\n')
		if len(b) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		start := place
		place += uint64(len(b))
		b = bytes.TrimSuffix(b, []byte("\n"))
		b = bytes.TrimSuffix(b, []byte("\r"))
		n.emit(&rec{
			source: n.id, number: (uint64(p.Split)+uint64(pass)*uint64(p.Files))<<32 | start,
			key: textKey(b), value: 1, text: b,
		})
	}
	return nil
}
