package joblog

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// memory is a folder that knows what a crash may take: bytes that were not
// synced, and entries since the last Sync.
type memory struct {
	mu      sync.Mutex
	entries map[string]*inode
	kept    map[string]*inode         // as of the last Sync
	ops     []func(map[string]*inode) // since then, in order
	fail    error                     // of everything that writes
	lazy    bool                      // Write keeps bytes to itself until Flush
	dead    bool                      // nothing changes any more
}

type inode struct {
	data   []byte
	synced int
}

func newMemory() *memory { return &memory{entries: map[string]*inode{}, kept: map[string]*inode{}} }

func (m *memory) String() string { return "memory" }

func (m *memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.entries)), nil
}

func (m *memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.entries[name]; n != nil {
		return slices.Clone(n.data), nil
	}
	return nil, fs.ErrNotExist
}

// enter needs the lock.
func (m *memory) enter(op func(map[string]*inode)) {
	op(m.entries)
	m.ops = append(m.ops, op)
}

func (m *memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.broken(); err != nil {
		return nil, err
	}
	if m.entries[name] != nil {
		return nil, fs.ErrExist
	}
	n := &inode{}
	m.enter(func(e map[string]*inode) { e[name] = n })
	return &memoryFile{m: m, n: n}, nil
}

func (m *memory) Truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.entries[name]
	if err := m.broken(); err != nil {
		return err
	}
	if n == nil {
		return fs.ErrNotExist
	}
	n.data = n.data[:size]
	n.synced = len(n.data)
	return nil
}

func (m *memory) Publish(temp, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.broken() != nil:
		return m.broken()
	case m.entries[name] != nil:
		return fs.ErrExist
	case m.entries[temp] == nil:
		return fs.ErrNotExist
	}
	n := m.entries[temp]
	m.enter(func(e map[string]*inode) { e[name] = n; delete(e, temp) })
	return nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.broken(); err != nil {
		return err
	}
	if m.entries[name] != nil {
		m.enter(func(e map[string]*inode) { delete(e, name) })
	}
	return nil
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.broken(); err != nil {
		return err
	}
	m.kept, m.ops = maps.Clone(m.entries), nil
	return nil
}

var errCrashed = errors.New("crashed")

// broken needs the lock.
func (m *memory) broken() error {
	if m.dead {
		return errCrashed
	}
	return m.fail
}

// crash stops everything where it is.
func (m *memory) crash() error {
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	return errCrashed
}

func (m *memory) breakDown(err error) {
	m.mu.Lock()
	m.fail = err
	m.mu.Unlock()
}

// process returns what a process finds that is started after this one died.
func (m *memory) process() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemory()
	for name, n := range m.entries {
		c.entries[name] = &inode{slices.Clone(n.data), n.synced}
	}
	c.kept = maps.Clone(c.entries)
	return c
}

// machine returns what may be left after the machine has lost power: of each
// file what was synced and a part of the rest, of the entries those that were
// synced and some of the later changes, in order.
func (m *memory) machine(t *rapid.T) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := maps.Clone(m.kept)
	for _, op := range m.ops[:rapid.IntRange(0, len(m.ops)).Draw(t, "entries that survive")] {
		op(entries)
	}
	c := newMemory()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		n := entries[name]
		size := rapid.IntRange(n.synced, len(n.data)).Draw(t, "bytes of "+name)
		data := slices.Clone(n.data[:size])
		if size > n.synced && rapid.Bool().Draw(t, "zeros at the end of "+name) {
			// The length reached the disk before the bytes did.
			from := rapid.IntRange(n.synced, size).Draw(t, "zeros of "+name)
			clear(data[from:])
		}
		// What came later was on the disk before it; but not before the first page of a
		// file, which holds the header.
		if first := max(n.synced, frameBytes+8); size > first && rapid.Bool().Draw(t, "a hole in "+name) {
			from := rapid.IntRange(first, size).Draw(t, "begin of the hole")
			clear(data[from:rapid.IntRange(from, size).Draw(t, "end of the hole")])
		}
		c.entries[name] = &inode{data, size}
	}
	c.kept = maps.Clone(c.entries)
	return c
}

