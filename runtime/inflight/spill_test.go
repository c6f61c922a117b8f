package inflight

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"benchrun/runtime/buffer"
)

func spilling(t *testing.T, segments int) (*Recovered, *buffer.Global, string) {
	t.Helper()
	g := buffer.NewGlobal(64, segments)
	pool, err := g.NewLocal("test", 0, segments, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return NewRecovered(2, pool, dir, quiet), g, dir
}

// Recovered data were kept on the heap without bounds when no buffer was free.
// Here they go through memory first, then to a file without a name, which is
// gone when the queue is closed or the process dies.
//
// Mutation: Recovered.put allocates instead of spilling (Spilled stays 0).
func TestFLINK38930_MemoryFirstThenDisk(t *testing.T) {
	r, g, dir := spilling(t, 2)
	if err := r.Put(0, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if r.Spilled() != 0 || g.Stats().Used != 2 {
		t.Errorf("%d bytes were spilled with %d segments in use", r.Spilled(), g.Stats().Used)
	}
	if err := r.Put(1, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if g.Stats().Used != 2 || r.Spilled() < 1<<20-64 {
		t.Errorf("%d bytes were spilled with %d segments in use", r.Spilled(), g.Stats().Used)
	}
	if cap(r.spill.tail) > 4*spillBuffer+1<<20 {
		t.Errorf("%d bytes of the spill are in memory", cap(r.spill.tail))
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the spill file has a name: %v", left[0].Name())
	}
	f := r.spill.f
	r.Finish(nil)
	r.Close()
	if _, err := f.Stat(); err == nil {
		t.Error("the spill file is open after Close")
	}
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
}

// When segments come back they are used again, in order with what was spilled
// meanwhile.
func TestSpillAndMemoryTakeTurns(t *testing.T) {
	r, _, _ := spilling(t, 1)
	var want, got []byte
	for i := range 20 {
		b := bytes.Repeat([]byte{byte(i + 1)}, 50)
		want = append(want, b...)
		if err := r.Put(0, b); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			_, x, ok, err := r.Next()
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			got = append(got, x.Data...)
			x.Release()
		}
	}
	r.Finish(nil)
	for {
		_, x, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, x.Data...)
		x.Release()
	}
	if !bytes.Equal(got, want) || r.Spilled() == 0 || r.Spilled() == int64(len(want)) || !r.Drained() {
		t.Errorf("got %d of %d bytes, %d of them spilled", len(got), len(want), r.Spilled())
	}
	r.Close()
}

// Damage on the disk is found, by the task and by a checkpoint.
func TestDamagedSpill(t *testing.T) {
	r, _, _ := spilling(t, 0)
	if err := r.Put(0, make([]byte, spillBuffer+10)); err != nil {
		t.Fatal(err)
	}
	r.Finish(nil)
	if _, err := r.spill.f.WriteAt([]byte{1}, 100); err != nil {
		t.Fatal(err)
	}
	rest := r.Rest()
	if err := rest.Each(context.Background(), func(int, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "damaged on disk") {
		t.Errorf("checkpoint: %v", err)
	}
	rest.Close()
	if _, _, _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "damaged on disk") {
		t.Errorf("task: %v", err)
	}
	r.Close()
}

// A disk that is full, or not there, is an error that says so; it reaches the
// task.
func TestSpillCannotBeWritten(t *testing.T) {
	r, _, _ := spilling(t, 0)
	r.dir = "/does/not/exist"
	if err := r.Put(0, []byte("x")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "spill of recovered data") {
		t.Errorf("no directory: %v", err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	r.spill = &spill{f: full}
	f := &Filler{Gate: &GateAssignment{}, Into: r}
	err = r.Put(0, make([]byte, spillBuffer))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("full disk: %v", err)
	}
	f.Into.Finish(err)
	if _, _, _, err := r.Next(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the task sees %v", err)
	}
	rest := r.Rest()
	if err := rest.Each(context.Background(), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a checkpoint sees %v", err)
	}
	r.Close()
	rest.Close()
}

// A closed queue takes nothing, and whoever waits for it is told.
func TestClosedQueue(t *testing.T) {
	r, g, _ := spilling(t, 4)
	r.Put(0, []byte("x"))
	rest := r.Rest()
	r.Close()
	r.Close()
	if err := r.Put(0, []byte("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if err := rest.Each(context.Background(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("rest: %v", err)
	}
	rest.Close()
	r.Finish(nil)
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
}

// Source and filtered buffers of a restore came from one pool, and one
// goroutine waited for itself. Reading here needs no network memory, and
// filling never waits for the task.
//
// Mutation: Recovered.put waits for a segment instead of spilling (hangs).
func TestFLINK39519_FillingNeedsNoNetworkMemory(t *testing.T) {
	r, _, _ := spilling(t, 0)
	for range 100 {
		if err := r.Put(1, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if r.Finish(nil); !r.Left(1) || r.Left(0) {
		t.Error("wrong channel")
	}
	r.Close()
}
