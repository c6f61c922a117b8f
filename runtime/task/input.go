package task

import (
	"fmt"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/inflight"
	"benchrun/runtime/record"
	"benchrun/runtime/timeline"
)

// input is one incoming edge.
type input struct {
	index   int
	edge    *graph.Edge
	edgeAt  int // in the graph
	logical int // input of the head operator
	first   int // upstream subtask of channel 0
	base    int // of its channels among all of the task
	gate    *exchange.Gate
	des     []record.Deserializer

	// Recovery on the paths upstream and downstream: labelled pieces are
	// processed before the channels are connected; after that, on the path
	// upstream, labelled buffers come until every channel has said that all
	// output was sent again.
	labelled *inflight.Labelled
	demux    *inflight.Demux
	resent   int // channels that have not said so yet
	// Recovery on the path during.
	recovered *inflight.Recovered
	filter    *inflight.Demux // of the filling goroutine until recovered is drained
	filled    chan struct{}   // closed when the filling goroutine is gone
	opened    bool            // channels without recovered data were opened

	connected bool
}

// current is the buffer being read.
type current struct {
	active    bool
	in        *input
	ch        int
	des       *record.Deserializer
	demux     *inflight.Demux // nil: des
	buf       buffer.Buffer
	recovered bool
	size      int64
}

func (t *Task) makeInputs() error {
	if t.dep.Batch != nil {
		return t.makeBlockingInputs()
	}
	channels := 0
	for i, e := range t.v.Inputs {
		edge := &t.dep.Graph.Edges[e]
		up := &t.dep.Graph.Vertices[edge.From]
		first, last := graph.Sources(edge.Partitioner, up.Parallelism, t.v.Parallelism, t.dep.Subtask)
		n := last - first + 1
		remote := 0
		for u := first; u <= last; u++ {
			if t.dep.Placement[edge.From][u] != t.env.Worker {
				remote++
			}
		}
		g, err := exchange.NewGate(t.env.Global, exchange.GateConfig{
			Name: fmt.Sprintf("%s/%d", edge.ID, t.dep.Subtask), Channels: n, Remote: remote,
			Exclusive: t.env.Network.Exclusive, Floating: t.env.Network.Floating, Wake: t.mail.signal,
		})
		if err != nil {
			return err
		}
		t.inputs = append(t.inputs, &input{
			index: i, edge: edge, edgeAt: e, logical: edge.Input, first: first, base: channels, gate: g, des: make([]record.Deserializer, n),
		})
		channels += n
	}
	t.handler = newBarriers(channels, t)
	t.valve = newValve(channels)
	return nil
}

// connect asks the producers for their subpartitions.
func (t *Task) connect(in *input) error {
	if t.dep.Batch != nil {
		return t.connectBlocking(in)
	}
	up := &t.dep.Graph.Vertices[in.edge.From]
	in.connected = true
	if in.recovered != nil {
		in.gate.SetRecovering()
	}
	if t.dep.Restore != nil && t.dep.Restore.Plan != nil && t.dep.Restore.Plan.Resends(in.edgeAt) {
		in.resent = in.gate.Channels()
	} else {
		in.demux = nil
	}
	for ch := range in.gate.Channels() {
		u := in.first + ch
		key := PartitionKey(t.dep.Execution, in.edge.ID, u)
		first, _ := graph.Targets(in.edge.Partitioner, up.Parallelism, t.v.Parallelism, u)
		sub := t.dep.Subtask - first
		worker := t.dep.Placement[in.edge.From][u]
		if worker == t.env.Worker {
			p := t.env.Server.Lookup(key)
			if p == nil {
				return fmt.Errorf("edge %s: result partition of subtask %d is not on this worker", in.edge.ID, u)
			}
			if err := in.gate.AddLocal(ch, p, sub); err != nil {
				return fmt.Errorf("edge %s: %w", in.edge.ID, err)
			}
			continue
		}
		c, err := t.env.Client(t.ctx, worker)
		if err != nil {
			return fmt.Errorf("edge %s: %w", in.edge.ID, err)
		}
		if err := in.gate.AddRemote(ch, c, key, sub); err != nil {
			return fmt.Errorf("edge %s: %w", in.edge.ID, err)
		}
	}
	return nil
}

func (in *input) close() {
	in.gate.Close()
	if in.recovered != nil {
		in.recovered.Close()
	}
	if in.filled != nil {
		<-in.filled
	}
}

// priority handles events that overtook data.
func (t *Task) priority() error {
	for _, in := range t.inputs {
		for in.gate.Urgent() {
			ch, b, ok := in.gate.PollPriority()
			if !ok {
				break
			}
			if err := t.event(in, ch, b.Event); err != nil {
				return err
			}
		}
		if err := in.gate.Err(); err != nil {
			return err
		}
	}
	return nil
}

// stepInputs processes one buffer, or what is left of one, until something
// else wants attention. It tells whether there was anything to do.
func (t *Task) stepInputs() (bool, error) {
	if t.cur.active {
		return true, t.process()
	}
	for range t.inputs {
		in := t.inputs[t.turn]
		if t.turn++; t.turn == len(t.inputs) {
			t.turn = 0
		}
		got, err := t.fetch(in)
		if err != nil {
			return false, err
		}
		if got {
			if t.cur.active {
				if FailRecord.Armed() {
					if err := FailRecord.Hit(t.subject); err != nil {
						return false, err
					}
				}
				return true, t.process()
			}
			return true, nil
		}
	}
	return false, nil
}

