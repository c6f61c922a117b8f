package batch

import (
	"slices"

	"benchrun/runtime/joblog"
)

// initializeAll settles the parallelism of all vertices for which that can be
// done.
func (s *Scheduler) initializeAll() {
	for _, v := range s.vertices {
		if v.parallelism > 0 || !v.initializable() {
			continue
		}
		switch {
		case v.Parallelism > 0:
			s.initialize(v, v.Parallelism, nil)
		case len(v.in) == 0:
			if !v.inferring {
				v.inferring = true
				s.emit(InferParallelism{Vertex: v.ID})
			}
		default:
			n, spans := s.cfg.Parallelism.decide(v)
			s.initialize(v, n, spans)
		}
	}
}

func (s *Scheduler) initialize(v *vertex, parallelism int, spans []span) {
	v.initialize(s.cfg.Parallelism, parallelism, spans, nil)
	s.candidates = append(s.candidates, v.tasks...)
	if s.recording() {
		e := joblog.JobVertexInitialized{Vertex: v.ID, Parallelism: parallelism}
		for _, in := range v.in {
			e.Inputs = append(e.Inputs, joblog.InputInfo{DataSet: in.DataSet, Subtasks: in.ranges})
		}
		s.log(Log{Event: e})
	}
}

// sourceParallelism settles a source, unless that has been done meanwhile: the
// answer can be older than a failover.
func (s *Scheduler) sourceParallelism(e SourceParallelism) {
	v := s.byID[e.Vertex]
	if v == nil || !v.inferring || v.parallelism > 0 || s.phase != phaseRunning {
		return
	}
	n := e.Parallelism
	if n <= 0 {
		n = s.cfg.Parallelism.SourceDefault
	}
	if n <= 0 {
		n = v.high(s.cfg.Parallelism)
	}
	s.initialize(v, min(n, v.high(s.cfg.Parallelism)), nil)
	s.initializeAll()
}

// schedule deploys what is consumable while there are slots.
func (s *Scheduler) schedule() {
	if s.phase != phaseRunning {
		return
	}
	s.queueUp()
	if len(s.ready) == 0 || s.pressed() {
		return
	}
	free := 0
	for _, w := range s.workers {
		free += w.free(s.now)
	}
	i := 0
	var kept []*task
	for ; i < len(s.ready) && free > 0; i++ {
		t := s.ready[i]
		if t.state != created || t.restart != nil {
			t.queued = false
			continue
		}
		group := t.group()
		switch {
		case !t.placeable():
			// It comes back when its inputs, or the others of its region, do.
			t.queued = false
		case len(group) > free:
			kept = append(kept, t)
		default:
			for _, m := range group {
				m.state = running
			}
			// Producers in front of consumers, which have to know where they are.
			for _, m := range group {
				s.deploy(m, s.freest(""), false)
				m.queued = false
			}
			free -= len(group)
		}
	}
	s.ready = s.ready[i:]
	if len(kept) > 0 {
		s.ready = append(kept, s.ready...)
	}
}

// queueUp puts what has become consumable among the tasks that wait for slots,
// which are in order: early vertices first.
func (s *Scheduler) queueUp() {
	const few = 16
	fresh := s.candidates[:0]
	for _, t := range s.candidates {
		if !t.queued && t.state == created && t.restart == nil && t.consumable() {
			t.queued = true
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > few {
		s.ready = append(s.ready, fresh...)
		slices.SortFunc(s.ready, byPlace)
	} else {
		for _, t := range fresh {
			i, _ := slices.BinarySearchFunc(s.ready, t, byPlace)
			s.ready = slices.Insert(s.ready, i, t)
		}
	}
	clear(s.candidates)
	s.candidates = s.candidates[:0]
}
