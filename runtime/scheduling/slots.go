package scheduling

import (
	"fmt"
	"maps"
	"slices"
)

// worker is a live worker.
type worker struct {
	id    Worker
	slots int
}

// slotsOf lays out the first n slots: the workers in turn, those that are full
// left out. With equal workers slot i is on worker i mod W.
func slotsOf(workers []worker, n int) []Worker {
	out := make([]Worker, 0, n)
	for round := 0; len(out) < n; round++ {
		before := len(out)
		for _, w := range workers {
			if w.slots > round && len(out) < n {
				out = append(out, w.id)
			}
		}
		if len(out) == before {
			return out
		}
	}
	return out
}

// totalSlots counts all slots, those that the job occupies included.
func (s *Scheduler) totalSlots() int {
	n := 0
	for _, w := range s.workers {
		n += w.slots
	}
	return n
}

// widest is the greatest of the bounds: the slots that a job with shared slots
// needs.
func widest(bounds map[string]int) int {
	n := 0
	for _, p := range bounds {
		n = max(n, p)
	}
	return n
}

// fit is the parallelism that the slots allow, or nil if it is below a lower
// bound.
func (s *Scheduler) fit() map[string]int {
	slots := s.totalSlots()
	if slots == 0 || slots < widest(s.lower) {
		return nil
	}
	p := make(map[string]int, len(s.desired))
	for v, d := range s.desired {
		p[v] = min(d, slots)
	}
	return p
}

// differs tells whether a parallelism is another one than that of the running
// execution, for any vertex.
func (s *Scheduler) differs(p map[string]int) bool { return !maps.Equal(p, s.parallelism) }

// hasDesired: all slots that the job could use are there, and using them would
// change something.
func (s *Scheduler) hasDesired() bool {
	if s.totalSlots() < widest(s.desired) {
		return false
	}
	return s.state == WaitingForResources || s.differs(s.fit())
}

// hasSufficient: the job can run, and otherwise than it does.
func (s *Scheduler) hasSufficient() bool {
	p := s.fit()
	return p != nil && (s.state == WaitingForResources || s.differs(p))
}

// noResources says what is missing.
func (s *Scheduler) noResources() error {
	need, have := widest(s.lower), s.totalSlots()
	return fmt.Errorf("not enough slots: %d needed at least and %d desired, %d there on %d workers after %v; raise cluster.workers or cluster.slots-per-worker, or wait longer with jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
		need, widest(s.desired), have, len(s.workers), s.cfg.ResourceWait)
}

// requirements checks and takes over new bounds.
func (s *Scheduler) requirements(e Rescale) error {
	desired, lower := maps.Clone(s.desired), maps.Clone(s.lower)
	for _, id := range slices.Sorted(maps.Keys(e.Parallelism)) {
		v := s.vertex(id)
		if v == nil {
			return fmt.Errorf("the job has no vertex %q; it has %v", id, s.vertices)
		}
		desired[id] = e.Parallelism[id]
		lower[id] = min(lower[id], desired[id])
	}
	for _, id := range slices.Sorted(maps.Keys(e.Lower)) {
		if s.vertex(id) == nil {
			return fmt.Errorf("the job has no vertex %q; it has %v", id, s.vertices)
		}
		lower[id] = e.Lower[id]
	}
	for _, v := range s.cfg.Vertices {
		switch {
		case lower[v.ID] < 1 || desired[v.ID] < 1:
			return fmt.Errorf("parallelism of %q must be at least 1", v.ID)
		case lower[v.ID] > desired[v.ID]:
			return fmt.Errorf("the lower bound %d of %q is above its parallelism %d", lower[v.ID], v.ID, desired[v.ID])
		case desired[v.ID] > v.MaxParallelism:
			return fmt.Errorf("parallelism %d of %q is above its maximum %d; raise max-parallelism before the first start", desired[v.ID], v.ID, v.MaxParallelism)
		}
	}
	s.desired, s.lower = desired, lower
	return nil
}

func (s *Scheduler) vertex(id string) *Vertex {
	for i := range s.cfg.Vertices {
		if s.cfg.Vertices[i].ID == id {
			return &s.cfg.Vertices[i]
		}
	}
	return nil
}
