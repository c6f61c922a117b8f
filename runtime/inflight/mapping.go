package inflight

import (
	"fmt"

	"benchrun/runtime/graph"
	"benchrun/runtime/record"
)

// Mapper says which old subtasks' data a new subtask gets.
type Mapper uint8

// The mappers of Flink's state assignment.
const (
	RoundRobin Mapper = iota
	First
	Range
	Full
	Unsupported
)

// rangeGroups is the resolution of Range, whatever the real number of key
// groups: a cover of the true owner at any number up to it.
const rangeGroups = record.MaxParallelismBound

// Downstream is the mapper for the consuming side of an edge.
func Downstream(p graph.Partitioner) Mapper {
	switch p {
	case graph.Hash:
		return Range
	case graph.Rebalance, graph.Shuffle:
		return RoundRobin
	case graph.Global:
		return First
	case graph.Custom:
		return Full
	default:
		return Unsupported
	}
}

// Upstream is the mapper for the producing side of an edge.
func Upstream(p graph.Partitioner) Mapper {
	if Downstream(p) == Unsupported {
		return Unsupported
	}
	return RoundRobin
}

// Old lists the old subtasks whose data new subtask i of n gets, ascending.
func (m Mapper) Old(old, n, i int) (subtasks []int) {
	switch m {
	case RoundRobin:
		for s := i; s < old; s += n {
			subtasks = append(subtasks, s)
		}
	case First:
		if i == 0 {
			return m.all(old)
		}
	case Full:
		return m.all(old)
	case Range:
		first, last := record.KeyGroupRange(rangeGroups, n, i)
		for s := range old {
			if f, l := record.KeyGroupRange(rangeGroups, old, s); f <= last && l >= first {
				subtasks = append(subtasks, s)
			}
		}
	}
	return subtasks
}

func (Mapper) all(old int) []int {
	s := make([]int, old)
	for i := range s {
		s[i] = i
	}
	return s
}

// Ambiguous tells whether old subtask s of old may have records for more than
// one of n new ones.
func (m Mapper) Ambiguous(old, n, s int) bool {
	switch m {
	case Full:
		return n > 1
	case Range:
		f, l := record.KeyGroupRange(rangeGroups, old, s)
		return record.GroupOwner(rangeGroups, n, f) != record.GroupOwner(rangeGroups, n, l)
	default:
		return false
	}
}

// Covers tells whether new subtask i of n gets data of old subtask s.
func (m Mapper) Covers(old, n, i, s int) bool {
	switch m {
	case RoundRobin:
		return s%n == i
	case First:
		return i == 0
	case Full:
		return true
	case Range:
		f, l := record.KeyGroupRange(rangeGroups, old, s)
		first, last := record.KeyGroupRange(rangeGroups, n, i)
		return f <= last && l >= first
	default:
		return false
	}
}

// UnsupportedError says that an edge has in-flight data that cannot be
// redistributed.
type UnsupportedError struct {
	Edge        string
	Partitioner graph.Partitioner
	Old, New    int
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("edge %s: in-flight data of a %s edge cannot be restored at another parallelism (%d -> %d); use hash, rebalance or shuffle there",
		e.Edge, e.Partitioner, e.Old, e.New)
}
