package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// GroupOffset is the place of a key group's block in a snapshot's bytes.
// Length is 0 for a group without state.
type GroupOffset struct {
	Group  int
	Offset int64
	Length int64
}

// CorruptError tells that the bytes of a snapshot are not what was written.
type CorruptError struct {
	Group  int
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("keyed state of key group %d is damaged: %s", e.Group, e.Reason)
}

const (
	blockMagic   = "kg"
	blockVersion = 1
	blockHeader  = 16
	blockTrailer = 4

	partFixed  = 1
	partVar    = 2
	partTimers = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Write writes the blocks of all key groups and returns their places, one a
// group, in order. It writes in large pieces.
func (s *Snapshot) Write(w io.Writer) ([]GroupOffset, error) {
	bw := &blockWriter{w: w, buf: make([]byte, 0, writeBuffer)}
	groups := make([]GroupOffset, 0, s.last-s.first+1)
	for i := 0; i <= s.last-s.first; i++ {
		start := bw.total
		if n := s.groupLength(i); n > 0 {
			s.writeGroup(bw, i, n)
		}
		if bw.err != nil {
			break
		}
		groups = append(groups, GroupOffset{Group: s.first + i, Offset: start, Length: bw.total - start})
	}
	bw.flush()
	if bw.err != nil {
		return nil, fmt.Errorf("write keyed state: %w", bw.err)
	}
	return groups, nil
}

// groupLength is the number of bytes of a group's parts.
func (s *Snapshot) groupLength(i int) int64 {
	var n int64
	for k := range s.fixed {
		v := &s.fixed[k]
		if c := len(v.groups[i].entries); c > 0 {
			n += int64(3+len(v.name)+8) + int64(c)*int64(16+v.width)
		}
	}
	for k := range s.vars {
		v := &s.vars[k]
		g := &v.groups[i]
		if len(g.entries) > 0 {
			n += int64(3 + len(v.name) + 4)
			for j := range g.entries {
				n += 20 + int64(len(g.vals[j].data))
			}
		}
	}
	if s.timers != nil && len(s.timers[i]) > 0 {
		n += 3 + 4 + int64(len(s.timers[i]))*timerBytes
	}
	return n
}

func (s *Snapshot) writeGroup(w *blockWriter, i int, length int64) {
	w.begin()
	w.buf = append(w.buf, blockMagic...)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, blockVersion)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(s.first+i))
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(length))
	for k := range s.fixed {
		v := &s.fixed[k]
		g := &v.groups[i]
		if len(g.entries) == 0 {
			continue
		}
		w.part(partFixed, v.name)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(v.width))
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(g.entries)))
		for _, e := range g.entries {
			w.room(16)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, e.key)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, e.ns)
		}
		per := 1 << v.shift
		for c, left := 0, len(g.entries); left > 0; c++ {
			n := min(left, per)
			w.bytes(g.chunks[c].data[:n*v.width])
			left -= n
		}
	}
	for k := range s.vars {
		v := &s.vars[k]
		g := &v.groups[i]
		if len(g.entries) == 0 {
			continue
		}
		w.part(partVar, v.name)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(g.entries)))
		for j, e := range g.entries {
			w.room(20)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, e.key)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, e.ns)
			w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(g.vals[j].data)))
			w.bytes(g.vals[j].data)
		}
	}
	if s.timers != nil && len(s.timers[i]) > 0 {
		w.part(partTimers, "")
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(len(s.timers[i])))
		for _, t := range s.timers[i] {
			w.room(timerBytes)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(t.Time))
			w.buf = binary.LittleEndian.AppendUint64(w.buf, t.Key)
			w.buf = binary.LittleEndian.AppendUint64(w.buf, t.NS)
		}
	}
	w.end()
}

const writeBuffer = 64 << 10

// blockWriter gathers bytes and keeps the checksum of the open block.
type blockWriter struct {
	w     io.Writer
	buf   []byte
	total int64 // bytes of all blocks that have ended
	mark  int   // up to here buf is in the checksum, or before the block
	size  int64 // bytes of the open block that have left buf
	crc   uint32
	err   error
}

func (w *blockWriter) begin() {
	w.room(blockHeader)
	w.mark, w.size, w.crc = len(w.buf), 0, 0
	w.total += blockHeader + blockTrailer
}

func (w *blockWriter) end() {
	w.sum()
	w.total += w.size - blockHeader
	w.room(blockTrailer)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.crc)
	w.mark = len(w.buf)
}

func (w *blockWriter) part(kind byte, name string) {
	w.room(3 + len(name) + 8)
	w.buf = append(w.buf, kind)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(len(name)))
	w.buf = append(w.buf, name...)
}

// sum takes what is new in buf into the checksum.
func (w *blockWriter) sum() {
	w.crc = crc32.Update(w.crc, castagnoli, w.buf[w.mark:])
	w.size += int64(len(w.buf) - w.mark)
	w.mark = len(w.buf)
}

// room makes place for n bytes.
func (w *blockWriter) room(n int) {
	if cap(w.buf)-len(w.buf) < n {
		w.sum()
		w.flush()
	}
}

// bytes appends any number of bytes; large pieces are not copied.
func (w *blockWriter) bytes(p []byte) {
	if len(p) >= writeBuffer/4 {
		w.sum()
		w.flush()
		w.crc = crc32.Update(w.crc, castagnoli, p)
		w.size += int64(len(p))
		if w.err == nil {
			_, w.err = w.w.Write(p)
		}
		return
	}
	w.room(len(p))
	w.buf = append(w.buf, p...)
}

func (w *blockWriter) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf, w.mark = w.buf[:0], 0
}
