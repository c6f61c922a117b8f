package shuffle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/failpoint"
)

// Bugs of other runtimes that must not be ours.

// each runs a test with a consumer on the holder's worker and with one on
// another worker.
func each(t *testing.T, f func(t *testing.T, h *holder, in func(PartitionID, Range) Input)) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("remote=%v", remote), func(t *testing.T) {
			h := serve(t, open(t, small(t.TempDir())))
			in := h.input
			if !remote {
				in = func(id PartitionID, r Range) Input { return Input{Partition: id, Range: r} }
			}
			f(t, h, in)
			h.shut(t)
		})
	}
}

// A deleted file came out as a file error: the consumer was restarted for ever,
// its producer never was.
//
// Fails if failReading does not make a lost partition of a missing file, or if
// DropOldest leaves the file open.
func TestFLINK21788_DeletedFileIsALostPartition(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 200, 100)
		for i, suffix := range []string{dataSuffix, indexSuffix} {
			id := partitionOf("job", i)
			o.make(t, h.Store, id, 2<<10, None)
			if err := os.Remove(filepath.Join(h.c.Dir, id.file(suffix))); err != nil {
				t.Fatal(err)
			}
			if _, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1); !lost(err, id) {
				t.Errorf("without %s: %v", suffix, err)
			}
			if n := len(h.Inventory("")); n != 0 {
				t.Errorf("without %s: still in the inventory", suffix)
			}
			if err := h.Release(id); err != nil {
				t.Error(err)
			}
		}
		o.make(t, h.Store, partitionOf("job", 2), 2<<10, None)
		o.make(t, h.Store, partitionOf("job", 3), 2<<10, None)
		for i := range 2 { // the store has their files open
			if _, err := gate(t, h.Store, []Input{in(partitionOf("job", 2+i), Range{0, 1})}, 1); err != nil {
				t.Fatal(err)
			}
		}
		id, ok, err := h.DropOldest("job")
		if id != partitionOf("job", 2) || !ok || err != nil {
			t.Fatalf("dropped %v %v: %v", id, ok, err)
		}
		if _, err := gate(t, h.Store, []Input{in(partitionOf("job", 3), Range{0, 1}), in(id, Range{0, 1})}, 1); !lost(err, id) {
			t.Errorf("after the drop: %v", err)
		}
		if id, ok, _ := h.DropOldest(""); id != partitionOf("job", 3) || !ok {
			t.Errorf("the next oldest is %v", id)
		}
		if _, ok, _ := h.DropOldest(""); ok {
			t.Error("something was dropped twice")
		}
	})
}

// An unreadable file did so, too: the class must not depend on what the disk
// says.
//
// Fails if failReading asks for fs.ErrNotExist.
func TestFLINK29056_UnreadableFileIsALostPartition(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 200, 100)
		for i, p := range []*failpoint.Point{beforeOpen, beforeRead} {
			id := partitionOf("job", i)
			o.make(t, h.Store, id, 2<<10, None)
			disarm := p.Arm(failpoint.Once(1, syscall.EIO))
			_, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1)
			disarm()
			if !lost(err, id) {
				t.Errorf("%s: %v", p.Name(), err)
			}
		}
		id := partitionOf("job", 2)
		o.make(t, h.Store, id, 2<<10, None)
		name := filepath.Join(h.c.Dir, id.file(dataSuffix))
		if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o777)); err != nil {
			t.Fatal(err)
		}
		if _, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1); !lost(err, id) {
			t.Errorf("a folder instead of a file: %v", err)
		}
	})
}

