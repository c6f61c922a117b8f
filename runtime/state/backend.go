package state

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Backend holds the keyed state and the timers of one operator of one subtask
// for a contiguous range of key groups.
type Backend struct {
	first, last int
	epoch       uint32 // number of snapshots taken
	tables      []*Table
	varTables   []*VarTable
	timers      *Timers
	restored    []bool // by group - first
	held        []*Snapshot
}

// NewBackend makes an empty backend for the key groups first to last, both
// inclusive. A range with last = first-1 is empty.
func NewBackend(first, last int) *Backend {
	b := &Backend{first: first, last: last, restored: make([]bool, last-first+1)}
	b.timers = newTimers(b)
	return b
}

// First is the first key group.
func (b *Backend) First() int { return b.first }

// Last is the last key group.
func (b *Backend) Last() int { return b.last }

// Table gives the state of that name, made on first use or by Restore. Its
// width in bytes must be the same each time.
func (b *Backend) Table(name string, width int) (*Table, error) {
	if err := b.checkName(name, "fixed"); err != nil {
		return nil, err
	}
	for _, t := range b.tables {
		if t.name == name {
			if t.width != width {
				return nil, fmt.Errorf("keyed state %q has values of %d bytes, %d were asked for", name, t.width, width)
			}
			return t, nil
		}
	}
	if width <= 0 || width > math.MaxInt32 {
		return nil, fmt.Errorf("keyed state %q: a width of %d bytes is out of range", name, width)
	}
	t := newTable(b, name, width)
	b.tables = append(b.tables, t)
	return t, nil
}

// VarTable gives the variable-width state of that name, made on first use or
// by Restore.
func (b *Backend) VarTable(name string) (*VarTable, error) {
	if err := b.checkName(name, "var"); err != nil {
		return nil, err
	}
	for _, t := range b.varTables {
		if t.name == name {
			return t, nil
		}
	}
	t := newVarTable(b, name)
	b.varTables = append(b.varTables, t)
	return t, nil
}

func (b *Backend) checkName(name, kind string) error {
	if len(name) > math.MaxUint16 {
		return fmt.Errorf("keyed state: a name of %d bytes is too long", len(name))
	}
	for _, t := range b.tables {
		if t.name == name && kind != "fixed" {
			return fmt.Errorf("keyed state %q has values of one width, variable ones were asked for", name)
		}
	}
	for _, t := range b.varTables {
		if t.name == name && kind != "var" {
			return fmt.Errorf("keyed state %q has values of any length, a fixed width was asked for", name)
		}
	}
	return nil
}

// Timers are the event-time timers of the operator.
func (b *Backend) Timers() *Timers { return b.timers }

// Bytes is the size of all keys, values and timers.
func (b *Backend) Bytes() int64 {
	var n int64
	for _, t := range b.tables {
		for i := range t.groups {
			n += int64(len(t.groups[i].entries)) * int64(16+t.width)
		}
	}
	for _, t := range b.varTables {
		n += t.bytes
		for i := range t.groups {
			n += int64(len(t.groups[i].entries)) * 20
		}
	}
	return n + int64(b.timers.Len())*timerBytes
}

// pinned tells whether an unreleased snapshot may hold what was last owned at
// that epoch.
func (b *Backend) pinned(epoch uint32) bool {
	b.held = slices.DeleteFunc(b.held, func(s *Snapshot) bool { return s.released.Load() })
	for _, s := range b.held {
		if s.epoch > epoch {
			return true
		}
	}
	return false
}

// Snapshot freezes the state as it is now, in time O(groups). Slices from
// Upsert are no longer valid.
func (b *Backend) Snapshot() *Snapshot {
	b.epoch++
	s := &Snapshot{first: b.first, last: b.last, epoch: b.epoch}
	for _, t := range b.tables {
		t.epoch = b.epoch
		v := fixedView{name: t.name, width: t.width, shift: t.shift, groups: make([]fixedGroupView, len(t.groups))}
		for i := range t.groups {
			g := &t.groups[i]
			v.groups[i] = fixedGroupView{g.entries, g.chunks}
		}
		s.fixed = append(s.fixed, v)
	}
	for _, t := range b.varTables {
		t.epoch = b.epoch
		v := varView{name: t.name, groups: make([]varGroupView, len(t.groups))}
		for i := range t.groups {
			g := &t.groups[i]
			v.groups[i] = varGroupView{g.entries, g.vals}
		}
		s.vars = append(s.vars, v)
	}
	s.timers = b.timers.freeze(b.epoch)
	b.held = append(b.held, s)
	return s
}

// Snapshot is the state of a backend at one moment. It may be used by one
// goroutine other than the backend's owner.
type Snapshot struct {
	first, last int
	epoch       uint32
	fixed       []fixedView
	vars        []varView
	timers      [][]Timer
	released    atomic.Bool
}

type fixedView struct {
	name   string
	width  int
	shift  uint8
	groups []fixedGroupView
}

type fixedGroupView struct {
	entries []entry
	chunks  []chunk
}

type varView struct {
	name   string
	groups []varGroupView
}

type varGroupView struct {
	entries []entry
	vals    []varValue
}

// Release tells that the snapshot will not be read any more: the owner need
// not copy what it writes to. It may be called more than once.
func (s *Snapshot) Release() { s.released.Store(true) }
