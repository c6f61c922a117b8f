package exchange

import (
	"benchrun/runtime/graph"
	"benchrun/runtime/record"
)

// Selector chooses the subpartition of a record. It is stateful for some
// partitioners and belongs to one goroutine.
type Selector struct {
	kind    graph.Partitioner
	n       int
	next    int
	rnd     uint64
	maxPar  uint32
	owner   []uint16 // by key group
	hashing bool
}

// NewSelector makes the selector of one producing subtask for n consumers.
// maxParallelism is the consumer's, subtask spreads the producers' starting
// points.
func NewSelector(p graph.Partitioner, n, maxParallelism, subtask int) *Selector {
	s := &Selector{kind: p, n: n, maxPar: uint32(maxParallelism), next: subtask % max(n, 1), rnd: record.Mix(uint64(subtask) + 1)}
	if p == graph.Hash {
		s.hashing = true
		s.owner = make([]uint16, maxParallelism)
		for g := range s.owner {
			s.owner[g] = uint16(record.GroupOwner(maxParallelism, n, g))
		}
	}
	return s
}

// Select returns the subpartition of a record; not for broadcast.
func (s *Selector) Select(r *record.Record) int {
	if s.hashing {
		return int(s.owner[uint32(record.Murmur(record.HashKey(r.Key)))%s.maxPar])
	}
	switch s.kind {
	case graph.Rebalance, graph.Rescale:
		i := s.next
		if s.next++; s.next == s.n {
			s.next = 0
		}
		return i
	case graph.Shuffle:
		s.rnd = record.Mix(s.rnd)
		return int(s.rnd % uint64(s.n))
	case graph.Custom:
		// A function of the record and the number of channels alone, so that
		// restored records can be told apart (FLINK-35351).
		return int(record.Mix(r.Number^uint64(r.Source)<<48^uint64(r.Copy)<<24) % uint64(s.n))
	default: // forward and global have one target
		return 0
	}
}
