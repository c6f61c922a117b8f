package worker

import (
	"time"

	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// throughputEvery is the time between two throughput events of a vertex.
const throughputEvery = 100 * time.Millisecond

// throughput turns the counters of source tasks into events.
type throughput struct {
	log  *timeline.Log
	last time.Time
	seen map[task.ID]int64
}

func newThroughput(log *timeline.Log) *throughput {
	return &throughput{log: log, last: time.Now(), seen: map[task.ID]int64{}}
}

func (h *throughput) sample(tasks []*task.Task) {
	now := time.Now()
	if now.Sub(h.last) < throughputEvery {
		return
	}
	h.last = now
	type sum struct {
		records int64
		lag     time.Duration
		rated   bool
	}
	byVertex := map[string]*sum{}
	var order []string
	for _, t := range tasks {
		if !t.Vertex().Source() {
			continue
		}
		id := t.ID()
		s := byVertex[id.Vertex]
		if s == nil {
			s = &sum{}
			byVertex[id.Vertex] = s
			order = append(order, id.Vertex)
		}
		n := t.Emitted()
		s.records += n - h.seen[id]
		h.seen[id] = n
		if lag, ok := t.Lag(); ok {
			s.lag, s.rated = max(s.lag, lag), true
		}
	}
	for _, v := range order {
		e := timeline.Of(timeline.Throughput)
		e.Vertex, e.Records = v, byVertex[v].records
		if byVertex[v].rated {
			e.Lag = byVertex[v].lag
		}
		h.log.Add(e)
	}
}
