package task

import (
	"fmt"
	"time"

	"benchrun/runtime/options"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
	"benchrun/runtime/state"
)

// sourceBatch is how many records a source emits between two looks at the
// clock; it looks for mail after each.
const sourceBatch = 128

func (t *Task) stepSource() (bool, error) {
	if t.ended || t.paused {
		return false, nil
	}
	if FailRecord.Armed() {
		if err := FailRecord.Hit(t.subject); err != nil {
			return false, err
		}
	}
	p, at, err := t.reader.Next(t.chain.head, sourceBatch, t.more)
	if err != nil {
		return false, err
	}
	switch p {
	case source.More:
		return true, nil
	case source.Wait:
		t.until(at)
		return false, nil
	case source.Idle:
		if !t.requested && t.v.Operators[0].Operator == source.Lines {
			t.requested = true
			t.listener.OperatorEvent(t.dep.ID, source.EncodeReaderEvent(source.ReaderEvent{Request: true}))
		}
		// What it may still be given can be behind everybody else's watermarks, so
		// it is not idle before it was told that there is nothing for now.
		if t.answered && !t.requested && !t.idleSent {
			return false, t.sourceStatus(false)
		}
		return false, nil
	default:
		if err := t.chain.head.Watermark(record.MaxWatermark); err != nil {
			return false, err
		}
		return true, t.endOfData()
	}
}

func (t *Task) moreRecords() bool { return !t.interrupted() && t.available() }

func (t *Task) sourceStatus(active bool) error {
	t.idleSent = !active
	for _, o := range t.outs { // operators behind the source have no say in it
		if err := o.Status(active); err != nil {
			return err
		}
	}
	return nil
}

// tickSource emits a watermark when one is due. None is before the enumerator has
// answered: a source that goes on with splits of a checkpoint may be given more, of
// which it has read nothing.
func (t *Task) tickSource() error {
	now := time.Now()
	if t.ended || t.paused || !t.answered || now.Sub(t.lastMark) < options.WatermarkInterval.Get(t.dep.Values) {
		return nil
	}
	t.lastMark = now
	if w := t.reader.Watermark(); w > record.MinWatermark {
		return t.chain.head.Watermark(w)
	}
	return nil
}

// prepareSource puts the positions of the splits into the state.
func (t *Task) prepareSource() error {
	l, err := t.chain.ops[0].lists.Get(source.SplitsState, state.Split)
	if err != nil {
		return err
	}
	l.Items = t.reader.Splits()
	return nil
}

// unpause lets a source emit that waited for its first checkpoint.
func (t *Task) unpause() { t.paused = false }

// registerReader tells the split enumerator that the reader is there.
func (t *Task) registerReader() {
	t.listener.OperatorEvent(t.dep.ID, source.EncodeReaderEvent(source.ReaderEvent{Register: true}))
}

// OperatorEvent delivers an event of the coordinator of the head operator. An
// error means that the event did not arrive. Safe from any goroutine.
func (t *Task) OperatorEvent(payload []byte) error {
	ev, err := source.DecodeCoordinatorEvent(payload)
	if err != nil {
		return err
	}
	if !t.mail.post(func() error {
		if t.reader == nil {
			return fmt.Errorf("vertex %s: event for a source", t.dep.ID.Vertex)
		}
		t.requested, t.answered = false, true
		if len(ev.Splits) > 0 && t.ended && t.dep.Batch != nil {
			return nil // nobody reads them, and Taken says so
		}
		if len(ev.Splits) > 0 {
			t.taken.Add(int64(len(ev.Splits)))
			if err := t.reader.AddSplits(ev.Splits); err != nil {
				return err
			}
			if t.dep.Draining {
				t.reader.Stop()
			}
			if t.idleSent { // before its first record: one that waits for its rate is not idle either
				if err := t.sourceStatus(true); err != nil {
					return err
				}
			}
		}
		if ev.NoMore {
			t.reader.NoMoreSplits()
		}
		return nil
	}) {
		return errCanceled
	}
	return nil
}

// Taken is the number of splits that the reader has got, the first ones of those
// that were delivered; it has read them all once the task has FINISHED. What comes
// after the end of its input is not among them. Safe from any goroutine.
func (t *Task) Taken() int { return int(t.taken.Load()) }

// StopSource lets an unbounded source end where it stands. Safe from any
// goroutine.
func (t *Task) StopSource() {
	t.mail.post(func() error {
		t.dep.Draining = true
		if t.reader != nil {
			t.paused = false
			t.reader.Stop()
		}
		return nil
	})
}

// endOfData flushes the operators and passes the end on. With checkpoints on,
// the task then waits for one more to complete: commits are tied to it.
func (t *Task) endOfData() error {
	for _, c := range t.chain.ops {
		if c.op != nil {
			if err := c.op.Finish(); err != nil {
				return err
			}
		}
	}
	for _, p := range t.parts {
		p.EmitAll(record.Event{Kind: record.EndOfData})
	}
	t.ended = true
	t.updateCounts()
	t.listener.Ended(t.dep.ID)
	if t.dep.Batch != nil || options.CheckpointInterval.Get(t.dep.Values) == 0 || !options.CheckpointsAfterFinish.Get(t.dep.Values) {
		t.finishing = true
	}
	return nil
}

func (t *Task) endOutputs() {
	for _, p := range t.parts {
		p.EmitAll(record.Event{Kind: record.EndOfPartition})
	}
}
