package operator

import (
	"encoding/binary"
	"fmt"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// keyedSum is a running sum by key, or a running count. A count in a batch job
// has no running values: it emits one record a key at the end.
type keyedSum struct {
	base
	cost      cost
	stateSize int
	count     bool
	source    uint16
	table     *state.Table
	out       record.Record
}

func (o *keyedSum) Open(c *Context) (err error) {
	o.c = c
	o.table, err = openPadded(c, "sum", 8, o.stateSize)
	return err
}

func (o *keyedSum) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	v, fresh := o.table.Upsert(record.KeyGroup(r.Key, o.c.MaxParallelism), r.Key, 0)
	if fresh && o.stateSize > 0 {
		pad(v[8:], r.Key)
	}
	add := r.Value
	if o.count {
		add = 1
	}
	sum := int64(binary.LittleEndian.Uint64(v)) + add
	binary.LittleEndian.PutUint64(v, uint64(sum))
	if o.count && o.c.Batch {
		return nil
	}
	o.out = *r
	o.out.Value = sum
	return o.c.Out.Emit(&o.out)
}

func (o *keyedSum) Finish() (err error) {
	if !o.count || !o.c.Batch {
		return nil
	}
	o.table.Range(func(_ int, key, _ uint64, v []byte) bool {
		o.out = record.Record{Key: key, Value: int64(binary.LittleEndian.Uint64(v)), Source: o.source, Flags: record.FlagAggregate}
		err = o.c.Out.Emit(&o.out)
		return err == nil
	})
	return err
}

// openPadded opens a table whose values end in a pattern of a given size, and
// checks the pattern of every restored value.
func openPadded(c *Context, name string, width, padding int) (*state.Table, error) {
	t, err := c.Keyed.Table(name, width+padding)
	if err != nil {
		return nil, fmt.Errorf("state of %s: %w", c.ID, err)
	}
	if padding == 0 || !c.Restored {
		return t, nil
	}
	want := make([]byte, padding)
	t.Range(func(_ int, key, _ uint64, v []byte) bool {
		pad(want, key)
		if string(v[width:]) != string(want) {
			err = fmt.Errorf("state of %s: the value of key %d was restored damaged", c.ID, key)
		}
		return err == nil
	})
	return t, err
}

// pad fills b with a pattern of the key.
func pad(b []byte, key uint64) {
	x := record.Mix(key)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, x)
		x += 0x9e3779b97f4a7c15
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// windowSum sums by key and tumbling window of event time. A window is emitted
// when the watermark reaches its end.
type windowSum struct {
	base
	cost      cost
	size      int64 // ms
	stateSize int
	source    uint16
	table     *state.Table
	timers    *state.Timers
	out       record.Record
}

func (o *windowSum) Open(c *Context) (err error) {
	o.c = c
	if o.size <= 0 {
		return fmt.Errorf("operator %s: window of %d ms", c.ID, o.size)
	}
	o.timers = c.Keyed.Timers()
	o.table, err = openPadded(c, "window", 8, o.stateSize)
	return err
}

func (o *windowSum) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	w := uint64(r.Time / o.size)
	g := record.KeyGroup(r.Key, o.c.MaxParallelism)
	v, fresh := o.table.Upsert(g, r.Key, w)
	if fresh {
		if o.stateSize > 0 {
			pad(v[8:], r.Key)
		}
		o.timers.Register(g, state.Timer{Time: int64(w+1)*o.size - 1, Key: r.Key, NS: w})
	}
	binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+uint64(r.Value))
	return nil
}

func (o *windowSum) Watermark(t int64) error {
	err := o.timers.Advance(t, func(g int, tm state.Timer) error {
		v := o.table.Get(g, tm.Key, tm.NS)
		if v == nil {
			return fmt.Errorf("operator %s: timer of window %d, key %d has no state", o.c.ID, tm.NS, tm.Key)
		}
		o.out = record.Record{Key: tm.Key, Number: tm.NS, Time: tm.Time, Value: int64(binary.LittleEndian.Uint64(v)), Source: o.source, Flags: record.FlagAggregate}
		o.table.Delete(g, tm.Key, tm.NS)
		return o.c.Out.Emit(&o.out)
	})
	if err != nil {
		return err
	}
	return o.c.Out.Watermark(t)
}

// join pairs the records of both inputs with equal key and number, each once.
type join struct {
	base
	cost      cost
	stateSize int
	waiting   *state.Table
	out       record.Record
}

// Values of a waiting record: side (0 left, 1 right), source, copy, value.
const joinWidth = 16

func (o *join) Open(c *Context) (err error) {
	o.c = c
	o.waiting, err = openPadded(c, "waiting", joinWidth, o.stateSize)
	return err
}

func (o *join) Process(input int, r *record.Record) error {
	o.cost.charge(o.c)
	g := record.KeyGroup(r.Key, o.c.MaxParallelism)
	if v := o.waiting.Get(g, r.Key, r.Number); v != nil {
		if int(v[0]) == input {
			return fmt.Errorf("operator %s: input %d has key %d, number %d twice", o.c.ID, input+1, r.Key, r.Number)
		}
		o.out = *r
		if input == 1 { // the pair has the identity of the left record
			o.out.Source = binary.LittleEndian.Uint16(v[2:])
			o.out.Copy = binary.LittleEndian.Uint32(v[4:])
		}
		o.out.Value = r.Value + int64(binary.LittleEndian.Uint64(v[8:]))
		o.waiting.Delete(g, r.Key, r.Number)
		return o.c.Out.Emit(&o.out)
	}
	v, _ := o.waiting.Upsert(g, r.Key, r.Number)
	v[0] = byte(input)
	binary.LittleEndian.PutUint16(v[2:], r.Source)
	binary.LittleEndian.PutUint32(v[4:], r.Copy)
	binary.LittleEndian.PutUint64(v[8:], uint64(r.Value))
	if o.stateSize > 0 {
		pad(v[joinWidth:], r.Key)
	}
	return nil
}

// broadcastMap passes the records of input 1 on. Every subtask gets all of
// input 2 and keeps their sum as broadcast state; each of those records is
// passed on by the one subtask that its number names.
type broadcastMap struct {
	base
	cost cost
	list *state.List
	seen uint64
	sum  uint64
}

func (o *broadcastMap) Open(c *Context) (err error) {
	o.c = c
	if o.list, err = c.Lists.Get("broadcast", state.Broadcast); err != nil {
		return err
	}
	for _, b := range o.list.Items {
		if len(b) != 16 {
			return fmt.Errorf("broadcast state of %s: item of %d bytes", c.ID, len(b))
		}
		o.seen, o.sum = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	}
	return nil
}

func (o *broadcastMap) Process(input int, r *record.Record) error {
	o.cost.charge(o.c)
	if input == 1 {
		o.seen++
		o.sum += record.Mix(r.Number)
		if int(record.Mix(r.Number)%uint64(o.c.Parallelism)) != o.c.Subtask {
			return nil
		}
	}
	return o.c.Out.Emit(r)
}

func (o *broadcastMap) Prepare(int64) error {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], o.seen)
	binary.LittleEndian.PutUint64(b[8:], o.sum)
	o.list.Items = [][]byte{b[:]}
	return nil
}
