package task

import (
	"fmt"

	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/record"
	"benchrun/runtime/shuffle"
)

// Batch makes a deployment one of a batch job: all edges are blocking, there are
// no checkpoints, and the task ends with its input.
type Batch struct {
	Name         string // of the attempt among those of its subtask, for files
	Store        *shuffle.Store
	Inputs       [][]shuffle.Input // by gate, channel
	Outputs      []BatchOutput     // by partition
	WriterMemory int               // bytes that each output may have at most
}

// BatchOutput is a partition that the task writes.
type BatchOutput struct {
	ID            shuffle.PartitionID
	Subpartitions int
}

// connectWindow bounds how many producers a gate reads at a time.
const connectWindow = 8

// blockingOutput writes to a partition of the blocking exchange.
type blockingOutput struct {
	w   *shuffle.Writer
	sel *exchange.Selector // nil: everything goes to the one subpartition that all read
}

func (o *blockingOutput) Emit(r *record.Record) error {
	if o.sel == nil {
		return o.w.Write(0, r)
	}
	return o.w.Write(o.sel.Select(r), r)
}

func (o *blockingOutput) Watermark(t int64) error { o.w.Watermark(t); return nil }
func (o *blockingOutput) Status(bool) error       { return nil }

// makeBlockingOutputs creates the partitions. Only the writers' memory and files
// are taken; nobody sees a partition before it is finished.
func (t *Task) makeBlockingOutputs() error {
	b := t.dep.Batch
	codec, err := shuffle.ParseCodec(options.ShuffleCodec.Get(t.dep.Values))
	if err != nil {
		return fmt.Errorf("%s: %w", options.ShuffleCodec.Key(), err)
	}
	for i, e := range t.v.Outputs {
		edge := &t.dep.Graph.Edges[e]
		down := &t.dep.Graph.Vertices[edge.To]
		out := &b.Outputs[i]
		// The rule is Flink's; what is beyond the task's share of memory is given up.
		buffers := max(options.ShuffleMinBuffers.Get(t.dep.Values), 4*out.Subpartitions)
		w, err := b.Store.Create(out.ID, shuffle.WriterConfig{
			Subpartitions: out.Subpartitions, Memory: min(b.WriterMemory, buffers*t.env.Global.SegmentSize(), shuffle.MaxMemory), Pool: t.env.Global, Codec: codec,
		})
		if err != nil {
			return err
		}
		t.writers = append(t.writers, w)
		o := &blockingOutput{w: w}
		switch {
		case edge.Partitioner == graph.Broadcast, out.Subpartitions == 1:
		case edge.Partitioner.Pointwise():
			o.sel = exchange.NewSelector(graph.Rebalance, out.Subpartitions, down.MaxParallelism, t.dep.Subtask)
		default:
			o.sel = exchange.NewSelector(edge.Partitioner, out.Subpartitions, down.MaxParallelism, t.dep.Subtask)
		}
		t.outs = append(t.outs, o)
	}
	return nil
}

func (t *Task) makeBlockingInputs() error {
	channels := 0
	for i, e := range t.v.Inputs {
		in := t.dep.Batch.Inputs[i]
		remote := 0
		for _, x := range in {
			if x.Holder != nil {
				remote++
			}
		}
		edge := &t.dep.Graph.Edges[e]
		g, err := exchange.NewGate(t.env.Global, exchange.GateConfig{
			Name: fmt.Sprintf("%s/%d", edge.ID, t.dep.Subtask), Channels: len(in), Remote: min(remote, connectWindow),
			Exclusive: t.env.Network.Exclusive, Floating: t.env.Network.Floating, Wake: t.mail.signal,
		})
		if err != nil {
			return err
		}
		t.inputs = append(t.inputs, &input{
			index: i, edge: edge, edgeAt: e, logical: edge.Input, base: channels, gate: g, des: make([]record.Deserializer, len(in)),
		})
		channels += len(in)
	}
	t.handler = newBarriers(channels, t)
	t.valve = newValve(channels)
	return nil
}

// connectBlocking reads the partitions of an input, some at a time.
func (t *Task) connectBlocking(in *input) error {
	in.connected = true
	b := t.dep.Batch
	if err := b.Store.Connect(t.ctx, in.gate, b.Inputs[in.index], connectWindow); err != nil {
		return fmt.Errorf("edge %s: %w", in.edge.ID, err)
	}
	return nil
}

// finishWriters makes what the task has written readable by others.
func (t *Task) finishWriters() error {
	for i, w := range t.writers {
		f, err := w.Finish()
		if err != nil {
			return fmt.Errorf("edge %s: %w", t.dep.Graph.Edges[t.v.Outputs[i]].ID, err)
		}
		t.finished = append(t.finished, f)
	}
	return nil
}

// dropWriters gives up what was written and not finished, and what was finished
// by a task that failed nevertheless.
func (t *Task) dropWriters() {
	for _, w := range t.writers {
		_ = w.Abort() // a leftover is removed when the store is opened
	}
	for _, f := range t.finished {
		_ = t.dep.Batch.Store.Release(f.ID)
	}
	t.writers, t.finished = nil, nil
}

// Finished are the partitions of a task of a batch job that has FINISHED. The
// listener may ask when it is told so.
func (t *Task) Finished() []shuffle.Finished { return t.finished }

// Consumed is the number of records that the task has read so far; a source's
// are those that it made.
func (t *Task) Consumed() int64 {
	if t.v.Source() {
		return t.emitted.Load()
	}
	return t.consumed.Load()
}

// BytesIn is the number of bytes that the task has read from its inputs.
func (t *Task) BytesIn() int64 { return t.bytesIn.Load() }

// Reconnect tells a source that its coordinator has begun anew: it registers
// again, and asks again if it waits for a split. Safe from any goroutine.
func (t *Task) Reconnect() {
	t.mail.post(func() error {
		if t.reader != nil {
			t.requested = false
			t.registerReader()
		}
		return nil
	})
}

// batchContext fills in what operators of a batch job get.
func (t *Task) batchContext(c *operator.Context) {
	if b := t.dep.Batch; b != nil {
		c.Batch, c.Name, c.SpillDir = true, b.Name, t.env.SpillDir
	}
}
