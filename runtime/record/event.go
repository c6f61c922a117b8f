package record

import (
	"encoding/binary"
	"fmt"
	"time"
)

// EventKind tells what an event says.
type EventKind uint8

// Kinds of events that travel between subtasks outside of data buffers.
const (
	// Barrier separates the records before a checkpoint from those after it.
	Barrier EventKind = iota + 1
	// EndOfData: no more records; flush.
	EndOfData
	// EndOfPartition: nothing more at all.
	EndOfPartition
	// SelectChannel: what follows belongs to the named virtual channel.
	SelectChannel
	// EndOfOutputState: all restored output has been sent again.
	EndOfOutputState
	// Announcement: a barrier that may have to overtake data is in the queue.
	Announcement
)

var eventNames = [...]string{"?", "barrier", "end-of-data", "end-of-partition", "select-channel", "end-of-output-state", "announcement"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event-%d", k)
}

// BarrierKind says how a barrier travels on one edge.
type BarrierKind uint8

// Kinds of barriers.
const (
	// Aligned barriers wait in the queue and block the channel behind them.
	Aligned BarrierKind = iota
	// Unaligned barriers overtake data, which then belongs to the checkpoint.
	Unaligned
	// AlignedWithTimeout starts aligned and may turn into unaligned.
	AlignedWithTimeout
	// ForcedAligned: the checkpoint is unaligned but this edge cannot be.
	ForcedAligned
)

func (k BarrierKind) String() string {
	return [...]string{"aligned", "unaligned", "aligned-with-timeout", "forced-aligned"}[k]
}

// Options are what a checkpoint's barrier carries through the job.
type Options struct {
	Unaligned bool          // the checkpoint may overtake
	Timeout   time.Duration // > 0: aligned first, overtake after this time
	Savepoint bool          // always aligned
	Terminate bool          // synchronous savepoint: tasks end after it
	Drain     bool          // terminate with maximum watermark first
}

// KindOn is the kind of barrier on an edge that can or cannot be unaligned.
func (o Options) KindOn(supportsUnaligned bool) BarrierKind {
	switch {
	case o.Savepoint || !o.Unaligned:
		return Aligned
	case !supportsUnaligned:
		return ForcedAligned
	case o.Timeout > 0:
		return AlignedWithTimeout
	default:
		return Unaligned
	}
}

// Event is one event. Fields that its kind does not use are zero.
type Event struct {
	Kind       EventKind
	Barrier    BarrierKind
	Checkpoint int64
	Triggered  int64 // wall clock, unix ns: when the checkpoint was triggered
	Options    Options
	OldSubtask int32  // select-channel
	OldChannel int32  // select-channel
	Sequence   uint32 // announcement: data buffers ahead of the barrier; unaligned barrier: 1 if its producer is blocked behind it
}

// Priority tells whether the event overtakes what is queued.
func (e *Event) Priority() bool {
	return e.Kind == Announcement || e.Kind == Barrier && e.Barrier == Unaligned
}

// Blocks tells whether the producing subpartition stops after handing the
// event out, until the consumer resumes it.
func (e *Event) Blocks() bool {
	return e.Kind == EndOfOutputState || e.Kind == Barrier && e.Barrier != Unaligned
}

// EventSize is the serialised size of every event, in bytes.
const EventSize = 44

// Put writes the event to the first EventSize bytes of b.
func (e *Event) Put(b []byte) {
	b = b[:EventSize]
	b[0], b[1], b[2], b[3] = byte(e.Kind), byte(e.Barrier), e.Options.bits(), 0
	binary.LittleEndian.PutUint64(b[4:], uint64(e.Checkpoint))
	binary.LittleEndian.PutUint64(b[12:], uint64(e.Triggered))
	binary.LittleEndian.PutUint64(b[20:], uint64(e.Options.Timeout))
	binary.LittleEndian.PutUint32(b[28:], uint32(e.OldSubtask))
	binary.LittleEndian.PutUint32(b[32:], uint32(e.OldChannel))
	binary.LittleEndian.PutUint32(b[36:], e.Sequence)
	binary.LittleEndian.PutUint32(b[40:], 0)
}

// ReadEvent reads what Put wrote.
func ReadEvent(b []byte) (Event, error) {
	if len(b) != EventSize {
		return Event{}, fmt.Errorf("event of %d bytes, want %d", len(b), EventSize)
	}
	e := Event{Kind: EventKind(b[0]), Barrier: BarrierKind(b[1])}
	if e.Kind < Barrier || e.Kind > Announcement || e.Barrier > ForcedAligned {
		return Event{}, fmt.Errorf("unknown event %d/%d", b[0], b[1])
	}
	e.Options.setBits(b[2])
	e.Checkpoint = int64(binary.LittleEndian.Uint64(b[4:]))
	e.Triggered = int64(binary.LittleEndian.Uint64(b[12:]))
	e.Options.Timeout = time.Duration(binary.LittleEndian.Uint64(b[20:]))
	e.OldSubtask = int32(binary.LittleEndian.Uint32(b[28:]))
	e.OldChannel = int32(binary.LittleEndian.Uint32(b[32:]))
	e.Sequence = binary.LittleEndian.Uint32(b[36:])
	return e, nil
}

func (o Options) bits() (b byte) {
	for i, v := range [...]bool{o.Unaligned, o.Savepoint, o.Terminate, o.Drain} {
		if v {
			b |= 1 << i
		}
	}
	return b
}

func (o *Options) setBits(b byte) {
	o.Unaligned, o.Savepoint, o.Terminate, o.Drain = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0
}
