package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"benchrun/runtime/inflight"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
)

// Reasons for declining, as the checkpoint coordinator knows them.
const (
	reasonNotReady = "CHECKPOINT_DECLINED_TASK_NOT_READY"
	reasonClosing  = "CHECKPOINT_DECLINED_TASK_CLOSING"
	reasonSubsumed = "CHECKPOINT_DECLINED_SUBSUMED"
	reasonAsync    = "CHECKPOINT_ASYNC_EXCEPTION"
)

// snapshots keeps the checkpoints that the task takes part in and that are not
// durable yet.
type snapshots struct {
	t         *Task
	pending   map[int64]*pending
	capture   *inflight.Capture // of the checkpoint whose barriers are coming in
	capturing int64
}

// pending is one checkpoint of the task. Its fields up to mu belong to the
// task's goroutine.
type pending struct {
	id      int64
	event   record.Event
	capture *inflight.Capture // what was collected and not submitted yet
	inputs  bool              // all that arrives before the barriers is captured
	outputs map[int]bool      // partitions whose barriers may still time out
	sent    bool              // the last of the capture was submitted
	parts   int               // submitted ones
	ctx     context.Context
	cancel  context.CancelFunc
	over    chan struct{} // closed when it is durable or has failed

	mu       sync.Mutex
	ops      []snapshot.OperatorState
	bytes    int64
	stored   []*inflight.Stored // by part
	left     int                // what is not durable: the state, parts, and 1 until the last was submitted
	finished bool
}

// startCapture implements barrierActions: it takes what is partly read, what
// was recovered and waits, and what is queued; then each channel collects what
// comes until its barrier.
func (t *Task) startCapture(checkpoint int64) {
	s := &t.snapshots
	s.dropCapture()
	c := &inflight.Capture{}
	for _, in := range t.inputs {
		for ch := range in.des {
			partial, rest := in.des[ch].Leftover()
			c.AddLeftover(in.index, ch, partial, rest)
		}
		if in.recovered != nil {
			c.AddRest(in.index, in.recovered.Rest())
		}
		for ch := range in.des {
			c.AddInput(in.index, ch, in.gate.CaptureStart(ch, checkpoint))
		}
	}
	s.capture, s.capturing = c, checkpoint
}

// captured implements barrierActions.
func (t *Task) captured(checkpoint int64) {
	s := &t.snapshots
	p := s.pending[checkpoint]
	for _, in := range t.inputs {
		for ch := range in.des {
			bs := in.gate.CaptureStop(ch, checkpoint)
			if p != nil {
				p.capture.AddInput(in.index, ch, bs)
				continue
			}
			for i := range bs {
				bs[i].Release()
			}
		}
	}
	if p != nil {
		p.inputs = true
		p.submit(t)
	}
}

func (s *snapshots) dropCapture() {
	if s.capture != nil {
		s.capture.Release()
		s.capture = nil
	}
}

// aborted implements barrierActions.
func (t *Task) aborted(checkpoint int64, reason string) {
	if t.snapshots.capturing == checkpoint {
		for _, in := range t.inputs {
			for ch := range in.des {
				bs := in.gate.CaptureStop(ch, checkpoint)
				for i := range bs {
					bs[i].Release()
				}
			}
		}
	}
	t.snapshots.abort(checkpoint)
	if reason == reasonSubsumed {
		t.decline(checkpoint, reason, nil)
	}
}

// arm implements barrierActions.
func (t *Task) arm(checkpoint int64, at time.Time) {
	t.timers = append(t.timers, alarm{at: at, checkpoint: checkpoint})
}

func (t *Task) decline(checkpoint int64, reason string, err error) {
	t.listener.Decline(t.dep.ID, checkpoint, reason, err)
}

