package joblog

import (
	"cmp"
	"slices"
)

// live is what of a log still counts: the events that a compaction keeps.
type live struct {
	items map[liveKey]liveItem
	count uint64
	bytes int64
}

// liveKey names what an event replaces.
type liveKey struct {
	kind Kind
	task TaskID // of the task, or Vertex: vertex or operator
}

type liveItem struct {
	order   uint64
	attempt AttemptID
	payload []byte
}

func newLive() *live { return &live{items: map[liveKey]liveItem{}} }

func (l *live) put(k liveKey, attempt AttemptID, payload []byte) {
	l.drop(k)
	l.count++
	l.items[k] = liveItem{l.count, attempt, slices.Clone(payload)}
	l.bytes += int64(len(payload)) + frameBytes
}

func (l *live) drop(k liveKey) {
	if it, ok := l.items[k]; ok {
		l.bytes -= int64(len(it.payload)) + frameBytes
		delete(l.items, k)
	}
}

// apply takes the next event of the log.
func (l *live) apply(e Event, payload []byte) {
	k := liveKey{kind: e.Kind()}
	var attempt AttemptID
	switch e := e.(type) {
	case VertexFinished:
		k.task, attempt = e.Attempt.TaskID, e.Attempt
	case VerticesReset:
		for _, t := range e.Tasks {
			l.drop(liveKey{KindVertexFinished, t})
		}
		return
	case JobVertexInitialized:
		k.task.Vertex = e.Vertex
	case CoordinatorSnapshot:
		k.task.Vertex = e.Operator
	case JobFinished:
		clear(l.items)
		l.bytes = 0
	case EpochStarted:
		kept := make(map[AttemptID]bool, len(e.Kept))
		for _, a := range e.Kept {
			kept[a] = true
		}
		for key, it := range l.items {
			if key.kind == KindVertexFinished && !kept[it.attempt] {
				l.drop(key)
			}
		}
	}
	l.put(k, attempt, payload)
}

// frames returns the live events in their order, numbered from a sequence on.
func (l *live) frames(epoch, seq uint64) []frame {
	type entry struct {
		kind Kind
		liveItem
	}
	all := make([]entry, 0, len(l.items))
	for k, it := range l.items {
		all = append(all, entry{k.kind, it})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.order, b.order) })
	out := make([]frame, len(all))
	for i, it := range all {
		out[i] = frame{kind: it.kind, epoch: epoch, seq: seq + uint64(i), payload: it.payload}
	}
	return out
}
