package inflight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/storage"
)

// waiting is a capture whose recovered data are still being read.
func waiting(t *testing.T, pool *buffer.Local) (*Recovered, *Capture) {
	r := NewRecovered(1, pool, t.TempDir(), quiet)
	c := &Capture{}
	c.AddRest(0, r.Rest())
	return r, c
}

func leftover(s string) *Capture {
	c := &Capture{}
	c.AddLeftover(0, 0, []byte(s), nil)
	return c
}

// submitted is what came of some captures.
type submitted struct {
	wg     sync.WaitGroup
	stored []*Stored
	errs   []error
	calls  []int
}

func submit(w *Writer, s storage.Store, captures ...*Capture) *submitted {
	x := &submitted{stored: make([]*Stored, len(captures)), errs: make([]error, len(captures)), calls: make([]int, len(captures))}
	for i, c := range captures {
		x.wg.Add(1)
		w.Submit(context.Background(), s, "chk-1", c, func(st *Stored, err error) {
			x.stored[i], x.errs[i] = st, err
			x.calls[i]++
			x.wg.Done()
		})
	}
	return x
}

func (x *submitted) wait(t *testing.T) {
	t.Helper()
	x.wg.Wait()
	for i, n := range x.calls {
		if n != 1 {
			t.Errorf("capture %d was finished %d times", i, n)
		}
	}
}

// pausedStore lets nobody create a file until it is told to.
type pausedStore struct {
	storage.Store
	entered chan struct{} // one for each call
	resume  chan struct{} // closed to let them go on
	created []string
	mu      sync.Mutex
}

func newPausedStore(s storage.Store) *pausedStore {
	return &pausedStore{Store: s, entered: make(chan struct{}, 100), resume: make(chan struct{})}
}

func (p *pausedStore) Create(name string) (storage.Writer, error) {
	p.entered <- struct{}{}
	<-p.resume
	p.mu.Lock()
	p.created = append(p.created, name)
	p.mu.Unlock()
	return p.Store.Create(name)
}

// Captures that wait for the same checkpoint share a file, up to the limit; one
// whose own data cannot be read takes nobody along.
func TestCapturesShareFilesButNotFailures(t *testing.T) {
	g := buffer.NewGlobal(64, 8)
	pool, err := g.NewLocal("test", 0, 8, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	inner := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	store := newPausedStore(inner)
	w := NewWriter("w", 3, 1)
	first := submit(w, store, leftover("first")) // keeps the writer busy
	<-store.entered
	bad, c := waiting(t, pool)
	failure := errors.New("cannot be filtered")
	bad.Finish(failure)
	rest := submit(w, store, leftover("a"), c, leftover("b"), leftover("c"), leftover("d"))
	close(store.resume)
	first.wait(t)
	rest.wait(t)
	for i, err := range rest.errs {
		if i == 1 && !errors.Is(err, failure) || i != 1 && err != nil {
			t.Errorf("capture %d: %v", i, err)
		}
	}
	if n := len(store.created); n > 3 {
		t.Errorf("6 captures, 3 to a file, made %d files: %v", n, store.created)
	}
	bad.Close()
	w.Close()
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
}

// A capture whose data are still being read holds up nobody else.
func TestSlowCaptureHoldsUpNobody(t *testing.T) {
	g := buffer.NewGlobal(64, 8)
	pool, err := g.NewLocal("test", 0, 8, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	w := NewWriter("w", 5, 1)
	r, c := waiting(t, pool)
	slow := submit(w, store, c)
	submit(w, store, leftover("fast")).wait(t)
	if slow.calls[0] != 0 {
		t.Error("finished before its data were read")
	}
	r.Put(0, []byte("late"))
	r.Finish(nil)
	slow.wait(t)
	if slow.errs[0] != nil || slow.stored[0].Bytes != 4 {
		t.Errorf("stored %+v, %v", slow.stored[0], slow.errs[0])
	}
	r.Close()
	w.Close()
}

// A file that cannot be made, written or committed is an error for everybody in
// it, and leaves nothing behind.
func TestFailingStorage(t *testing.T) {
	for _, kind := range []storage.FaultKind{storage.FaultError, storage.FaultFull} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			g := buffer.NewGlobal(512<<10, 8)
			pool, err := g.NewLocal("test", 0, 8, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			inner := storage.OpenMemory(t.Name())
			defer storage.DropMemory(t.Name())
			store := storage.NewFaulty(inner)
			store.Set(kind, 0)
			w := NewWriter("w", 5, 2)
			var captures []*Capture
			for range 3 {
				s := pool.Poll()
				c := leftover("small")
				c.AddInput(0, 0, []buffer.Buffer{{Seg: s, Data: s.Mem()}})
				captures = append(captures, c)
			}
			x := submit(w, store, captures...)
			x.wait(t)
			for i, err := range x.errs {
				if err == nil {
					t.Errorf("capture %d was stored", i)
				}
				if kind == storage.FaultFull && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("capture %d: error %v does not say that the disk is full", i, err)
				}
			}
			store.Clear()
			x = submit(w, store, leftover("again"))
			if x.wait(t); x.errs[0] != nil {
				t.Errorf("after the storage came back: %v", x.errs[0])
			}
			w.Close()
			if names, _ := inner.List(""); len(names) != 1 {
				t.Errorf("files %v, want the last one only", names)
			}
			if s := g.Stats(); s.Used != 0 {
				t.Errorf("%d segments were not released", s.Used)
			}
		})
	}
}

