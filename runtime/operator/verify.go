package operator

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// verifySink counts every arrival and remembers what arrived. It never drops
// a duplicate: it counts it.
type verifySink struct {
	base
	cost     cost
	seen     *state.List
	finals   *state.List
	totals   *state.List
	arrived  int64 // since the job's start, restored ones included
	disorder int64
	identity uint64 // sum of hashes of all arrivals
	now      int64  // arrivals of this attempt

	lane       *lane
	lanes      map[Lane]*lane
	final      map[uint64]int64
	aggregates map[[2]uint64]int64
}

// Lane is a stream of records that are told apart by their number.
type Lane struct {
	Source uint16
	Copy   uint32
}

type lane struct {
	id    Lane
	page  *page
	index uint64 // of page
	pages map[uint64]*page
	last  [stripes]uint64 // newest number + 1 by number mod stripes, for order
}

// page is a page with its stored form, which is kept while it does not change.
type page struct {
	bits Page
	item []byte
}

// stripes is a multiple of usual split counts: within one, numbers ascend.
const stripes = 256

// PageBits is how many numbers one page of a lane covers.
const PageBits = 4096

// Page has a bit for each number that was seen.
type Page [PageBits / 64]uint64

func (o *verifySink) Open(c *Context) (err error) {
	o.c = c
	o.lanes, o.final, o.aggregates = map[Lane]*lane{}, map[uint64]int64{}, map[[2]uint64]int64{}
	for _, l := range []struct {
		to   **state.List
		name string
	}{{&o.seen, "seen"}, {&o.finals, "finals"}, {&o.totals, "totals"}} {
		if *l.to, err = c.Lists.Get(l.name, state.Split); err != nil {
			return err
		}
	}
	return o.restore()
}

func (o *verifySink) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	o.arrived++
	o.now++
	o.identity += Identity(r)
	if r.Flags&record.FlagPattern != 0 && !record.PatternOK(r) {
		return fmt.Errorf("sink %s: record %d of source %d arrived damaged", o.c.ID, r.Number, r.Source)
	}
	if r.Flags&record.FlagAggregate != 0 {
		k := [2]uint64{r.Key, r.Number}
		if _, twice := o.aggregates[k]; twice {
			// Kept as an arrival that adds nothing: a duplicate.
			o.aggregates[k] = max(o.aggregates[k], r.Value)
			return nil
		}
		o.aggregates[k] = r.Value
		return nil
	}
	l := o.lane
	if l == nil || l.id.Source != r.Source || l.id.Copy != r.Copy {
		l = o.laneOf(Lane{r.Source, r.Copy})
	}
	if index := r.Number / PageBits; l.page == nil || index != l.index {
		l.turn(index)
	}
	l.page.bits[r.Number%PageBits/64] |= 1 << (r.Number % 64)
	l.page.item = nil
	if last := &l.last[r.Number%stripes]; r.Number < *last {
		o.disorder++
	} else {
		*last = r.Number + 1
	}
	if v, ok := o.final[r.Key]; !ok || r.Value > v {
		o.final[r.Key] = r.Value
	}
	return nil
}

func (o *verifySink) laneOf(id Lane) *lane {
	l := o.lanes[id]
	if l == nil {
		l = &lane{id: id, pages: map[uint64]*page{}}
		o.lanes[id] = l
	}
	o.lane = l
	return l
}

func (l *lane) turn(index uint64) {
	p := l.pages[index]
	if p == nil {
		p = new(page)
		l.pages[index] = p
	}
	l.page, l.index = p, index
}

func (o *verifySink) Watermark(int64) error { return nil }

// Arrived implements Counter: arrivals of this attempt.
func (o *verifySink) Arrived() int64 { return o.now }

// Identity hashes what makes a record one of its kind. Its sum over all
// arrivals changes when one is lost, doubled or exchanged.
func Identity(r *record.Record) uint64 {
	if r.Flags&record.FlagAggregate != 0 {
		return record.Mix(^record.Mix(^r.Key) ^ record.Mix(r.Number+1) ^ uint64(r.Value)) // inverted: no other record's hash
	}
	// The key is inverted so that key and number cannot change places.
	return record.Mix(record.Mix(r.Number) ^ uint64(r.Source)<<48 ^ uint64(r.Copy)<<16 ^ record.Mix(^r.Key))
}

// State: "seen" has an item a page, "finals" one for up to finalsPerItem keys,
// "totals" one a subtask.
//
//	seen:   source(2) copy(4) page(8), then either 512 bytes of bits or, when
//	        that is shorter, two bytes a number
//	finals: kind(1), then 0: key(8) value(8) …   1: key(8) number(8) value(8) …
//	totals: arrived(8) disorder(8) identity(8)
const finalsPerItem = 256

