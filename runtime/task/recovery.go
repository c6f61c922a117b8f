package task

import (
	"context"
	"fmt"
	"sync/atomic"

	"benchrun/runtime/buffer"
	"benchrun/runtime/inflight"
	"benchrun/runtime/record"
	"benchrun/runtime/timeline"
)

// drainReport counts what the restore of a task read and processed.
type drainReport struct {
	total  atomic.Int64 // restored in-flight bytes that this task has to process
	done   atomic.Int64
	state  int64 // bytes of operator state read
	read   int64
	inputs int  // inputs that have not been drained
	begun  bool // the first byte was read
}

// plan is the mapping of restored in-flight data, or nil.
func (t *Task) plan() *inflight.Plan {
	if t.dep.Restore == nil {
		return nil
	}
	return t.dep.Restore.Plan
}

func (t *Task) note(k timeline.Kind, bytes int64, detail string) {
	e := timeline.Task(k, t.dep.ID.Vertex, t.dep.Subtask, t.dep.Attempt)
	e.Bytes, e.Detail = bytes, detail
	t.env.Timeline.Add(e)
}

// firstRead records the path that runs, at the first byte read.
func (t *Task) firstRead() {
	if !t.drain.begun {
		t.drain.begun = true
		t.note(timeline.RestoreRead, 0, string(t.plan().Path()))
	}
}

// resendOutputs queues restored output for its consumers again. It waits for
// buffers as long as it must: INITIALIZING ends when all of it is queued.
func (t *Task) resendOutputs() error {
	p := t.plan()
	if p == nil {
		return nil
	}
	for i, e := range t.v.Outputs {
		if !p.Resends(e) {
			continue
		}
		if a := p.Partition(e, t.dep.Subtask); a != nil {
			if err := t.resend(i, a); err != nil {
				return fmt.Errorf("edge %s: restored output: %w", a.Edge.ID, err)
			}
		}
		t.parts[i].EmitAll(record.Event{Kind: record.EndOfOutputState})
	}
	return nil
}

func (t *Task) resend(partition int, a *inflight.PartitionAssignment) error {
	part := t.parts[partition]
	labels := make([]inflight.Label, part.Subpartitions())
	for i := range labels {
		labels[i] = inflight.Label{Down: -1, Up: -1}
	}
	var scratch []byte
	for i := range a.Pieces {
		piece := &a.Pieces[i]
		for _, s := range piece.Subpartitions {
			if labels[s] != piece.Label {
				labels[s] = piece.Label
				part.Emit(s, &record.Event{Kind: record.SelectChannel, OldSubtask: piece.Down, OldChannel: piece.Up})
			}
		}
		for k := range piece.Chunks {
			c := &piece.Chunks[k]
			if cap(scratch) < int(c.Length) {
				scratch = make([]byte, c.Length)
			}
			b := scratch[:c.Length]
			if err := t.dep.Restore.Files.Read(c, b); err != nil {
				return err
			}
			t.firstRead()
			t.drain.read += int64(len(b))
			for len(b) > 0 {
				seg, err := part.RestoreSegment()
				if err != nil {
					return err
				}
				n := copy(seg.Mem(), b)
				b = b[n:]
				for range len(piece.Subpartitions) - 1 {
					seg.Retain()
				}
				for _, s := range piece.Subpartitions {
					part.AddRestored(s, buffer.Buffer{Seg: seg, Data: seg.Mem()[:n]})
				}
				if len(piece.Subpartitions) == 0 {
					seg.Release()
				}
			}
		}
	}
	return nil
}

// openInputs begins the recovery of the inputs, or connects them at once.
func (t *Task) openInputs() error {
	p := t.plan()
	running := true
	for _, in := range t.inputs {
		var a *inflight.GateAssignment
		if p != nil {
			a = p.Gate(in.edgeAt, t.dep.Subtask)
		}
		if a == nil {
			if err := t.connect(in); err != nil {
				return err
			}
			continue
		}
		t.drain.inputs++
		t.drain.total.Add(a.Bytes)
		demux := inflight.NewDemux(a, in.gate.Channels(), t.dep.Subtask, t.v.Parallelism, t.v.MaxParallelism)
		if p.Path() == inflight.PathDuring {
			if a.Identity && !a.Redealt {
				demux = nil
			}
			if err := t.recoverBeside(in, a, demux); err != nil {
				return err
			}
			continue
		}
		in.demux = demux
		in.labelled = inflight.NewLabelled(t.dep.Restore.Files, a)
		running = false
	}
	if running {
		t.running()
	}
	return nil
}

// running reports RUNNING: channels are connected, and either nothing was
// restored, or all of it was processed, or a checkpoint can hold it.
func (t *Task) running() {
	t.restored() // a filling goroutine holds the files itself
	t.setState(Running, nil)
}

