package operator

import (
	"bytes"
	"encoding/json"
	"sync/atomic"
	"testing"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

const testMaxParallelism = 16

// collector keeps what an operator emits.
type collector struct {
	recs       []record.Record
	watermarks []int64
}

func (c *collector) Emit(r *record.Record) error {
	k := *r
	k.Data = bytes.Clone(r.Data)
	c.recs = append(c.recs, k)
	return nil
}

func (c *collector) Watermark(t int64) error { c.watermarks = append(c.watermarks, t); return nil }
func (c *collector) Status(bool) error       { return nil }

// nowhere takes everything and keeps nothing.
type nowhere struct{}

func (nowhere) Emit(*record.Record) error { return nil }
func (nowhere) Watermark(int64) error     { return nil }
func (nowhere) Status(bool) error         { return nil }

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// group is one operator in all of its subtasks, with its outputs joined.
type group struct {
	t    failer
	name string
	p    Params
	dir  string
	ops  []Operator
	ctx  []*Context
	out  *collector
}

// saved is a snapshot of a group.
type saved struct {
	keyed   [][]byte
	offsets [][]state.GroupOffset
	lists   map[string][][][]byte // by subtask
	modes   map[string]state.Mode
}

func mustNew(t failer, name string, p Params) Operator {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	op, err := New(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func newContext(subtask, parallelism int, out Output) *Context {
	first, last := record.KeyGroupRange(testMaxParallelism, parallelism, subtask)
	return &Context{
		ID: "op", Subtask: subtask, Parallelism: parallelism, MaxParallelism: testMaxParallelism,
		Keyed: state.NewBackend(first, last), Lists: &state.Lists{}, Out: out, Uncharged: new(atomic.Bool), Stop: make(chan struct{}),
	}
}

// open makes the subtasks, from a snapshot if there is one.
func (g *group) open(parallelism int, from *saved) error {
	g.ops, g.ctx = nil, nil
	for i := range parallelism {
		c := newContext(i, parallelism, g.out)
		c.Dir = g.dir
		if from != nil {
			c.Restored = true
			for k, b := range from.keyed {
				if err := c.Keyed.Restore(bytes.NewReader(b), from.offsets[k]); err != nil {
					return err
				}
			}
			for name, old := range from.lists {
				l, err := c.Lists.Get(name, from.modes[name])
				if err != nil {
					return err
				}
				l.Items = state.Redistribute(old, from.modes[name], parallelism)[i]
			}
		}
		op := mustNew(g.t, g.name, g.p)
		if err := op.Open(c); err != nil {
			return err
		}
		g.ops, g.ctx = append(g.ops, op), append(g.ctx, c)
	}
	return nil
}

func start(t failer, name string, p Params, parallelism int) *group {
	t.Helper()
	g := &group{t: t, name: name, p: p, out: &collector{}}
	if err := g.open(parallelism, nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// snapshot writes all state as a checkpoint does.
func (g *group) snapshot(checkpoint int64) *saved {
	g.t.Helper()
	s := &saved{lists: map[string][][][]byte{}, modes: map[string]state.Mode{}}
	for i, op := range g.ops {
		if err := op.Prepare(checkpoint); err != nil {
			g.t.Fatal(err)
		}
		var b bytes.Buffer
		snap := g.ctx[i].Keyed.Snapshot()
		offsets, err := snap.Write(&b)
		if err != nil {
			g.t.Fatal(err)
		}
		snap.Release()
		s.keyed, s.offsets = append(s.keyed, b.Bytes()), append(s.offsets, offsets)
		for _, l := range g.ctx[i].Lists.All() {
			items, err := state.DecodeItems(state.AppendItems(nil, l.Items))
			if err != nil {
				g.t.Fatal(err)
			}
			s.lists[l.Name], s.modes[l.Name] = append(s.lists[l.Name], items), l.Mode
		}
	}
	return s
}

// rescale goes on from a snapshot with another parallelism.
func (g *group) rescale(parallelism int) {
	g.t.Helper()
	s := g.snapshot(1)
	g.close()
	if err := g.open(parallelism, s); err != nil {
		g.t.Fatal(err)
	}
}

func (g *group) close() {
	for _, op := range g.ops {
		if err := op.Close(); err != nil {
			g.t.Fatal(err)
		}
	}
}

// send gives a record to the subtask that owns its key.
func (g *group) send(input int, r record.Record) error {
	owner := record.GroupOwner(testMaxParallelism, len(g.ops), record.KeyGroup(r.Key, testMaxParallelism))
	return g.ops[owner].Process(input, &r)
}

func (g *group) watermark(w int64) {
	g.t.Helper()
	for _, op := range g.ops {
		if err := op.Watermark(w); err != nil {
			g.t.Fatal(err)
		}
	}
}

func BenchmarkKeyedSum(b *testing.B) {
	op := mustNew(b, "keyed-sum", Params{})
	if err := op.Open(newContext(0, 1, nowhere{})); err != nil {
		b.Fatal(err)
	}
	r := record.Record{Value: 1}
	for b.Loop() {
		r.Key = (r.Key + 1) & 1023
		if err := op.Process(0, &r); err != nil {
			b.Fatal(err)
		}
	}
}
