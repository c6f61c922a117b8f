package inflight

import (
	"encoding/binary"
	"fmt"
	"sync"

	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
)

// Files is the set of open files of one checkpoint on one worker. All its
// subtasks read the same files, so each is opened once. Safe for concurrent
// use.
type Files struct {
	store  storage.Store
	folder string

	mu   sync.Mutex
	open map[string]*opening
	refs int
}

// opening is a file that is open, or being opened: storage may be slow, and
// those who want other files do not wait for it.
type opening struct {
	done chan struct{}
	r    storage.Reader
	err  error
}

// NewFiles reads from a checkpoint's folder. The caller holds the first
// reference.
func NewFiles(s storage.Store, folder string) *Files {
	return &Files{store: s, folder: folder, open: map[string]*opening{}, refs: 1}
}

// Retain adds a reference.
func (f *Files) Retain() {
	f.mu.Lock()
	f.refs++
	f.mu.Unlock()
}

// Release drops a reference; the last one closes the files.
func (f *Files) Release() {
	f.mu.Lock()
	f.refs--
	if f.refs > 0 {
		f.mu.Unlock()
		return
	}
	open := f.open
	f.open = nil
	f.mu.Unlock()
	for _, o := range open {
		o.r.Close()
	}
}

func (f *Files) reader(name string) (storage.Reader, error) {
	f.mu.Lock()
	if o := f.open[name]; o != nil {
		f.mu.Unlock()
		<-o.done
		return o.r, o.err
	}
	o := &opening{done: make(chan struct{})}
	f.open[name] = o
	f.mu.Unlock()
	if o.r, o.err = f.openFile(name); o.err != nil {
		f.mu.Lock()
		delete(f.open, name) // the next one tries again
		f.mu.Unlock()
	}
	close(o.done)
	return o.r, o.err
}

func (f *Files) openFile(name string) (storage.Reader, error) {
	path := f.folder + "/" + name
	r, err := f.store.Open(path)
	if err != nil {
		return nil, fmt.Errorf("in-flight data: %w", err)
	}
	var h [fileHeader]byte
	if _, err := r.ReadAt(h[:], 0); err != nil {
		r.Close()
		return nil, &snapshot.CorruptError{File: path, Reason: "is too short: " + err.Error()}
	}
	if m, v := binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:]); m != fileMagic || v != fileVersion {
		r.Close()
		return nil, &snapshot.CorruptError{File: path, Reason: fmt.Sprintf("is no file of in-flight data of version %d", fileVersion)}
	}
	return r, nil
}

// Read fills buf, which must have the chunk's length, and checks it.
func (f *Files) Read(c *Chunk, buf []byte) error {
	r, err := f.reader(c.File)
	if err != nil {
		return err
	}
	if _, err := r.ReadAt(buf, c.Offset); err != nil {
		return &snapshot.CorruptError{File: r.Name(), Reason: fmt.Sprintf("%d bytes at %d cannot be read: %v", c.Length, c.Offset, err)}
	}
	if crc := snapshot.Checksum(buf); crc != c.CRC {
		return &snapshot.CorruptError{File: r.Name(), Reason: fmt.Sprintf("%d bytes at %d have checksum %08x, not %08x", c.Length, c.Offset, crc, c.CRC)}
	}
	return nil
}

const (
	fileMagic   = 0x31464e49 // "INF1"
	fileVersion = 1
	fileHeader  = 8
)
