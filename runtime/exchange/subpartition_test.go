package exchange

import (
	"encoding/binary"
	"slices"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// memory is a pool for tests that wants everything back.
type memory struct {
	*buffer.Global
	local *buffer.Local
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Cleanup(func())
}

func newMemory(t fataler, segments int) *memory {
	t.Helper()
	g := buffer.NewGlobal(64, segments)
	l, err := g.NewLocal("test", 0, segments, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{g, l}
}

// data is a buffer that carries a number.
func (m *memory) data(n uint64) buffer.Buffer {
	s := m.local.Poll()
	binary.LittleEndian.PutUint64(s.Mem(), n)
	return buffer.Buffer{Seg: s, Data: s.Mem()[:8]}
}

func number(b buffer.Buffer) uint64 { return binary.LittleEndian.Uint64(b.Data) }

// numbers reads and releases buffers.
func numbers(bs []buffer.Buffer) (list []uint64) {
	for _, b := range bs {
		list = append(list, number(b))
		b.Release()
	}
	return list
}

func (m *memory) back(t fataler) {
	t.Helper()
	m.local.Close()
	if s := m.Stats(); s.Used != 0 || s.Pools != 0 || s.Waiters != 0 {
		t.Fatalf("memory is not back: %+v", s)
	}
}

func newSubpartition(t fataler, m *memory) *Subpartition {
	p, err := NewPartition(m.Global, PartitionConfig{Key: "test", Subpartitions: 1, MaxBuffers: 4, MaxPerSub: 1 << 20, Wake: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	return &p.subs[0]
}

func barrier(id int64, k record.BarrierKind) *record.Event {
	return &record.Event{Kind: record.Barrier, Barrier: k, Checkpoint: id, Options: record.Options{Unaligned: true}}
}

// flags is a consumer that remembers what it was told, as a gate does.
type flags struct{ ready, urgent bool }

func (f *flags) dataAvailable()     { f.ready = true }
func (f *flags) priorityAvailable() { f.urgent = true }

// elem is an element of the model: data with a number, or an event.
type elem struct {
	n  uint64
	ev *record.Event
}

// The subpartition against a plain list: order, what is overtaken, blocking;
// and whoever has something to get has been told so.
func TestSubpartitionAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := newMemory(t, 1<<20)
		s := newSubpartition(t, mem)
		c := &flags{}
		var prio, queue []elem
		blocked, attached := false, false
		var next uint64
		var last int64
		deliverable := func() bool { return len(prio) > 0 || len(queue) > 0 && !blocked }
		dataIn := func(q []elem) (list []uint64) {
			for _, e := range q {
				if e.ev == nil {
					list = append(list, e.n)
				}
			}
			return list
		}
		take := func(t *rapid.T, only bool) polled {
			b, r := s.poll(true, only)
			var want *elem
			switch {
			case len(prio) > 0:
				want, prio = &prio[0], prio[1:]
			case len(queue) > 0 && !blocked && !only:
				want, queue = &queue[0], queue[1:]
				blocked = want.ev != nil && want.ev.Blocks()
			}
			if r.ok != (want != nil) {
				t.Fatalf("poll gave something: %v, want %v", r.ok, want != nil)
			}
			backlog := len(dataIn(queue))
			if blocked {
				backlog = 0 // it cannot be sent yet
			}
			if r.backlog != backlog {
				t.Fatalf("backlog %d, want %d", r.backlog, backlog)
			}
			if want == nil {
				return r
			}
			if b.Event != nil && want.ev != nil && *b.Event == *want.ev || b.IsData() && want.ev == nil && number(b) == want.n {
				b.Release()
				return r
			}
			t.Fatalf("got %+v, want %+v", b, *want)
			return r
		}
		push := func(e *record.Event) {
			s.add(buffer.Buffer{Event: e})
			queue = append(queue, elem{ev: e})
		}
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(t *rapid.T) {
				if s.attach(c) == attached {
					t.Fatal("a subpartition has one consumer")
				}
				attached = true
			},
			"data": func(*rapid.T) {
				next++
				s.add(mem.data(next))
				queue = append(queue, elem{n: next})
			},
			"event":   func(*rapid.T) { push(&record.Event{Kind: record.EndOfData}) },
			"aligned": func(*rapid.T) { last++; push(barrier(last, record.Aligned)) },
			"timed":   func(*rapid.T) { last++; push(barrier(last, record.AlignedWithTimeout)) },
			"resent":  func(*rapid.T) { push(&record.Event{Kind: record.EndOfOutputState}) },
			"unaligned": func(t *rapid.T) {
				last++
				ev := barrier(last, record.Unaligned)
				if got, want := numbers(s.addPriority(ev, true)), dataIn(queue); !slices.Equal(got, want) {
					t.Fatalf("overtook %v, want %v", got, want)
				}
				prio = append(prio, elem{ev: ev})
			},
			"time-out": func(t *rapid.T) {
				id := rapid.Int64Range(max(1, last-3), last+1).Draw(t, "id")
				i := slices.IndexFunc(queue, func(e elem) bool {
					return e.ev != nil && e.ev.Kind == record.Barrier && e.ev.Barrier == record.AlignedWithTimeout && e.ev.Checkpoint == id
				})
				overtaken, done := s.timeOut(id)
				got := numbers(overtaken)
				if done != (i >= 0) {
					t.Fatalf("barrier %d was there: %v, want %v", id, done, i >= 0)
				}
				if i < 0 {
					return
				}
				if want := dataIn(queue[:i]); !slices.Equal(got, want) {
					t.Fatalf("time-out overtook %v, want %v", got, want)
				}
				queue = slices.Delete(queue, i, i+1)
				prio = append(prio, elem{ev: barrier(id, record.Unaligned)})
			},
			"consume": func(t *rapid.T) { // as Gate.Poll does
				switch {
				case c.urgent:
					c.urgent = false
					c.urgent = take(t, true).morePrio
				case c.ready:
					c.ready = false
					r := take(t, false)
					c.ready, c.urgent = r.more, c.urgent || r.morePrio
				}
			},
			"resume": func(*rapid.T) {
				if blocked {
					blocked = false
					s.resume()
				}
			},
			"": func(t *rapid.T) {
				if attached && deliverable() && !c.ready && !c.urgent {
					t.Fatalf("asleep with %d urgent and %d other elements, blocked: %v", len(prio), len(queue), blocked)
				}
				if attached && len(prio) > 0 && !c.urgent && !c.ready {
					t.Fatal("nobody knows of the priority event")
				}
			},
		})
		s.part.Close()
		s.add(mem.data(0)) // a released one takes nothing and keeps nothing
		if s.addPriority(barrier(last+1, record.Unaligned), true) != nil || s.attach(c) {
			t.Fatal("a released subpartition is used")
		}
		mem.back(t)
	})
}

// Events pass without credit, but not past data; data needs it.
func TestPollWithoutCredit(t *testing.T) {
	mem := newMemory(t, 8)
	s := newSubpartition(t, mem)
	s.add(buffer.Buffer{Event: &record.Event{Kind: record.EndOfData}})
	s.add(mem.data(1))
	s.add(buffer.Buffer{Event: &record.Event{Kind: record.EndOfPartition}})
	if b, r := s.poll(false, false); !r.ok || b.IsData() || !r.more {
		t.Errorf("the event at the head: %+v %+v", b, r)
	}
	if b, r := s.poll(false, false); r.ok || !r.more || r.backlog != 1 {
		t.Errorf("data without credit: %+v %+v", b, r)
	}
	s.addPriority(barrier(1, record.Unaligned), false)
	if b, r := s.poll(false, false); !r.ok || b.IsData() {
		t.Errorf("a priority event without credit: %+v %+v", b, r)
	}
	b, r := s.poll(true, false)
	if !r.ok || number(b) != 1 {
		t.Errorf("data with credit: %+v %+v", b, r)
	}
	b.Release()
	s.part.Close()
	mem.back(t)
}
