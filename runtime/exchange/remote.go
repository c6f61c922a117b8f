package exchange

import (
	"fmt"
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// remoteChannel receives over the connection to another worker.
//
// Places for data: an exclusive place is one of the channel's guaranteed
// segments, taken from the gate's pool when data arrives, which cannot fail; a floating place is
// a segment held in advance. credit counts places announced to the sender and
// not used yet, of both kinds; len(floating) of them are floating.
type remoteChannel struct {
	gate   *Gate
	index  int
	client *Client
	key    string // of the partition
	id     uint32 // names the channel on the connection

	mu          sync.Mutex
	q           deque
	arrived     uint64 // data buffers so far
	recovering  bool   // no credit is announced
	blocked     bool   // the sender waits to be resumed: none either
	closed      bool
	exclusive   int // exclusive places neither in use nor announced
	inUse       int // exclusive segments in the queue, in processing or captured
	credit      int
	unannounced int
	floating    []*buffer.Segment
	demand      int  // backlog that the sender told
	announcing  bool // in the client's list

	lastBarrier int64
	barrierCut  uint64 // data buffers that had arrived before that barrier
	capturing   int64
	captured    []buffer.Buffer
}

// AddRemote connects a channel to a subpartition of another worker.
func (g *Gate) AddRemote(ch int, c *Client, key string, subpartition int) error {
	g.mu.Lock()
	recovering := g.mu.flags[ch]&flagRecovering != 0
	g.mu.Unlock()
	r := &remoteChannel{gate: g, index: ch, client: c, key: key, exclusive: g.exclusive, recovering: recovering}
	g.set(ch, r)
	credit := 0
	if !recovering {
		credit = g.exclusive
		r.exclusive, r.credit = 0, credit
	}
	return c.request(r, key, subpartition, credit)
}

// take returns a segment for arriving data of the sender that used a credit.
func (c *remoteChannel) take() (*buffer.Segment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil
	}
	if c.credit == 0 {
		return nil, fmt.Errorf("data without credit on channel %d", c.index)
	}
	c.credit--
	if c.credit >= len(c.floating) {
		s := c.gate.pool.Poll()
		if s == nil {
			return nil, fmt.Errorf("guaranteed buffer of channel %d is missing", c.index)
		}
		c.inUse++
		s.SetRecycler(c)
		return s, nil
	}
	s := c.floating[len(c.floating)-1]
	c.floating = c.floating[:len(c.floating)-1]
	return s, nil
}

// received queues what the connection read. Ownership passes.
func (c *remoteChannel) received(b buffer.Buffer, backlog int) {
	var flag uint8
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		b.Release()
		return
	}
	switch ev := b.Event; {
	case ev == nil:
		c.arrived++
		c.q.push(b)
		if c.capturing > 0 {
			b.Retain()
			c.captured = append(c.captured, b)
		}
		if c.q.n-c.q.prio == 1 {
			flag = flagReady
		}
	case ev.Priority():
		c.sawBarrier(ev, c.arrived)
		c.q.pushPriority(b)
		flag = flagPrio
	default:
		c.sawBarrier(ev, c.arrived)
		c.blocked = c.blocked || ev.Blocks()
		c.q.push(b)
		if c.q.n-c.q.prio == 1 {
			flag = flagReady
		}
		if ev.Kind == record.Barrier && ev.Barrier == record.AlignedWithTimeout {
			note := *ev
			note.Kind, note.Sequence = record.Announcement, uint32(c.q.data)
			c.q.pushPriority(buffer.Buffer{Event: &note})
			flag |= flagPrio
		}
	}
	c.mu.Unlock()
	if flag&flagReady != 0 {
		c.gate.notify(c.index, flagReady)
	}
	if flag&flagPrio != 0 {
		c.gate.notify(c.index, flagPrio)
	}
	c.sawBacklog(backlog) // of events, too: the sender counts it as told
}

// sawBarrier notes the cut between data of a checkpoint and data after it.
// REQUIRES c.mu.
func (c *remoteChannel) sawBarrier(ev *record.Event, cut uint64) {
	if ev.Kind != record.Barrier || ev.Checkpoint <= c.lastBarrier {
		return
	}
	c.lastBarrier, c.barrierCut = ev.Checkpoint, cut
	if c.capturing > 0 && ev.Checkpoint >= c.capturing {
		c.capturing = 0
	}
}

// sawBacklog asks for floating segments when the sender has more to send than
// the channel has places.
func (c *remoteChannel) sawBacklog(backlog int) {
	c.mu.Lock()
	c.demand = backlog
	c.mu.Unlock()
	for took := true; took; {
		took, _ = c.takeFloating(false)
	}
}

// takeFloating holds one more floating segment if the channel wants one;
// starved tells that there was none; the channel then waits for its turn, as the
// next one if it was first before.
func (c *remoteChannel) takeFloating(first bool) (took, starved bool) {
	c.mu.Lock()
	if c.closed || c.recovering || c.blocked || c.credit >= c.demand {
		c.mu.Unlock()
		return false, false
	}
	s := c.gate.floats.TryRequest()
	if s == nil {
		// Whoever gives one back in between must find the channel in the queue.
		c.gate.hungry(c.index, first)
		s = c.gate.floats.TryRequest()
	}
	if s == nil {
		c.mu.Unlock()
		return false, true
	}
	s.Floating = true
	s.SetRecycler(c)
	c.floating = append(c.floating, s)
	announce := c.addCredit()
	c.mu.Unlock()
	if announce {
		c.client.announce(c)
	}
	return true, false
}

// addCredit adds a free place. REQUIRES c.mu; true: the client must be told.
func (c *remoteChannel) addCredit() bool {
	c.credit++
	c.unannounced++
	if c.announcing {
		return false
	}
	c.announcing = true
	return true
}

