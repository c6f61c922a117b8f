package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
)

// CorruptError tells that the bytes of a checkpoint are not what was written.
type CorruptError struct {
	File   string // within the store
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint file %s is damaged: %s", e.File, e.Reason)
}

// IsCorrupt tells whether an error says that a checkpoint is damaged, rather
// than that it could not be read just now.
func IsCorrupt(err error) bool {
	_, ok := errors.AsType[*CorruptError](err)
	return ok
}

// Decode reads the bytes of a metadata file; file names it in errors, which
// are *CorruptError. Nothing in the result aliases b.
func Decode(file string, b []byte) (*Metadata, error) {
	d, flags, err := openFrame(file, metadataMagic, "checkpoint metadata", b)
	if err != nil {
		return nil, err
	}
	m := &Metadata{
		Savepoint: flags&flagSavepoint != 0,
		Unaligned: flags&flagUnaligned != 0,
	}
	m.Checkpoint = d.uint("checkpoint id")
	m.Epoch = d.uint("epoch")
	m.TriggeredUnixNano = int64(d.fixed64("trigger time"))
	m.Vertices = makeSlice[VertexState](d, 6, "vertices")
	for i := range m.Vertices {
		v := &m.Vertices[i]
		v.ID = d.string("vertex id")
		v.Parallelism = d.int("parallelism")
		v.MaxParallelism = d.int("maximum parallelism")
		v.FullyFinished = d.bool("finished flag")
		v.Operators = makeSlice[string](d, 2, "operators")
		v.Kinds = make([]string, len(v.Operators))
		for j := range v.Operators {
			v.Operators[j] = d.string("operator id")
			v.Kinds[j] = d.string("operator kind")
		}
		v.Subtasks = makeSlice[SubtaskState](d, 8, "subtasks")
		for j := range v.Subtasks {
			d.subtask(&v.Subtasks[j])
		}
	}
	m.Coordinators = makeSlice[CoordinatorState](d, 2, "coordinators")
	for i := range m.Coordinators {
		m.Coordinators[i].Operator = d.string("operator id")
		m.Coordinators[i].Data = d.bytes("coordinator state")
	}
	m.Edges = makeSlice[EdgeState](d, 6, "edges")
	for i := range m.Edges {
		e := &m.Edges[i]
		e.ID = d.string("edge id")
		e.From = d.string("edge source")
		e.To = d.string("edge target")
		e.Partitioner = d.string("partitioner")
		e.Gate = d.int("gate")
		e.Partition = d.int("partition")
	}
	m.Results = d.bytes("results")
	return m, d.finish()
}

// DecodeSubtask reads what EncodeSubtask wrote; file names the bytes in
// errors. Nothing in the result aliases b.
func DecodeSubtask(file string, b []byte) (*SubtaskState, error) {
	d, _, err := openFrame(file, subtaskMagic, "subtask state", b)
	if err != nil {
		return nil, err
	}
	s := &SubtaskState{}
	d.subtask(s)
	return s, d.finish()
}

func openFrame(file, magic, what string, b []byte) (*decoder, uint16, error) {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{File: file, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) < frameHeader+frameTrailer {
		return nil, 0, corrupt("%d bytes are too few for %s", len(b), what)
	}
	if string(b[:4]) != magic {
		return nil, 0, corrupt("it begins with %q, not with the %q of %s", b[:4], magic, what)
	}
	body := b[:len(b)-frameTrailer]
	want := binary.LittleEndian.Uint32(b[len(body):])
	if got := Checksum(body); got != want {
		return nil, 0, corrupt("checksum %08x does not match the recorded %08x over %d bytes", got, want, len(body))
	}
	// The version is judged after the checksum: a flipped bit is damage, not a
	// version of the future.
	if v := binary.LittleEndian.Uint16(b[4:]); v != version {
		return nil, 0, corrupt("format version %d; this program reads version %d", v, version)
	}
	return &decoder{file: file, b: body[frameHeader:], size: len(b)}, binary.LittleEndian.Uint16(b[6:]), nil
}

// decoder reads fields until the first bad one; from then on all fields are
// zero and err holds.
type decoder struct {
	file string
	b    []byte // what is left
	size int
	err  error
}

func (d *decoder) fail(what, format string, args ...any) {
	if d.err == nil {
		at := d.size - len(d.b) - frameTrailer
		d.err = &CorruptError{File: d.file, Reason: fmt.Sprintf("%s at byte %d: %s", what, at, fmt.Sprintf(format, args...))}
	}
	d.b = nil
}

func (d *decoder) finish() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("end", "%d bytes too many", len(d.b))
	}
	return d.err
}

