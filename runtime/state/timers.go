package state

import (
	"cmp"
	"math"
	"slices"
)

// Timer is an event-time timer of a key and namespace. Time is in the unit of
// the watermarks.
type Timer struct {
	Time    int64
	Key, NS uint64
}

const timerBytes = 24

func compareTimers(a, b Timer) int {
	if c := cmp.Compare(a.Time, b.Time); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(a.NS, b.NS)
}

// Timers are the timers of a backend. A timer is set once, however often it is
// registered. They fire in order of time, then key, then namespace within a
// key group; groups interleave by time.
type Timers struct {
	b      *Backend
	first  int
	epoch  uint32
	groups []timerGroup // nil: no timer has been set yet
	// order is a heap of group indices by the time of their earliest timer;
	// groups without timers are not in it. place[g] is g's place, or -1.
	order []int32
	place []int32
	count int
}

// timerGroup is a heap of timers and the set of those that are set. Deletion
// only takes them out of the set; what the heap holds beyond the set is dead.
type timerGroup struct {
	heap  []Timer
	set   map[Timer]struct{}
	epoch uint32 // the heap is this owner's alone since that snapshot
}

func newTimers(b *Backend) *Timers { return &Timers{b: b, first: b.first} }

// begin makes the groups. Most backends have no timers, and a task of a batch job
// has all key groups.
func (ts *Timers) begin() {
	n := ts.b.last - ts.b.first + 1
	ts.groups, ts.place = make([]timerGroup, n), make([]int32, n)
	for i := range ts.place {
		ts.place[i] = -1
	}
}

// Len is the number of timers that are set.
func (ts *Timers) Len() int { return ts.count }

// Register sets a timer; false if it was set already.
func (ts *Timers) Register(group int, t Timer) bool {
	if ts.groups == nil {
		ts.begin()
	}
	g := &ts.groups[group-ts.first]
	if _, ok := g.set[t]; ok {
		return false
	}
	if g.set == nil {
		g.set = map[Timer]struct{}{}
	}
	g.set[t] = struct{}{}
	ts.count++
	ts.own(g)
	g.heap = append(g.heap, t)
	siftUp(g.heap, len(g.heap)-1)
	ts.reorder(int32(group - ts.first))
	return true
}

// Delete unsets a timer; false if it was not set.
func (ts *Timers) Delete(group int, t Timer) bool {
	if ts.groups == nil {
		return false
	}
	g := &ts.groups[group-ts.first]
	if _, ok := g.set[t]; !ok {
		return false
	}
	delete(g.set, t)
	ts.count--
	if len(g.heap) > 16 && len(g.heap) > 2*len(g.set) {
		ts.compact(g)
	}
	ts.prune(g)
	ts.reorder(int32(group - ts.first))
	return true
}

// Next is the time of the earliest timer, math.MaxInt64 if there is none.
func (ts *Timers) Next() int64 {
	if len(ts.order) == 0 {
		return math.MaxInt64
	}
	return ts.groups[ts.order[0]].heap[0].Time
}

// Advance unsets all timers with Time <= watermark and calls fn for each, in
// order of time. fn may register and delete timers; new ones that are due fire
// in the same call. An error from fn ends it; the timers left stay set.
func (ts *Timers) Advance(watermark int64, fn func(group int, t Timer) error) error {
	for len(ts.order) > 0 {
		gi := ts.order[0]
		g := &ts.groups[gi]
		t := g.heap[0]
		if t.Time > watermark {
			return nil
		}
		delete(g.set, t)
		ts.count--
		ts.prune(g)
		ts.reorder(gi)
		if err := fn(ts.first+int(gi), t); err != nil {
			return err
		}
	}
	return nil
}

// Range calls fn for all timers that are set, in no order, until it returns
// false. fn must not change the timers.
func (ts *Timers) Range(fn func(group int, t Timer) bool) {
	for i := range ts.groups {
		for t := range ts.groups[i].set {
			if !fn(ts.first+i, t) {
				return
			}
		}
	}
}

// prune pops dead timers from the top, so that the top is always a set one.
func (ts *Timers) prune(g *timerGroup) {
	for len(g.heap) > 0 {
		if _, ok := g.set[g.heap[0]]; ok {
			return
		}
		ts.own(g)
		last := len(g.heap) - 1
		g.heap[0] = g.heap[last]
		g.heap = g.heap[:last]
		siftDown(g.heap, 0)
	}
}

// compact rebuilds the heap from the set.
func (ts *Timers) compact(g *timerGroup) {
	heap := make([]Timer, 0, len(g.set))
	for t := range g.set {
		heap = append(heap, t)
	}
	// A sorted slice is a heap, and does not depend on the map's order.
	slices.SortFunc(heap, compareTimers)
	g.heap, g.epoch = heap, ts.epoch
}

func (ts *Timers) own(g *timerGroup) {
	if g.epoch != ts.epoch {
		if ts.b.pinned(g.epoch) {
			g.heap = slices.Clone(g.heap)
		}
		g.epoch = ts.epoch
	}
}

// freeze gives the heaps to a snapshot, without dead timers.
func (ts *Timers) freeze(epoch uint32) [][]Timer {
	if ts.count == 0 {
		ts.epoch = epoch
		return nil
	}
	heaps := make([][]Timer, len(ts.groups))
	for i := range ts.groups {
		g := &ts.groups[i]
		if len(g.heap) != len(g.set) {
			ts.compact(g)
		}
		heaps[i] = g.heap
	}
	ts.epoch = epoch
	return heaps
}

func siftUp(h []Timer, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if compareTimers(h[i], h[p]) >= 0 {
			return
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
}

func siftDown(h []Timer, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && compareTimers(h[c+1], h[c]) < 0 {
			c++
		}
		if compareTimers(h[i], h[c]) <= 0 {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// reorder puts a group where the time of its earliest timer belongs.
func (ts *Timers) reorder(g int32) {
	empty := len(ts.groups[g].heap) == 0
	i := ts.place[g]
	switch {
	case i < 0 && empty:
		return
	case i < 0:
		i = int32(len(ts.order))
		ts.order = append(ts.order, g)
		ts.place[g] = i
	case empty:
		last := int32(len(ts.order) - 1)
		ts.swap(i, last)
		ts.order = ts.order[:last]
		ts.place[g] = -1
		if i == last {
			return
		}
	}
	ts.fix(i)
}

func (ts *Timers) swap(i, j int32) {
	ts.order[i], ts.order[j] = ts.order[j], ts.order[i]
	ts.place[ts.order[i]] = i
	ts.place[ts.order[j]] = j
}

// before orders groups by their earliest timer; ties go by number, so that the
// order of firing does not depend on history.
func (ts *Timers) before(i, j int32) bool {
	a, b := ts.order[i], ts.order[j]
	ta, tb := ts.groups[a].heap[0].Time, ts.groups[b].heap[0].Time
	return ta < tb || ta == tb && a < b
}

func (ts *Timers) fix(i int32) {
	for i > 0 {
		p := (i - 1) / 2
		if !ts.before(i, p) {
			break
		}
		ts.swap(i, p)
		i = p
	}
	n := int32(len(ts.order))
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && ts.before(c+1, c) {
			c++
		}
		if !ts.before(c, i) {
			return
		}
		ts.swap(i, c)
		i = c
	}
}
