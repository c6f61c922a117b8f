package inflight

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/snapshot"
)

// Recovered is the queue between the goroutine that reads and filters a gate's
// in-flight data and the task that processes it. Items come in order of
// arrival, which keeps the order within each channel. Bytes are in network
// memory while the pool has some to spare and in a spill file beyond that.
type Recovered struct {
	pool *buffer.Local
	dir  string
	wake func()

	mu       sync.Mutex
	items    []item
	base     int // sequence number of items[0]
	head     int // sequence number of the next item for the task
	open     *buffer.Segment
	fill     int   // used bytes of open
	left     []int // items per channel that the task has not taken
	finished bool
	failure  error
	spill    *spill
	spilled  int64
	holds    int           // snapshots that still need items from the front
	done     chan struct{} // closed when finished
	closed   bool
	scratch  []byte
}

// item is a run of whole elements, or pieces of one, of a channel.
type item struct {
	ch     int32
	length int32
	seg    *buffer.Segment // nil: spilled
	offset int64           // in seg or in the spill file
	crc    uint32          // of a spilled item
}

// NewRecovered makes the queue of a gate with a number of channels. pool is
// shared by all gates of the worker; dir is where a spill file may go.
func NewRecovered(channels int, pool *buffer.Local, dir string, wake func()) *Recovered {
	return &Recovered{pool: pool, dir: dir, wake: wake, left: make([]int, channels), done: make(chan struct{})}
}

// Put appends bytes of a channel. For the producer.
func (r *Recovered) Put(ch int, b []byte) error {
	r.mu.Lock()
	idle := r.head == r.base+len(r.items)
	err := r.put(ch, b)
	r.mu.Unlock()
	if idle {
		r.wake()
	}
	return err
}

// put: REQUIRES r.mu.
func (r *Recovered) put(ch int, b []byte) error {
	for len(b) > 0 {
		if r.closed {
			return context.Canceled
		}
		if r.open != nil && r.fill == len(r.open.Mem()) {
			r.seal()
		}
		if r.open == nil {
			if r.open = r.pool.Poll(); r.open == nil {
				if err := r.putSpilled(ch, b); err != nil {
					return err
				}
				break
			}
			r.fill = 0
		}
		n := copy(r.open.Mem()[r.fill:], b)
		if last := r.last(); last != nil && last.seg == r.open && int(last.ch) == ch && last.offset+int64(last.length) == int64(r.fill) {
			last.length += int32(n)
		} else {
			r.open.Retain()
			r.append(item{ch: int32(ch), length: int32(n), seg: r.open, offset: int64(r.fill)})
		}
		r.fill += n
		b = b[n:]
	}
	return nil
}

// seal gives up the producer's reference to the segment being filled.
func (r *Recovered) seal() {
	if r.open != nil {
		r.open.Release()
		r.open = nil
	}
}

func (r *Recovered) append(it item) {
	r.items = append(r.items, it)
	r.left[it.ch]++
}

// last is the newest item if the task has not taken it.
func (r *Recovered) last() *item {
	if n := len(r.items); n > 0 && r.head < r.base+n {
		return &r.items[n-1]
	}
	return nil
}

func (r *Recovered) putSpilled(ch int, b []byte) error {
	if r.spill == nil {
		s, err := newSpill(r.dir)
		if err != nil {
			return err
		}
		r.spill = s
	}
	if last := r.last(); last != nil && last.seg == nil && int(last.ch) == ch && int(last.length)+len(b) <= maxSpillItem && r.spill.end == last.offset+int64(last.length) {
		last.length += int32(len(b))
		last.crc = update(last.crc, b)
	} else {
		r.append(item{ch: int32(ch), length: int32(len(b)), offset: r.spill.end, crc: snapshot.Checksum(b)})
	}
	r.spilled += int64(len(b))
	return r.spill.write(b)
}

// Finish tells that everything was put, or that it could not be. For the
// producer.
func (r *Recovered) Finish(err error) {
	r.mu.Lock()
	if !r.finished {
		r.seal()
		r.finished, r.failure = true, err
		close(r.done)
	}
	r.mu.Unlock()
	r.wake()
}

// Finished tells whether the producer is done.
func (r *Recovered) Finished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished
}

// Spilled is the number of bytes that went to disk.
func (r *Recovered) Spilled() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spilled
}

// Drained tells that the producer is done and the task has taken everything.
func (r *Recovered) Drained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished && r.head == r.base+len(r.items)
}

// Next hands out the next item; the caller owns a reference if b has a
// segment, else b is valid until the next call. ok is false when there is none
// now. For the task.
func (r *Recovered) Next() (ch int, b buffer.Buffer, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return 0, b, false, r.failure
	}
	if r.head == r.base+len(r.items) {
		return 0, b, false, nil
	}
	it := &r.items[r.head-r.base]
	if it.seg != nil {
		it.seg.Retain()
		b = buffer.Buffer{Seg: it.seg, Data: it.seg.Mem()[it.offset : it.offset+int64(it.length)]}
	} else {
		if cap(r.scratch) < int(it.length) {
			r.scratch = make([]byte, it.length)
		}
		b = buffer.Buffer{Data: r.scratch[:it.length]}
		if err := r.spill.read(b.Data, it); err != nil {
			return 0, b, false, err
		}
	}
	ch = int(it.ch)
	r.left[ch]--
	r.head++
	r.trim()
	return ch, b, true, nil
}

