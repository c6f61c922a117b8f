package exchange

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// ErrStopped is returned by calls that were waiting when the task was stopped.
var ErrStopped = errors.New("task is stopped")

// PartitionConfig describes one result partition.
type PartitionConfig struct {
	Key           string // unique on the worker: execution, edge and subtask
	Subpartitions int
	MinBuffers    int
	MaxBuffers    int
	MaxPerSub     int
	Overdraft     int
	Wake          func()          // tells the task that the partition may be available again
	Stop          <-chan struct{} // closed when the task is cancelled
}

// Partition is the output of one subtask on one edge. All methods but the
// queue's are for the task's goroutine.
type Partition struct {
	key       string
	subs      []Subpartition
	cur       []writer
	pool      *buffer.Local
	size      int
	maxPerSub int
	spare     *buffer.Segment
	scratch   []byte
	mark      int64 // newest watermark
	status    byte  // newest watermark status: statusActive or statusIdle
	fullSubs  atomic.Int32
	wake      func()
	freed     chan struct{} // cap 1: a segment may be available
	stop      <-chan struct{}

	queued struct { // barriers that may still time out; consumers count them down
		sync.Mutex
		checkpoint int64
		barriers   int
		onLeft     func(checkpoint int64)
	}
}

// writer fills the segment of one subpartition.
type writer struct {
	seg    *buffer.Segment
	mem    []byte
	pos    int
	mark   int64 // watermark and status that are in the stream
	status byte
}

const (
	statusActive byte = iota
	statusIdle
)

// NewPartition makes a partition with a pool of its own.
func NewPartition(g *buffer.Global, c PartitionConfig) (*Partition, error) {
	p := &Partition{
		key: c.Key, subs: make([]Subpartition, c.Subpartitions), cur: make([]writer, c.Subpartitions),
		size: g.SegmentSize(), maxPerSub: c.MaxPerSub, wake: c.Wake, freed: make(chan struct{}, 1), stop: c.Stop,
	}
	p.mark = record.MinWatermark
	for i := range p.subs {
		p.subs[i].part, p.subs[i].index = p, i
		p.cur[i].mark = p.mark
	}
	var err error
	p.pool, err = g.NewLocal("result partition "+c.Key, c.MinBuffers, c.MaxBuffers, c.Overdraft, p.segmentFreed)
	return p, err
}

func (p *Partition) segmentFreed() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
	p.wake()
}

// Key names the partition on its worker.
func (p *Partition) Key() string { return p.key }

// Subpartitions is the number of consuming subtasks.
func (p *Partition) Subpartitions() int { return len(p.subs) }

// Available tells whether a record can be written without exceeding what the
// partition may hold. After false the task is woken when that changes.
func (p *Partition) Available() bool {
	if p.fullSubs.Load() > 0 {
		return false
	}
	if p.spare == nil {
		p.spare = p.pool.TryRequest()
	}
	return p.spare != nil
}

// Write appends a record to one subpartition.
func (p *Partition) Write(sub int, r *record.Record) error {
	w := &p.cur[sub]
	n := record.HeaderSize + len(r.Data)
	if w.mark != p.mark || w.status != p.status {
		if err := p.writeMarks(sub); err != nil {
			return err
		}
	}
	if w.pos+n <= len(w.mem) {
		r.Put(w.mem[w.pos:])
		w.pos += n
		return nil
	}
	if cap(p.scratch) < n {
		p.scratch = make([]byte, max(n, 1024))
	}
	b := p.scratch[:n]
	r.Put(b)
	err := p.writeBytes(sub, b)
	if cap(p.scratch) > 1<<20 {
		p.scratch = nil
	}
	return err
}

// Watermark notes a watermark for all subpartitions. It goes into a stream
// ahead of the next record, or with the next Flush where the consumer has run
// dry: a watermark for each of many subpartitions would need a segment for
// each, and waiting for them would hold up barriers.
func (p *Partition) Watermark(t int64) { p.mark = max(p.mark, t) }

// Status notes a watermark status in the same way.
func (p *Partition) Status(active bool) {
	p.status = statusIdle
	if active {
		p.status = statusActive
	}
}

// writeMarks puts what was noted into a stream.
func (p *Partition) writeMarks(sub int) error {
	w := &p.cur[sub]
	var b [record.WatermarkSize + record.StatusSize]byte
	n := 0
	if w.mark != p.mark {
		record.PutWatermark(b[:], p.mark)
		n = record.WatermarkSize
	}
	if w.status != p.status {
		record.PutStatus(b[n:n+record.StatusSize], p.status == statusActive)
		n += record.StatusSize
	}
	w.mark, w.status = p.mark, p.status
	return p.writeBytes(sub, b[:n])
}

// writeBytes appends serialised elements to one subpartition.
func (p *Partition) writeBytes(sub int, b []byte) error {
	w := &p.cur[sub]
	for len(b) > 0 {
		if w.pos == len(w.mem) {
			p.finish(sub)
			seg, err := p.segment()
			if err != nil {
				return err
			}
			w.seg, w.mem, w.pos = seg, seg.Mem(), 0
		}
		n := copy(w.mem[w.pos:], b)
		w.pos += n
		b = b[n:]
	}
	return nil
}

// segment returns a free one: the spare, one of the pool, one of the
// overdraft, or waits.
func (p *Partition) segment() (*buffer.Segment, error) {
	if s := p.spare; s != nil {
		p.spare = nil
		return s, nil
	}
	if s := p.pool.TryRequest(); s != nil {
		return s, nil
	}
	if s := p.pool.RequestOverdraft(); s != nil {
		return s, nil
	}
	p.finishAll() // what nobody can see, nobody can consume
	for {
		if s := p.pool.RequestOverdraft(); s != nil {
			return s, nil
		}
		select {
		case <-p.freed:
		case <-p.stop:
			return nil, ErrStopped
		}
	}
}