// takeUnannounced is called by the client's writer.
func (c *remoteChannel) takeUnannounced() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.unannounced
	c.unannounced, c.announcing = 0, false
	return n
}

// Recycle takes back a segment that has been consumed.
func (c *remoteChannel) Recycle(s *buffer.Segment) {
	announce := false
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		s.Free()
		return
	case s.Floating && (c.credit >= c.demand || c.recovering || c.blocked):
		c.mu.Unlock()
		s.Free() // another channel of the gate needs it more
		return
	case s.Floating && c.gate.starving():
		c.mu.Unlock()
		s.Free() // they take turns
		c.takeFloating(false)
		return
	case s.Floating:
		c.floating = append(c.floating, s.Reuse())
		announce = c.addCredit()
		c.mu.Unlock()
	default:
		// Back to the pool before the place is announced: the sender may be fast.
		c.mu.Unlock()
		s.Free()
		c.mu.Lock()
		c.inUse--
		switch {
		case c.closed:
		case c.recovering || c.blocked:
			c.exclusive++
		default:
			announce = c.addCredit()
		}
		c.mu.Unlock()
	}
	if announce {
		c.client.announce(c)
	}
}

func (c *remoteChannel) poll(priorityOnly bool) (b buffer.Buffer, r polled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.q.prio > 0 || c.q.n > 0 && !priorityOnly {
		b = c.q.pop()
		r.ok = true
	}
	r.morePrio = c.q.prio > 0
	r.more = c.q.n > 0
	return b, r
}

// resume lets the sender go on and gives it the places back that it returned.
func (c *remoteChannel) resume() {
	c.mu.Lock()
	c.blocked = false
	announce := c.announceExclusive()
	c.mu.Unlock()
	c.client.send(frameResume, c.id, 0)
	if announce {
		c.client.announce(c)
	}
}

// announceExclusive turns free exclusive places into credit. REQUIRES c.mu;
// true: the client must be told.
func (c *remoteChannel) announceExclusive() (announce bool) {
	if c.recovering || c.blocked {
		return false
	}
	for range c.exclusive {
		announce = c.addCredit() || announce
	}
	c.exclusive = 0
	return announce
}

// returned takes back credit that a blocked sender has no use for. Floating
// places go to whoever needs them: a channel that waits to be resumed must not
// keep them from the one that it waits for.
func (c *remoteChannel) returned(n int) {
	c.mu.Lock()
	if c.closed || n > c.credit {
		c.mu.Unlock()
		return
	}
	c.credit -= n
	keep := len(c.floating) - min(n, len(c.floating))
	free := append([]*buffer.Segment(nil), c.floating[keep:]...)
	c.floating = c.floating[:keep]
	c.exclusive += n - len(free)
	announce := c.announceExclusive()
	c.mu.Unlock()
	for _, s := range free {
		s.Free()
	}
	if announce {
		c.client.announce(c)
	}
	for took := true; took; {
		took, _ = c.takeFloating(false)
	}
}

func (c *remoteChannel) open() {
	c.mu.Lock()
	c.recovering = false
	announce := c.announceExclusive()
	more := c.q.n > 0
	c.mu.Unlock()
	if announce {
		c.client.announce(c)
	}
	if more {
		c.gate.notify(c.index, flagReady)
	}
	for took := true; took; {
		took, _ = c.takeFloating(false)
	}
}

func (c *remoteChannel) captureStart(checkpoint int64) (queued []buffer.Buffer) {
	c.mu.Lock()
	old := c.captured
	c.captured = nil
	defer func() { c.mu.Unlock(); release(old) }() // the last reference comes back to Recycle
	n := c.q.data                                  // data ahead of the barrier
	if c.lastBarrier >= checkpoint {
		after := int(c.arrived - c.barrierCut)
		n = max(0, n-after)
		c.capturing = 0
	} else {
		c.capturing = checkpoint
	}
	if n == 0 {
		return nil
	}
	queued = make([]buffer.Buffer, 0, n)
	for i := 0; i < c.q.n && len(queued) < n; i++ {
		if b := c.q.at(i); b.IsData() {
			b.Retain()
			queued = append(queued, *b)
		}
	}
	return queued
}

func (c *remoteChannel) captureStop(int64) []buffer.Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.captured
	c.captured, c.capturing = nil, 0
	return got
}

func (c *remoteChannel) captureTake() []buffer.Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.captured
	c.captured = nil
	return got
}

func (c *remoteChannel) convert(checkpoint int64) {
	c.mu.Lock()
	found := false
	for i := c.q.prio; i < c.q.n; i++ {
		ev := c.q.at(i).Event
		if ev == nil || ev.Kind != record.Barrier || ev.Checkpoint != checkpoint {
			continue
		}
		ahead := 0
		for k := range i {
			if c.q.at(k).IsData() {
				ahead++
			}
		}
		c.barrierCut = c.arrived - uint64(c.q.data-ahead)
		c.q.remove(i)
		urgent := *ev
		urgent.Barrier = record.Unaligned
		// The producer still stands blocked behind it; see Event.Sequence.
		urgent.Sequence = 1
		c.q.pushPriority(buffer.Buffer{Event: &urgent})
		found = true
		break
	}
	c.mu.Unlock()
	if found {
		c.gate.notify(c.index, flagPrio)
	}
}

func (c *remoteChannel) queuedBytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.q.n {
		n += int64(len(c.q.at(i).Data))
	}
	return n
}

func (c *remoteChannel) close() {
	c.client.forget(c)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	queued, captured, floating := c.q, c.captured, c.floating
	c.q, c.captured, c.floating = deque{}, nil, nil
	c.mu.Unlock()
	queued.releaseAll()
	release(captured)
	for _, s := range floating {
		s.Free()
	}
}