// fetch takes the next buffer or event of an input.
func (t *Task) fetch(in *input) (bool, error) {
	if in.labelled != nil {
		return true, t.fetchLabelled(in)
	}
	if in.recovered != nil {
		if got, err := t.fetchRecovered(in); got || err != nil {
			return got, err
		}
	}
	ch, b, ok := in.gate.Poll()
	if !ok {
		return false, nil
	}
	if !b.IsData() {
		return true, t.event(in, ch, b.Event)
	}
	t.cur = current{active: true, in: in, ch: ch, buf: b, size: int64(len(b.Data))}
	if in.demux != nil && in.resent > 0 {
		if in.demux.Current(ch) {
			t.cur.demux, t.cur.recovered = in.demux, true
			in.demux.Feed(b.Data)
			return true, nil
		}
		return false, fmt.Errorf("edge %s: data of channel %d came before its label", in.edge.ID, ch)
	}
	t.cur.des = &in.des[ch]
	t.cur.des.Feed(b.Data)
	return true, nil
}

// process reads elements of the current buffer until it is empty or something
// else wants attention.
func (t *Task) process() error {
	c := &t.cur
	head := t.chain.ops[0].op
	r := &t.recScratch
	for {
		var body []byte
		var err error
		if c.demux != nil {
			body, err = c.demux.Next()
		} else {
			body, err = c.des.Next()
		}
		if err != nil {
			return fmt.Errorf("edge %s, channel %d: %w", c.in.edge.ID, c.ch, err)
		}
		if body == nil {
			break
		}
		if body[0] == record.TagRecord && len(body) >= record.HeaderSize-4 {
			r.Get(body)
			t.read[0]++
			if err := head.Process(c.in.logical, r); err != nil {
				return err
			}
			if t.sink != nil && t.sink.Arrived() > 0 {
				t.env.Timeline.Add(timeline.Task(timeline.FirstOutput, t.dep.ID.Vertex, t.dep.Subtask, t.dep.Attempt))
				t.sink = nil // only the first counts
			}
		} else if err := t.mark(c.in.base+c.ch, body, c.recovered); err != nil {
			return err
		}
		if t.interrupted() || !t.available() {
			return nil
		}
	}
	in, recovered, size := c.in, c.recovered, c.size
	t.read[1] += size
	ch := c.ch
	c.buf.Release()
	*c = current{}
	if recovered {
		return t.processedRecovered(in, ch, size)
	}
	return nil
}

// mark handles a watermark or a watermark status.
func (t *Task) mark(ch int, body []byte, recovered bool) error {
	if err := record.CheckBody(body); err != nil {
		return err
	}
	if body[0] == record.TagWatermark {
		if w, ok := t.valve.watermark(ch, record.WatermarkTime(body)); ok {
			return t.watermark(w)
		}
		return nil
	}
	if recovered {
		return nil // its sender is gone, and the one there is now starts active
	}
	return t.combined(t.valve.status(ch, body[1] != 0))
}

// combined passes on what became of watermark and status of all channels.
func (t *Task) combined(w int64, ok, changed bool) error {
	if changed {
		for _, o := range t.outs {
			if err := o.Status(!t.valve.idle); err != nil {
				return err
			}
		}
	}
	if ok {
		return t.watermark(w)
	}
	return nil
}

func (t *Task) watermark(w int64) error {
	if op := t.chain.ops[0].op; op != nil {
		return op.Watermark(w)
	}
	return t.chain.head.Watermark(w)
}

// event handles an event of a channel.
func (t *Task) event(in *input, ch int, ev *record.Event) error {
	at := in.base + ch
	switch ev.Kind {
	case record.Barrier:
		if !t.ready() {
			if ev.Checkpoint > t.handler.done { // once, not for every channel
				t.decline(ev.Checkpoint, reasonNotReady, nil)
				t.handler.cancel(ev.Checkpoint)
			}
			if producerBlocked(ev) {
				in.gate.Resume(ch)
			}
			return nil
		}
		return t.handler.barrier(at, ev)
	case record.Announcement:
		if t.ready() {
			t.handler.announcement(at, ev)
		}
		return nil
	case record.SelectChannel:
		if in.demux == nil {
			return fmt.Errorf("edge %s: label without restored output", in.edge.ID)
		}
		return in.demux.SelectOn(ch, inflight.Label{Down: ev.OldSubtask, Up: ev.OldChannel})
	case record.EndOfOutputState:
		return t.outputResent(in, ch)
	case record.EndOfData:
		return t.channelEnded(at)
	case record.EndOfPartition:
		if !in.des[ch].Empty() {
			return fmt.Errorf("edge %s, channel %d: the stream ends inside a record", in.edge.ID, ch)
		}
		if err := t.combined(t.valve.close(at)); err != nil {
			return err
		}
		return t.handler.ended(at)
	default:
		return fmt.Errorf("edge %s: unexpected event %s", in.edge.ID, ev.Kind)
	}
}

// channelEnded counts channels that have no more data.
func (t *Task) channelEnded(at int) error {
	if err := t.combined(t.valve.close(at)); err != nil {
		return err
	}
	if t.dataEnded++; t.dataEnded == len(t.handler.open) {
		return t.endOfData()
	}
	return nil
}

// ready tells whether the task can take part in checkpoints.
func (t *Task) ready() bool {
	if t.state != Running {
		return false
	}
	for _, in := range t.inputs {
		if in.resent > 0 {
			return false
		}
	}
	return true
}

// The rest of barrierActions that concerns channels.

func (t *Task) at(ch int) (*input, int) {
	for i := len(t.inputs) - 1; i >= 0; i-- {
		if in := t.inputs[i]; ch >= in.base {
			return in, ch - in.base
		}
	}
	panic("task: channel out of range")
}

func (t *Task) resume(ch int) {
	in, c := t.at(ch)
	in.gate.Resume(c)
}

func (t *Task) convert(ch int, checkpoint int64) {
	in, c := t.at(ch)
	in.gate.Convert(c, checkpoint)
}