// A read that failed on its way and data that are gone were one error: either
// healthy producers ran again, or lost ones did not.
//
// Fails if failReading makes a lost partition of any error, or if the client
// does so of a broken connection.
func TestFLINK6227_TransferErrorsAreNotLosses(t *testing.T) {
	h := serve(t, open(t, small(t.TempDir())))
	o := randomOutput(seeded(t), 2, 400, 200)
	id := partitionOf("job", 0)
	o.make(t, h.Store, id, 2<<10, None)

	disarm := beforeRead.Arm(func(hit int, _ string) error {
		if hit == 3 {
			exchange.Reset(h.conn)
		}
		return nil
	})
	_, err := gate(t, h.Store, []Input{h.input(id, Range{0, 1})}, 1)
	disarm()
	if e, ok := errors.AsType[*exchange.TransferError](err); !ok || e.Worker != "7" || errors.Is(err, exchange.ErrPartitionLost) {
		t.Errorf("a broken connection: %v", err)
	}
	h.client.Close(false)
	h.connect(t)
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENOMEM} {
		disarm := beforeRead.Arm(failpoint.Once(1, errno))
		_, err := gate(t, h.Store, []Input{{Partition: id, Range: Range{0, 1}}}, 1)
		disarm()
		if !errors.Is(err, errno) || errors.Is(err, exchange.ErrPartitionLost) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	// The data were there all the time.
	list, err := gate(t, h.Store, []Input{h.input(id, Range{0, 1})}, 1)
	if err != nil {
		t.Fatal(err)
	}
	o.check(t, list[0], Range{0, 1})
	h.shut(t)
}

// What a remote holder had lost came as a failed input, and nobody ran the
// producer again.
//
// Fails if the server sends an error frame for every error.
func TestCELEBORN477_RemoteLossReachesTheConsumer(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 400, 200)
		id := partitionOf("job", 0)
		if _, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1); !lost(err, id) {
			t.Errorf("never made: %v", err)
		}
		o.make(t, h.Store, id, 2<<10, None)
		// In the middle of reading.
		disarm := beforeRead.Arm(failpoint.Once(4, errors.New("bad sector")))
		_, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1)
		disarm()
		if !lost(err, id) {
			t.Errorf("half of it: %v", err)
		}
		if err := h.Release(id); err != nil {
			t.Error(err)
		}
		if _, err := gate(t, h.Store, []Input{in(id, Range{0, 1})}, 1); !lost(err, id) {
			t.Errorf("released: %v", err)
		}
	})
}

// After a change of the master, old data of the same job could be read as new.
//
// Fails if PartitionID.Key leaves out the epoch.
func TestCELEBORN581_EpochsAreDifferentPartitions(t *testing.T) {
	each(t, func(t *testing.T, h *holder, in func(PartitionID, Range) Input) {
		o := randomOutput(seeded(t), 2, 50, 100)
		id := partitionOf("job", 0)
		o.make(t, h.Store, id, 2<<10, None)
		next := id
		next.Epoch++
		_, err := gate(t, h.Store, []Input{in(next, Range{0, 1})}, 1)
		if !lost(err, next) {
			t.Errorf("another epoch: %v", err)
		}
		other := randomOutput(seeded(t), 2, 50, 100)
		other.make(t, h.Store, next, 2<<10, None)
		for _, x := range []struct {
			id PartitionID
			o  *output
		}{{id, o}, {next, other}} {
			list, err := gate(t, h.Store, []Input{in(x.id, Range{0, 1})}, 1)
			if err != nil {
				t.Fatal(err)
			}
			x.o.check(t, list[0], Range{0, 1})
		}
	})
}

// Partitions that nobody ever read stayed on disk, and so did those of finished
// jobs.
func TestFLINK13371_NothingOutlivesItsJob(t *testing.T) {
	h := serve(t, open(t, small(t.TempDir())))
	o := randomOutput(seeded(t), 2, 50, 100)
	for i := range 5 {
		o.make(t, h.Store, partitionOf("job", i), 2<<10, Codec(i%3))
	}
	if _, err := gate(t, h.Store, []Input{h.input(partitionOf("job", 0), Range{0, 0})}, 1); err != nil {
		t.Error(err)
	}
	if err := h.ReleaseJob("job"); err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	if n := len(h.mu.parts) + len(h.mu.writing); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	h.mu.Unlock()
	checkEmpty(t, h.Store)
	checkNoOpen(t, h.c.Dir+"/")
	h.shut(t)
}