type memoryFile struct {
	m    *memory
	n    *inode
	held []byte // lazy
	shut bool
}

func (f *memoryFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.shut:
		return 0, fs.ErrClosed
	case f.m.dead:
		return 0, errCrashed
	case f.m.fail != nil:
		// A part of it gets through.
		f.n.data = append(f.n.data, p[:len(p)/2]...)
		return len(p) / 2, f.m.fail
	case f.m.lazy:
		f.held = append(f.held, p...)
	default:
		f.n.data = append(f.n.data, p...)
	}
	return len(p), nil
}

func (f *memoryFile) Flush() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.broken(); err != nil {
		return err
	}
	f.n.data = append(f.n.data, f.held...)
	f.held = nil
	return nil
}

func (f *memoryFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.broken(); err != nil {
		return err
	}
	f.n.synced = len(f.n.data)
	return nil
}

func (f *memoryFile) Close() error {
	if f.shut {
		return errors.New("closed twice")
	}
	f.shut = true
	return f.Flush()
}

// Nobody else may write what the next master believes, whatever the umask is.
// Fails if the folder or a file is made with more than the owner's bits.
func TestNobodyElseWritesTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "log")
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := must(OpenHardened(d, Config{Job: "job", Epoch: 1}))(t)
	appendAll(t, s, finished("a", 0, 0, 1))
	files := 0
	err = filepath.WalkDir(filepath.Dir(dir), func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		if !e.IsDir() {
			files++
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
	shut(t, s)
}

// A folder above that cannot be synced is no error of the log; a broken disk is.
// Fails if one of the refusals is not known, or if every error is one.
func TestRefusalsToSync(t *testing.T) {
	for _, x := range []struct {
		err error
		is  bool
	}{
		{syscall.EACCES, false}, {syscall.EPERM, false}, {syscall.EINVAL, false}, {syscall.EROFS, false}, {syscall.ENOTSUP, false},
		{syscall.EIO, true}, {syscall.ENOSPC, true}, {syscall.ENOENT, true},
	} {
		if err := (&fs.PathError{Op: "sync", Path: "/", Err: x.err}); syncable(err) != x.is {
			t.Errorf("%v: %v", err, !x.is)
		}
	}
}

// What has the name of a file of the log and is none is damage, before anybody reads
// it to an end that it may not have; Wipe removes it, or says why it cannot.
//
// Fails if ReadFile does not look, or not behind a link, or if Wipe takes what cannot
// be removed for removed.
func TestLogsThatAreNoFiles(t *testing.T) {
	for name, x := range map[string]struct {
		make func(path string) error
		stay bool
	}{
		"folder": {func(p string) error { return os.Mkdir(p, 0o700) }, false},
		"full":   {func(p string) error { return os.MkdirAll(filepath.Join(p, "notes"), 0o700) }, true},
		"link":   {func(p string) error { return os.Symlink(os.DevNull, p) }, false},
	} {
		dir := t.TempDir()
		d, err := OpenDir(dir)
		if err == nil {
			err = x.make(filepath.Join(dir, "log.1"))
		}
		if err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := OpenHardened(d, Config{Job: "job", Epoch: 1}); !errors.As(err, &damaged) || damaged.File != "log.1" {
			t.Errorf("%s: %v", name, err)
		}
		err = Wipe(d)
		if _, there := os.Lstat(filepath.Join(dir, "log.1")); (err != nil) != x.stay || errors.Is(there, fs.ErrNotExist) == x.stay {
			t.Errorf("%s: wiped with %v, then %v", name, err, there)
		}
		if err != nil && !strings.Contains(err.Error(), filepath.Join(dir, "log.1")) {
			t.Errorf("%s: an error without the path: %v", name, err)
		}
	}
}