// trim releases items that nobody needs any more.
func (r *Recovered) trim() {
	if r.holds > 0 {
		return
	}
	n := r.head - r.base
	for i := range r.items[:n] {
		if s := r.items[i].seg; s != nil {
			s.Release()
		}
		r.items[i] = item{}
	}
	r.items = r.items[n:]
	r.base = r.head
	if len(r.items) == 0 {
		r.items = nil
	}
}

// Left tells whether a channel may still get recovered data.
func (r *Recovered) Left(ch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.finished || r.left[ch] > 0
}

// Rest freezes what the task has not taken at this moment, including what is
// still to be read. For the task, when a checkpoint starts.
func (r *Recovered) Rest() *Rest {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds++
	r.seal() // later items must not grow what was taken meanwhile
	return &Rest{r: r, from: r.head}
}

// Close drops everything. A Rest that is still open keeps what it needs.
func (r *Recovered) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.seal()
	if !r.finished {
		r.finished, r.failure = true, context.Canceled
		close(r.done)
	}
	r.drop()
}

// drop frees memory and disk. REQUIRES r.mu.
func (r *Recovered) drop() {
	if !r.closed || r.holds > 0 {
		return
	}
	for i := range r.items {
		if s := r.items[i].seg; s != nil {
			s.Release()
		}
	}
	r.items, r.scratch = nil, nil
	r.head, r.base = 0, 0
	if r.spill != nil {
		r.spill.close()
		r.spill = nil
	}
}

// Rest is the part of a queue that belongs to a checkpoint.
type Rest struct {
	r    *Recovered
	from int
	once sync.Once
}

// Each waits until everything has been read, then calls fn for all bytes of
// the rest, in order within each channel. The bytes are valid during the call.
func (s *Rest) Each(ctx context.Context, fn func(ch int, b []byte) error) error {
	select {
	case <-s.r.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r := s.r
	r.mu.Lock()
	err := r.failure
	var items []item
	if err == nil {
		items = append(items, r.items[s.from-r.base:]...)
	}
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("rest of recovered data: %w", err)
	}
	var scratch []byte
	for i := range items {
		it := &items[i]
		var b []byte
		if it.seg != nil {
			b = it.seg.Mem()[it.offset : it.offset+int64(it.length)]
		} else {
			if cap(scratch) < int(it.length) {
				scratch = make([]byte, it.length)
			}
			b = scratch[:it.length]
			r.mu.Lock()
			err := r.spill.read(b, it)
			r.mu.Unlock()
			if err != nil {
				return err
			}
		}
		if err := fn(int(it.ch), b); err != nil {
			return err
		}
	}
	return nil
}

// Close lets the queue free what only the rest needed. Idempotent.
func (s *Rest) Close() {
	s.once.Do(func() {
		r := s.r
		r.mu.Lock()
		defer r.mu.Unlock()
		r.holds--
		if !r.closed {
			r.trim()
		}
		r.drop()
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	maxSpillItem = 32 << 10
	spillBuffer  = 256 << 10
)

// spill is an unnamed file that is written at its end and read anywhere.
type spill struct {
	f       *os.File
	flushed int64
	end     int64
	tail    []byte // bytes from flushed to end
}

func newSpill(dir string) (*spill, error) {
	f, err := os.CreateTemp(dir, "spill-*")
	if err != nil {
		return nil, fmt.Errorf("spill of recovered data: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("spill of recovered data: %w", err)
	}
	return &spill{f: f}, nil
}

func (s *spill) write(b []byte) error {
	s.tail = append(s.tail, b...)
	s.end += int64(len(b))
	if len(s.tail) < spillBuffer {
		return nil
	}
	if _, err := s.f.WriteAt(s.tail, s.flushed); err != nil {
		return fmt.Errorf("spill of recovered data: %w", err)
	}
	s.flushed = s.end
	s.tail = s.tail[:0]
	return nil
}

func (s *spill) read(b []byte, it *item) error {
	n := 0
	if it.offset < s.flushed {
		n = int(min(int64(len(b)), s.flushed-it.offset))
		if _, err := s.f.ReadAt(b[:n], it.offset); err != nil {
			return fmt.Errorf("spill of recovered data: %w", err)
		}
	}
	if n < len(b) {
		copy(b[n:], s.tail[it.offset+int64(n)-s.flushed:])
	}
	if crc := snapshot.Checksum(b); crc != it.crc {
		return fmt.Errorf("spill of recovered data: %d bytes at %d are damaged on disk", it.length, it.offset)
	}
	return nil
}

func (s *spill) close() {
	s.f.Close()
	s.tail = nil
}

func update(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }
