package exchange

import (
	"errors"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/graph"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// stream takes everything out of a subpartition and cuts it into elements.
type stream struct {
	des    record.Deserializer
	bodies [][]byte
	events []record.EventKind
}

func (s *stream) take(t fataler, sub *Subpartition) {
	for {
		b, r := sub.poll(true, false)
		if !r.ok {
			return
		}
		if !b.IsData() {
			s.events = append(s.events, b.Event.Kind)
			sub.resume()
			continue
		}
		s.des.Feed(b.Data)
		for {
			body, err := s.des.Next()
			if err != nil {
				t.Fatal(err)
			}
			if body == nil {
				break
			}
			s.bodies = append(s.bodies, append([]byte(nil), body...))
		}
		b.Release()
	}
}

// What is written comes out of each stream whole and in order, however records
// and segments fall; a watermark is ahead of the first record after it, and out
// by the next flush of a stream that has run dry.
func TestPartitionWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subs := rapid.IntRange(1, 3).Draw(t, "subpartitions")
		g := buffer.NewGlobal(rapid.IntRange(32, 100).Draw(t, "segment"), 1<<14)
		p, err := NewPartition(g, PartitionConfig{Subpartitions: subs, MaxBuffers: 1 << 14, MaxPerSub: 1 << 14, Wake: nop})
		if err != nil {
			t.Fatal(err)
		}
		streams := make([]stream, subs)
		mark, active := record.MinWatermark, true
		marks, status := make([]int64, subs), make([]bool, subs) // as read from each stream
		written, read := make([]uint64, subs), make([]uint64, subs)
		for i := range marks {
			marks[i], status[i] = record.MinWatermark, true
		}
		take := func(t *rapid.T, i int) {
			s := &streams[i]
			s.take(t, &p.subs[i])
			for _, b := range s.bodies {
				switch b[0] {
				case record.TagWatermark:
					if w := record.WatermarkTime(b); w <= marks[i] || w > mark {
						t.Fatalf("watermark %d after %d, the newest is %d", w, marks[i], mark)
					} else {
						marks[i] = w
					}
				case record.TagStatus:
					status[i] = b[1] != 0
				default:
					var r record.Record
					r.Get(b)
					if r.Number != read[i] || !record.PatternOK(&r) || r.Time != marks[i] || (r.Value != 0) != status[i] {
						t.Fatalf("record %+v, want number %d, written under watermark %d, active %v", r, read[i], marks[i], status[i])
					}
					read[i]++
				}
			}
			s.bodies = nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				i := rapid.IntRange(0, subs-1).Draw(t, "subpartition")
				r := record.Record{Number: written[i], Flags: record.FlagPattern, Time: mark, Data: record.NewPattern(rapid.IntRange(0, 200).Draw(t, "size"))}
				if active {
					r.Value = 1
				}
				record.SetPattern(r.Data, r.Number)
				written[i]++
				if err := p.Write(i, &r); err != nil {
					t.Fatal(err)
				}
			},
			"watermark": func(t *rapid.T) {
				w := rapid.Int64Range(0, 1000).Draw(t, "time")
				mark = max(mark, w)
				p.Watermark(w)
			},
			"status": func(t *rapid.T) { active = rapid.Bool().Draw(t, "active"); p.Status(active) },
			"flush": func(t *rapid.T) {
				for i := range subs {
					take(t, i)
				}
				p.Flush()
				for i := range subs {
					take(t, i)
					if marks[i] != mark || status[i] != active || read[i] != written[i] {
						t.Fatalf("after a flush: watermark %d, active %v, %d records; want %d, %v, %d", marks[i], status[i], read[i], mark, active, written[i])
					}
				}
			},
			"event": func(t *rapid.T) { // nothing behind it comes before it
				p.EmitAll(record.Event{Kind: record.EndOfData})
				for i := range subs {
					take(t, i)
					if e := streams[i].events; len(e) != 1 || read[i] != written[i] {
						t.Fatalf("events %v with %d of %d records", e, read[i], written[i])
					}
					streams[i].events = nil
				}
			},
		})
		p.Close()
		if s := g.Stats(); s.Used != 0 || s.Pools != 0 {
			t.Fatalf("memory is not back: %+v", s)
		}
	})
}

