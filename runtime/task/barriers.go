package task

import (
	"time"

	"benchrun/runtime/record"
)

// barrierActions is what the handler has done; the task implements it.
type barrierActions interface {
	// startCapture begins to collect in-flight data on all inputs.
	startCapture(checkpoint int64)
	// trigger snapshots the task now. With unaligned, barriers overtake.
	trigger(ev *record.Event, unaligned bool) error
	// captured ends the collecting: every barrier has arrived.
	captured(checkpoint int64)
	// aborted drops what a checkpoint has collected.
	aborted(checkpoint int64, reason string)
	// resume lets the producer of a channel go on.
	resume(ch int)
	// convert makes the announced barrier of a channel overtake.
	convert(ch int, checkpoint int64)
	// arm asks for a call of timeout at a time, at once if it has passed.
	arm(checkpoint int64, at time.Time)
}

// barriers decides, from what arrives on all channels of all inputs, when the
// task takes part in a checkpoint. Channels count over all inputs together.
//
//	state      on announcement  on barrier                       on time-out
//	idle       begin, remember  begin                            -
//	aligned    remember         block; all in: trigger, unblock  capture, trigger, convert
//	unaligned  convert          count; all in: captured, unblock -
//
// A channel that ends counts as one whose barrier has come.
//
// A barrier that is itself unaligned moves aligned to unaligned as the
// time-out does.
type barriers struct {
	do barrierActions

	current   int64 // the pending checkpoint, or the last one
	done      int64 // largest id that is over: complete here, aborted or cancelled
	pending   bool
	unaligned bool
	event     record.Event
	open      []bool // channels that have not ended
	arrived   []bool
	missing   int // open channels whose barrier has not arrived
	blocked   []int
	announced []int
}

func newBarriers(channels int, do barrierActions) *barriers {
	b := &barriers{do: do, open: make([]bool, channels), arrived: make([]bool, channels)}
	for i := range b.open {
		b.open[i] = true
	}
	return b
}

// begin starts a checkpoint that is newer than the current one.
func (b *barriers) begin(ev *record.Event) {
	if b.pending {
		b.abort(b.current, "CHECKPOINT_DECLINED_SUBSUMED")
	}
	b.current, b.pending, b.unaligned, b.event = ev.Checkpoint, true, false, *ev
	b.event.Kind, b.event.Sequence = record.Barrier, 0
	b.missing = 0
	for i, open := range b.open {
		b.arrived[i] = false
		if open {
			b.missing++
		}
	}
	if ev.Options.Unaligned && ev.Options.Timeout > 0 && (ev.Kind == record.Announcement || ev.Barrier == record.AlignedWithTimeout) {
		b.do.arm(ev.Checkpoint, time.Unix(0, ev.Triggered).Add(ev.Options.Timeout))
	}
}

// producerBlocked tells whether the sender of a barrier waits to be resumed.
// An overtaking barrier that the receiver made out of an aligned one says so
// in its sequence.
func producerBlocked(ev *record.Event) bool { return ev.Blocks() || ev.Sequence != 0 }

// barrier handles a barrier on a channel.
func (b *barriers) barrier(ch int, ev *record.Event) error {
	if ev.Checkpoint <= b.done || ev.Checkpoint < b.current {
		if producerBlocked(ev) {
			b.do.resume(ch)
		}
		return nil
	}
	if ev.Checkpoint > b.current || !b.pending {
		b.begin(ev)
	}
	if producerBlocked(ev) {
		b.blocked = append(b.blocked, ch)
	}
	if b.arrived[ch] {
		return nil
	}
	b.arrived[ch] = true
	b.missing--
	if ev.Barrier == record.Unaligned && !b.unaligned {
		if err := b.goUnaligned(); err != nil {
			return err
		}
	}
	return b.complete()
}

// expect begins a checkpoint for which no barrier will come: everybody upstream
// has finished. What they left on the channels belongs to it, so it waits for
// the ends of those that are open.
func (b *barriers) expect(ev *record.Event) error {
	if ev.Checkpoint <= b.done || ev.Checkpoint < b.current {
		return nil
	}
	if ev.Checkpoint > b.current || !b.pending {
		b.begin(ev)
	}
	return b.complete()
}

// announcement handles the news that a barrier waits in a channel's queue.
func (b *barriers) announcement(ch int, ev *record.Event) {
	if ev.Checkpoint <= b.done || ev.Checkpoint < b.current {
		return
	}
	if ev.Checkpoint > b.current || !b.pending {
		b.begin(ev)
	}
	switch {
	case b.arrived[ch]:
	case b.unaligned:
		b.do.convert(ch, b.current)
	default:
		b.announced = append(b.announced, ch)
	}
}

// timeout makes a pending checkpoint overtake.
func (b *barriers) timeout(checkpoint int64) error {
	if !b.pending || b.current != checkpoint || b.unaligned {
		return nil
	}
	if err := b.goUnaligned(); err != nil {
		return err
	}
	return b.complete()
}

// goUnaligned opens the capture before the snapshot, so that nothing slips
// between the two.
func (b *barriers) goUnaligned() error {
	b.unaligned = true
	b.do.startCapture(b.current)
	if err := b.do.trigger(&b.event, true); err != nil {
		return err
	}
	for _, ch := range b.announced {
		if !b.arrived[ch] {
			b.do.convert(ch, b.current)
		}
	}
	b.announced = b.announced[:0]
	return nil
}

// complete ends the checkpoint here when every barrier is in.
func (b *barriers) complete() error {
	if !b.pending || b.missing > 0 {
		return nil
	}
	b.pending = false
	b.done = b.current
	var err error
	if b.unaligned {
		b.do.captured(b.current)
	} else {
		err = b.do.trigger(&b.event, false)
	}
	b.unblock()
	return err
}

func (b *barriers) unblock() {
	blocked := b.blocked
	b.blocked, b.announced = nil, b.announced[:0]
	for _, ch := range blocked {
		b.do.resume(ch)
	}
}

// ended handles the end of a channel: it will send no barrier.
func (b *barriers) ended(ch int) error {
	if !b.open[ch] {
		return nil
	}
	b.open[ch] = false
	if b.pending && !b.arrived[ch] {
		b.arrived[ch] = true
		b.missing--
		return b.complete()
	}
	return nil
}

// cancel handles the news that a checkpoint is over without success.
func (b *barriers) cancel(checkpoint int64) {
	if checkpoint <= b.done {
		return
	}
	if b.pending && b.current <= checkpoint {
		b.abort(b.current, "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER")
	}
	b.done = max(b.done, checkpoint)
	b.current = max(b.current, checkpoint)
}

func (b *barriers) abort(checkpoint int64, reason string) {
	b.pending = false
	b.done = max(b.done, checkpoint)
	b.do.aborted(checkpoint, reason)
	b.unblock()
}