func (o *verifySink) Prepare(int64) error {
	o.seen.Items, o.finals.Items = nil, nil
	for id, l := range o.lanes {
		for index, p := range l.pages {
			if p.item == nil {
				p.item = appendPage(nil, id, index, &p.bits)
			}
			o.seen.Items = append(o.seen.Items, p.item)
		}
	}
	var item []byte
	for k, v := range o.final {
		if item == nil {
			item = append(make([]byte, 0, 1+16*finalsPerItem), 0)
		}
		item = binary.LittleEndian.AppendUint64(item, k)
		item = binary.LittleEndian.AppendUint64(item, uint64(v))
		if len(item) > 16*finalsPerItem {
			o.finals.Items, item = append(o.finals.Items, item), nil
		}
	}
	if item != nil {
		o.finals.Items, item = append(o.finals.Items, item), nil
	}
	for k, v := range o.aggregates {
		if item == nil {
			item = append(make([]byte, 0, 1+24*finalsPerItem), 1)
		}
		item = binary.LittleEndian.AppendUint64(item, k[0])
		item = binary.LittleEndian.AppendUint64(item, k[1])
		item = binary.LittleEndian.AppendUint64(item, uint64(v))
		if len(item) > 24*finalsPerItem {
			o.finals.Items, item = append(o.finals.Items, item), nil
		}
	}
	if item != nil {
		o.finals.Items = append(o.finals.Items, item)
	}
	var b []byte
	for _, v := range []uint64{uint64(o.arrived), uint64(o.disorder), o.identity} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	o.totals.Items = [][]byte{b}
	return nil
}

func (o *verifySink) restore() error {
	for _, b := range o.seen.Items {
		id, index, p, err := readPage(b)
		if err != nil {
			return fmt.Errorf("state of %s: %w", o.c.ID, err)
		}
		l := o.laneOf(id)
		l.turn(index)
		for i, w := range p {
			l.page.bits[i] |= w
			for ; w != 0; w &= w - 1 {
				n := index*PageBits + uint64(i*64+bits.TrailingZeros64(w))
				l.last[n%stripes] = max(l.last[n%stripes], n+1)
			}
		}
		l.page.item = nil
	}
	o.lane = nil
	for _, b := range o.finals.Items {
		if len(b) == 0 || b[0] > 1 || b[0] == 0 && len(b)%16 != 1 || b[0] == 1 && len(b)%24 != 1 {
			return fmt.Errorf("state of %s: malformed final values of %d bytes", o.c.ID, len(b))
		}
		for kind, b := b[0], b[1:]; len(b) > 0; {
			k, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			if kind == 0 {
				if old, ok := o.final[k]; !ok || int64(v) > old {
					o.final[k] = int64(v)
				}
				b = b[16:]
				continue
			}
			o.aggregates[[2]uint64{k, v}] = int64(binary.LittleEndian.Uint64(b[16:]))
			b = b[24:]
		}
	}
	for _, b := range o.totals.Items {
		if len(b) != 24 {
			return fmt.Errorf("state of %s: malformed totals of %d bytes", o.c.ID, len(b))
		}
		o.arrived += int64(binary.LittleEndian.Uint64(b))
		o.disorder += int64(binary.LittleEndian.Uint64(b[8:]))
		o.identity += binary.LittleEndian.Uint64(b[16:])
	}
	return nil
}

func compareLanes(a, b Lane) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Copy, b.Copy))
}

func appendPage(b []byte, id Lane, index uint64, p *Page) []byte {
	b = binary.LittleEndian.AppendUint16(b, id.Source)
	b = binary.LittleEndian.AppendUint32(b, id.Copy)
	b = binary.LittleEndian.AppendUint64(b, index)
	n := 0
	for _, w := range p {
		n += bits.OnesCount64(w)
	}
	if n >= PageBits/16 {
		for _, w := range p {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	for i, w := range p {
		for ; w != 0; w &= w - 1 {
			b = binary.LittleEndian.AppendUint16(b, uint16(i*64+bits.TrailingZeros64(w)))
		}
	}
	return b
}

func readPage(b []byte) (id Lane, index uint64, p *Page, err error) {
	const header = 14
	if len(b) < header || len(b)%2 != 0 || len(b) > header+PageBits/8 {
		return id, 0, nil, fmt.Errorf("malformed page of %d bytes", len(b))
	}
	id = Lane{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint32(b[2:])}
	index = binary.LittleEndian.Uint64(b[6:])
	p = new(Page)
	if b = b[header:]; len(b) == PageBits/8 {
		for i := range p {
			p[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		return id, index, p, nil
	}
	for ; len(b) > 0; b = b[2:] {
		n := binary.LittleEndian.Uint16(b)
		if n >= PageBits {
			return id, 0, nil, fmt.Errorf("malformed page: number %d", n)
		}
		p[n/64] |= 1 << (n % 64)
	}
	return id, index, p, nil
}

// SinkReport is what a verifying sink has seen in the end.
type SinkReport struct {
	Arrived    int64
	Disorder   int64
	Identity   uint64
	Lanes      []LaneReport
	Finals     map[uint64]int64
	Aggregates []AggregateReport
}

// LaneReport is one lane of a report.
type LaneReport struct {
	Lane
	Pages map[uint64]*Page
}

// AggregateReport is one aggregated record.
type AggregateReport struct {
	Key, Number uint64
	Value       int64
}

// Report implements Reporter.
func (o *verifySink) Report() (any, error) {
	r := &SinkReport{Arrived: o.arrived, Disorder: o.disorder, Identity: o.identity, Finals: o.final}
	for _, id := range slices.SortedFunc(maps.Keys(o.lanes), compareLanes) {
		pages := make(map[uint64]*Page, len(o.lanes[id].pages))
		for index, p := range o.lanes[id].pages {
			pages[index] = &p.bits
		}
		r.Lanes = append(r.Lanes, LaneReport{id, pages})
	}
	for k, v := range o.aggregates {
		r.Aggregates = append(r.Aggregates, AggregateReport{k[0], k[1], v})
	}
	return r, nil
}
