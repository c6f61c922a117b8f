package inflight

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
)

// extentSize is the size up to which pieces of a channel that follow each
// other are stored as one.
const extentSize = 32 << 10

// Writer writes captures of all subtasks of a worker. Captures that wait for
// the same checkpoint share a file, up to a limit: nobody waits for a subtask
// that is not ready, and none can damage another's file by failing.
type Writer struct {
	worker  string
	perFile int
	seq     atomic.Int64

	mu      sync.Mutex
	pending []*job
	closed  bool
	wake    *sync.Cond
	done    sync.WaitGroup
}

type job struct {
	ctx     context.Context
	store   storage.Store
	folder  string
	capture *Capture
	finish  func(*Stored, error)
}

// NewWriter starts a writer with some goroutines. Close ends them.
func NewWriter(worker string, perFile, goroutines int) *Writer {
	w := &Writer{worker: worker, perFile: max(perFile, 1)}
	w.wake = sync.NewCond(&w.mu)
	for range goroutines {
		w.done.Go(w.loop)
	}
	return w
}

// ErrClosed is the error of captures that a closed writer did not write.
var ErrClosed = errors.New("writer of in-flight data is closed")

// Submit takes over a capture and calls finish, once, from another goroutine
// when it is durable or could not be written. It does not block.
func (w *Writer) Submit(ctx context.Context, s storage.Store, folder string, c *Capture, finish func(*Stored, error)) {
	j := &job{ctx: ctx, store: s, folder: folder, capture: c, finish: finish}
	if len(c.rests) == 0 {
		w.enqueue(j)
		return
	}
	// What is still being read is waited for here, so that it holds up nobody
	// else's file.
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		w.refuse(j)
		return
	}
	w.done.Add(1)
	w.mu.Unlock()
	go func() {
		defer w.done.Done()
		for _, r := range c.rests {
			select {
			case <-r.rest.r.done:
			case <-ctx.Done():
			}
		}
		w.enqueue(j)
	}()
}

func (w *Writer) enqueue(j *job) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		w.refuse(j)
		return
	}
	w.pending = append(w.pending, j)
	w.mu.Unlock()
	w.wake.Signal()
	// What an aborted checkpoint holds must not wait for its turn: while one
	// attempt follows the other, nobody would get a buffer any more.
	context.AfterFunc(j.ctx, func() { w.forget(j) })
}

// forget drops a capture that has not been begun.
func (w *Writer) forget(j *job) {
	w.mu.Lock()
	i := slices.Index(w.pending, j)
	if i < 0 {
		w.mu.Unlock()
		return
	}
	w.pending = slices.Delete(w.pending, i, i+1)
	w.mu.Unlock()
	j.capture.Release()
	j.finish(nil, context.Cause(j.ctx))
}

func (w *Writer) refuse(j *job) {
	j.capture.Release()
	j.finish(nil, ErrClosed)
}

func (w *Writer) loop() {
	for {
		w.mu.Lock()
		for len(w.pending) == 0 && !w.closed {
			w.wake.Wait()
		}
		if w.closed {
			rest := w.pending
			w.pending = nil
			w.mu.Unlock()
			for _, j := range rest {
				w.refuse(j)
			}
			return
		}
		n := 1
		for n < len(w.pending) && n < w.perFile && w.pending[n].folder == w.pending[0].folder && w.pending[n].store == w.pending[0].store {
			n++
		}
		jobs := append([]*job(nil), w.pending[:n]...)
		w.pending = append(w.pending[:0], w.pending[n:]...)
		if len(w.pending) > 0 {
			w.wake.Signal()
		}
		w.mu.Unlock()
		w.write(jobs)
	}
}

// write stores some captures in one file. An error of the file is everybody's;
// one that concerns a single capture is its own.
func (w *Writer) write(jobs []*job) {
	f := &file{name: fmt.Sprintf("inflight-%s-%d", w.worker, w.seq.Add(1))}
	stored := make([]*Stored, len(jobs))
	errs := make([]error, len(jobs))
	for i, j := range jobs {
		switch {
		case j.ctx.Err() != nil:
			// Aborted meanwhile: its buffers are needed elsewhere, now.
			errs[i] = context.Cause(j.ctx)
		case f.err == nil:
			stored[i], errs[i] = f.add(j)
		}
		j.capture.Release()
	}
	f.commit()
	for i, j := range jobs {
		switch {
		case errs[i] != nil:
			j.finish(nil, errs[i])
		case f.err != nil:
			j.finish(nil, fmt.Errorf("in-flight data: %w", f.err))
		default:
			j.finish(stored[i], nil)
		}
	}
}

