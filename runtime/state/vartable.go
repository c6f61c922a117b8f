package state

import "slices"

// VarTable is a named state with values of any length.
type VarTable struct {
	b      *Backend
	name   string
	first  int
	epoch  uint32
	bytes  int64
	groups []varGroup
}

type varGroup struct {
	index
	vals  []varValue
	epoch uint32 // the vals slice is this owner's alone since that snapshot
}

type varValue struct {
	data  []byte
	epoch uint32 // the bytes are this owner's alone since that snapshot
}

func newVarTable(b *Backend, name string) *VarTable {
	return &VarTable{b: b, name: name, first: b.first, epoch: b.epoch, groups: make([]varGroup, b.last-b.first+1)}
}

// Name is the name of the state.
func (t *VarTable) Name() string { return t.name }

// Get finds the value of (key, ns); ok is false if there is none. The slice
// must not be written to; it is valid until the next mutation of the table.
func (t *VarTable) Get(group int, key, ns uint64) (val []byte, ok bool) {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		return nil, false
	}
	return g.vals[n].data, true
}

// Put stores a copy of val.
func (t *VarTable) Put(group int, key, ns uint64, val []byte) {
	v := t.slot(group, key, ns)
	t.bytes += int64(len(val) - len(v.data))
	if v.epoch != t.epoch && t.b.pinned(v.epoch) || cap(v.data) < len(val) {
		v.data = make([]byte, 0, len(val))
	}
	v.data = append(v.data[:0], val...)
	v.epoch = t.epoch
}

// Append adds bytes to the end of the value of (key, ns), which begins empty.
func (t *VarTable) Append(group int, key, ns uint64, more []byte) {
	v := t.slot(group, key, ns)
	t.bytes += int64(len(more))
	// A snapshot does not look beyond its own length, so growing needs no copy.
	v.data = append(v.data, more...)
}

// slot finds or makes the value of (key, ns) for writing its header.
func (t *VarTable) slot(group int, key, ns uint64) *varValue {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		n = g.add(key, ns)
		g.vals = append(g.vals, varValue{epoch: t.epoch})
		return &g.vals[n]
	}
	t.ownList(g)
	return &g.vals[n]
}

func (t *VarTable) ownList(g *varGroup) {
	if g.epoch != t.epoch {
		if t.b.pinned(g.epoch) {
			g.vals = slices.Clone(g.vals)
		}
		g.epoch = t.epoch
	}
}

// Delete removes (key, ns) and tells whether it was there.
func (t *VarTable) Delete(group int, key, ns uint64) bool {
	g := &t.groups[group-t.first]
	n := g.find(key, ns)
	if n < 0 {
		return false
	}
	t.ownList(g)
	t.bytes -= int64(len(g.vals[n].data))
	last := len(g.vals) - 1
	g.vals[n] = g.vals[last]
	g.vals[last] = varValue{}
	g.vals = g.vals[:last]
	g.remove(n, g.index.epoch != t.epoch && t.b.pinned(g.index.epoch))
	g.index.epoch = t.epoch
	return true
}

// Len is the number of values in a key group.
func (t *VarTable) Len(group int) int { return len(t.groups[group-t.first].entries) }

// Range calls fn for all values of all groups until it returns false. The
// slice must not be written to. fn may delete the value that it was called
// for, and do nothing else to the table.
func (t *VarTable) Range(fn func(group int, key, ns uint64, val []byte) bool) {
	for g := range t.groups {
		if !t.rangeGroup(g, fn) {
			return
		}
	}
}

// RangeGroup is Range over one key group.
func (t *VarTable) RangeGroup(group int, fn func(group int, key, ns uint64, val []byte) bool) {
	t.rangeGroup(group-t.first, fn)
}

func (t *VarTable) rangeGroup(i int, fn func(int, uint64, uint64, []byte) bool) bool {
	g := &t.groups[i]
	for n := len(g.entries) - 1; n >= 0; n-- {
		e := g.entries[n]
		if !fn(t.first+i, e.key, e.ns, g.vals[n].data) {
			return false
		}
	}
	return true
}
