package shuffle

import (
	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// clusters holds records in memory, clustered by subpartition: segments of a
// pool are cut into chunks, and each subpartition has a chain of them. A record
// is written once, where it stays until the spill, which visits the chunks of
// each subpartition in turn.
type clusters struct {
	pool  *buffer.Local
	chunk int // bytes
	per   int // chunks of a segment

	segs []*buffer.Segment
	next []uint32 // by chunk: the one behind it in its chain
	used int      // chunks
	subs []cluster
}

// cluster is one subpartition's part of memory.
type cluster struct {
	mem         []byte // newest chunk
	pos         int
	first, last uint32 // chunks of the chain
	chunks      int
	records     uint32
}

// minChunk keeps chains short where there are more subpartitions than memory.
const minChunk = 256

// newClusters cuts memory of limit segments for subs subpartitions: chunks as
// large as they can be while a partly filled one a subpartition takes no more
// than a quarter of the memory. The largest is one block, so that a full chunk is
// compressed where it is.
func newClusters(pool *buffer.Local, size, block, limit, subs int) *clusters {
	c := &clusters{pool: pool, chunk: size, subs: make([]cluster, subs)}
	for c.chunk%2 == 0 && c.chunk/2 >= minChunk && subs*c.chunk > size*limit/4 {
		c.chunk /= 2
	}
	c.per = size / c.chunk
	if c.per == 1 {
		c.chunk = min(c.chunk, block)
	}
	return c
}

// room makes sure that n bytes can be added to a subpartition. False: memory is
// full.
func (c *clusters) room(s *cluster, n int) bool {
	n -= len(s.mem) - s.pos
	for need := (n + c.chunk - 1) / c.chunk; len(c.segs)*c.per-c.used < need; {
		seg := c.pool.Poll() // its maximum is the limit
		if seg == nil {
			return false
		}
		c.segs = append(c.segs, seg)
		for range c.per {
			c.next = append(c.next, 0)
		}
	}
	return true
}

// at is the memory of a chunk.
func (c *clusters) at(i uint32) []byte {
	o := int(i) % c.per * c.chunk
	return c.segs[int(i)/c.per].Mem()[o : o+c.chunk : o+c.chunk]
}

// grow gives a subpartition a new chunk. REQUIRES: room said that there is one.
func (c *clusters) grow(s *cluster) {
	i := uint32(c.used)
	c.used++
	if s.chunks == 0 {
		s.first = i
	} else {
		c.next[s.last] = i
	}
	s.last = i
	s.chunks++
	s.mem, s.pos = c.at(i), 0
}

// add appends the serialised record b. REQUIRES room for it.
func (c *clusters) add(s *cluster, b []byte) {
	s.records++
	for len(b) > 0 {
		if s.pos == len(s.mem) {
			c.grow(s)
		}
		n := copy(s.mem[s.pos:], b)
		s.pos += n
		b = b[n:]
	}
}

// put is add for a record that fits into the newest chunk; else it does nothing.
func (s *cluster) put(r *record.Record, n int) bool {
	if s.pos+n > len(s.mem) {
		return false
	}
	r.Put(s.mem[s.pos:])
	s.pos += n
	s.records++
	return true
}

// visit calls f with the pieces of a subpartition in order.
func (c *clusters) visit(s *cluster, f func([]byte) error) error {
	i := s.first
	for k := s.chunks; k > 0; k-- {
		b := c.at(i)
		if k == 1 {
			b = b[:s.pos]
		}
		if err := f(b); err != nil {
			return err
		}
		i = c.next[i]
	}
	return nil
}

// clear forgets all records and keeps the segments.
func (c *clusters) clear() {
	c.used = 0
	clear(c.subs)
}

// close gives the memory back.
func (c *clusters) close() {
	for _, s := range c.segs {
		s.Release()
	}
	c.segs, c.next = nil, nil
	clear(c.subs)
	c.pool.Close()
}
