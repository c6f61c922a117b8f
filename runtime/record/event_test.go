package record

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEventRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Event{
			Kind:       EventKind(rapid.IntRange(int(Barrier), int(Announcement)).Draw(t, "kind")),
			Barrier:    BarrierKind(rapid.IntRange(int(Aligned), int(ForcedAligned)).Draw(t, "barrier")),
			Checkpoint: rapid.Int64().Draw(t, "checkpoint"),
			Triggered:  rapid.Int64().Draw(t, "triggered"),
			Options: Options{
				Unaligned: rapid.Bool().Draw(t, "unaligned"), Savepoint: rapid.Bool().Draw(t, "savepoint"),
				Terminate: rapid.Bool().Draw(t, "terminate"), Drain: rapid.Bool().Draw(t, "drain"),
				Timeout: time.Duration(rapid.Int64().Draw(t, "timeout")),
			},
			OldSubtask: rapid.Int32().Draw(t, "old subtask"), OldChannel: rapid.Int32().Draw(t, "old channel"),
			Sequence: rapid.Uint32().Draw(t, "sequence"),
		}
		b := make([]byte, EventSize)
		for i := range b {
			b[i] = 0xee // Put must write every byte
		}
		want.Put(b)
		got, err := ReadEvent(b)
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	})
}

func TestMalformedEventIsAnError(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, EventSize-1), make([]byte, EventSize+1), make([]byte, EventSize)} {
		if _, err := ReadEvent(b); err == nil {
			t.Errorf("%d bytes passed", len(b))
		}
	}
	b := make([]byte, EventSize)
	for k := range 256 {
		b[0], b[1] = byte(k), 0
		if _, err := ReadEvent(b); (err == nil) != (k >= int(Barrier) && k <= int(Announcement)) {
			t.Errorf("kind %d: %v", k, err)
		}
		b[0], b[1] = byte(Barrier), byte(k)
		if _, err := ReadEvent(b); (err == nil) != (k <= int(ForcedAligned)) {
			t.Errorf("barrier kind %d: %v", k, err)
		}
	}
}

func FuzzReadEvent(f *testing.F) {
	f.Add(make([]byte, EventSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ReadEvent(b)
		if err == nil {
			_, _ = e.Kind.String(), e.Barrier.String()
			e.Put(make([]byte, EventSize))
		}
	})
}

// BH-1, BH-2: the kind of a barrier by options and edge.
func TestBarrierKindOn(t *testing.T) {
	for _, c := range []struct {
		o        Options
		yes, no  BarrierKind
		describe string
	}{
		{Options{}, Aligned, Aligned, "aligned"},
		{Options{Timeout: time.Second}, Aligned, Aligned, "a timeout alone means nothing"},
		{Options{Unaligned: true}, Unaligned, ForcedAligned, "unaligned"},
		{Options{Unaligned: true, Timeout: time.Second}, AlignedWithTimeout, ForcedAligned, "with timeout"},
		{Options{Unaligned: true, Savepoint: true}, Aligned, Aligned, "savepoint"},
		{Options{Unaligned: true, Savepoint: true, Timeout: 1}, Aligned, Aligned, "savepoint with timeout"},
	} {
		if got := c.o.KindOn(true); got != c.yes {
			t.Errorf("%s, edge can: %s, want %s", c.describe, got, c.yes)
		}
		if got := c.o.KindOn(false); got != c.no {
			t.Errorf("%s, edge cannot: %s, want %s", c.describe, got, c.no)
		}
	}
}

// BH-4: what overtakes and what stops its subpartition.
func TestEventPriorityAndBlocking(t *testing.T) {
	for k := Barrier; k <= Announcement; k++ {
		for b := Aligned; b <= ForcedAligned; b++ {
			e := Event{Kind: k, Barrier: b}
			priority := k == Announcement || k == Barrier && b == Unaligned
			blocks := k == EndOfOutputState || k == Barrier && b != Unaligned
			if e.Priority() != priority || e.Blocks() != blocks {
				t.Errorf("%s/%s: priority %v, blocks %v", k, b, e.Priority(), e.Blocks())
			}
		}
	}
}
