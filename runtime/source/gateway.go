package source

import (
	"fmt"
	"slices"
)

// gateway orders the events for one subtask against the barriers of
// checkpoints: what the coordinator produced before its snapshot must arrive
// before the barrier, what it produced later must arrive after it.
//
//	mark(id)   a checkpoint begins
//	close(id)  the coordinator's snapshot is taken; from here events are held
//	open(id)   the subtask has passed the barrier, or the checkpoint is over
//
// Several checkpoints may be closed at once. Events go to the buffer of the
// newest; opening the oldest releases its buffer, opening another one passes
// its buffer to the one before it.
type gateway struct {
	marked []int64 // in order
	closed []held  // in order of ids
	last   int64   // highest id ever marked
}

// held are the events since the snapshot of a checkpoint.
type held struct {
	id     int64
	events []Send
}

// mark begins a checkpoint. Ids must increase.
func (g *gateway) mark(id int64) error {
	if id <= g.last {
		return fmt.Errorf("checkpoint %d begins after checkpoint %d", id, g.last)
	}
	g.last = id
	g.marked = append(g.marked, id)
	return nil
}

// close holds events from now on; false if the checkpoint is over already.
func (g *gateway) close(id int64) bool {
	if !slices.Contains(g.marked, id) {
		return false
	}
	g.closed = append(g.closed, held{id: id})
	return true
}

// send passes an event through, or holds it; true if it is to be sent now.
func (g *gateway) send(e Send) bool {
	if n := len(g.closed); n > 0 {
		h := &g.closed[n-1]
		h.events = append(h.events, e)
		return false
	}
	return true
}

// open ends a checkpoint and returns the events that are to be sent now. Ids
// that are over are ignored; one that was never marked is an error.
func (g *gateway) open(id int64) ([]Send, error) {
	if id > g.last {
		return nil, fmt.Errorf("a gateway is opened for checkpoint %d, the last that began is %d", id, g.last)
	}
	i := slices.Index(g.marked, id)
	if i < 0 {
		return nil, nil
	}
	g.marked = slices.Delete(g.marked, i, i+1)
	i = slices.IndexFunc(g.closed, func(h held) bool { return h.id == id })
	if i < 0 {
		return nil, nil
	}
	events := g.closed[i].events
	g.closed = slices.Delete(g.closed, i, i+1)
	if i == 0 {
		return events, nil
	}
	before := &g.closed[i-1]
	before.events = append(before.events, events...)
	return nil, nil
}

// drop opens the gateway and forgets what it held: the attempt is gone.
func (g *gateway) drop() (lost []Send) {
	for _, h := range g.closed {
		lost = append(lost, h.events...)
	}
	g.marked, g.closed = nil, nil
	return lost
}