func (d *decoder) uint(what string) int64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > math.MaxInt64 {
		d.fail(what, "bad number")
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

func (d *decoder) int(what string) int {
	v := d.uint(what)
	if v > math.MaxInt32 {
		d.fail(what, "%d is out of range", v)
		return 0
	}
	return int(v)
}

func (d *decoder) take(n int, what string) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.b) {
		d.fail(what, "%d bytes expected, %d left", n, len(d.b))
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) fixed32(what string) uint32 {
	if p := d.take(4, what); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (d *decoder) fixed64(what string) uint64 {
	if p := d.take(8, what); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

func (d *decoder) bool(what string) bool {
	p := d.take(1, what)
	if p == nil {
		return false
	}
	if p[0] > 1 {
		d.fail(what, "%d is neither 0 nor 1", p[0])
	}
	return p[0] == 1
}

func (d *decoder) string(what string) string { return string(d.take(d.int(what), what)) }

func (d *decoder) bytes(what string) []byte {
	n := d.int(what)
	if n == 0 {
		return nil
	}
	return bytes.Clone(d.take(n, what))
}

// makeSlice reads a count. An element takes at least min bytes, so a count
// that the rest cannot hold is refused before memory is asked for.
func makeSlice[T any](d *decoder, min int, what string) []T {
	n := d.int("number of " + what)
	if n > len(d.b)/min {
		d.fail("number of "+what, "%d do not fit into the %d bytes left", n, len(d.b))
	}
	if d.err != nil || n == 0 {
		return nil
	}
	return make([]T, n)
}

// fileName refuses names that would lead out of the checkpoint's folder.
func (d *decoder) fileName(what string) string {
	s := d.string(what)
	if s != "" && (!fs.ValidPath(s) || s == ".") {
		d.fail(what, "%q is no name inside a checkpoint", s)
		return ""
	}
	return s
}

func (d *decoder) handle(h *Handle) {
	h.File = d.fileName("handle's file")
	if h.File == "" {
		h.Inline = d.bytes("inline state")
		h.Length = int64(len(h.Inline))
	} else {
		h.Offset = d.uint("handle's offset")
		h.Length = d.uint("handle's length")
		if h.Offset > math.MaxInt64-h.Length {
			d.fail("handle's length", "%d is out of range", h.Length)
		}
	}
	h.CRC = d.fixed32("handle's checksum")
}

func (d *decoder) subtask(s *SubtaskState) {
	s.Subtask = d.int("subtask")
	s.Finished = d.bool("finished flag")
	s.InFlightBytes = d.uint("in-flight bytes")
	s.StateBytes = d.uint("state bytes")
	s.Files = makeSlice[string](d, 1, "files")
	for i := range s.Files {
		s.Files[i] = d.fileName("file")
	}
	s.Operators = makeSlice[OperatorState](d, 3, "operator states")
	for i := range s.Operators {
		o := &s.Operators[i]
		o.Operator = d.string("operator id")
		o.Keyed = makeSlice[KeyGroupHandle](d, 8, "keyed states")
		for j := range o.Keyed {
			k := &o.Keyed[j]
			d.handle(&k.Handle)
			k.First = d.int("first key group")
			k.Offsets = makeSlice[int64](d, 1, "key groups")
			var last int64
			for g := range k.Offsets {
				last += d.uint("key group's offset")
				if last < 0 || last > k.Length {
					d.fail("key group's offset", "it lies behind the state's end")
				}
				k.Offsets[g] = last
			}
		}
		o.List = makeSlice[ListHandle](d, 9, "list states")
		for j := range o.List {
			l := &o.List[j]
			l.Name = d.string("list state's name")
			if p := d.take(1, "list state's mode"); p != nil {
				l.Mode = ListMode(p[0])
				if l.Mode > Broadcast {
					d.fail("list state's mode", "%d is unknown", p[0])
				}
			}
			l.Items = d.int("number of items")
			d.handle(&l.Handle)
		}
	}
	var at extentCursor
	s.Inputs = d.channels(&at, len(s.Files), "input channels")
	s.Outputs = d.channels(&at, len(s.Files), "output channels")
}

func (d *decoder) channels(at *extentCursor, files int, what string) []ChannelState {
	cs := makeSlice[ChannelState](d, 4, what)
	for i := range cs {
		c := &cs[i]
		c.Gate = d.int("gate")
		c.Channel = d.int("channel")
		c.Bytes = d.uint("channel's bytes")
		c.Extents = makeSlice[Extent](d, 7, "extents")
		for j := range c.Extents {
			e := &c.Extents[j]
			e.File = int32(d.int("extent's file"))
			if int(e.File) >= files && d.err == nil {
				d.fail("extent's file", "index %d of %d files", e.File, files)
			}
			if off := d.uint("extent's offset"); off > 0 {
				e.Offset = off - 1
			} else if e.File == at.file {
				e.Offset = at.end
			} else {
				d.fail("extent's offset", "nothing to continue")
			}
			e.Length = int32(d.int("extent's length"))
			e.CRC = d.fixed32("extent's checksum")
			at.file, at.end = e.File, e.Offset+int64(e.Length)
			if at.end < 0 {
				d.fail("extent's offset", "it is out of range")
			}
		}
	}
	return cs
}
