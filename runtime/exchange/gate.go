package exchange

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// channel is the consuming end of one subpartition.
type channel interface {
	// poll hands out the next element.
	poll(priorityOnly bool) (buffer.Buffer, polled)
	// resume lets the producer go on after a blocking event.
	resume()
	// open ends the state in which only events may pass.
	open()
	// captureStart begins to collect what belongs to a checkpoint and returns
	// what is queued ahead of its barrier.
	captureStart(checkpoint int64) []buffer.Buffer
	// captureStop ends it and returns what came since.
	captureStop(checkpoint int64) []buffer.Buffer
	// captureTake returns what came since, and goes on.
	captureTake() []buffer.Buffer
	// convert makes the queued barrier of a checkpoint urgent.
	convert(checkpoint int64)
	queuedBytes() int64
	close()
}

// GateConfig describes one input gate.
type GateConfig struct {
	Name      string
	Channels  int
	Remote    int // how many of them are remote
	Exclusive int // buffers for each remote channel
	Floating  int // buffers for all of them
	Wake      func()
}

// Gate is the input of one subtask on one edge. Poll and the capture methods
// are for the task's goroutine.
type Gate struct {
	name      string
	channels  []channel
	pool      *buffer.Local // exclusive segments of all remote channels
	floats    *buffer.Local
	exclusive int
	wake      func()
	urgent    atomic.Int32 // channels in the priority list
	failed    atomic.Pointer[error]
	turns     turns

	mu struct {
		sync.Mutex
		ready  intRing // channels with something to hand out
		prio   intRing
		flags  []uint8
		closed bool
		hungry intRing // remote channels that want a floating buffer
	}
}

const (
	flagReady uint8 = 1 << iota
	flagPrio
	flagRecovering
	flagHungry // in the queue for floating buffers
)

// NewGate makes a gate whose channels are added by AddLocal and AddRemote.
func NewGate(g *buffer.Global, c GateConfig) (*Gate, error) {
	t := &Gate{name: c.Name, channels: make([]channel, c.Channels), exclusive: c.Exclusive, wake: c.Wake}
	t.mu.flags = make([]uint8, c.Channels)
	floats := 0
	if c.Remote > 0 {
		floats = max(c.Floating, 1)
	}
	var err error
	if t.pool, err = g.NewLocal("input gate "+c.Name, c.Remote*c.Exclusive, 0, 0, nil); err != nil {
		return nil, err
	}
	if t.floats, err = g.NewLocal("input gate "+c.Name, min(floats, 1), floats, 0, t.feed); err != nil {
		t.pool.Close()
		return nil, err
	}
	return t, nil
}

// Channels is the number of producing subtasks.
func (g *Gate) Channels() int { return len(g.channels) }

// set fills in a channel; others may be looking at the gate's load meanwhile.
func (g *Gate) set(ch int, c channel) {
	g.mu.Lock()
	g.channels[ch] = c
	g.mu.Unlock()
}

// SetRecovering lets only events pass on all channels until Open. Before
// channels are added.
func (g *Gate) SetRecovering() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.mu.flags {
		g.mu.flags[i] |= flagRecovering
	}
}

// Recovering tells whether a channel has not been opened yet.
func (g *Gate) Recovering(ch int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.flags[ch]&flagRecovering != 0
}

// Open ends the recovery of one channel: live data may follow.
func (g *Gate) Open(ch int) {
	g.mu.Lock()
	was := g.mu.flags[ch]&flagRecovering != 0
	g.mu.flags[ch] &^= flagRecovering
	g.mu.Unlock()
	if was {
		g.channels[ch].open()
	}
}

// Urgent tells, cheaply, whether a priority event waits.
func (g *Gate) Urgent() bool { return g.urgent.Load() > 0 }

// Err is the error of a broken connection, if there was one.
func (g *Gate) Err() error {
	if e := g.failed.Load(); e != nil {
		return *e
	}
	return nil
}

func (g *Gate) fail(err error) {
	err = fmt.Errorf("input gate %s: %w", g.name, err)
	if g.failed.CompareAndSwap(nil, &err) {
		g.wake()
	}
}

// Poll returns the next element of any channel, priority events first. The
// buffer's reference passes to the caller.
func (g *Gate) Poll() (ch int, b buffer.Buffer, ok bool) {
	for {
		g.mu.Lock()
		i, prio := g.mu.prio.pop()
		if prio {
			g.mu.flags[i] &^= flagPrio
			g.urgent.Add(-1)
		} else if i, ok = g.mu.ready.pop(); ok {
			g.mu.flags[i] &^= flagReady
		} else {
			g.mu.Unlock()
			return 0, buffer.Buffer{}, false
		}
		only := g.mu.flags[i]&flagRecovering != 0
		g.mu.Unlock()
		b, r := g.channels[i].poll(prio || only)
		if r.morePrio {
			g.enqueue(i, flagPrio)
		}
		if r.more && !only {
			g.enqueue(i, flagReady)
		}
		if r.ok {
			if b.Event != nil && b.Event.Kind == record.EndOfPartition {
				g.ended(i)
			}
			return i, b, true
		}
		// Woken for nothing: a priority event was polled as an ordinary
		// element, or the channel recovers.
	}
}