// A partition is unavailable when its memory is used up or one subpartition is
// full, and says so when that ends.
func TestAvailable(t *testing.T) {
	woken := 0
	g := buffer.NewGlobal(64, 100)
	p, err := NewPartition(g, PartitionConfig{Subpartitions: 2, MinBuffers: 2, MaxBuffers: 6, MaxPerSub: 2, Wake: func() { woken++ }})
	if err != nil {
		t.Fatal(err)
	}
	r := record.Record{Data: make([]byte, 64-record.HeaderSize)} // a segment each
	write := func(sub, n int) {
		t.Helper()
		for range n {
			if err := p.Write(sub, &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	take := func(sub int) {
		b, _ := p.subs[sub].poll(true, false)
		b.Release()
	}
	if !p.Available() {
		t.Fatal("a new partition is unavailable")
	}
	write(0, 3) // two queued, one being filled
	if p.Available() {
		t.Error("available although subpartition 0 is full")
	}
	take(0)
	if !p.Available() || woken == 0 {
		t.Errorf("available: %v, woken %d times after room was made", p.Available(), woken)
	}
	write(1, 2)
	write(0, 1) // 0: two, 1: one queued; two being filled, one spare
	p.subs[0].part.maxPerSub = 100
	write(0, 1)
	for p.Available() {
		write(0, 1)
	}
	woken = 0
	if used := p.pool.Used(); used != p.pool.Max() {
		t.Errorf("unavailable with %d of %d buffers", used, p.pool.Max())
	}
	take(0)
	if woken == 0 || !p.Available() {
		t.Errorf("woken %d times, available: %v after a buffer came back", woken, p.Available())
	}
	if p.Consumed() != (p.QueuedBytes() == 0) {
		t.Error("consumed and queued bytes disagree")
	}
	p.Close()
}

// A record that is being written may exceed the maximum by the overdraft, so
// that the task gets to its barrier; beyond that it waits, and ends with the
// task.
func TestOverdraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		g := buffer.NewGlobal(64, 100)
		p, err := NewPartition(g, PartitionConfig{Subpartitions: 1, MinBuffers: 1, MaxBuffers: 2, MaxPerSub: 100, Overdraft: 2, Wake: nop, Stop: stop})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Write(0, &record.Record{Data: make([]byte, 4*64-record.HeaderSize)}); err != nil {
			t.Fatal(err)
		}
		if used := p.pool.Used(); used != 4 || p.Available() {
			t.Fatalf("%d buffers used, available: %v; want 4 with the overdraft and not available", used, p.Available())
		}
		done := make(chan error)
		write := func() { done <- p.Write(0, &record.Record{}) }
		go write()
		synctest.Wait()
		b, r := p.subs[0].poll(true, false)
		if !r.ok {
			t.Fatal("what was full is not visible to the consumer")
		}
		b.Release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		go write()
		synctest.Wait() // it is in the segment, or waits
		go write()
		synctest.Wait()
		close(stop)
		var stopped error
		for range 2 {
			if err := <-done; err != nil {
				stopped = err
			}
		}
		if !errors.Is(stopped, ErrStopped) {
			t.Errorf("error %v, want %v", stopped, ErrStopped)
		}
		p.Close()
		if s := g.Stats(); s.Used != 0 || s.Pools != 0 {
			t.Errorf("memory is not back: %+v", s)
		}
	})
}

