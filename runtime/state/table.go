package state

import (
	"slices"
)

// chunkBytes is the size up to which values share a chunk: the unit that is
// copied when a value is written under a snapshot.
const chunkBytes = 16 << 10

// Table is a named state with values of one width.
type Table struct {
	b      *Backend
	name   string
	width  int
	shift  uint8 // log2 of the values in a chunk
	mask   int   // values in a chunk - 1
	first  int
	epoch  uint32 // number of snapshots taken
	groups []fixedGroup
}

type fixedGroup struct {
	index
	chunks []chunk
	epoch  uint32 // the chunks slice is this owner's alone since that snapshot
}

type chunk struct {
	data  []byte
	epoch uint32 // the data are this owner's alone since that snapshot
}

func newTable(b *Backend, name string, width int) *Table {
	t := &Table{b: b, name: name, width: width, first: b.first, epoch: b.epoch}
	for width<<(t.shift+1) <= chunkBytes {
		t.shift++
	}
	t.mask = 1<<t.shift - 1
	t.groups = make([]fixedGroup, b.last-b.first+1)
	return t
}

// Name is the name of the state.
func (t *Table) Name() string { return t.name }

// Width is the size of a value in bytes.
func (t *Table) Width() int { return t.width }

// Upsert finds or makes the value of (key, ns) in a key group of the backend's
// range; a fresh one is all zero. The slice may be written to; it is valid
// until the next Upsert or Delete on the table and until the next snapshot.
func (t *Table) Upsert(group int, key, ns uint64) (val []byte, fresh bool) {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		return t.insert(g, key, ns), true
	}
	c := &g.chunks[n>>(t.shift&63)]
	if c.epoch != t.epoch {
		c = t.own(g, n>>(t.shift&63))
	}
	off := (n & t.mask) * t.width
	return c.data[off : off+t.width : off+t.width], false
}

// Get finds the value of (key, ns), or nil. The slice must not be written to;
// it is valid until the next Upsert or Delete on the table.
func (t *Table) Get(group int, key, ns uint64) []byte {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		return nil
	}
	return t.value(g, n)
}

func (t *Table) value(g *fixedGroup, n int) []byte {
	off := (n & t.mask) * t.width
	return g.chunks[n>>(t.shift&63)].data[off : off+t.width : off+t.width]
}

// insert appends a zero value.
func (t *Table) insert(g *fixedGroup, key, ns uint64) []byte {
	n := g.add(key, ns)
	ci := n >> t.shift
	if ci == len(g.chunks) {
		// The slice is only appended to, which a snapshot does not see.
		size := (t.mask + 1) * t.width
		if ci == 0 {
			size = min(size, 4*t.width)
		}
		g.chunks = append(g.chunks, chunk{data: make([]byte, size), epoch: t.epoch})
	}
	c := &g.chunks[ci]
	if c.epoch != t.epoch {
		c = t.own(g, ci)
	}
	off := (n & t.mask) * t.width
	if off == len(c.data) {
		// Only the first chunk of a group begins small.
		data := make([]byte, min(2*len(c.data), (t.mask+1)*t.width))
		copy(data, c.data)
		t.ownList(g)
		c = &g.chunks[ci]
		c.data = data
	}
	val := c.data[off : off+t.width : off+t.width]
	clear(val)
	return val
}

// own makes a chunk this owner's alone and returns where it is now.
func (t *Table) own(g *fixedGroup, ci int) *chunk {
	t.ownList(g)
	c := &g.chunks[ci]
	if t.b.pinned(c.epoch) {
		c.data = slices.Clone(c.data)
	}
	c.epoch = t.epoch
	return c
}

// ownList makes the slice of chunks this owner's alone.
func (t *Table) ownList(g *fixedGroup) {
	if g.epoch != t.epoch {
		if t.b.pinned(g.epoch) {
			g.chunks = slices.Clone(g.chunks)
		}
		g.epoch = t.epoch
	}
}

// Delete removes (key, ns) and tells whether it was there.
func (t *Table) Delete(group int, key, ns uint64) bool {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		return false
	}
	last := len(g.entries) - 1
	if n != last {
		ci := n >> t.shift
		if g.chunks[ci].epoch != t.epoch {
			t.own(g, ci)
		}
		copy(t.value(g, n), t.value(g, last))
	}
	g.remove(n, g.index.epoch != t.epoch && t.b.pinned(g.index.epoch))
	g.index.epoch = t.epoch
	// One spare chunk stays, so that a count that swings about a border does
	// not allocate each time.
	if keep := last>>t.shift + 2; len(g.chunks) > keep {
		t.ownList(g)
		clear(g.chunks[keep:])
		g.chunks = g.chunks[:keep]
	}
	return true
}

// Len is the number of values in a key group.
func (t *Table) Len(group int) int { return len(t.groups[group-t.first].entries) }

// Range calls fn for all values of all groups until it returns false. The
// slice must not be written to. fn may delete the value that it was called
// for, and do nothing else to the table.
func (t *Table) Range(fn func(group int, key, ns uint64, val []byte) bool) {
	for g := range t.groups {
		if !t.rangeGroup(g, fn) {
			return
		}
	}
}

// RangeGroup is Range over one key group.
func (t *Table) RangeGroup(group int, fn func(group int, key, ns uint64, val []byte) bool) {
	t.rangeGroup(group-t.first, fn)
}

func (t *Table) rangeGroup(i int, fn func(int, uint64, uint64, []byte) bool) bool {
	g := &t.groups[i]
	// Backwards: a deletion fills the hole with an entry that has been seen.
	for n := len(g.entries) - 1; n >= 0; n-- {
		e := g.entries[n]
		if !fn(t.first+i, e.key, e.ns, t.value(g, n)) {
			return false
		}
	}
	return true
}
