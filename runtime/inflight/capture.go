package inflight

import (
	"benchrun/runtime/buffer"
	"benchrun/runtime/snapshot"
)

// Capture is the in-flight data of one subtask in one checkpoint, as it is
// collected: references to buffers and copies of what was partly read. It
// belongs to one goroutine at a time.
type Capture struct {
	Inputs  []*ChannelCapture
	Outputs []*ChannelCapture
	rests   []gateRest
	index   map[[2]int]*ChannelCapture
}

type gateRest struct {
	gate int
	rest *Rest
}

// ChannelCapture collects one channel, in order.
type ChannelCapture struct {
	Gate, Channel int
	// Leftover is what was partly read: it comes first. Then comes what the
	// rest of the gate's recovered data holds for the channel, then Buffers.
	Leftover []byte
	Buffers  []buffer.Buffer
}

// AddLeftover copies the unread bytes of a channel.
func (c *Capture) AddLeftover(gate, channel int, partial, rest []byte) {
	if len(partial)+len(rest) == 0 {
		return
	}
	ch := c.input(gate, channel)
	ch.Leftover = append(append(ch.Leftover, partial...), rest...)
}

// AddRest takes over the rest of a gate's recovered data.
func (c *Capture) AddRest(gate int, r *Rest) { c.rests = append(c.rests, gateRest{gate, r}) }

// AddInput takes over buffers of an input channel.
func (c *Capture) AddInput(gate, channel int, bs []buffer.Buffer) {
	if len(bs) > 0 {
		ch := c.input(gate, channel)
		ch.Buffers = append(ch.Buffers, bs...)
	}
}

func (c *Capture) input(gate, channel int) *ChannelCapture {
	k := [2]int{gate, channel}
	if x := c.index[k]; x != nil {
		return x
	}
	x := &ChannelCapture{Gate: gate, Channel: channel}
	if c.index == nil {
		c.index = map[[2]int]*ChannelCapture{}
	}
	c.index[k] = x
	c.Inputs = append(c.Inputs, x)
	return x
}

// AddOutput takes over buffers of a subpartition.
func (c *Capture) AddOutput(partition, subpartition int, bs []buffer.Buffer) {
	if len(bs) > 0 {
		c.Outputs = append(c.Outputs, &ChannelCapture{Gate: partition, Channel: subpartition, Buffers: bs})
	}
}

// Empty tells whether there is nothing to write.
func (c *Capture) Empty() bool { return len(c.Inputs)+len(c.Outputs)+len(c.rests) == 0 }

// Release drops all references. Idempotent.
func (c *Capture) Release() {
	for _, list := range [][]*ChannelCapture{c.Inputs, c.Outputs} {
		for _, x := range list {
			for i := range x.Buffers {
				x.Buffers[i].Release()
			}
		}
	}
	for _, r := range c.rests {
		r.rest.Close()
	}
	*c = Capture{}
}

// Stored is a capture on disk.
type Stored struct {
	Inputs, Outputs []snapshot.ChannelState
	Files           []string
	Bytes           int64
}

// Join puts the parts of one subtask's capture together, in their order.
func Join(parts []*Stored) *Stored {
	switch len(parts) {
	case 0:
		return &Stored{}
	case 1:
		return parts[0]
	}
	out := &Stored{}
	inputs, outputs := newChannels(0), newChannels(0)
	add := func(to *channels, list []snapshot.ChannelState, file int32) {
		for _, s := range list {
			c := to.at(s.Gate, s.Channel)
			c.Bytes += s.Bytes
			for _, x := range s.Extents {
				x.File += file
				c.Extents = append(c.Extents, x)
			}
		}
	}
	for _, p := range parts {
		add(inputs, p.Inputs, int32(len(out.Files)))
		add(outputs, p.Outputs, int32(len(out.Files)))
		out.Files = append(out.Files, p.Files...)
	}
	out.Inputs, out.Outputs = inputs.states(&out.Bytes), outputs.states(&out.Bytes)
	return out
}
