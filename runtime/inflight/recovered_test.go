package inflight

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/buffer"
	"benchrun/runtime/graph"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
)

func quiet() {}

// TestRecoveredKeepsEveryByteOnce puts bytes of some channels, takes some out,
// freezes the rest at a random moment, goes on putting, and checks: what was
// taken before, plus the rest, is what was put; and so is all that was taken.
func TestRecoveredKeepsEveryByteOnce(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		g := buffer.NewGlobal(64, rapid.IntRange(0, 12).Draw(t, "segments"))
		pool, err := g.NewLocal("test", 0, g.Total(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		channels := rapid.IntRange(1, 3).Draw(t, "channels")
		r := NewRecovered(channels, pool, dir, quiet)
		put, taken, before := make([][]byte, channels), make([][]byte, channels), make([][]byte, channels)
		var rest *Rest
		next := byte(0)
		take := func() bool {
			ch, b, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				taken[ch] = append(taken[ch], b.Data...)
				b.Release()
			}
			return ok
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				ch := rapid.IntRange(0, channels-1).Draw(t, "channel")
				b := make([]byte, rapid.IntRange(1, 150).Draw(t, "bytes"))
				for i := range b {
					next++
					b[i] = next
				}
				put[ch] = append(put[ch], b...)
				if err := r.Put(ch, b); err != nil {
					t.Fatal(err)
				}
			case 2:
				take()
			case 3:
				if rest == nil {
					rest = r.Rest()
					for ch := range taken {
						before[ch] = bytes.Clone(taken[ch])
					}
				}
			}
		}
		r.Finish(nil)
		for take() {
		}
		for ch := range channels {
			if !bytes.Equal(taken[ch], put[ch]) {
				t.Fatalf("channel %d: took %d bytes, put %d", ch, len(taken[ch]), len(put[ch]))
			}
		}
		if rest != nil {
			if rapid.Bool().Draw(t, "close first") {
				r.Close() // a rest that is open keeps what it needs
			}
			got := make([][]byte, channels)
			copy(got, before)
			if err := rest.Each(context.Background(), func(ch int, b []byte) error {
				got[ch] = append(got[ch], b...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for ch := range channels {
				if !bytes.Equal(got[ch], put[ch]) {
					t.Fatalf("channel %d: %d bytes before and in the rest, %d were put", ch, len(got[ch]), len(put[ch]))
				}
			}
			rest.Close()
			rest.Close()
		}
		r.Close()
		if s := g.Stats(); s.Used != 0 {
			t.Fatalf("%d segments were not released", s.Used)
		}
	})
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d spill files are left", len(left)) // FLINK-40520
	}
}

// TestRecoveredRestWaitsForReading: a rest taken while data are still being
// read holds those, too (FLIP-547: a checkpoint may wait for filtering).
func TestRecoveredRestWaitsForReading(t *testing.T) {
	g := buffer.NewGlobal(64, 4)
	pool, _ := g.NewLocal("test", 0, 4, 0, nil)
	r := NewRecovered(1, pool, t.TempDir(), quiet)
	defer r.Close()
	r.Put(0, []byte("one"))
	rest := r.Rest()
	defer rest.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rest.Each(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v while reading goes on", err)
	}
	r.Put(0, []byte("two"))
	r.Finish(nil)
	var got []byte
	if err := rest.Each(t.Context(), func(_ int, b []byte) error { got = append(got, b...); return nil }); err != nil || string(got) != "onetwo" {
		t.Errorf("rest %q, error %v", got, err)
	}
}

// TestRecoveredFailureIsHandedOver: an error of the reading goroutine reaches
// the task (FLINK-29816).
func TestRecoveredFailureIsHandedOver(t *testing.T) {
	g := buffer.NewGlobal(64, 4)
	pool, _ := g.NewLocal("test", 0, 4, 0, nil)
	r := NewRecovered(1, pool, t.TempDir(), quiet)
	defer r.Close()
	want := errors.New("bad disk")
	r.Finish(want)
	if _, _, _, err := r.Next(); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
}

// element serialises a record.
func element(key, number uint64) []byte {
	r := record.Record{Key: key, Number: number, Data: record.NewPattern(int(number % 40))}
	b := make([]byte, r.Size())
	r.Put(b)
	return b
}