// trigger implements barrierActions: the synchronous part of a checkpoint.
func (t *Task) trigger(ev *record.Event, unaligned bool) error {
	s := &t.snapshots
	p := &pending{id: ev.Checkpoint, event: *ev, inputs: !unaligned, outputs: map[int]bool{}, left: 2, capture: &inflight.Capture{}, over: make(chan struct{})}
	if unaligned {
		p.capture, s.capture = s.capture, nil
	}
	if s.pending == nil {
		s.pending = map[int64]*pending{}
	}
	s.pending[p.id] = p
	p.ctx, p.cancel = context.WithCancel(t.ctx)
	if err := FailSnapshot.Hit(t.subject); err != nil {
		return err
	}
	for _, c := range t.chain.ops {
		if c.op != nil {
			if err := c.op.Prepare(p.id); err != nil {
				return err
			}
		}
	}
	if t.reader != nil {
		if err := t.prepareSource(); err != nil {
			return err
		}
	}
	t.sendBarriers(p, ev, unaligned)
	t.listener.Passed(t.dep.ID, p.id)
	if t.ended && t.firstLast == 0 {
		t.firstLast = p.id
	}
	if ev.Options.Terminate {
		t.holding = p.id
	}
	go p.writeState(t, t.freeze())
	p.submit(t)
	return nil
}

// sendBarriers passes the barrier on and takes what it overtakes.
func (t *Task) sendBarriers(p *pending, ev *record.Event, unaligned bool) {
	for i, part := range t.parts {
		out := *ev
		out.Barrier = ev.Options.KindOn(t.dep.Graph.Edges[t.v.Outputs[i]].Unaligned)
		if out.Barrier == record.AlignedWithTimeout && unaligned {
			out.Barrier = record.Unaligned
		}
		if out.Barrier == record.AlignedWithTimeout {
			p.outputs[i] = true
		}
		overtaken := part.Barrier(out, func(checkpoint int64) {
			t.mail.post(func() error { t.snapshots.outputLeft(checkpoint, i); return nil })
		})
		for sub, bs := range overtaken {
			p.capture.AddOutput(i, sub, bs)
		}
	}
	if len(p.outputs) > 0 {
		t.timers = append(t.timers, alarm{at: time.Unix(0, ev.Triggered).Add(ev.Options.Timeout), checkpoint: p.id, output: true})
	}
}

// outputLeft notes that all barriers of a partition left in order.
func (s *snapshots) outputLeft(checkpoint int64, partition int) {
	if p := s.pending[checkpoint]; p != nil && p.outputs[partition] {
		delete(p.outputs, partition)
		p.submit(s.t)
	}
}

// outputTimeout makes barriers that still wait in output queues overtake.
func (s *snapshots) outputTimeout(checkpoint int64) {
	p := s.pending[checkpoint]
	if p == nil {
		return
	}
	for i := range s.t.parts {
		if !p.outputs[i] {
			continue
		}
		for sub, bs := range s.t.parts[i].TimeOutBarrier(checkpoint) {
			p.capture.AddOutput(i, sub, bs)
		}
	}
	clear(p.outputs)
	p.submit(s.t)
}

// submit writes what has been collected. It does so at once and not when all
// barriers are in: until it is written, the buffers are missing in the network,
// and somebody upstream may need one of them to get to its barrier.
func (p *pending) submit(t *Task) {
	if p.sent {
		return
	}
	if !p.capture.Empty() {
		c := p.capture
		p.capture = &inflight.Capture{}
		part := p.parts
		p.parts++
		p.mu.Lock()
		p.left++
		p.stored = append(p.stored, nil)
		p.mu.Unlock()
		t.env.Writer.Submit(p.ctx, t.env.Checkpoints, t.folder(&p.event), c, func(st *inflight.Stored, err error) {
			if err != nil {
				p.failed(t, fmt.Errorf("in-flight data: %w", err))
				return
			}
			p.durable(t, func() { p.stored[part] = st })
		})
	}
	if p.inputs && len(p.outputs) == 0 {
		p.sent = true
		p.durable(t, func() {})
	}
}

// flush submits what arrived since the last time on inputs that wait for
// barriers.
func (s *snapshots) flush() {
	p := s.pending[s.capturing]
	if p == nil || p.inputs || p.capture == nil {
		return
	}
	for _, in := range s.t.inputs {
		for ch := range in.des {
			p.capture.AddInput(in.index, ch, in.gate.CaptureTake(ch))
		}
	}
	p.submit(s.t)
}

// folder is where a checkpoint's files go.
func (t *Task) folder(ev *record.Event) string {
	if ev.Options.Savepoint {
		return snapshot.SavepointFolderOf(ev.Checkpoint, t.dep.SavepointToken)
	}
	return snapshot.Folder(ev.Checkpoint)
}