// recoverBeside starts the goroutine that reads and filters for the path
// during. The queue exists before the channels do, so that no checkpoint can
// come in between.
func (t *Task) recoverBeside(in *input, a *inflight.GateAssignment, demux *inflight.Demux) error {
	in.recovered = inflight.NewRecovered(in.gate.Channels(), t.env.Recovery, t.env.SpillDir, t.mail.signal)
	if err := t.connect(in); err != nil {
		return err
	}
	files := t.dep.Restore.Files
	files.Retain()
	in.filter = demux
	in.filled = make(chan struct{})
	f := &inflight.Filler{Files: files, Gate: a, Demux: demux, Into: in.recovered}
	first := t.drain.begun
	t.drain.begun = true
	f.OnFirst = func() {
		if !first {
			t.note(timeline.RestoreRead, 0, string(inflight.PathDuring))
		}
	}
	rec := in.recovered
	go func() {
		defer close(in.filled)
		defer files.Release()
		// A few at a time: they are bound by the CPU, and tasks that still have
		// to connect need some of it, too.
		select {
		case t.env.Filling <- struct{}{}:
		case <-t.stop:
			rec.Finish(context.Cause(t.ctx))
			return
		}
		err := f.Run(t.ctx)
		<-t.env.Filling
		if err != nil {
			return // the queue hands it to the task
		}
		t.note(timeline.RestoreRead, f.Read, string(inflight.PathDuring))
		var filtered int64
		if demux != nil {
			filtered = demux.Filtered
		}
		t.note(timeline.RestoreFiltered, filtered, in.edge.ID)
		if n := rec.Spilled(); n > 0 {
			t.note(timeline.RestoreSpilled, n, in.edge.ID)
		}
		t.drain.done.Add(filtered)
	}()
	return nil
}

// fetchLabelled takes the next restored piece, or ends this recovery of the
// input: its channels are connected, one input at a time, because an operator
// that waits for one input must not hold up another (RB-5).
func (t *Task) fetchLabelled(in *input) error {
	l, b, ok, err := in.labelled.Next()
	if err != nil {
		return err
	}
	if ok {
		t.firstRead()
		if err := in.demux.Select(l); err != nil {
			return err
		}
		in.demux.Feed(b)
		t.cur = current{active: true, in: in, ch: in.demux.Channel(), demux: in.demux, recovered: true, size: int64(len(b))}
		return nil
	}
	t.drain.read += in.labelled.Read
	t.note(timeline.RestoreRead, in.labelled.Read, string(t.plan().Path()))
	in.labelled = nil
	demux := in.demux
	if err := t.connect(in); err != nil {
		return err
	}
	if in.resent == 0 { // nothing is sent again
		if err := t.inputDrained(in, demux); err != nil {
			return err
		}
		if err := t.releaseWatermark(in, demux); err != nil {
			return err
		}
	}
	for _, o := range t.inputs {
		if o.labelled != nil {
			return nil
		}
	}
	t.running()
	return nil
}

// outputResent handles the event after the last restored buffer of a channel.
// Channels stay blocked until all have said it: new data must not overtake
// what a slower channel still has.
func (t *Task) outputResent(in *input, ch int) error {
	if in.resent == 0 {
		return fmt.Errorf("edge %s: channel %d ends restored output twice", in.edge.ID, ch)
	}
	if in.resent--; in.resent > 0 {
		return nil
	}
	demux := in.demux
	in.demux = nil
	if err := t.inputDrained(in, demux); err != nil {
		return err
	}
	if err := t.releaseWatermark(in, demux); err != nil {
		return err
	}
	for c := range in.gate.Channels() {
		in.gate.Resume(c)
	}
	return nil
}

// inputDrained notes that an input has no restored data left.
func (t *Task) inputDrained(in *input, demux *inflight.Demux) error {
	if demux != nil {
		if err := demux.Empty(); err != nil {
			return err
		}
		t.note(timeline.RestoreFiltered, demux.Filtered, in.edge.ID)
	}
	if t.drain.inputs--; t.drain.inputs == 0 {
		t.drain.done.Store(t.drain.total.Load())
		t.note(timeline.RestoreDrained, t.drain.total.Load(), string(t.plan().Path()))
	}
	return nil
}

// releaseWatermark lets the watermark count that was held back while restored data were
// read.
func (t *Task) releaseWatermark(in *input, demux *inflight.Demux) error {
	mark, ok := demux.HeldBack()
	if !ok {
		return nil
	}
	for ch := range in.des {
		if w, ok := t.valve.watermark(in.base+ch, mark); ok {
			if err := t.watermark(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchRecovered takes the next item of the path during.
func (t *Task) fetchRecovered(in *input) (bool, error) {
	if !in.opened && in.recovered.Finished() {
		in.opened = true
		for ch := range in.gate.Channels() {
			if !in.recovered.Left(ch) {
				in.gate.Open(ch)
			}
		}
	}
	ch, b, ok, err := in.recovered.Next()
	if err != nil {
		return false, fmt.Errorf("edge %s: %w", in.edge.ID, err)
	}
	if ok {
		t.cur = current{active: true, in: in, ch: ch, des: &in.des[ch], buf: b, recovered: true, size: int64(len(b.Data))}
		t.cur.des.Feed(b.Data)
		return true, nil
	}
	if !in.recovered.Drained() {
		return false, nil
	}
	for ch := range in.gate.Channels() {
		in.gate.Open(ch)
	}
	in.recovered.Close()
	in.recovered = nil
	filter := in.filter
	in.filter = nil
	if err := t.inputDrained(in, nil); err != nil {
		return false, err
	}
	return true, t.releaseWatermark(in, filter)
}

// processedRecovered counts a restored buffer that was processed, and opens
// its channel to live data if it was the last.
func (t *Task) processedRecovered(in *input, ch int, size int64) error {
	t.drain.done.Add(size)
	if in.recovered != nil && in.opened && !in.recovered.Left(ch) {
		in.gate.Open(ch)
	}
	return nil
}
