package exchange

import (
	"fmt"
	"slices"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// captureRun is one channel and several checkpoints, one after the other. For
// each of them, whatever the order of data, barrier, time-outs and captures:
// what was consumed before the snapshot, what was queued, what came until the
// barrier, and what the producer kept are the data sent before the barrier,
// each once and in order (INV-1).
type captureRun struct {
	*link
	next     uint64
	sent     []uint64 // since the last checkpoint's barrier
	before   []uint64 // of those, sent before the current barrier
	consumed []uint64 // since the last snapshot
	backlog  []uint64 // consumed or captured by nobody: sent before earlier barriers

	id        int64
	kind      record.BarrierKind
	barrier   bool // was sent
	arrived   bool // was polled
	blocked   bool // the producer is
	announced bool
	triggered bool // the consumer's snapshot was taken
	capturing bool
	atTrigger []uint64
	queued    []uint64
	live      []uint64
	kept      []uint64 // by the producer
}

func (r *captureRun) takeOutput(overtaken [][]buffer.Buffer) {
	for _, bs := range overtaken {
		r.kept = append(r.kept, numbers(bs)...)
	}
}

// start is what a task does when it goes unaligned.
func (r *captureRun) start() {
	r.triggered, r.capturing = true, true
	r.atTrigger, r.consumed = r.consumed, nil
	r.queued = numbers(r.gate.CaptureStart(0, r.id))
	if r.announced && !r.arrived {
		r.gate.Convert(0, r.id)
	}
}

func (r *captureRun) poll(t *rapid.T, urgent bool) bool {
	poll := r.gate.Poll
	if urgent {
		poll = r.gate.PollPriority
	}
	_, b, ok := poll()
	if !ok {
		return false
	}
	if b.IsData() {
		r.consumed = append(r.consumed, number(b))
		b.Release()
		return true
	}
	ev := b.Event
	if ev.Checkpoint != r.id {
		t.Fatalf("%s of checkpoint %d during %d", ev.Kind, ev.Checkpoint, r.id)
	}
	if ev.Kind == record.Announcement {
		r.announced = true
		if r.capturing && !r.arrived {
			r.gate.Convert(0, r.id)
		}
		return true
	}
	r.arrived = true
	r.blocked = ev.Blocks() || ev.Sequence != 0
	if ev.Barrier == record.Unaligned && !r.triggered {
		r.start()
	}
	return true
}

// take is what a task does at each tick.
func (r *captureRun) take() {
	if r.capturing {
		r.live = append(r.live, numbers(r.gate.CaptureTake(0))...)
	}
}

func (r *captureRun) finish(t *rapid.T) {
	if r.capturing {
		r.live = append(r.live, numbers(r.gate.CaptureStop(0, r.id))...)
	} else { // aligned: nobody overtook anything
		r.atTrigger, r.consumed = r.consumed, nil
	}
	if r.blocked {
		r.gate.Resume(0)
	}
	got := slices.Concat(r.atTrigger, r.queued, r.live, r.kept)
	// What the checkpoint holds begins where the last one ended: the producer's
	// and the consumer's part of that were consumed meanwhile.
	want := slices.Concat(r.backlog, r.before)
	if !slices.Equal(got, want) {
		t.Fatalf("checkpoint %d (%s): consumed %v, queued %v, live %v, kept by the producer %v; together not %v", r.id, r.kind, r.atTrigger, r.queued, r.live, r.kept, want)
	}
	r.backlog = slices.Concat(r.queued, r.live, r.kept)
	// Of those, some were consumed behind the snapshot already; what follows is
	// judged from the snapshot on, and that is where consumed begins.
	*r = captureRun{link: r.link, next: r.next, sent: r.sent, consumed: r.consumed, backlog: r.backlog, id: r.id + 1}
}

func TestCaptureCutsAtTheBarrier(t *testing.T) {
	for _, c := range []linkConfig{{local: true}, {exclusive: 2, floating: 2}, {exclusive: 0, floating: 1}, {exclusive: 4, floating: 8}} {
		c.channels = 1
		t.Run(fmt.Sprintf("local=%v,exclusive=%d", c.local, c.exclusive), func(t *testing.T) {
			inBubble(t, func(t *rapid.T) { captureSchedule(t, c) })
		})
	}
}

func captureSchedule(t *rapid.T, c linkConfig) {
	r := &captureRun{link: newLink(t, c), id: 1}
	send := func(*rapid.T) {
		r.next++
		r.send(0, r.next)
		r.sent = append(r.sent, r.next)
	}
	sendBarrier := func(k record.BarrierKind) {
		r.barrier, r.kind = true, k
		r.before, r.sent = r.sent, nil
		r.takeOutput(r.part.Barrier(*barrier(r.id, k), func(int64) {}))
	}
	t.Repeat(map[string]func(*rapid.T){
		"send":   send,
		"send 2": send,
		"hold":   func(*rapid.T) { r.hold(true) },
		"let go": func(*rapid.T) { r.hold(false) },
		"":       func(*rapid.T) { r.settle() },
		"poll":   func(t *rapid.T) { r.poll(t, false) },
		"poll 2": func(t *rapid.T) { r.poll(t, false) },
		"urgent": func(t *rapid.T) { r.poll(t, true) },
		"barrier": func(t *rapid.T) {
			if r.barrier {
				t.Skip("sent")
			}
			sendBarrier(rapid.SampledFrom([]record.BarrierKind{record.Unaligned, record.AlignedWithTimeout, record.Aligned}).Draw(t, "kind"))
		},
		"time-out at the producer": func(*rapid.T) {
			if r.barrier && r.kind == record.AlignedWithTimeout {
				r.takeOutput(r.part.TimeOutBarrier(r.id))
			}
		},
		"time-out at the consumer": func(t *rapid.T) { // or another channel's barrier overtook
			if r.triggered || r.kind == record.Aligned && r.barrier {
				t.Skip("no")
			}
			r.start()
		},
		"take": func(*rapid.T) { r.take() },
		"all barriers are in": func(t *rapid.T) {
			if !r.arrived {
				t.Skip("not yet")
			}
			r.finish(t)
		},
	})
	// To the end: a barrier that was sent arrives, whatever happened.
	r.hold(false)
	r.settle()
	if !r.barrier && r.triggered {
		sendBarrier(record.Unaligned)
	}
	for r.barrier && !r.arrived {
		r.take() // what is held by a capture is missing as credit
		r.settle()
		if !r.poll(t, false) {
			t.Fatalf("the %s barrier of checkpoint %d does not arrive", r.kind, r.id)
		}
	}
	if r.barrier {
		r.finish(t)
	}
	r.close()
}