// file is one file being written.
type file struct {
	name string
	w    storage.Writer
	buf  []byte
	pos  int64
	err  error
}

func (f *file) open(j *job) {
	if f.w != nil || f.err != nil {
		return
	}
	if f.w, f.err = j.store.Create(j.folder + "/" + f.name); f.err != nil {
		return
	}
	f.buf = binary.LittleEndian.AppendUint32(f.buf, fileMagic)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, fileVersion)
	f.pos = fileHeader
}

func (f *file) write(b []byte) {
	f.pos += int64(len(b))
	if len(f.buf)+len(b) > 256<<10 {
		f.flush()
	}
	if len(b) >= 64<<10 && f.err == nil {
		_, f.err = f.w.Write(b)
		return
	}
	f.buf = append(f.buf, b...)
}

func (f *file) flush() {
	if f.err == nil && len(f.buf) > 0 {
		_, f.err = f.w.Write(f.buf)
	}
	f.buf = f.buf[:0]
}

func (f *file) commit() {
	if f.w == nil {
		return
	}
	f.flush()
	if f.err != nil {
		f.w.Abort()
		return
	}
	f.err = f.w.Commit()
}

// add writes one capture. A channel's pieces are in order in its list of
// extents, wherever they are in the file: what was partly read, what was
// recovered and not processed, what was queued and came until the barrier.
func (f *file) add(j *job) (*Stored, error) {
	c := j.capture
	inputs := newChannels(len(c.Inputs))
	for _, x := range c.Inputs {
		f.extent(j, inputs.at(x.Gate, x.Channel), x.Leftover)
	}
	for _, g := range c.rests {
		if err := g.rest.Each(j.ctx, func(ch int, b []byte) error {
			f.extent(j, inputs.at(g.gate, ch), b)
			return f.err
		}); err != nil {
			return nil, err
		}
	}
	for _, x := range c.Inputs {
		for i := range x.Buffers {
			f.extent(j, inputs.at(x.Gate, x.Channel), x.Buffers[i].Data)
		}
	}
	outputs := newChannels(len(c.Outputs))
	for _, x := range c.Outputs {
		for i := range x.Buffers {
			f.extent(j, outputs.at(x.Gate, x.Channel), x.Buffers[i].Data)
		}
	}
	s := &Stored{}
	s.Inputs, s.Outputs = inputs.states(&s.Bytes), outputs.states(&s.Bytes)
	if s.Bytes > 0 {
		s.Files = []string{f.name}
	}
	return s, nil
}

// channels collects the extents of channels in the order of first use.
type channels struct {
	list  []snapshot.ChannelState
	index map[[2]int]int
	last  int
}

func newChannels(n int) *channels {
	return &channels{list: make([]snapshot.ChannelState, 0, n), index: make(map[[2]int]int, n)}
}

func (c *channels) at(gate, ch int) *snapshot.ChannelState {
	if c.last < len(c.list) && c.list[c.last].Gate == gate && c.list[c.last].Channel == ch {
		return &c.list[c.last]
	}
	k := [2]int{gate, ch}
	i, ok := c.index[k]
	if !ok {
		i = len(c.list)
		c.list = append(c.list, snapshot.ChannelState{Gate: gate, Channel: ch})
		c.index[k] = i
	}
	c.last = i
	return &c.list[i]
}

func (c *channels) states(bytes *int64) (list []snapshot.ChannelState) {
	for _, s := range c.list {
		if s.Bytes > 0 {
			list = append(list, s)
			*bytes += s.Bytes
		}
	}
	return list
}

func (f *file) extent(j *job, c *snapshot.ChannelState, b []byte) {
	for len(b) > 0 {
		f.open(j)
		piece := b[:min(len(b), extentSize)]
		b = b[len(piece):]
		if n := len(c.Extents); n > 0 {
			if last := &c.Extents[n-1]; int(last.Length)+len(piece) <= extentSize && last.Offset+int64(last.Length) == f.pos {
				last.CRC = update(last.CRC, piece)
				last.Length += int32(len(piece))
				f.write(piece)
				c.Bytes += int64(len(piece))
				continue
			}
		}
		c.Extents = append(c.Extents, snapshot.Extent{Offset: f.pos, Length: int32(len(piece)), CRC: snapshot.Checksum(piece)})
		f.write(piece)
		c.Bytes += int64(len(piece))
	}
}

// Close refuses what is not written yet and waits for the goroutines.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake.Broadcast()
	w.done.Wait()
}
