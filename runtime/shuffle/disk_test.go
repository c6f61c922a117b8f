package shuffle

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/record"
)

// A loss of power keeps what was synced and any part of the rest: so each file is
// synced before it gets its name, the data before the index, and the folders are
// synced before the partition counts.
//
// Fails if Finish seals the index first, if seal renames before it syncs, or if
// publish lists a partition before it syncs the folders.
func TestOrderOfDurability(t *testing.T) {
	c := small(t.TempDir())
	c.Sync = true
	s := open(t, c)
	id := partitionOf("job", 0)
	var got []string
	for _, p := range []*failpoint.Point{beforeIndex, afterSync, beforeRename, afterRename, afterSyncFolder} {
		defer p.Arm(func(_ int, subject string) error {
			listed := ""
			if len(s.Inventory("")) > 0 {
				listed = " listed"
			}
			got = append(got, strings.TrimPrefix(p.Name(), "shuffle/")+" "+subject+listed)
			return nil
		})()
	}
	randomOutput(seeded(t), 2, 50, 100).make(t, s, id, 4<<10, LZ4)
	data, index := id.file(dataSuffix), id.file(indexSuffix)
	want := []string{
		"index " + index, "synced " + data, "rename " + data, "renamed " + data, "synced " + index, "rename " + index, "renamed " + index,
		"synced-folder " + id.folder(), "synced-folder " + id.Job, "synced-folder .",
	}
	if !slices.Equal(got, want) {
		t.Errorf("order of durability:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	shut(t, s)
}

// The disk is full while the data, or the index, are written: the error names the
// file and says so, and nothing is left. With room the next attempt goes well.
//
// Fails if writeError does not know ENOSPC, or if blockWriter.writeOut or
// indexWriter.close drops an error.
func TestFullDisk(t *testing.T) {
	o := randomOutput(seeded(t), 2, 400, 200)
	for _, suffix := range []string{dataSuffix, indexSuffix} {
		s := open(t, small(t.TempDir()))
		g := buffer.NewGlobal(256, 1<<10)
		id := partitionOf("job", 0)
		w, err := s.Create(id, WriterConfig{Subpartitions: 2, Memory: 4 << 10, Pool: g, Codec: LZ4})
		if err != nil {
			t.Fatal(err)
		}
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("this system has no device that is full: ", err)
		}
		if suffix == dataSuffix {
			w.data.f = full
		} else {
			w.index.w.Reset(full)
		}
		if err = o.write(w); err == nil {
			_, err = w.Finish()
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), id.file(suffix)+": the disk is full") {
			t.Errorf("%s: %v", suffix, err)
		}
		if err := errors.Join(w.Abort(), full.Close()); err != nil {
			t.Error(err)
		}
		checkEmpty(t, s)
		if st := g.Stats(); st.Used != 0 || st.Pools != 0 {
			t.Errorf("%s: memory of the writer: %+v", suffix, st)
		}
		id.Attempt++
		o.make(t, s, id, 4<<10, LZ4)
		o.expect(t, s, id, Range{0, 1})
		shut(t, s)
	}
}

// All that a writer allocates is within its limit: records of 100 bytes, ten times
// as many as fit. Beyond it are two short buffers and what the codec works with.
//
// Fails if newWriter does not take the memory for output off that for records.
func TestWriterMemory(t *testing.T) {
	const memory, records = 4 << 20, 400_000
	for codec, beyond := range map[Codec]int{None: 128 << 10, LZ4: 384 << 10, Zstd: 1 << 20} {
		s := open(t, Config{Dir: t.TempDir()})
		g := buffer.NewGlobal(32<<10, 1<<10)
		r := record.Record{Data: make([]byte, 100-record.HeaderSize)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w, err := s.Create(partitionOf("job", 0), WriterConfig{Subpartitions: 100, Memory: memory, Pool: g, Codec: codec})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(records) {
			r.Number, r.Key = i, record.Mix(i)
			if err := w.Write(int(r.Key%100), &r); err != nil {
				t.Fatal(err)
			}
		}
		f, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := int(after.TotalAlloc - before.TotalAlloc); n > memory+beyond {
			t.Errorf("%v: %d bytes for %d of records, the limit is %d", codec, n, records*100, memory)
		} else {
			t.Logf("%v: %d bytes of %d for %d of records, %d on disk", codec, n, memory, records*100, f.Disk)
		}
		shut(t, s)
	}
}

// A partition many times larger than the memory to read it with, some readers of
// it at a time.
//
// Fails if a reader's pool has no maximum, or the store's has none.
func TestLargerThanMemory(t *testing.T) {
	c := small(t.TempDir())
	c.ReadMemory = 4 * c.SegmentSize
	s := open(t, c)
	o := randomOutput(seeded(t), 3, 2000, 200)
	id := partitionOf("job", 0)
	if f := o.make(t, s, id, 2<<10, None); f.Disk < 200*int64(c.ReadMemory) {
		t.Fatalf("%d bytes are not much", f.Disk)
	}
	list, err := gate(t, s, []Input{{Partition: id, Range: Range{0, 2}}, {Partition: id, Range: Range{1, 1}}, {Partition: id, Range: Range{2, 2}}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []Range{{0, 2}, {1, 1}, {2, 2}} {
		o.check(t, list[i], r)
	}
	if st := s.memory.Stats(); st.Peak*c.SegmentSize > c.ReadMemory {
		t.Errorf("readers held %d segments of 4", st.Peak)
	}
	shut(t, s)
}

// Consumers that stop reading hold what they may read ahead, however much there
// is; others go on, and in the end so do they.
//
// Fails if memory gives a reader more than Config.ReadAhead.
func TestStalledConsumers(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 800, 200)
		id := partitionOf("job", 0)
		o.make(t, h.Store, id, 2<<10, None)
		const stalled = 3
		var gates []*inputGate
		for range stalled {
			g := newGate(t, buffer.NewGlobal(h.c.SegmentSize, 32), 1, 1)
			if err := h.Connect(context.Background(), g.Gate, []Input{in(id, Range{0, 1})}, 1); err != nil {
				t.Fatal(err)
			}
			gates = append(gates, g)
		}
		for range 10 {
			list, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1)
			if err != nil {
				t.Fatal(err)
			}
			o.check(t, list[0], Range{0, 1})
		}
		if st := h.memory.Stats(); st.Used > stalled*h.c.ReadAhead {
			t.Errorf("%d consumers that stand still hold %d segments", stalled, st.Used)
		}
		for _, g := range gates {
			list, err := g.drain()
			if err != nil {
				t.Fatal(err)
			}
			o.check(t, list[0], Range{0, 1})
			g.Close()
		}
	})
}

// To its readers a partition that is released is lost, and nothing of it is kept
// open for them.
//
// Fails if Release does not forget the open file.
func TestReleaseWhileRead(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 800, 200)
		id := partitionOf("job", 0)
		o.make(t, h.Store, id, 2<<10, LZ4)
		g := newGate(t, buffer.NewGlobal(h.c.SegmentSize, 32), 1, 1)
		defer g.Close()
		if err := h.Connect(context.Background(), g.Gate, []Input{in(id, Range{0, 1})}, 1); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 2; { // it is in the middle of it
			if _, b, ok := g.Poll(); ok {
				b.Release()
				n++
			} else {
				<-g.wake
			}
		}
		if err := h.Release(id); err != nil {
			t.Fatal(err)
		}
		for { // the first record may be a rest of one, so what comes is not looked at
			_, b, ok := g.Poll()
			if ok {
				if b.Event != nil {
					t.Fatalf("%v came out of a released partition", b.Event.Kind)
				}
				b.Release()
				continue
			}
			if err := g.Err(); err != nil {
				if !lost(err, id) {
					t.Error(err)
				}
				break
			}
			<-g.wake
		}
		checkEmpty(t, h.Store)
		checkNoOpen(t, h.c.Dir+"/")
	})
}

// A reader that goes away while it waits for memory is forgotten at once, not when
// another one gives some back.
//
// Fails if forgetReader leaves it among those that wait.
func TestWaitingReaderGoesAway(t *testing.T) {
	o := randomOutput(seeded(t), 1, 200, 200)
	c := small(t.TempDir())
	c.ReadMemory = c.ReadAhead * c.SegmentSize // one at a time
	synctest.Test(t, func(t *testing.T) {
		s := open(t, c)
		id := partitionOf("job", 0)
		o.make(t, s, id, 2<<10, None)
		var readers []*Reader
		for range 3 {
			r, err := s.Reader(id, Range{0, 0})
			if err != nil {
				t.Fatal(err)
			}
			r.Attach(func() {})
			readers = append(readers, r)
			synctest.Wait() // the first has all memory, others have come to wait
		}
		waiting := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.mu.waiting)
		}
		if n := waiting(); n < 2 {
			t.Fatalf("%d readers wait", n)
		}
		readers[1].Close()
		readers[2].Close()
		if n := waiting(); n != 0 {
			t.Errorf("%d readers wait after they were closed", n)
		}
		readers[0].Close()
		shut(t, s)
	})
}