// Data of an attempt that was not finished were taken for its output.
//
// Fails if find finds partitions that are being written, or if adopt takes files with
// temporary names.
func TestFLINK28701_PartialDataAreNeverReused(t *testing.T) {
	o := randomOutput(seeded(t), 2, 200, 100)
	c := small(t.TempDir())
	s := open(t, c)
	id := partitionOf("job", 0)
	w, err := s.Create(id, WriterConfig{Subpartitions: 2, Memory: 1 << 10, Pool: buffer.NewGlobal(256, 64)})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.write(w); err != nil {
		t.Fatal(err)
	}
	if n, err := s.diskBytes("job"); n < 4<<10 || err != nil {
		t.Fatalf("%d bytes are written, %v", n, err)
	}
	absent := func(s *Store) {
		t.Helper()
		if _, err := s.Reader(id, Range{0, 1}); !errors.Is(err, exchange.ErrPartitionLost) {
			t.Errorf("reader of an unfinished partition: %v", err)
		}
		if n := len(s.Inventory("")); n != 0 {
			t.Errorf("%d partitions in the inventory", n)
		}
	}
	absent(s)
	left := t.TempDir() + "/left" // of a process that died now
	if err := os.CopyFS(left, os.DirFS(c.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	absent(s)
	shut(t, s)
	c.Dir = left
	s = open(t, c)
	absent(s)
	checkEmpty(t, s)
	other := randomOutput(seeded(t), 2, 100, 100)
	id.Attempt++
	other.make(t, s, id, 1<<10, None)
	other.expect(t, s, id, Range{0, 1})
	shut(t, s)
}

// Partitions of finished jobs stayed in the tables of a cluster that ran many.
//
// Fails if ReleaseJob leaves an entry or an open file.
func TestFLINK31314_ManyJobsLeaveNothing(t *testing.T) {
	c := small(t.TempDir())
	c.ReadMemory = c.ReadAhead * c.SegmentSize // readers wait for each other
	h := serve(t, open(t, c))
	rnd := seeded(t)
	for k := range 20 {
		job := partitionOf("job", k).String()
		var in []Input
		for i := range 3 {
			id := partitionOf(job, i)
			randomOutput(rnd, 2, 60, 100).make(t, h.Store, id, 2<<10, Codec(i))
			in = append(in, Input{Partition: id, Range: Range{0, 1}}, h.input(id, Range{0, 0}))
		}
		g := newGate(t, buffer.NewGlobal(c.SegmentSize, 64), len(in), len(in)/2)
		if err := h.Connect(context.Background(), g.Gate, in, len(in)); err != nil {
			t.Fatal(err)
		}
		if k%2 == 0 {
			if _, err := g.drain(); err != nil {
				t.Fatal(err)
			}
		} // else the job is cancelled while it reads
		g.Close()
		w, err := h.Create(partitionOf(job, 9), WriterConfig{Subpartitions: 1, Memory: 1 << 10, Pool: buffer.NewGlobal(256, 64)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		if err := h.ReleaseJob(job); err != nil {
			t.Fatal(err)
		}
		h.files.mu.Lock()
		if n := len(h.files.open); n != 0 {
			t.Errorf("%d files are kept open after job %d", n, k)
		}
		h.files.mu.Unlock()
	}
	checkEmpty(t, h.Store)
	h.shut(t) // the sources of remote readers are closed with their connection
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files.mu.Lock()
	defer h.files.mu.Unlock()
	if n := len(h.mu.parts) + len(h.mu.writing) + len(h.mu.readers) + len(h.mu.waiting) + len(h.files.open) + h.files.opening; n != 0 {
		t.Errorf("%d partitions, %d writers, %d readers, %d that wait, %d files", len(h.mu.parts), len(h.mu.writing), len(h.mu.readers), len(h.mu.waiting), len(h.files.open))
	}
}
