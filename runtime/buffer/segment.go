package buffer

import (
	"sync/atomic"

	"benchrun/runtime/record"
)

// Recycler takes back a segment whose last reference was released.
type Recycler interface {
	Recycle(s *Segment)
}

// Segment is one piece of network memory.
type Segment struct {
	mem      []byte
	refs     atomic.Int32
	pool     *Local
	recycler Recycler
	// Floating is a mark for the recycler: the segment was borrowed.
	Floating bool
}

// Mem is the whole memory of the segment.
func (s *Segment) Mem() []byte { return s.mem }

// SetRecycler redirects the segment when it becomes free; the recycler must in
// the end call Free. Only the owner of the single reference may call it.
func (s *Segment) SetRecycler(r Recycler) { s.recycler = r }

// Retain adds a reference.
func (s *Segment) Retain() { s.refs.Add(1) }

// Release drops a reference; the last one recycles the segment.
func (s *Segment) Release() {
	n := s.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("buffer: segment released more often than retained")
	}
	if s.recycler != nil {
		s.recycler.Recycle(s)
		return
	}
	s.Free()
}

// Free returns the segment to its pool. For recyclers.
func (s *Segment) Free() {
	s.recycler, s.Floating = nil, false
	s.pool.put(s)
}

// Reuse makes a recycled segment usable again with one reference, without
// passing through the pool. For recyclers.
func (s *Segment) Reuse() *Segment {
	s.refs.Store(1)
	return s
}

// Buffer is what queues hold: either bytes of a segment or an event. It is
// handed on by value; each copy that is kept needs a reference of its own.
type Buffer struct {
	Seg   *Segment
	Data  []byte
	Event *record.Event
}

// IsData tells whether the buffer holds records.
func (b *Buffer) IsData() bool { return b.Event == nil }

// Retain adds a reference to the buffer's segment, if it has one.
func (b *Buffer) Retain() {
	if b.Seg != nil {
		b.Seg.Retain()
	}
}

// Release drops the buffer's reference.
func (b *Buffer) Release() {
	if b.Seg != nil {
		b.Seg.Release()
	}
}