// TestFilterSplitsExactly cuts the stream of each old channel at any place into
// stored pieces, restores it at other parallelisms, and checks that every
// record comes out at exactly one new subtask, the owner of its key, in order;
// and that doing it again and again neither loses nor adds a byte (INV-2).
func TestFilterSplitsExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxp = 128
		old := rapid.IntRange(1, 6).Draw(t, "old")
		n := rapid.IntRange(1, 6).Draw(t, "new")
		edge := &graph.Edge{ID: "a->b#0", Partitioner: graph.Hash}
		owner := func(p int, key uint64) int { return record.GroupOwner(maxp, p, record.KeyGroup(key, maxp)) }
		streams := make([][]byte, old)
		count, total := 0, 0
		for i := range rapid.IntRange(0, 80).Draw(t, "records") {
			key := rapid.Uint64Range(0, 500).Draw(t, "key")
			b := element(key, uint64(i))
			d := owner(old, key)
			streams[d] = append(streams[d], b...)
			count++
			total += len(b)
		}
		seen := map[uint64]int{}
		bytesOut := 0
		for i := range n {
			a := &GateAssignment{Edge: edge}
			for _, d := range Range.Old(old, n, i) {
				a.Virtual = append(a.Virtual, Virtual{Label: Label{int32(d), 0}, Filter: Range.Ambiguous(old, n, d)})
			}
			dm := NewDemux(a, 1, i, n, maxp)
			for _, v := range a.Virtual {
				if err := dm.Select(v.Label); err != nil {
					t.Fatal(err)
				}
				last := -1
				for s := streams[v.Down]; len(s) > 0; {
					k := rapid.IntRange(1, len(s)).Draw(t, "piece")
					dm.Feed(s[:k])
					s = s[k:]
					for {
						body, err := dm.Next()
						if err != nil {
							t.Fatal(err)
						}
						if body == nil {
							break
						}
						var r record.Record
						r.Get(body)
						if owner(n, r.Key) != i {
							t.Fatalf("record %d of key %d at subtask %d of %d", r.Number, r.Key, i, n)
						}
						if int(r.Number) <= last {
							t.Fatalf("record %d after %d", r.Number, last)
						}
						last = int(r.Number)
						seen[r.Number]++
						bytesOut += 4 + len(body)
					}
				}
			}
			if err := dm.Empty(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range count {
			if seen[uint64(i)] != 1 {
				t.Fatalf("record %d came out %d times", i, seen[uint64(i)])
			}
		}
		if bytesOut != total {
			t.Fatalf("%d bytes out of %d", bytesOut, total)
		}
	})
}

// TestWatermarksAreMerged: several old channels on one new one send the minimum
// of their watermarks, and none before all have one (the fact that a plain
// concatenation would let watermarks run ahead).
func TestWatermarksAreMerged(t *testing.T) {
	edge := &graph.Edge{ID: "a->b#0", Partitioner: graph.Rebalance}
	dm := NewDemux(&GateAssignment{Edge: edge, Virtual: []Virtual{{Label: Label{0, 0}}, {Label: Label{0, 1}}}}, 1, 0, 1, 128)
	mark := func(up int32, w int64) (got []int64) {
		var b [record.WatermarkSize]byte
		record.PutWatermark(b[:], w)
		if err := dm.Select(Label{0, up}); err != nil {
			t.Fatal(err)
		}
		dm.Feed(b[:])
		for {
			body, err := dm.Next()
			if err != nil {
				t.Fatal(err)
			}
			if body == nil {
				return got
			}
			got = append(got, record.WatermarkTime(body))
		}
	}
	for i, x := range []struct {
		up   int32
		w    int64
		want int64 // 0: none
	}{{0, 10, 0}, {0, 20, 0}, {1, 5, 5}, {1, 30, 20}, {0, 25, 25}, {1, 40, 0}} {
		got := mark(x.up, x.w)
		if x.want == 0 && len(got) > 0 || x.want != 0 && (len(got) != 1 || got[0] != x.want) {
			t.Errorf("step %d: watermarks %v, want %d", i, got, x.want)
		}
	}
	if err := dm.Select(Label{7, 7}); err == nil || !strings.Contains(err.Error(), "cannot select") {
		t.Errorf("label outside of the table: %v", err)
	}
}

