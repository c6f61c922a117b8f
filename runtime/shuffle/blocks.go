package shuffle

import (
	"fmt"
	"hash/crc32"
	"os"
)

// blockWriter appends blocks to a data file.
type blockWriter struct {
	f        *os.File
	name     string
	head     header
	identity uint32
	enc      *encoder
	out      []byte // bytes that are not in the file yet
	raw      []byte // block being filled; with compression only
	written  int64  // bytes in the file
	open     int    // where the block being filled begins in out; -1: there is none
	crc      uint32 // of the heads since start
	rawBytes int64  // of all finished blocks
}

// outSize is the memory for output out of what a writer may use: at least one
// block has to fit.
func outSize(memory, block int) int {
	return max(min(memory/4, 256<<10), block+blockHead)
}

func newBlockWriter(f *os.File, name string, h header, out int) (*blockWriter, error) {
	enc, err := newEncoder(h.codec)
	if err != nil {
		return nil, err
	}
	w := &blockWriter{f: f, name: name, head: h, enc: enc, out: make([]byte, 0, out), open: -1}
	if h.codec != None {
		w.raw = make([]byte, 0, h.block)
	}
	var b []byte
	b, w.identity = h.append(nil, dataMagic)
	return w, w.append(b)
}

// offset is the position in the file of what comes next.
func (w *blockWriter) offset() int64 { return w.written + int64(len(w.out)) }

// append adds bytes that are no block.
func (w *blockWriter) append(b []byte) error {
	for len(b) > 0 {
		if len(w.out) == cap(w.out) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		n := min(len(b), cap(w.out)-len(w.out))
		w.out = append(w.out, b[:n]...)
		b = b[n:]
	}
	return nil
}

// start begins the blocks of a subpartition.
func (w *blockWriter) start() { w.crc = w.identity }

// write adds raw bytes to the blocks of a subpartition.
func (w *blockWriter) write(b []byte) error {
	for len(b) > 0 {
		if w.open < 0 {
			if cap(w.out)-len(w.out) < blockHead+w.head.block {
				if err := w.flush(); err != nil {
					return err
				}
			}
			w.open = len(w.out)
			w.out = w.out[:w.open+blockHead]
		}
		var n int
		if w.raw != nil && len(w.raw) == 0 && len(b) >= w.head.block {
			n = w.head.block // it need not be gathered
			if err := w.encode(b[:n]); err != nil {
				return err
			}
		} else if w.raw != nil {
			n = min(len(b), w.head.block-len(w.raw))
			w.raw = append(w.raw, b[:n]...)
			if len(w.raw) == w.head.block {
				if err := w.finish(); err != nil {
					return err
				}
			}
		} else {
			n = min(len(b), w.head.block-(len(w.out)-w.open-blockHead))
			w.out = append(w.out, b[:n]...)
			if len(w.out)-w.open-blockHead == w.head.block {
				if err := w.finish(); err != nil {
					return err
				}
			}
		}
		b = b[n:]
	}
	return nil
}

// finish closes the block being filled, if there is one.
func (w *blockWriter) finish() error {
	switch {
	case w.open < 0:
		return nil
	case w.raw == nil:
		w.seal(len(w.out)-w.open-blockHead, 0)
		return nil
	}
	err := w.encode(w.raw)
	w.raw = w.raw[:0]
	return err
}

// encode closes the open block, whose raw bytes are these.
func (w *blockWriter) encode(raw []byte) error {
	at := w.open + blockHead
	body, mark := w.out[at:at+len(raw)], uint32(0)
	n, err := w.enc.encode(body, raw)
	if err != nil {
		return fmt.Errorf("shuffle: compress a block of %s: %w", w.name, err)
	}
	if n > 0 {
		body, mark = body[:n], compressedBit
	} else {
		copy(body, raw)
	}
	w.out = w.out[:at+len(body)]
	w.seal(len(raw), mark)
	return nil
}

// seal writes the head of the open block, whose stored bytes are in their place.
func (w *blockWriter) seal(raw int, mark uint32) {
	at := w.open
	w.open = -1
	w.rawBytes += int64(raw)
	b := w.out[at:]
	le.PutUint32(b, uint32(len(b)-blockHead))
	le.PutUint32(b[4:], uint32(raw)|mark)
	le.PutUint32(b[8:], blockCRC(w.identity, w.written+int64(at), b, b[blockHead:]))
	w.crc = crc32.Update(w.crc, castagnoli, b[:blockHead])
}

// flush puts everything but the block being filled into the file.
func (w *blockWriter) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	return writeError("write", w.name, around(beforeWrite, afterWrite, w.name, w.writeOut))
}

func (w *blockWriter) writeOut() error {
	if _, err := w.f.Write(w.out); err != nil {
		return err
	}
	w.written += int64(len(w.out))
	w.out = w.out[:0]
	return nil
}

// close ends the file with its footer and returns its length.
func (w *blockWriter) close() (int64, error) {
	n := w.offset()
	if err := w.append(appendDataFooter(nil, n, w.identity)); err != nil {
		return 0, err
	}
	return n + dataFooter, w.flush()
}