// finish queues the partly filled segment of a subpartition.
func (p *Partition) finish(sub int) {
	w := &p.cur[sub]
	if w.seg == nil {
		return
	}
	b := buffer.Buffer{Seg: w.seg, Data: w.mem[:w.pos]}
	w.seg, w.mem, w.pos = nil, nil, 0
	if len(b.Data) == 0 {
		b.Release()
		return
	}
	p.subs[sub].add(b)
}

func (p *Partition) finishAll() {
	for i := range p.cur {
		if p.cur[i].seg != nil {
			p.finish(i)
		}
	}
}

// Flush makes partly filled segments visible where the consumer has run dry.
// Elsewhere they go on filling: the consumer has work to do anyway.
func (p *Partition) Flush() {
	for i := range p.cur {
		w := &p.cur[i]
		noted := w.mark != p.mark || w.status != p.status
		if w.pos == 0 && !noted || !p.subs[i].idle() {
			continue
		}
		if noted && w.pos+record.WatermarkSize+record.StatusSize > len(w.mem) {
			p.finish(i)
			seg := p.pool.Poll()
			if seg == nil {
				continue
			}
			w.seg, w.mem, w.pos = seg, seg.Mem(), 0
		}
		if noted {
			p.writeMarks(i) // it has room
		}
		p.finish(i)
	}
}

// AddRestored queues a segment of restored output behind what is there. The
// reference passes to the subpartition.
func (p *Partition) AddRestored(sub int, b buffer.Buffer) {
	p.finish(sub)
	p.subs[sub].add(b)
}

// RestoreSegment returns a segment of the partition's pool for restored
// output, waiting for one if it must.
func (p *Partition) RestoreSegment() (*buffer.Segment, error) { return p.segment() }

// Emit queues an ordinary event for one subpartition, behind its data.
func (p *Partition) Emit(sub int, ev *record.Event) {
	p.finish(sub)
	p.subs[sub].add(buffer.Buffer{Event: ev})
}

// EmitAll queues an ordinary event for all subpartitions.
func (p *Partition) EmitAll(ev record.Event) {
	for i := range p.subs {
		p.Emit(i, &ev)
	}
}

// Barrier sends a barrier to all subpartitions. With an unaligned one the data
// that it overtakes is returned by subpartition, each buffer with a reference.
// With an aligned one with time-out, onLeft is called, from any goroutine,
// when the last of them has left the queues without having been timed out.
func (p *Partition) Barrier(ev record.Event, onLeft func(checkpoint int64)) (overtaken [][]buffer.Buffer) {
	switch ev.Barrier {
	case record.Unaligned:
		overtaken = make([][]buffer.Buffer, len(p.subs))
		for i := range p.subs {
			p.finish(i)
			overtaken[i] = p.subs[i].addPriority(&ev, true)
		}
		return overtaken
	case record.AlignedWithTimeout:
		p.queued.Lock()
		p.queued.checkpoint, p.queued.barriers, p.queued.onLeft = ev.Checkpoint, len(p.subs), onLeft
		p.queued.Unlock()
	}
	p.EmitAll(ev)
	return nil
}

// barrierLeft counts barriers with time-out that left in order.
func (p *Partition) barrierLeft(checkpoint int64) {
	var onLeft func(int64)
	p.queued.Lock()
	if p.queued.checkpoint == checkpoint {
		if p.queued.barriers--; p.queued.barriers == 0 {
			onLeft = p.queued.onLeft
		}
	}
	p.queued.Unlock()
	if onLeft != nil {
		onLeft(checkpoint)
	}
}

// TimeOutBarrier makes the barriers of a checkpoint that are still queued
// overtake, and returns the data that they pass by subpartition. The partition
// then reports no barrier of this checkpoint as having left.
func (p *Partition) TimeOutBarrier(checkpoint int64) [][]buffer.Buffer {
	p.queued.Lock()
	mine := p.queued.checkpoint == checkpoint
	if mine {
		p.queued.checkpoint = 0
	}
	p.queued.Unlock()
	if !mine {
		return nil
	}
	overtaken := make([][]buffer.Buffer, len(p.subs))
	for i := range p.subs {
		overtaken[i], _ = p.subs[i].timeOut(checkpoint)
	}
	return overtaken
}

// QueuedBytes is the number of record bytes that wait in the queues, partly
// filled segments not counted. Safe for concurrent use.
func (p *Partition) QueuedBytes() (n int64) {
	for i := range p.subs {
		n += p.subs[i].queuedBytes()
	}
	return n
}

// Consumed tells whether all subpartitions are empty. Safe for concurrent use.
func (p *Partition) Consumed() bool {
	for i := range p.subs {
		s := &p.subs[i]
		s.mu.Lock()
		n := s.q.n
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

// Close drops everything that has not been consumed.
func (p *Partition) Close() {
	for i := range p.cur {
		if s := p.cur[i].seg; s != nil {
			s.Release()
		}
		p.cur[i].seg = nil
	}
	if p.spare != nil {
		p.spare.Release()
		p.spare = nil
	}
	for i := range p.subs {
		p.subs[i].release()
	}
	p.pool.Close()
}

func (p *Partition) sub(i int) (*Subpartition, error) {
	if i < 0 || i >= len(p.subs) {
		return nil, fmt.Errorf("partition %s has no subpartition %d", p.key, i)
	}
	return &p.subs[i], nil
}