// TestDamagedFilesAreNamed: cut, flipped and foreign files are refused.
func TestDamagedFilesAreNamed(t *testing.T) {
	store, err := storage.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter("w", 5, 1)
	defer w.Close()
	done := make(chan *Stored, 1)
	c := &Capture{}
	c.AddLeftover(0, 3, []byte("left"), []byte("over"))
	w.Submit(t.Context(), store, "chk-1", c, func(s *Stored, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- s
	})
	s := <-done
	name := s.Files[0]
	chunk := Chunk{File: name, Extent: s.Inputs[0].Extents[0]}
	read := func(name string) error {
		f := NewFiles(store, "chk-1")
		defer f.Release()
		c := chunk
		c.File = name
		return f.Read(&c, make([]byte, c.Length))
	}
	if err := read(name); err != nil {
		t.Fatal(err)
	}
	whole, err := storage.ReadAll(store, "chk-1/"+name)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"cut":     whole[:len(whole)-2],
		"flipped": append(bytes.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1),
		"foreign": binary.LittleEndian.AppendUint64(nil, 7),
		"empty":   nil,
	} {
		if err := store.Put("chk-1/"+what, b); err != nil {
			t.Fatal(err)
		}
		if err := read(what); !snapshot.IsCorrupt(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWriterKeepsOrder: leftover, recovered rest, queued, live; over two parts
// of one checkpoint joined.
func TestWriterKeepsOrder(t *testing.T) {
	store, _ := storage.OpenDir(t.TempDir())
	g := buffer.NewGlobal(64, 8)
	pool, _ := g.NewLocal("test", 0, 8, 0, nil)
	seg := func(s string) buffer.Buffer {
		x := pool.Poll()
		n := copy(x.Mem(), s)
		return buffer.Buffer{Seg: x, Data: x.Mem()[:n]}
	}
	w := NewWriter("w", 5, 2)
	r := NewRecovered(2, pool, t.TempDir(), quiet)
	r.Put(1, []byte("-rest"))
	first := &Capture{}
	first.AddLeftover(0, 1, []byte("left"), []byte("over"))
	first.AddRest(0, r.Rest())
	first.AddInput(0, 1, []buffer.Buffer{seg("-queued")})
	first.AddOutput(2, 5, []buffer.Buffer{seg("out")})
	second := &Capture{}
	second.AddInput(0, 1, []buffer.Buffer{seg("-live")})
	parts := make([]*Stored, 2)
	done := make(chan int, 2)
	for i, c := range []*Capture{first, second} {
		w.Submit(t.Context(), store, "chk-1", c, func(s *Stored, err error) {
			if err != nil {
				t.Error(err)
			}
			parts[i] = s
			done <- i
		})
	}
	r.Put(1, []byte("-more"))
	r.Finish(nil) // only now can the first part be written
	<-done
	<-done
	w.Close()
	joined := Join(parts)
	f := NewFiles(store, "chk-1")
	defer f.Release()
	var got []byte
	for _, x := range joined.Inputs[0].Extents {
		b := make([]byte, x.Length)
		if err := f.Read(&Chunk{File: joined.Files[x.File], Extent: x}, b); err != nil {
			t.Fatal(err)
		}
		got = append(got, b...)
	}
	if string(got) != "leftover-rest-more-queued-live" {
		t.Errorf("stored %q", got)
	}
	if len(joined.Outputs) != 1 || joined.Outputs[0].Gate != 2 || joined.Outputs[0].Channel != 5 || joined.Bytes != int64(len(got)+3) {
		t.Errorf("outputs %+v, %d bytes", joined.Outputs, joined.Bytes)
	}
	r.Close()
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
}

// TestWriterReleasesAborted: what an aborted checkpoint holds is given back
// although the writer has not come to it. Mutation: Writer.enqueue without
// AfterFunc.
func TestWriterReleasesAborted(t *testing.T) {
	store, _ := storage.OpenDir(t.TempDir())
	g := buffer.NewGlobal(64, 2)
	pool, _ := g.NewLocal("test", 0, 2, 0, nil)
	w := NewWriter("w", 5, 0) // nobody writes
	ctx, cancel := context.WithCancel(t.Context())
	x := pool.Poll()
	c := &Capture{}
	c.AddInput(0, 0, []buffer.Buffer{{Seg: x, Data: x.Mem()}})
	done := make(chan error, 1)
	w.Submit(ctx, store, "chk-1", c, func(_ *Stored, err error) { done <- err })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
	w.Close()
}
