package storage

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Memory is a store in the memory of this process. It keeps apart what is
// visible and what is durable, so that CrashClone can tell what would be left
// after a loss of power.
type Memory struct {
	name string

	mu struct {
		sync.Mutex
		live    map[string]*memFile // what Open and List see
		durable map[string]*memFile // entries that a folder sync has covered
		dirs    map[string]bool     // folders that exist
		synced  map[string]bool     // folders whose own entry is durable
	}
}

// memFile is immutable once it is in a map: a stream's bytes are synced before
// they become visible.
type memFile struct {
	data []byte
}

var _ Store = (*Memory)(nil)

var memories struct {
	sync.Mutex
	byName map[string]*Memory
}

// OpenMemory returns the store of that name, a new one at the first call.
func OpenMemory(name string) *Memory {
	memories.Lock()
	defer memories.Unlock()
	if m := memories.byName[name]; m != nil {
		return m
	}
	m := newMemory(name)
	if memories.byName == nil {
		memories.byName = map[string]*Memory{}
	}
	memories.byName[name] = m
	return m
}

// DropMemory forgets the store of that name with all its streams.
func DropMemory(name string) {
	memories.Lock()
	defer memories.Unlock()
	delete(memories.byName, name)
}

func newMemory(name string) *Memory {
	m := &Memory{name: name}
	m.mu.live = map[string]*memFile{}
	m.mu.durable = map[string]*memFile{}
	m.mu.dirs = map[string]bool{}
	m.mu.synced = map[string]bool{}
	return m
}

// CrashClone registers, under another name, a store that holds what a machine
// would find after losing power now: streams whose entry and whose folders'
// entries were synced. Of the rest, those for which survives says yes (nil:
// none) are there too, as a disk may have written them on its own.
func (m *Memory) CrashClone(name string, survives func(stream string) bool) *Memory {
	c := newMemory(name)
	m.mu.Lock()
	for n, f := range m.mu.durable {
		if m.reachable(n) {
			c.adopt(n, f)
		}
	}
	if survives != nil {
		for n, f := range m.mu.live {
			if c.mu.live[n] != f && survives(n) {
				c.adopt(n, f)
			}
		}
	}
	m.mu.Unlock()
	memories.Lock()
	defer memories.Unlock()
	if memories.byName == nil {
		memories.byName = map[string]*Memory{}
	}
	memories.byName[name] = c
	return c
}

// reachable tells whether all folders above a stream are durable.
//
// REQUIRES m.mu held.
func (m *Memory) reachable(name string) bool {
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		if !m.mu.synced[d] {
			return false
		}
	}
	return true
}

func (m *Memory) adopt(name string, f *memFile) {
	m.mu.live[name] = f
	m.mu.durable[name] = f
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		m.mu.dirs[d] = true
		m.mu.synced[d] = true
	}
}

// URL is mem:// with the name.
func (m *Memory) URL() string { return "mem://" + m.name }

// Create implements Store.
func (m *Memory) Create(name string) (Writer, error) {
	if err := checkName("create", name); err != nil {
		return nil, err
	}
	if err := beforeCreate.Hit(name); err != nil {
		return nil, err
	}
	return &memWriter{store: m, name: name}, nil
}

type memWriter struct {
	store *Memory
	name  string
	buf   bytes.Buffer
	err   error
	done  bool
}

func (w *memWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("write %s: %w", w.name, fs.ErrClosed)
	}
	if err := beforeWrite.Hit(w.name); err != nil {
		w.err = err
		return 0, err
	}
	return w.buf.Write(p)
}

func (w *memWriter) Commit() error {
	if w.done {
		return fmt.Errorf("commit %s: %w", w.name, fs.ErrClosed)
	}
	w.done = true
	err := w.err
	if err == nil {
		err = beforeCommit.Hit(w.name)
	}
	if err != nil {
		return fmt.Errorf("commit %s of %s: %w", w.name, w.store.URL(), err)
	}
	w.store.mu.Lock()
	w.store.link(w.name, &memFile{data: w.buf.Bytes()})
	w.store.mu.Unlock()
	return afterCommit.Hit(w.name)
}

func (w *memWriter) Abort() error {
	w.done = true
	return nil
}

