package task

import (
	"encoding/json"
	"fmt"

	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// chain is the operators of one subtask. For a source the head is the reader
// and has no operator.
type chain struct {
	ops  []*chained
	head operator.Output // what a source emits to
}

// chained is one operator and what the task keeps for it.
type chained struct {
	id     string
	op     operator.Operator // nil: the source
	ctx    *operator.Context
	keyed  *state.Backend
	lists  *state.Lists
	counts operator.Counter // nil unless it is a counting sink
}

// newChain makes the operators, tail first, so that each finds its output.
func newChain(v *graph.Vertex, outs []operator.Output, ctx func(op *graph.Operator) *operator.Context) (*chain, error) {
	c := &chain{ops: make([]*chained, len(v.Operators))}
	for i := len(v.Operators) - 1; i >= 0; i-- {
		g := &v.Operators[i]
		var to []operator.Output
		for _, n := range g.Next {
			to = append(to, &chainOutput{c.ops[n.Operator].op, n.Input})
		}
		for k, e := range v.Outputs {
			for _, out := range g.Outs {
				if out == e {
					to = append(to, outs[k])
				}
			}
		}
		x := &chained{id: g.ID, ctx: ctx(g)}
		x.keyed, x.lists = x.ctx.Keyed, x.ctx.Lists
		x.ctx.Out = join(to)
		if g.Source {
			c.head = x.ctx.Out
		} else {
			op, err := operator.New(g.Operator, json.RawMessage(g.Params))
			if err != nil {
				return nil, fmt.Errorf("vertex %s: %w", g.ID, err)
			}
			x.op = op
			x.counts, _ = op.(operator.Counter)
		}
		c.ops[i] = x
	}
	return c, nil
}

func join(to []operator.Output) operator.Output {
	switch len(to) {
	case 0:
		return nowhere{}
	case 1:
		return to[0]
	}
	return fanOut(to)
}

// chainOutput hands records to the next operator of the chain.
type chainOutput struct {
	op    operator.Operator
	input int
}

func (o *chainOutput) Emit(r *record.Record) error { return o.op.Process(o.input, r) }
func (o *chainOutput) Watermark(t int64) error     { return o.op.Watermark(t) }
func (o *chainOutput) Status(active bool) error    { return nil }

// nowhere is the output of a sink.
type nowhere struct{}

func (nowhere) Emit(*record.Record) error { return nil }
func (nowhere) Watermark(int64) error     { return nil }
func (nowhere) Status(bool) error         { return nil }

// fanOut feeds several.
type fanOut []operator.Output

func (f fanOut) Emit(r *record.Record) error {
	for _, o := range f {
		if err := o.Emit(r); err != nil {
			return err
		}
	}
	return nil
}

func (f fanOut) Watermark(t int64) error {
	for _, o := range f {
		if err := o.Watermark(t); err != nil {
			return err
		}
	}
	return nil
}

func (f fanOut) Status(active bool) error {
	for _, o := range f {
		if err := o.Status(active); err != nil {
			return err
		}
	}
	return nil
}

// partitionOutput writes to a result partition.
type partitionOutput struct {
	p         *exchange.Partition
	sel       *exchange.Selector
	broadcast bool
	n         int
}

func (o *partitionOutput) Emit(r *record.Record) error {
	if o.broadcast {
		for i := range o.n {
			if err := o.p.Write(i, r); err != nil {
				return err
			}
		}
		return nil
	}
	return o.p.Write(o.sel.Select(r), r)
}

func (o *partitionOutput) Watermark(t int64) error {
	o.p.Watermark(t)
	return nil
}

func (o *partitionOutput) Status(active bool) error {
	o.p.Status(active)
	return nil
}
