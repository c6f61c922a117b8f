package inflight

import (
	"fmt"

	"benchrun/runtime/exchange"
	"benchrun/runtime/record"
)

// Demux cuts labelled bytes of one gate into elements of this subtask. Every
// virtual channel has a deserializer of its own, since elements span pieces,
// and a filter of its own. Records that another subtask gets are dropped, and so
// are watermark statuses. Watermarks of a channel are the minimum over its
// virtual channels, or are held back until the end; see the package comment.
type Demux struct {
	edge     string
	subtask  int
	redealt  bool
	virtual  map[Label]*virtual
	channels []merged
	cur      *virtual
	rec      record.Record
	mark     [record.WatermarkSize]byte

	// Filtered counts the bytes of dropped records.
	Filtered int64
}

type virtual struct {
	des       record.Deserializer
	channel   int
	selector  *exchange.Selector // nil: everything is ours
	watermark int64
}

// merged is the watermark state of one physical channel.
type merged struct {
	virtual []*virtual
	on      *virtual // selected by the sender
	sent    int64
}

// NewDemux makes the demultiplexer of a gate with the given number of
// channels. parallelism and maxParallelism are the consuming operator's.
func NewDemux(a *GateAssignment, channels, subtask, parallelism, maxParallelism int) *Demux {
	d := &Demux{edge: a.Edge.ID, subtask: subtask, redealt: a.Redealt, virtual: make(map[Label]*virtual, len(a.Virtual)), channels: make([]merged, channels)}
	for i := range d.channels {
		d.channels[i] = merged{sent: record.MinWatermark}
	}
	for _, v := range a.Virtual {
		x := &virtual{channel: v.Channel, watermark: record.MinWatermark}
		if v.Filter {
			x.selector = exchange.NewSelector(a.Edge.Partitioner, parallelism, maxParallelism, 0)
		}
		d.virtual[v.Label] = x
		d.channels[v.Channel].virtual = append(d.channels[v.Channel].virtual, x)
	}
	return d
}

// Select makes a virtual channel the current one.
func (d *Demux) Select(l Label) error {
	v := d.virtual[l]
	if v == nil {
		return fmt.Errorf("edge %s: cannot select old channel %d->%d: it is not among the %d that subtask %d was assigned", d.edge, l.Up, l.Down, len(d.virtual), d.subtask)
	}
	d.cur = v
	return nil
}

// SelectOn makes a virtual channel the one that a physical channel's bytes
// belong to from now on.
func (d *Demux) SelectOn(channel int, l Label) error {
	if err := d.Select(l); err != nil {
		return err
	}
	if d.cur.channel != channel {
		return fmt.Errorf("edge %s: old channel %d->%d belongs to channel %d, but its data came on %d", d.edge, l.Up, l.Down, d.cur.channel, channel)
	}
	d.channels[channel].on = d.cur
	return nil
}

// Current makes the virtual channel that was last selected on a physical
// channel the current one; false if there is none.
func (d *Demux) Current(channel int) bool {
	d.cur = d.channels[channel].on
	return d.cur != nil
}

// Feed hands over bytes of the current virtual channel; see
// record.Deserializer.
func (d *Demux) Feed(b []byte) { d.cur.des.Feed(b) }

// Channel is the physical channel of the current virtual one.
func (d *Demux) Channel() int { return d.cur.channel }

// Next returns the body of the next element for this subtask, or nil when the
// current virtual channel needs more bytes.
func (d *Demux) Next() ([]byte, error) {
	for {
		body, err := d.cur.des.Next()
		if err != nil || body == nil {
			return nil, d.wrap(err)
		}
		if err := record.CheckBody(body); err != nil {
			return nil, d.wrap(err)
		}
		switch body[0] {
		case record.TagRecord:
			if d.cur.selector != nil {
				d.rec.Get(body)
				if d.cur.selector.Select(&d.rec) != d.subtask {
					d.Filtered += int64(4 + len(body))
					continue
				}
			}
			return body, nil
		case record.TagWatermark:
			d.cur.watermark = max(d.cur.watermark, record.WatermarkTime(body))
			if d.redealt {
				continue
			}
			if t, ok := d.merge(); ok {
				record.PutWatermark(d.mark[:], t)
				return d.mark[4:], nil
			}
		}
	}
}

// HeldBack is the watermark that holds for all channels of the gate when all
// its data have been read, if watermarks were held back and there is one.
func (d *Demux) HeldBack() (t int64, ok bool) {
	if d == nil || !d.redealt || len(d.virtual) == 0 {
		return 0, false
	}
	t = record.MaxWatermark
	for _, v := range d.virtual {
		t = min(t, v.watermark)
	}
	return t, t > record.MinWatermark
}

// merge computes the channel's watermark after the current virtual channel
// has moved; ok tells that it has moved, too.
func (d *Demux) merge() (t int64, ok bool) {
	m := &d.channels[d.cur.channel]
	t = record.MaxWatermark
	for _, v := range m.virtual {
		t = min(t, v.watermark)
	}
	if t <= m.sent {
		return 0, false
	}
	m.sent = t
	return t, true
}

func (d *Demux) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("edge %s: restored in-flight data: %w", d.edge, err)
}

// Empty checks that no virtual channel ends inside an element.
func (d *Demux) Empty() error {
	for l, v := range d.virtual {
		if !v.des.Empty() {
			partial, rest := v.des.Leftover()
			return fmt.Errorf("edge %s: restored data of old channel %d->%d end inside an element, %d bytes are left", d.edge, l.Up, l.Down, len(partial)+len(rest))
		}
	}
	return nil
}
