package exchange

import (
	"errors"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// localChannel takes buffers straight out of a subpartition, or a source, of
// the same worker. It has no queue: what it has not polled is the producer's to store.
type localChannel struct {
	gate  *Gate
	index int
	sub   feed

	// Only the task's goroutine touches these.
	lastBarrier int64
	capturing   int64
	captured    []buffer.Buffer
}

var errTaken = errors.New("subpartition is released or has a consumer already")

// AddLocal connects a channel to a partition of the same worker.
func (g *Gate) AddLocal(ch int, p *Partition, subpartition int) error {
	s, err := p.sub(subpartition)
	if err != nil {
		return err
	}
	return g.addFeed(ch, s)
}

func (g *Gate) addFeed(ch int, s feed) error {
	c := &localChannel{gate: g, index: ch, sub: s}
	g.set(ch, c)
	if !s.attach(c) {
		return errTaken
	}
	return nil
}

func (c *localChannel) dataAvailable()     { c.gate.notify(c.index, flagReady) }
func (c *localChannel) priorityAvailable() { c.gate.notify(c.index, flagPrio) }

func (c *localChannel) poll(priorityOnly bool) (buffer.Buffer, polled) {
	b, r := c.sub.poll(true, priorityOnly)
	if r.err != nil {
		c.gate.fail(r.err)
	}
	if !r.ok {
		return b, r
	}
	switch {
	case b.IsData():
		if c.capturing > 0 {
			b.Retain()
			c.captured = append(c.captured, b)
		}
	case b.Event.Kind == record.Barrier:
		c.lastBarrier = max(c.lastBarrier, b.Event.Checkpoint)
		if c.capturing > 0 && c.lastBarrier >= c.capturing {
			c.capturing = 0
		}
	}
	return b, r
}

func (c *localChannel) resume() { c.sub.resume() }
func (c *localChannel) open()   { c.dataAvailable(); c.priorityAvailable() }

// captureStart returns nothing: what is queued sits in the producer's
// subpartition and is stored there (FLINK-40016 is what happens otherwise).
func (c *localChannel) captureStart(checkpoint int64) []buffer.Buffer {
	release(c.captured)
	c.captured = nil
	if c.lastBarrier < checkpoint {
		c.capturing = checkpoint
	}
	return nil
}

func (c *localChannel) captureStop(int64) []buffer.Buffer {
	got := c.captured
	c.captured, c.capturing = nil, 0
	return got
}

func (c *localChannel) captureTake() []buffer.Buffer {
	got := c.captured
	c.captured = nil
	return got
}

// convert makes the barrier overtake in the producer's queue. The producer
// would do so itself when its own time-out passes; its data is stored there.
func (c *localChannel) convert(int64) {}

func (c *localChannel) queuedBytes() int64 { return 0 }

func (c *localChannel) close() {
	c.sub.detach(c)
	release(c.captured)
	c.captured = nil
}

func release(bs []buffer.Buffer) {
	for i := range bs {
		bs[i].Release()
	}
}
