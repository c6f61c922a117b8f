package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"

	"benchrun/runtime/storage"
)

const (
	stateMagic  = "BRop"
	stateHeader = 8
	// stateBuffer is how much is gathered before a file is written to.
	stateBuffer = 256 << 10
)

// StateWriter writes the operator state of one subtask as sections of one
// file. As long as everything together is at most the inline limit there is no
// file, and the handles carry the bytes. It belongs to one goroutine.
type StateWriter struct {
	store  storage.Store
	folder string
	name   string
	inline int64

	file     storage.Writer // nil while all fits inline
	buf      []byte         // not yet written
	offset   int64          // of buf's start in the file
	start    int64          // of the open section, relative to the first section's start
	total    int64          // bytes of all sections
	crc      uint32         // of the open section
	sections []Handle
	err      error
}

// NewStateWriter prepares to write folder/name. No file is made yet.
func NewStateWriter(s storage.Store, folder, name string, inline int64) *StateWriter {
	return &StateWriter{store: s, folder: folder, name: name, inline: inline}
}

// Write appends to the open section.
func (w *StateWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.crc = crc32.Update(w.crc, castagnoli, p)
	w.total += int64(len(p))
	w.buf = append(w.buf, p...)
	if w.file == nil && w.total > w.inline {
		w.open()
	}
	if w.file != nil && len(w.buf) >= stateBuffer {
		w.flush()
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *StateWriter) open() {
	w.file, w.err = w.store.Create(path.Join(w.folder, w.name))
	if w.err != nil {
		return
	}
	header := make([]byte, stateHeader, stateHeader+len(w.buf))
	copy(header, stateMagic)
	binary.LittleEndian.PutUint16(header[4:], version)
	w.buf = append(header, w.buf...)
}

func (w *StateWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.file.Write(w.buf)
		w.offset += int64(len(w.buf))
		w.buf = w.buf[:0]
	}
}

// Bytes is what has been written to all sections so far.
func (w *StateWriter) Bytes() int64 { return w.total }

// EndSection closes the open section and returns its number, from 0. The next
// Write opens another.
func (w *StateWriter) EndSection() int {
	w.sections = append(w.sections, Handle{Offset: w.start, Length: w.total - w.start, CRC: w.crc})
	w.start, w.crc = w.total, 0
	return len(w.sections) - 1
}

// Commit makes the file durable and returns the handle of each section, by its
// number. After an error nothing of the file remains.
func (w *StateWriter) Commit() ([]Handle, error) {
	if w.err == nil && w.file == nil {
		for i := range w.sections {
			h := &w.sections[i]
			h.Inline = w.buf[h.Offset : h.Offset+h.Length : h.Offset+h.Length]
			h.Offset = 0
		}
		return w.sections, nil
	}
	w.flush()
	if w.err != nil {
		w.Abort()
		return nil, w.err
	}
	if err := w.file.Commit(); err != nil {
		w.err = err
		return nil, err
	}
	for i := range w.sections {
		w.sections[i].File = w.name
		w.sections[i].Offset += stateHeader
	}
	return w.sections, nil
}

// Abort drops the file.
func (w *StateWriter) Abort() {
	if w.file != nil {
		w.file.Abort()
	}
	if w.err == nil {
		w.err = errors.New("snapshot: state writer was aborted")
	}
}

// OpenHandle gives access to the bytes of a handle. A missing or short file is
// a *CorruptError. The checksum is not looked at: see ReadHandle.
func OpenHandle(s storage.Store, folder string, h *Handle) (*io.SectionReader, io.Closer, error) {
	if h.File == "" {
		return io.NewSectionReader(byteReader(h.Inline), 0, int64(len(h.Inline))), nopCloser{}, nil
	}
	name := path.Join(folder, h.File)
	r, err := s.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, &CorruptError{File: name, Reason: "it is missing"}
		}
		return nil, nil, fmt.Errorf("open state: %w", err)
	}
	if r.Size() < h.Offset+h.Length {
		r.Close()
		return nil, nil, tooShort(name, r.Size(), h.Offset+h.Length)
	}
	return io.NewSectionReader(r, h.Offset, h.Length), r, nil
}

// ReadHandle returns the bytes of a handle after checking them.
func ReadHandle(s storage.Store, folder string, h *Handle) ([]byte, error) {
	b := h.Inline
	if h.File != "" {
		r, c, err := OpenHandle(s, folder, h)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		b = make([]byte, h.Length)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("read state %s: %w", path.Join(folder, h.File), err)
		}
	}
	if got := Checksum(b); got != h.CRC {
		return nil, badSum(handleName(folder, h), h.Offset, h.Length, got, h.CRC)
	}
	return b, nil
}

func handleName(folder string, h *Handle) string {
	if h.File == "" {
		return path.Join(folder, MetadataFile)
	}
	return path.Join(folder, h.File)
}

func tooShort(name string, size, want int64) error {
	return &CorruptError{File: name, Reason: fmt.Sprintf("it has %d bytes, at least %d are expected", size, want)}
}

func badSum(name string, offset, length int64, got, want uint32) error {
	return &CorruptError{File: name, Reason: fmt.Sprintf("%d bytes at offset %d have checksum %08x, %08x is recorded", length, offset, got, want)}
}

type byteReader []byte

func (b byteReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }
