package storage

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

// FaultKind is a way in which storage misbehaves.
type FaultKind string

// The kinds of faults.
const (
	// FaultNone: no fault.
	FaultNone FaultKind = ""
	// FaultError: every call fails with an I/O error.
	FaultError FaultKind = "error"
	// FaultSlow: every call is delayed.
	FaultSlow FaultKind = "slow"
	// FaultFull: calls that need space fail with ENOSPC; reading and deleting
	// work.
	FaultFull FaultKind = "full"
	// FaultTorn: writing leaves a prefix of the bytes under the name and
	// fails.
	FaultTorn FaultKind = "torn"
)

// ParseFaultKind reads a kind by its name.
func ParseFaultKind(s string) (FaultKind, error) {
	switch k := FaultKind(s); k {
	case FaultError, FaultSlow, FaultFull, FaultTorn:
		return k, nil
	}
	return FaultNone, fmt.Errorf("unknown kind of storage fault %q; known are error, slow, full and torn", s)
}

// DefaultDelay is how long FaultSlow holds up each call.
const DefaultDelay = 200 * time.Millisecond

// Faulty wraps a store and misbehaves on command. Streams that are open when a
// fault begins are hit as well.
type Faulty struct {
	inner Store

	mu struct {
		sync.Mutex
		kind  FaultKind
		until time.Time // zero: until Clear
		delay time.Duration
	}
}

var _ Store = (*Faulty)(nil)

// NewFaulty wraps a store; there is no fault yet.
func NewFaulty(inner Store) *Faulty { return &Faulty{inner: inner} }

// Set begins a fault that lasts for d, or until Clear if d is not positive. It
// replaces the one before.
func (f *Faulty) Set(kind FaultKind, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.kind = kind
	f.mu.until = time.Time{}
	if d > 0 {
		f.mu.until = time.Now().Add(d)
	}
	if f.mu.delay == 0 {
		f.mu.delay = DefaultDelay
	}
}

// SetDelay changes how long FaultSlow holds up each call.
func (f *Faulty) SetDelay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.delay = d
}

// Clear ends the fault.
func (f *Faulty) Clear() { f.Set(FaultNone, 0) }

// Active is the fault in force.
func (f *Faulty) Active() FaultKind {
	kind, _ := f.active()
	return kind
}

func (f *Faulty) active() (FaultKind, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.kind != FaultNone && !f.mu.until.IsZero() && !time.Now().Before(f.mu.until) {
		f.mu.kind = FaultNone
	}
	return f.mu.kind, f.mu.delay
}

// pass applies the fault to a call that needs no space.
func (f *Faulty) pass(op, name string) error {
	kind, delay := f.active()
	switch kind {
	case FaultError:
		return fmt.Errorf("%s %s of %s: injected fault: %w", op, name, f.inner.URL(), syscall.EIO)
	case FaultSlow:
		time.Sleep(delay)
	}
	return nil
}

// passSpace applies the fault to a call that needs space. torn tells the
// caller to leave a prefix behind and to fail.
func (f *Faulty) passSpace(op, name string) (torn bool, err error) {
	switch kind, _ := f.active(); kind {
	case FaultFull:
		return false, fmt.Errorf("%s %s of %s: injected fault: %w", op, name, f.inner.URL(), syscall.ENOSPC)
	case FaultTorn:
		return true, nil
	}
	return false, f.pass(op, name)
}

func (f *Faulty) tornError(op, name string) error {
	return fmt.Errorf("%s %s of %s: injected fault: write torn: %w", op, name, f.inner.URL(), syscall.EIO)
}

// URL is the URL of the store within.
func (f *Faulty) URL() string { return f.inner.URL() }

// Create implements Store.
func (f *Faulty) Create(name string) (Writer, error) {
	if _, err := f.passSpace("create", name); err != nil {
		return nil, err
	}
	w, err := f.inner.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{store: f, inner: w, name: name}, nil
}

type faultyWriter struct {
	store *Faulty
	inner Writer
	name  string
	torn  bool
	err   error // of a write that a fault hit: the stream has a hole
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	torn, err := w.store.passSpace("write", w.name)
	if err != nil {
		w.err = err
		return 0, err
	}
	if torn || w.torn {
		n := 0
		if !w.torn {
			w.torn = true
			n, _ = w.inner.Write(p[:len(p)/2])
		}
		return n, w.store.tornError("write", w.name)
	}
	return w.inner.Write(p)
}

func (w *faultyWriter) Commit() error {
	torn, err := w.store.passSpace("commit", w.name)
	if err == nil {
		err = w.err
	}
	if err != nil {
		w.inner.Abort()
		return err
	}
	if torn || w.torn {
		// The prefix becomes visible, as after a crash between rename and the
		// end of the write-back.
		w.inner.Commit()
		return w.store.tornError("commit", w.name)
	}
	return w.inner.Commit()
}

func (w *faultyWriter) Abort() error { return w.inner.Abort() }

// Open implements Store.
func (f *Faulty) Open(name string) (Reader, error) {
	if err := f.pass("open", name); err != nil {
		return nil, err
	}
	r, err := f.inner.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{Reader: r, store: f}, nil
}

type faultyReader struct {
	Reader
	store *Faulty
}

func (r *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.store.pass("read", r.Name()); err != nil {
		return 0, err
	}
	return r.Reader.ReadAt(p, off)
}

// Put implements Store.
func (f *Faulty) Put(name string, data []byte) error { return f.put(name, data, f.inner.Put) }

// PutIfAbsent implements Store.
func (f *Faulty) PutIfAbsent(name string, data []byte) error {
	return f.put(name, data, f.inner.PutIfAbsent)
}

func (f *Faulty) put(name string, data []byte, put func(string, []byte) error) error {
	torn, err := f.passSpace("put", name)
	if err != nil {
		return err
	}
	if torn {
		if err := put(name, data[:len(data)/2]); err != nil {
			return err
		}
		return f.tornError("put", name)
	}
	return put(name, data)
}

// List implements Store.
func (f *Faulty) List(prefix string) ([]string, error) {
	if err := f.pass("list", prefix); err != nil {
		return nil, err
	}
	return f.inner.List(prefix)
}

// Delete implements Store.
func (f *Faulty) Delete(name string) error {
	if err := f.pass("delete", name); err != nil {
		return err
	}
	return f.inner.Delete(name)
}

// DeleteAll implements Store.
func (f *Faulty) DeleteAll(prefix string) error {
	if err := f.pass("delete", prefix); err != nil {
		return err
	}
	return f.inner.DeleteAll(prefix)
}

// SyncDir implements Store.
func (f *Faulty) SyncDir(prefix string) error {
	if err := f.pass("sync", prefix); err != nil {
		return err
	}
	return f.inner.SyncDir(prefix)
}