// The producer hears when the last barrier that may time out has left, once,
// and not for those that did time out or belong to an older checkpoint.
func TestBarriersThatLeft(t *testing.T) {
	mem := newMemory(t, 100)
	p, err := NewPartition(mem.Global, PartitionConfig{Subpartitions: 2, MaxBuffers: 8, MaxPerSub: 8, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	var left []int64
	note := func(id int64) { left = append(left, id) }
	pollBoth := func() {
		for i := range p.subs {
			if b, r := p.subs[i].poll(true, false); r.ok {
				b.Release()
			}
			p.subs[i].resume()
		}
	}
	p.Barrier(*barrier(1, record.AlignedWithTimeout), note)
	p.subs[0].poll(true, false)
	p.subs[0].resume()
	if len(left) != 0 {
		t.Fatal("told before all had left")
	}
	p.Barrier(*barrier(2, record.AlignedWithTimeout), note) // 1 was aborted
	p.subs[1].poll(true, false)
	p.subs[1].resume()
	if len(left) != 0 {
		t.Fatalf("a barrier of checkpoint 1 counts for 2: %v", left)
	}
	pollBoth()
	if len(left) != 1 || left[0] != 2 {
		t.Fatalf("left: %v, want 2", left)
	}
	p.Barrier(*barrier(3, record.AlignedWithTimeout), note)
	p.subs[0].add(mem.data(7)) // behind the barrier
	if got := p.TimeOutBarrier(2); got != nil {
		t.Error("a checkpoint that is over timed out")
	}
	for _, bs := range p.TimeOutBarrier(3) {
		if len(numbers(bs)) != 0 {
			t.Error("data behind the barrier were overtaken")
		}
	}
	pollBoth()
	if len(left) != 1 {
		t.Errorf("left: %v although it timed out", left)
	}
	p.Close()
	mem.back(t)
}

func TestWriteDoesNotAllocate(t *testing.T) {
	g := buffer.NewGlobal(32<<10, 16)
	p, err := NewPartition(g, PartitionConfig{Subpartitions: 2, MinBuffers: 2, MaxBuffers: 8, MaxPerSub: 8, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	r := record.Record{Data: make([]byte, 100)}
	sub := 0
	for _, pt := range []graph.Partitioner{graph.Hash, graph.Rebalance, graph.Shuffle, graph.Custom} {
		sel := NewSelector(pt, 2, 128, 0)
		if n := testing.AllocsPerRun(5000, func() {
			r.Key++
			r.Number++
			sub = sel.Select(&r)
			if !p.Available() {
				for i := range p.subs {
					for {
						b, ok := p.subs[i].poll(true, false)
						if !ok.ok {
							break
						}
						b.Release()
					}
				}
				p.Available()
			}
			if err := p.Write(sub, &r); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a record", pt, n)
		}
	}
	p.Close()
}

// Where records go: within bounds, to the owner of the key, evenly, and by the
// record alone where restored ones have to be told apart.
func TestSelector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxPar := rapid.SampledFrom([]int{1, 7, 128, 4096}).Draw(t, "maximum parallelism")
		n := rapid.IntRange(1, min(maxPar, 40)).Draw(t, "n")
		for _, p := range graph.Partitioners() {
			if p == graph.Broadcast {
				continue
			}
			a, b := NewSelector(p, n, maxPar, 3), NewSelector(p, n, maxPar, 0)
			count := make([]int, n)
			for range 10 * n {
				r := record.Record{Key: rapid.Uint64().Draw(t, "key"), Number: uint64(rapid.IntRange(0, 1000).Draw(t, "number"))}
				i := a.Select(&r)
				if i < 0 || i >= n {
					t.Fatalf("%s: subpartition %d of %d", p, i, n)
				}
				count[i]++
				switch p {
				case graph.Hash:
					if want := record.GroupOwner(maxPar, n, record.KeyGroup(r.Key, maxPar)); i != want {
						t.Fatalf("key %d goes to %d, its owner is %d", r.Key, i, want)
					}
				case graph.Custom:
					if k := b.Select(&r); k != i {
						t.Fatalf("custom: record %d goes to %d or %d, depending on who asks", r.Number, i, k)
					}
				}
			}
			if p == graph.Rebalance {
				for i, c := range count {
					if c != 10 {
						t.Fatalf("rebalance: %d gets %d of %d", i, c, 10*n)
					}
				}
			}
		}
	})
}