// link makes a stream visible.
//
// REQUIRES m.mu held.
func (m *Memory) link(name string, f *memFile) {
	m.mu.live[name] = f
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		m.mu.dirs[d] = true
	}
}

// Open implements Store.
func (m *Memory) Open(name string) (Reader, error) {
	if err := checkName("open", name); err != nil {
		return nil, err
	}
	if err := beforeOpen.Hit(name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	f := m.mu.live[name]
	m.mu.Unlock()
	if f == nil {
		return nil, fmt.Errorf("storage: %w", &fs.PathError{Op: "open", Path: m.URL() + "/" + name, Err: fs.ErrNotExist})
	}
	return &memReader{ReaderAt: bytes.NewReader(f.data), name: name, size: int64(len(f.data))}, nil
}

type memReader struct {
	io.ReaderAt
	name string
	size int64
}

func (r *memReader) Close() error { return nil }
func (r *memReader) Size() int64  { return r.size }
func (r *memReader) Name() string { return r.name }

// Put implements Store.
func (m *Memory) Put(name string, data []byte) error { return m.put(name, data, true) }

// PutIfAbsent implements Store.
func (m *Memory) PutIfAbsent(name string, data []byte) error { return m.put(name, data, false) }

func (m *Memory) put(name string, data []byte, replace bool) error {
	if err := checkName("put", name); err != nil {
		return err
	}
	if err := beforePut.Hit(name); err != nil {
		return err
	}
	m.mu.Lock()
	if m.mu.live[name] != nil && !replace {
		m.mu.Unlock()
		return fmt.Errorf("put %s/%s: %w", m.URL(), name, ErrExists)
	}
	m.link(name, &memFile{data: bytes.Clone(data)})
	m.mu.Unlock()
	if err := putVisible.Hit(name); err != nil {
		return err
	}
	m.mu.Lock()
	m.syncUp(path.Dir(name))
	m.mu.Unlock()
	return afterPut.Hit(name)
}

// List implements Store.
func (m *Memory) List(prefix string) ([]string, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for n := range m.mu.live {
		if strings.HasPrefix(n, prefix) {
			names = append(names, n)
		}
	}
	return sorted(names), nil
}

// Delete implements Store.
func (m *Memory) Delete(name string) error {
	if err := checkName("delete", name); err != nil {
		return err
	}
	if err := beforeDelete.Hit(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mu.live, name)
	return nil
}

// DeleteAll implements Store.
func (m *Memory) DeleteAll(prefix string) error {
	if err := checkName("delete all", prefix); err != nil {
		return err
	}
	if err := beforeDelete.Hit(prefix); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.mu.live {
		if n == prefix || strings.HasPrefix(n, prefix+"/") {
			delete(m.mu.live, n)
		}
	}
	for d := range m.mu.dirs {
		if d == prefix || strings.HasPrefix(d, prefix+"/") {
			delete(m.mu.dirs, d)
		}
	}
	return nil
}

// SyncDir implements Store.
func (m *Memory) SyncDir(prefix string) error {
	if err := checkFolder("sync", prefix); err != nil {
		return err
	}
	if err := beforeSync.Hit(prefix); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if prefix == "" {
		prefix = "."
	} else if !m.mu.dirs[prefix] {
		return fmt.Errorf("sync folder %q of %s: %w", prefix, m.URL(), fs.ErrNotExist)
	}
	m.syncUp(prefix)
	return nil
}

// syncUp makes the entries of a folder and of all above it durable.
//
// REQUIRES m.mu held.
func (m *Memory) syncUp(dir string) {
	for {
		for n, f := range m.mu.live {
			if path.Dir(n) == dir {
				m.mu.durable[n] = f
			}
		}
		for n := range m.mu.durable {
			if path.Dir(n) == dir && m.mu.live[n] == nil {
				delete(m.mu.durable, n)
			}
		}
		for d := range m.mu.dirs {
			if path.Dir(d) == dir {
				m.mu.synced[d] = true
			}
		}
		for d := range m.mu.synced {
			if path.Dir(d) == dir && !m.mu.dirs[d] {
				delete(m.mu.synced, d)
			}
		}
		if dir == "." {
			return
		}
		dir = path.Dir(dir)
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
