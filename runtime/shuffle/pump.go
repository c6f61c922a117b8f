package shuffle

import "sync"

// pump reads ahead for all readers of a store. A goroutine takes the reader whose
// next piece is nearest behind the last one in the order of the disk: partitions in the
// order in which they were finished, then positions in a file.
type pump struct {
	mu     sync.Mutex
	cond   sync.Cond
	list   []*Reader
	at     place
	closed bool
	done   sync.WaitGroup
}

// place is a position in the order of the disk.
type place struct {
	number int
	offset int64
}

func (p place) before(q place) bool {
	return p.number < q.number || p.number == q.number && p.offset < q.offset
}

// reading is what a goroutine of the pump works with.
type reading struct {
	stored []byte // compressed bytes
	dec    decoder
}

func newPump(threads, segment int) *pump {
	p := &pump{}
	p.cond.L = &p.mu
	for range threads {
		p.done.Go(func() { p.run(segment) })
	}
	return p
}

func (p *pump) run(segment int) {
	w := &reading{stored: make([]byte, segment)}
	defer w.dec.close()
	for {
		r := p.take()
		if r == nil {
			return
		}
		next := r.turn(w)
		p.mu.Lock()
		r.running = false
		r.at = next
		if r.again {
			r.again = false
			p.addLocked(r)
		}
		p.mu.Unlock()
	}
}

// take waits for a reader that wants a turn; nil: the pump is closed.
func (p *pump) take() *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.list) == 0 && !p.closed {
		p.cond.Wait()
	}
	if p.closed {
		return nil
	}
	best := 0
	for i, r := range p.list[1:] {
		b := p.list[best]
		if ahead := !r.at.before(p.at); ahead != !b.at.before(p.at) {
			if ahead {
				best = i + 1
			}
		} else if r.at.before(b.at) {
			best = i + 1
		}
	}
	r := p.list[best]
	last := len(p.list) - 1
	p.list[best] = p.list[last]
	p.list[last] = nil
	p.list = p.list[:last]
	p.at = r.at
	r.listed, r.running = false, true
	return r
}

// add asks for a turn of a reader.
func (p *pump) add(r *Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.running {
		r.again = true
		return
	}
	p.addLocked(r)
}

// addLocked: REQUIRES p.mu.
func (p *pump) addLocked(r *Reader) {
	if r.listed || p.closed {
		return
	}
	r.listed = true
	p.list = append(p.list, r)
	p.cond.Signal()
}

func (p *pump) close() {
	p.mu.Lock()
	p.closed = true
	p.list = nil
	p.cond.Broadcast()
	p.mu.Unlock()
	p.done.Wait()
}