// PollPriority returns a waiting priority event only.
func (g *Gate) PollPriority() (ch int, b buffer.Buffer, ok bool) {
	for g.Urgent() {
		g.mu.Lock()
		i, prio := g.mu.prio.pop()
		if !prio {
			g.mu.Unlock()
			return 0, buffer.Buffer{}, false
		}
		g.mu.flags[i] &^= flagPrio
		g.urgent.Add(-1)
		only := g.mu.flags[i]&flagRecovering != 0
		g.mu.Unlock()
		b, r := g.channels[i].poll(true)
		if r.morePrio {
			g.enqueue(i, flagPrio)
		}
		if r.more && !only {
			g.enqueue(i, flagReady)
		}
		if r.ok {
			return i, b, true
		}
	}
	return 0, buffer.Buffer{}, false
}

// enqueue notes that a channel has something; true if it was not known.
func (g *Gate) enqueue(i int, flag uint8) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.flags[i]&flag != 0 || g.mu.closed {
		return false
	}
	g.mu.flags[i] |= flag
	if flag == flagPrio {
		g.mu.prio.push(i)
		g.urgent.Add(1)
	} else {
		g.mu.ready.push(i)
	}
	return true
}

func (g *Gate) notify(i int, flag uint8) {
	if g.enqueue(i, flag) {
		g.wake()
	}
}

// Resume lets the producer of a channel go on after a blocking event.
func (g *Gate) Resume(ch int) { g.channels[ch].resume() }

// CaptureStart begins to collect a checkpoint's in-flight data on a channel
// and returns what is queued ahead of the barrier.
func (g *Gate) CaptureStart(ch int, checkpoint int64) []buffer.Buffer {
	return g.channels[ch].captureStart(checkpoint)
}

// CaptureStop returns what arrived between CaptureStart and the barrier.
func (g *Gate) CaptureStop(ch int, checkpoint int64) []buffer.Buffer {
	return g.channels[ch].captureStop(checkpoint)
}

// CaptureTake returns what has arrived so far since CaptureStart or the last
// call.
func (g *Gate) CaptureTake(ch int) []buffer.Buffer { return g.channels[ch].captureTake() }

// Convert makes the barrier of a checkpoint, announced on a channel, urgent.
func (g *Gate) Convert(ch int, checkpoint int64) { g.channels[ch].convert(checkpoint) }

// QueuedBytes is the number of record bytes that wait in the channels, those
// of local ones not counted: they are in the producer's partition. Safe for
// concurrent use.
func (g *Gate) QueuedBytes() (n int64) {
	g.mu.Lock()
	channels := slices.Clone(g.channels)
	g.mu.Unlock()
	for _, c := range channels {
		if c != nil {
			n += c.queuedBytes()
		}
	}
	return n
}

// feed gives floating buffers that became free to channels that want some.
func (g *Gate) feed() {
	for {
		g.mu.Lock()
		if g.mu.closed {
			g.mu.Unlock()
			return
		}
		i, ok := g.mu.hungry.pop()
		if !ok {
			g.mu.Unlock()
			return
		}
		g.mu.flags[i] &^= flagHungry
		g.mu.Unlock()
		if _, starved := g.channels[i].(*remoteChannel).takeFloating(true); starved {
			return
		}
	}
}

// starving tells whether some channel waits for a floating buffer.
func (g *Gate) starving() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.hungry.n > 0
}

// hungry puts a channel into the queue for floating buffers, once.
func (g *Gate) hungry(i int, first bool) {
	g.mu.Lock()
	if !g.mu.closed && g.mu.flags[i]&flagHungry == 0 {
		g.mu.flags[i] |= flagHungry
		if first {
			g.mu.hungry.pushFront(i)
		} else {
			g.mu.hungry.push(i)
		}
	}
	g.mu.Unlock()
}

// Close drops what is queued and detaches from the producers. Idempotent.
func (g *Gate) Close() {
	g.mu.Lock()
	if g.mu.closed {
		g.mu.Unlock()
		return
	}
	g.mu.closed = true
	g.mu.Unlock()
	for _, c := range g.channels {
		if c != nil {
			c.close()
		}
	}
	g.pool.Close()
	g.floats.Close()
}

// intRing is a small queue of channel indices.
type intRing struct {
	items []int32
	head  int
	n     int
}

func (r *intRing) grow() {
	if r.n == len(r.items) {
		items := make([]int32, max(4, 2*len(r.items)))
		for k := range r.n {
			items[k] = r.items[(r.head+k)&(len(r.items)-1)]
		}
		r.items, r.head = items, 0
	}
}

func (r *intRing) pushFront(i int) {
	r.grow()
	r.head = (r.head - 1) & (len(r.items) - 1)
	r.items[r.head] = int32(i)
	r.n++
}

func (r *intRing) push(i int) {
	r.grow()
	r.items[(r.head+r.n)&(len(r.items)-1)] = int32(i)
	r.n++
}

func (r *intRing) pop() (int, bool) {
	if r.n == 0 {
		return 0, false
	}
	i := r.items[r.head]
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	return int(i), true
}