// durable notes that something is on disk and acknowledges after the last.
func (p *pending) durable(t *Task, set func()) {
	p.mu.Lock()
	set()
	p.left--
	if p.left > 0 || p.finished {
		p.mu.Unlock()
		return
	}
	p.finished = true
	close(p.over)
	data := inflight.Join(p.stored)
	st := &snapshot.SubtaskState{
		Subtask: t.dep.Subtask, Operators: p.ops, Inputs: data.Inputs, Outputs: data.Outputs, Files: data.Files,
		InFlightBytes: data.Bytes, StateBytes: p.bytes,
	}
	p.mu.Unlock()
	t.listener.Acknowledge(t.dep.ID, p.id, st)
}

func (p *pending) failed(t *Task, err error) {
	p.mu.Lock()
	was := p.finished
	p.finished = true
	if !was {
		close(p.over)
	}
	p.mu.Unlock()
	if !was && !errors.Is(err, context.Canceled) && p.ctx.Err() == nil {
		t.decline(p.id, reasonAsync, err)
	}
}

// TriggerCheckpoint starts a checkpoint in a task that gets no barriers: a
// source, or one whose inputs have ended. Safe from any goroutine.
func (t *Task) TriggerCheckpoint(ev record.Event) {
	// A task that had finished must say so (FLINK-23741).
	closing := func() { t.decline(ev.Checkpoint, reasonClosing, nil) }
	posted := t.mail.postOr(func() error {
		t.unpause()
		if !t.ready() {
			t.decline(ev.Checkpoint, reasonNotReady, nil)
			return nil
		}
		if t.holding != 0 || t.finishing {
			closing()
			return nil
		}
		return t.handler.expect(&ev)
	}, closing)
	if !posted {
		closing()
	}
}

// CheckpointCompleted tells that a checkpoint is durable as a whole.
func (t *Task) CheckpointCompleted(checkpoint int64) {
	t.mail.post(func() error {
		if t.chain == nil {
			return nil
		}
		for _, c := range t.chain.ops {
			if c.op != nil {
				if err := c.op.Completed(checkpoint); err != nil {
					return err
				}
			}
		}
		t.snapshots.forget(checkpoint)
		if t.holding != 0 && t.holding == checkpoint || t.ended && t.firstLast > 0 && checkpoint >= t.firstLast {
			t.finishing = true
		}
		return nil
	})
}

// CheckpointAborted tells that a checkpoint will not complete.
func (t *Task) CheckpointAborted(checkpoint int64) {
	t.mail.post(func() error {
		t.handler.cancel(checkpoint)
		t.snapshots.abort(checkpoint)
		if t.holding == checkpoint {
			t.holding = 0 // the job goes on
		}
		if t.firstLast == checkpoint {
			t.firstLast = 0
		}
		return nil
	})
}

// settle ends what is pending before the task finishes: what is being written is
// waited for, what still waits for barriers is declined.
func (s *snapshots) settle() {
	for id, p := range s.pending {
		if !p.sent {
			s.drop(id)
			s.t.decline(id, reasonClosing, nil)
			continue
		}
		select {
		case <-p.over:
		case <-s.t.stop:
			return
		}
	}
}

// forget drops what a completed checkpoint and older ones left.
func (s *snapshots) forget(checkpoint int64) {
	for id := range s.pending {
		if id <= checkpoint {
			s.drop(id)
		}
	}
}

func (s *snapshots) abort(checkpoint int64) {
	if s.capturing == checkpoint {
		s.dropCapture()
	}
	s.drop(checkpoint)
}

func (s *snapshots) drop(checkpoint int64) {
	p := s.pending[checkpoint]
	if p == nil {
		return
	}
	delete(s.pending, checkpoint)
	p.mu.Lock()
	if !p.finished {
		p.finished = true
		close(p.over)
	}
	p.mu.Unlock()
	p.cancel()
	if p.capture != nil {
		p.capture.Release()
		p.capture = nil
	}
}

func (s *snapshots) abortAll() {
	s.dropCapture()
	for id := range s.pending {
		s.drop(id)
	}
}
