package shuffle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/record"
)

// Reader hands out a range of subpartitions of a finished partition: buffers of
// whole blocks, then the last watermark, EndOfData and EndOfPartition. It is an
// exchange.Source. Close ends it; a gate or a server that has it does so.
type Reader struct {
	store *Store
	part  *partition
	r     Range

	// under pump.mu
	at                     place
	listed, running, again bool

	// of the goroutine whose turn it is
	spans  []span
	loaded bool
	unread int64 // raw bytes that must still be found

	mu     sync.Mutex
	ready  func()
	pool   *buffer.Local
	q      []buffer.Buffer // ring
	head   int
	n      int
	left   int64 // raw bytes that have not been handed out
	all    bool  // everything has been read
	events int   // handed out
	err    error
	closed bool
}

var _ exchange.Source = (*Reader)(nil)

// ends follow the data. Nobody changes an event that was handed out.
var ends = [2]record.Event{{Kind: record.EndOfData}, {Kind: record.EndOfPartition}}

// Reader opens a range of a partition. What it costs to do so is paid by the
// goroutine that reads.
func (s *Store) Reader(id PartitionID, r Range) (*Reader, error) {
	p, err := s.find(id, r)
	if err != nil {
		return nil, err
	}
	x := &Reader{store: s, part: p, r: r, q: make([]buffer.Buffer, s.c.ReadAhead), at: place{number: p.number}}
	for _, n := range p.Bytes[r.First : r.Last+1] {
		x.unread += n
	}
	x.left = x.unread
	if p.Watermark != record.MinWatermark {
		x.left += record.WatermarkSize
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, fmt.Errorf("shuffle: partition %s: %w", id, fs.ErrClosed)
	}
	s.mu.readers[x] = true
	return x, nil
}

// Attach implements exchange.Source, and begins to read ahead.
func (r *Reader) Attach(ready func()) {
	r.mu.Lock()
	r.ready = ready
	r.mu.Unlock()
	r.wake()
}

func (r *Reader) wake() { r.store.pump.add(r) }

// Poll implements exchange.Source.
func (r *Reader) Poll(allowData bool) (b buffer.Buffer, p exchange.Polled) {
	r.mu.Lock()
	switch {
	case r.err != nil:
		p.Err = r.err
	case r.closed:
	case r.n > 0:
		if allowData {
			b = r.popLocked()
			p.OK = true
		}
	case r.all && r.events < len(ends):
		b.Event = &ends[r.events]
		r.events++
		p.OK = true
	}
	p.More = r.err == nil && !r.closed && (r.n > 0 || r.all && r.events < len(ends))
	if p.Err == nil && !r.closed {
		block := int64(r.store.block())
		p.Backlog = max(int((r.left+block-1)/block), r.n)
	}
	pool := r.donePoolLocked()
	r.mu.Unlock()
	r.giveBack(pool)
	return b, p
}

func (r *Reader) popLocked() buffer.Buffer {
	b := r.q[r.head]
	r.q[r.head] = buffer.Buffer{}
	if r.head++; r.head == len(r.q) {
		r.head = 0
	}
	r.n--
	r.left -= int64(len(b.Data))
	return b
}

// donePoolLocked takes the reader's memory away when it needs none any more.
func (r *Reader) donePoolLocked() (pool *buffer.Local) {
	if r.closed || r.err != nil || r.all && r.n == 0 {
		pool, r.pool = r.pool, nil
	}
	return pool
}

// giveBack closes a pool and lets readers that wait for memory try again.
func (r *Reader) giveBack(pool *buffer.Local) {
	if pool == nil {
		return
	}
	pool.Close()
	s := r.store
	s.mu.Lock()
	waiting := s.mu.waiting
	s.mu.waiting = nil
	s.mu.Unlock()
	for _, w := range waiting {
		w.wake()
	}
}

// Close implements exchange.Source.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	q, pool := r.dropLocked()
	r.mu.Unlock()
	releaseAll(q)
	r.giveBack(pool)
	r.store.forgetReader(r)
}

// forgetReader makes the store hold nothing of a closed reader.
func (s *Store) forgetReader(r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.readers, r)
	s.mu.waiting = slices.DeleteFunc(s.mu.waiting, func(w *Reader) bool { return w == r })
}

// dropLocked takes what is queued, and the memory, out of a reader that has
// ended.
func (r *Reader) dropLocked() (q []buffer.Buffer, pool *buffer.Local) {
	for r.n > 0 {
		q = append(q, r.popLocked())
	}
	return q, r.donePoolLocked()
}

func releaseAll(q []buffer.Buffer) {
	for i := range q {
		q[i].Release()
	}
}

// fail makes Poll return an error.
func (r *Reader) fail(err error) {
	r.mu.Lock()
	if r.err != nil || r.closed {
		r.mu.Unlock()
		return
	}
	r.err = err
	q, pool := r.dropLocked()
	ready := r.ready
	r.mu.Unlock()
	releaseAll(q)
	r.giveBack(pool)
	if ready != nil {
		ready()
	}
}

// failReading classifies what went wrong with the files.
func (r *Reader) failReading(err error) {
	if shortage(err) {
		r.fail(fmt.Errorf("shuffle: partition %s: %w", r.part.ID, err))
		return
	}
	r.fail(lostError(r.part.ID, r.r, err))
}

