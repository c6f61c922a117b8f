package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"benchrun/runtime/operator"
	"benchrun/runtime/record"
)

// lines emits the lines of text files. A split is a file; its state is how far
// it was read.
type lines struct {
	p      Params
	splits []lineSplit
	cur    int
	f      *os.File
	r      *bufio.Reader
	long   []byte
	last   bool
	stop   bool
	rec    record.Record
	n      int64
}

// lineSplit is one file. With loop, pass counts how often it has been read.
type lineSplit struct {
	index  uint32
	pass   uint32
	offset int64
	line   uint32
	done   bool
	path   string
}

func newLines(p Params) *lines { return &lines{p: p} }

func lineSplits(p Params) [][]byte {
	out := make([][]byte, len(p.Files))
	for i, f := range p.Files {
		out[i] = lineSplit{index: uint32(i), path: f}.bytes()
	}
	return out
}

const lineSplitHeader = 21

func (s lineSplit) bytes() []byte {
	b := make([]byte, 0, lineSplitHeader+len(s.path))
	b = binary.LittleEndian.AppendUint32(b, s.index)
	b = binary.LittleEndian.AppendUint32(b, s.pass)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.offset))
	b = binary.LittleEndian.AppendUint32(b, s.line)
	done := byte(0)
	if s.done {
		done = 1
	}
	return append(append(b, done), s.path...)
}

// LinePosition is how far one file was read.
type LinePosition struct {
	Path  string
	Index int // of the file in the list
	Pass  int // how often it was read to the end
	Lines int // lines emitted in this pass
	Done  bool
}

// ReadLineSplit reads a split of a lines source.
func ReadLineSplit(b []byte) (LinePosition, error) {
	s, err := readLineSplit(b)
	return LinePosition{s.path, int(s.index), int(s.pass), int(s.line), s.done}, err
}

func readLineSplit(b []byte) (s lineSplit, err error) {
	if len(b) < lineSplitHeader {
		return s, fmt.Errorf("source: split of %d bytes", len(b))
	}
	s.index, s.pass = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	s.offset, s.line = int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint32(b[16:])
	s.done, s.path = b[20] != 0, string(b[lineSplitHeader:])
	return s, nil
}

func (s *lines) AddSplits(splits [][]byte) error {
	for _, b := range splits {
		x, err := readLineSplit(b)
		if err != nil {
			return err
		}
		s.splits = append(s.splits, x)
	}
	return nil
}

func (s *lines) NoMoreSplits() { s.last = true }

func (s *lines) Stop() {
	if s.p.Loop {
		s.stop = true
		s.close()
	}
}

func (s *lines) close() {
	if s.f != nil {
		s.f.Close()
		s.f, s.r = nil, nil
	}
}

func (s *lines) Next(out operator.Output, n int, more func() bool) (Progress, time.Time, error) {
	for n > 0 && more() {
		if s.stop {
			return End, time.Time{}, nil
		}
		if s.cur == len(s.splits) {
			if s.last {
				return End, time.Time{}, nil
			}
			return Idle, time.Time{}, nil
		}
		x := &s.splits[s.cur]
		if x.done {
			s.cur++
			continue
		}
		start := x.offset
		line, err := s.line(x)
		if errors.Is(err, io.EOF) {
			s.close()
			if s.p.Loop {
				x.pass, x.offset, x.line = x.pass+1, 0, 0
				s.splits = append(s.splits[:s.cur], append(s.splits[s.cur+1:], *x)...)
			} else {
				x.done = true
				s.cur++
			}
			continue
		}
		if err != nil {
			return More, time.Time{}, fmt.Errorf("source: %w", err)
		}
		// The number is unique in the vertex: file and pass above, place in the
		// file below.
		s.rec = record.Record{
			Number: (uint64(x.index)+uint64(x.pass)*uint64(len(s.p.Files)))<<32 | uint64(start),
			Key:    operator.HashText(line), Value: 1, Source: s.p.Source, Data: line,
		}
		x.line++
		s.n++
		n--
		if err := out.Emit(&s.rec); err != nil {
			return More, time.Time{}, err
		}
	}
	return More, time.Time{}, nil
}

// line reads the next line without its end. The last one may lack an end.
func (s *lines) line(x *lineSplit) ([]byte, error) {
	if s.f == nil {
		f, err := openRegular(x.path)
		if err != nil {
			return nil, err
		}
		if _, err := f.Seek(x.offset, io.SeekStart); err != nil {
			f.Close()
			return nil, err
		}
		s.f = f
		s.r = bufio.NewReaderSize(f, 64<<10)
	}
	s.long = s.long[:0]
	for {
		b, err := s.r.ReadSlice('\n')
		x.offset += int64(len(b))
		if errors.Is(err, bufio.ErrBufferFull) {
			s.long = append(s.long, b...)
			continue
		}
		if len(s.long) > 0 {
			s.long = append(s.long, b...)
			b = s.long
		}
		if err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")), nil
	}
}

// openRegular opens a file. What only has the name of one may have no end, or keep
// who opens it waiting for ever.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (s *lines) Watermark() int64 {
	if s.last && s.cur == len(s.splits) || s.stop {
		return record.MaxWatermark
	}
	return record.MinWatermark
}

func (s *lines) Splits() [][]byte {
	out := make([][]byte, len(s.splits))
	for i, x := range s.splits {
		out[i] = x.bytes()
	}
	return out
}

func (s *lines) Emitted() int64                      { return s.n }
func (s *lines) Lag(time.Time) (time.Duration, bool) { return 0, false }
