package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// WriterConfig describes how one partition is written.
type WriterConfig struct {
	Subpartitions int
	Memory        int            // bytes for records and output
	Pool          *buffer.Global // where the memory for records comes from; half of it is reserved
	Codec         Codec
}

// MaxMemory is the most that a writer can use: the index has 32 bits for the bytes
// of a region.
const MaxMemory = 1 << 31

// MinMemory is the least that a writer needs, with segments of this size: one to
// write from, and two for records.
func MinMemory(segment int) int { return 3 * segment }

// ErrReleased: the store gave up a partition that was still being written.
var ErrReleased = errors.New("shuffle: the partition was released while it was written")

// Writer writes one partition. It belongs to one goroutine, and ends with Finish
// or Abort. After an error only Abort makes sense.
type Writer struct {
	store *Store
	id    PartitionID
	head  header
	mem   *clusters
	data  *blockWriter
	index *indexWriter
	files []*os.File

	bytes, records []int64
	mark           int64
	scratch        []byte
	add            func([]byte) error // data.write
	err            error
	done           bool
}

// newWriter opens the files of a partition under temporary names.
func newWriter(s *Store, id PartitionID, c WriterConfig) (w *Writer, err error) {
	size := c.Pool.SegmentSize()
	h := header{id: id, codec: c.Codec, subs: c.Subpartitions, block: s.block()}
	if least := MinMemory(max(size, s.c.SegmentSize)); c.Memory < least || c.Memory > MaxMemory {
		return nil, fmt.Errorf("shuffle: partition %s: a writer cannot work with %d bytes of memory, but with %d to %d: %w", id, c.Memory, least, MaxMemory, fs.ErrInvalid)
	}
	out := outSize(c.Memory, h.block)
	limit := (c.Memory - out) / size
	pool, err := c.Pool.NewLocal("blocking partition "+id.String(), max(2, limit/2), limit, 0, nil)
	if err != nil {
		return nil, err
	}
	w = &Writer{
		store: s, id: id, head: h, mem: newClusters(pool, size, h.block, limit, c.Subpartitions),
		bytes: make([]int64, c.Subpartitions), records: make([]int64, c.Subpartitions), mark: record.MinWatermark,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	if err := beforeCreate.Hit(id.file(dataSuffix)); err != nil {
		return w, writeError("create", id.file(dataSuffix), err)
	}
	for _, suffix := range []string{dataSuffix, indexSuffix} {
		f, err := s.createTemp(id, suffix)
		if err != nil {
			return w, writeError("create", id.file(suffix), err)
		}
		w.files = append(w.files, f)
	}
	if w.data, err = newBlockWriter(w.files[0], id.file(dataSuffix), h, out); err != nil {
		return w, err
	}
	w.add = w.data.write
	if w.index, err = newIndexWriter(w.files[1], id.file(indexSuffix), h); err != nil {
		return w, err
	}
	return w, writeError("create", id.file(dataSuffix), afterCreate.Hit(id.file(dataSuffix)))
}

// ID is the partition being written.
func (w *Writer) ID() PartitionID { return w.id }

// Subpartitions is the number of them.
func (w *Writer) Subpartitions() int { return len(w.mem.subs) }

// Write appends a record to a subpartition.
func (w *Writer) Write(sub int, r *record.Record) error {
	n := record.HeaderSize + len(r.Data)
	s := &w.mem.subs[sub]
	if s.put(r, n) {
		return nil
	}
	return w.writeSlow(sub, r, n)
}

// writeSlow writes a record that the newest chunk of its subpartition has no
// room for.
func (w *Writer) writeSlow(sub int, r *record.Record, n int) error {
	if w.err != nil {
		return w.err
	}
	if n-4 > record.MaxElement {
		return fmt.Errorf("shuffle: partition %s: record of %d bytes, at most %d are allowed", w.id, n, record.MaxElement)
	}
	if cap(w.scratch) < n {
		w.scratch = make([]byte, max(n, 1<<10))
	}
	b := w.scratch[:n]
	r.Put(b)
	s := &w.mem.subs[sub]
	if !w.mem.room(s, n) {
		if w.err = w.spill(); w.err != nil {
			return w.err
		}
		if !w.mem.room(s, n) {
			w.err = w.region(func(i int) (uint32, error) {
				if i != sub {
					return 0, nil
				}
				return 1, w.data.write(b)
			})
			if cap(w.scratch) > 1<<20 {
				w.scratch = nil // one huge record must not pin its memory
			}
			return w.err
		}
	}
	w.mem.add(s, b)
	return nil
}

// Watermark notes a watermark; only the last one counts.
func (w *Writer) Watermark(t int64) { w.mark = max(w.mark, t) }

// spill writes what is in memory as a region.
func (w *Writer) spill() error {
	if w.mem.used == 0 {
		return nil
	}
	name := w.id.file(dataSuffix)
	if err := beforeSpill.Hit(name); err != nil {
		return writeError("write", name, err)
	}
	err := w.region(func(i int) (uint32, error) {
		s := &w.mem.subs[i]
		return s.records, w.mem.visit(s, w.add)
	})
	if err != nil {
		return err
	}
	w.mem.clear()
	return writeError("write", name, afterSpill.Hit(name))
}

// region writes one region; fill writes what subpartition i has in it.
func (w *Writer) region(fill func(i int) (records uint32, err error)) error {
	raw := w.data.rawBytes
	for i := range w.bytes {
		e := entry{offset: w.data.offset()}
		w.data.start()
		var err error
		if e.records, err = fill(i); err != nil {
			return err
		}
		if err := w.data.finish(); err != nil {
			return err
		}
		e.bytes, e.crc = uint32(w.data.offset()-e.offset), w.data.crc
		w.bytes[i] += w.data.rawBytes - raw
		w.records[i] += int64(e.records)
		raw = w.data.rawBytes
		if err := w.index.add(i, &e); err != nil {
			return err
		}
	}
	return w.index.endRegion()
}

// Finish makes the partition readable, and safe from the end of the process. An
// error leaves it unfinished.
func (w *Writer) Finish() (p Finished, err error) {
	if w.done || w.err != nil {
		return p, errors.Join(w.err, fmt.Errorf("shuffle: finish partition %s: %w", w.id, fs.ErrClosed))
	}
	defer func() {
		if err != nil {
			w.err = err
			err = errors.Join(err, w.Abort())
		}
	}()
	if err := w.spill(); err != nil {
		return p, err
	}
	length, err := w.data.close()
	if err != nil {
		return p, err
	}
	name := w.id.file(indexSuffix)
	if err := beforeIndex.Hit(name); err != nil {
		return p, writeError("write", name, err)
	}
	t := tail{regions: w.index.regions, watermark: w.mark, data: length}
	crc, err := w.index.close(w.bytes, w.records, t)
	if err != nil {
		return p, err
	}
	if err := writeError("write", name, afterIndex.Hit(name)); err != nil {
		return p, err
	}
	for i, suffix := range []string{dataSuffix, indexSuffix} {
		if err := w.store.seal(w.files[i], w.id.file(suffix)); err != nil {
			return p, err
		}
	}
	p = Finished{ID: w.id, Bytes: w.bytes, Records: w.records, Watermark: w.mark, Checksum: crc, Disk: length + w.index.size}
	if err := w.store.publish(p, w); err != nil {
		return p, err
	}
	w.close()
	return p, nil
}

// Abort removes what was written. After Finish it does nothing.
func (w *Writer) Abort() error {
	if w.done {
		return nil
	}
	w.close()
	return w.store.discard(w.id)
}

func (w *Writer) close() {
	w.done = true
	w.err = errors.Join(w.err, fs.ErrClosed)
	w.mem.close()
	if w.data != nil {
		w.data.enc.close()
	}
	for _, f := range w.files {
		f.Close() // again after seal: no harm
	}
}