// turn reads ahead as far as the reader's memory goes. It returns the place of
// the next piece. Only one goroutine is in it at a time.
func (r *Reader) turn(w *reading) place {
	pool := r.memory()
	if pool == nil {
		return r.place()
	}
	if !r.loaded {
		if err := r.load(); err != nil {
			r.failReading(err)
			return r.place()
		}
		r.loaded = true
	}
	for {
		if len(r.spans) == 0 && r.unread != 0 {
			r.failReading(fmt.Errorf("%d bytes of records are missing", r.unread))
			return r.place()
		}
		if len(r.spans) == 0 && r.part.Watermark == record.MinWatermark {
			r.push(buffer.Buffer{}, true)
			return r.place()
		}
		seg := pool.TryRequest() // its release wakes the reader
		if seg == nil {
			return r.place()
		}
		last := len(r.spans) == 0
		var data []byte
		var err error
		if last {
			data = seg.Mem()[:record.WatermarkSize]
			record.PutWatermark(data, r.part.Watermark)
		} else {
			data, err = r.next(w, seg.Mem())
		}
		if err != nil {
			seg.Release()
			r.failReading(err)
			return r.place()
		}
		if !r.push(buffer.Buffer{Seg: seg, Data: data}, last) || last {
			return r.place()
		}
	}
}

func (r *Reader) place() place {
	if len(r.spans) > 0 {
		return place{r.part.number, r.spans[0].from}
	}
	return place{number: r.part.number}
}

// memory makes the reader an active one; nil: it has ended, or waits until
// another one has.
func (r *Reader) memory() *buffer.Local {
	for waits := false; ; waits = true {
		r.mu.Lock()
		if r.closed || r.err != nil || r.all {
			closed := r.closed
			r.mu.Unlock()
			if closed && waits {
				r.store.forgetReader(r) // it was closed before it was among those that wait
			}
			return nil
		}
		if r.pool == nil {
			pool, err := r.store.memory.NewLocal("blocking partition "+r.part.ID.String(), r.store.c.ReadAhead, r.store.c.ReadAhead, 0, r.wake)
			if err == nil {
				r.pool = pool
			}
		}
		pool := r.pool
		r.mu.Unlock()
		if pool != nil || waits {
			return pool
		}
		// Whoever gives memory back from now on finds the reader; who did so before
		// may have missed it, so try again.
		s := r.store
		s.mu.Lock()
		s.mu.waiting = append(s.mu.waiting, r)
		s.mu.Unlock()
	}
}

// load finds the pieces of the file that the reader reads.
func (r *Reader) load() error {
	f, err := r.store.root.Open(r.part.ID.file(indexSuffix))
	if err != nil {
		return err
	}
	x, err := openIndex(f)
	if err != nil {
		return err
	}
	defer x.close()
	if x.identity != r.part.identity || x.crc != r.part.Checksum {
		return errors.New("the index has changed")
	}
	r.spans, err = x.spans(r.r)
	return err
}

// next fills mem with the raw bytes of as many whole blocks as fit.
func (r *Reader) next(w *reading, mem []byte) (data []byte, err error) {
	s := &r.spans[0]
	h := &r.part.head
	in := mem
	if h.codec != None {
		in = w.stored
	}
	if in, err = r.read(in, s); err != nil {
		return nil, err
	}
	from, out := 0, 0 // in the stored bytes, in mem
	start := 0
	if h.codec == None {
		out, start = blockHead, blockHead // the first block is in its place
	}
	for from < len(in) {
		b, ok, err := readBlock(h, r.part.identity, s.from+int64(from), in[from:])
		if err != nil {
			return nil, err
		}
		if !ok || out+b.raw > len(mem) {
			break
		}
		stored := in[from+blockHead : from+blockHead+b.stored]
		if b.compressed {
			if err := w.dec.decode(h.codec, mem[out:out+b.raw], stored); err != nil {
				return nil, fmt.Errorf("damaged block at %d: %w", s.from+int64(from), err)
			}
		} else if out != from+blockHead || h.codec != None {
			copy(mem[out:], stored)
		}
		out += b.raw
		from += blockHead + b.stored
	}
	if from == 0 {
		return nil, fmt.Errorf("torn block at %d", s.from)
	}
	r.unread -= int64(out - start)
	if s.from += int64(from); s.from == s.to {
		r.spans = r.spans[1:]
	}
	return mem[start:out], nil
}

// read reads the next bytes of a span from the partition's shared file.
func (r *Reader) read(b []byte, s *span) ([]byte, error) {
	b = b[:min(int64(len(b)), s.to-s.from)]
	if err := beforeRead.Hit(r.part.name); err != nil {
		return nil, err
	}
	f, err := r.store.files.acquire(r.part)
	if err != nil {
		return nil, err
	}
	defer r.store.files.done(f)
	if _, err := f.f.ReadAt(b, s.from); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("torn data file: it ends before %d", s.to)
		}
		return nil, err
	}
	return b, nil
}

// push queues what was read, if that is anything, and tells the consumer.
// False: the reader has ended.
func (r *Reader) push(b buffer.Buffer, last bool) bool {
	r.mu.Lock()
	if r.closed || r.err != nil {
		r.mu.Unlock()
		b.Release()
		return false
	}
	idle := r.n == 0
	if b.Seg != nil {
		i := r.head + r.n
		if i >= len(r.q) {
			i -= len(r.q)
		}
		r.q[i] = b
		r.n++
	}
	r.all = r.all || last
	pool := r.donePoolLocked()
	ready := r.ready
	r.mu.Unlock()
	r.giveBack(pool)
	if idle && ready != nil {
		ready()
	}
	return true
}
