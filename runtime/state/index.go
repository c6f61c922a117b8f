package state

import (
	"math/bits"
	"slices"
)

// entry names a value within a group.
type entry struct {
	key, ns uint64
}

// index finds the number of an entry by its key and namespace.
type index struct {
	slots   []uint32 // entry number + 1, 0 = free; the length is a power of two
	entries []entry
	epoch   uint32 // entries up to here are this owner's alone since that snapshot
}

const minSlots = 8

// slot is where the probe for an entry begins. The keys of one group share a
// value of the key-group hash, whatever that is, so all bits are mixed: both
// halves of the product depend on all of key and namespace.
func slot(key, ns uint64) uint64 {
	hi, lo := bits.Mul64(key^0x2d358dccaa6c78a5, ns^0x8bb84b93962eacc9)
	return hi ^ lo
}

// find gives the number of an entry, or -1.
func (x *index) find(key, ns uint64) int {
	if len(x.slots) == 0 {
		return -1
	}
	mask := uint64(len(x.slots) - 1)
	for i := slot(key, ns); ; i++ {
		s := x.slots[i&mask]
		if s == 0 {
			return -1
		}
		if e := &x.entries[s-1]; e.key == key && e.ns == ns {
			return int(s - 1)
		}
	}
}

// add appends an entry that find did not find and returns its number.
func (x *index) add(key, ns uint64) int {
	if len(x.entries)*4 >= len(x.slots)*3 {
		x.rehash(max(minSlots, len(x.slots)*2))
	}
	n := len(x.entries)
	x.entries = append(x.entries, entry{key, ns})
	x.insert(key, ns, uint32(n+1))
	return n
}

func (x *index) insert(key, ns uint64, s uint32) {
	mask := uint64(len(x.slots) - 1)
	i := slot(key, ns)
	for x.slots[i&mask] != 0 {
		i++
	}
	x.slots[i&mask] = s
}

func (x *index) rehash(size int) {
	x.slots = make([]uint32, size)
	for i, e := range x.entries {
		x.insert(e.key, e.ns, uint32(i+1))
	}
}

// remove takes entry n out and puts the last one in its place; the caller does
// the same with the values. shared tells that a snapshot may hold the entries.
func (x *index) remove(n int, shared bool) {
	if shared {
		x.entries = slices.Clone(x.entries)
	}
	e := x.entries[n]
	x.free(x.slotOf(e, uint32(n+1)))
	last := len(x.entries) - 1
	if n != last {
		m := x.entries[last]
		x.slots[x.slotOf(m, uint32(last+1))] = uint32(n + 1)
		x.entries[n] = m
	}
	x.entries = x.entries[:last]
	if len(x.slots) > 64 && last*8 < len(x.slots) {
		x.entries = append(make([]entry, 0, last*2), x.entries...)
		x.rehash(len(x.slots) / 4)
	}
}

// slotOf finds the slot that holds s, which is the slot of e.
func (x *index) slotOf(e entry, s uint32) uint64 {
	mask := uint64(len(x.slots) - 1)
	i := slot(e.key, e.ns)
	for x.slots[i&mask] != s {
		i++
	}
	return i & mask
}

// free empties a slot and moves later ones of the same run up, so that probes
// need no tombstones.
func (x *index) free(hole uint64) {
	mask := uint64(len(x.slots) - 1)
	for i := hole; ; {
		i = (i + 1) & mask
		s := x.slots[i]
		if s == 0 {
			break
		}
		e := x.entries[s-1]
		home := slot(e.key, e.ns) & mask
		// The entry may move to the hole unless its home lies in (hole, i].
		if (i-home)&mask >= (i-hole)&mask {
			x.slots[hole] = s
			hole = i
		}
	}
	x.slots[hole] = 0
}
