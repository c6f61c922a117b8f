package shuffle

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// indexWriter writes an index while the regions are spilled: it holds nothing
// in memory that grows with their number.
type indexWriter struct {
	f        *os.File
	name     string
	w        *bufio.Writer
	crc      uint32
	identity uint32
	subs     int
	regions  int
	size     int64
	row      []byte
}

func newIndexWriter(f *os.File, name string, h header) (*indexWriter, error) {
	w := &indexWriter{f: f, name: name, w: bufio.NewWriterSize(f, 16<<10), subs: h.subs}
	w.row, w.identity = h.append(nil, indexMagic)
	return w, w.flushRow()
}

func (w *indexWriter) flushRow() error {
	w.crc = crc32.Update(w.crc, castagnoli, w.row)
	return w.write()
}

func (w *indexWriter) write() error {
	n, err := w.w.Write(w.row)
	w.size += int64(n)
	w.row = w.row[:0]
	if err != nil {
		return writeError("write", w.name, err)
	}
	return nil
}

// add writes the entry of the next subpartition of the region.
func (w *indexWriter) add(sub int, e *entry) error {
	w.row = e.append(w.row, w.identity, int64(w.regions)*int64(w.subs)+int64(sub))
	if len(w.row) < 4<<10 {
		return nil
	}
	return w.flushRow()
}

// endRegion closes a region, whose entries are all there.
func (w *indexWriter) endRegion() error {
	w.regions++
	return w.flushRow()
}

// close writes totals and footer and returns the index's checksum.
func (w *indexWriter) close(bytes, records []int64, t tail) (crc uint32, err error) {
	for i := range bytes {
		w.row = le.AppendUint64(w.row, uint64(bytes[i]))
		w.row = le.AppendUint64(w.row, uint64(records[i]))
		if len(w.row) >= 4<<10 {
			if err := w.flushRow(); err != nil {
				return 0, err
			}
		}
	}
	if err := w.flushRow(); err != nil {
		return 0, err
	}
	w.row, crc = t.append(w.row, w.crc)
	if err := w.write(); err != nil {
		return 0, err
	}
	if err := w.w.Flush(); err != nil {
		return 0, writeError("write", w.name, err)
	}
	return crc, nil
}

// index is an opened index whose frame is good: header, length and footer.
type index struct {
	f        *os.File
	head     header
	identity uint32
	tail     tail
	crc      uint32
	size     int64
}

// openIndex reads an index's frame. It takes f over.
func openIndex(f *os.File) (x *index, err error) {
	x = &index{f: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("no regular file")
	}
	x.size = info.Size()
	b := make([]byte, min(x.size, fixedHead+maxNames+4))
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	if x.head, x.identity, err = readHeader(b, indexMagic); err != nil {
		return nil, err
	}
	if x.size < int64(x.head.size())+indexFooter {
		return nil, errors.New("torn index: no footer")
	}
	b = b[:indexFooter]
	if _, err := f.ReadAt(b, x.size-indexFooter); err != nil {
		return nil, err
	}
	if x.crc, err = x.tail.get(b); err != nil {
		return nil, err
	}
	// Each subpartition has a total, each region an entry; without regions there
	// are no entries.
	if int64(x.head.subs) > x.size/totalSize || int64(x.tail.regions) > x.size/entrySize ||
		x.size != x.rows()+int64(x.tail.regions)*int64(x.head.subs)*entrySize+int64(x.head.subs)*totalSize+indexFooter {
		return nil, fmt.Errorf("index of %d bytes cannot have %d regions of %d subpartitions", x.size, x.tail.regions, x.head.subs)
	}
	return x, nil
}

func (x *index) rows() int64 { return int64(x.head.size()) }

func (x *index) close() { x.f.Close() }

// verify reads the whole index, checks its checksum and returns what it knows
// of each subpartition.
func (x *index) verify() (bytes, records []int64, err error) {
	if _, err := x.f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	totals := make([]byte, x.head.subs*totalSize)
	front := x.size - indexFooter - int64(len(totals))
	r := bufio.NewReaderSize(x.f, 32<<10)
	h := crc32.New(castagnoli)
	if _, err := io.CopyN(h, r, front); err != nil {
		return nil, nil, err
	}
	if _, err := io.ReadFull(r, totals); err != nil {
		return nil, nil, err
	}
	h.Write(totals)
	if _, err := io.CopyN(h, r, indexFooter-12); err != nil {
		return nil, nil, err
	}
	if crc := h.Sum32(); crc != x.crc {
		return nil, nil, fmt.Errorf("damaged index: checksum %08x, want %08x", crc, x.crc)
	}
	bytes, records = make([]int64, x.head.subs), make([]int64, x.head.subs)
	for i := range bytes {
		bytes[i] = int64(le.Uint64(totals[i*totalSize:]))
		records[i] = int64(le.Uint64(totals[i*totalSize+8:]))
	}
	return bytes, records, nil
}

// span is a piece of a data file.
type span struct{ from, to int64 }

// spans lists the pieces of a range, one a region, adjacent ones joined.
func (x *index) spans(r Range) ([]span, error) {
	var list []span
	b := make([]byte, entrySize)
	at := func(region, sub int) (e entry, err error) {
		place := int64(region)*int64(x.head.subs) + int64(sub)
		if _, err = x.f.ReadAt(b, x.rows()+place*entrySize); err == nil {
			err = e.get(b, x.identity, place)
		}
		return e, err
	}
	for region := range x.tail.regions {
		e, err := at(region, r.First)
		if err != nil {
			return nil, err
		}
		l := e
		if r.Last != r.First {
			if l, err = at(region, r.Last); err != nil {
				return nil, err
			}
		}
		s := span{e.offset, l.offset + int64(l.bytes)}
		if s.from < 0 || s.to < s.from || s.to > x.tail.data-dataFooter {
			return nil, fmt.Errorf("damaged index: region %d has subpartitions at %d to %d of %d bytes", region, s.from, s.to, x.tail.data)
		}
		switch n := len(list); {
		case s.from == s.to:
		case n > 0 && list[n-1].to == s.from:
			list[n-1].to = s.to
		default:
			list = append(list, s)
		}
	}
	return list, nil
}