// badCommit is a store whose streams cannot be made durable.
type badCommit struct{ storage.Store }

type badCommitWriter struct{ storage.Writer }

func (s badCommit) Create(name string) (storage.Writer, error) {
	w, err := s.Store.Create(name)
	return badCommitWriter{w}, err
}

func (w badCommitWriter) Commit() error {
	w.Abort()
	return syscall.EIO
}

func TestFailingCommit(t *testing.T) {
	store := badCommit{storage.OpenMemory(t.Name())}
	defer storage.DropMemory(t.Name())
	w := NewWriter("w", 5, 1)
	defer w.Close()
	x := submit(w, store, leftover("a"), leftover("b"))
	x.wait(t)
	for i, err := range x.errs {
		if !errors.Is(err, syscall.EIO) || x.stored[i] != nil {
			t.Errorf("capture %d: stored %v, error %v", i, x.stored[i], err)
		}
	}
}

// A closed writer refuses what it has not written, and what comes later.
func TestCloseRefuses(t *testing.T) {
	g := buffer.NewGlobal(64, 8)
	pool, err := g.NewLocal("test", 0, 8, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := newPausedStore(storage.OpenMemory(t.Name()))
	defer storage.DropMemory(t.Name())
	w := NewWriter("w", 1, 1)
	first := submit(w, store, leftover("first")) // being written
	<-store.entered
	r, c := waiting(t, pool)
	second := submit(w, store, leftover("second"), c)
	closed := make(chan struct{})
	go func() {
		w.Close()
		close(closed)
	}()
	r.Put(0, []byte("x"))
	r.Finish(nil)
	for w.wake.L.Lock(); !w.closed; { // Close has begun
		w.wake.L.Unlock()
		w.wake.L.Lock()
	}
	w.wake.L.Unlock()
	close(store.resume)
	<-closed
	first.wait(t)
	second.wait(t)
	late := submit(w, store, leftover("late"))
	late.wait(t)
	r2, c2 := waiting(t, pool)
	late2 := submit(w, store, c2)
	late2.wait(t)
	r2.Finish(nil)
	r2.Close()
	r.Close()
	if first.errs[0] != nil {
		t.Errorf("what was being written: %v", first.errs[0])
	}
	for what, err := range map[string]error{"queued": second.errs[0], "after the end": late.errs[0], "with a rest, after the end": late2.errs[0]} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: error %v, want %v", what, err, ErrClosed)
		}
	}
	if s := g.Stats(); s.Used != 0 {
		t.Errorf("%d segments were not released", s.Used)
	}
}

// Pieces of a channel that follow each other are one extent, up to its size;
// long ones are cut; nothing is nothing.
func TestExtents(t *testing.T) {
	store := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	w := NewWriter("w", 5, 1)
	defer w.Close()
	c := &Capture{}
	for range 10 {
		c.AddInput(0, 0, []buffer.Buffer{{Data: make([]byte, 1000)}})
	}
	c.AddInput(0, 1, []buffer.Buffer{{Data: make([]byte, 3*extentSize+5)}})
	c.AddOutput(1, 2, []buffer.Buffer{{Data: nil}})
	empty := &Capture{}
	empty.AddInput(0, 0, []buffer.Buffer{{}})
	x := submit(w, store, c, empty)
	x.wait(t)
	if s := x.stored[0]; len(s.Inputs) != 2 || len(s.Inputs[0].Extents) != 1 || len(s.Inputs[1].Extents) != 4 || len(s.Outputs) != 0 || s.Bytes != 10_000+3*extentSize+5 {
		t.Errorf("stored %+v", s)
	}
	if s := x.stored[1]; len(s.Files) != 0 || s.Bytes != 0 || len(s.Inputs) != 0 {
		t.Errorf("nothing was stored as %+v", s)
	}
	if j := Join(nil); j.Bytes != 0 || len(j.Files) != 0 {
		t.Errorf("no parts joined: %+v", j)
	}
}
