package batch

import (
	"math"
	"slices"
	"time"
)

// speculate looks for slow tasks when it is time and starts them once more,
// elsewhere.
func (s *Scheduler) speculate() {
	c := s.cfg.Speculation
	if c == nil || s.phase != phaseRunning || s.checkAt == never || s.now < s.checkAt {
		return
	}
	s.checkAt = s.now + c.CheckInterval
	for _, v := range s.vertices {
		if v.parallelism == 0 || v.finished == v.parallelism || len(v.durations) == 0 ||
			v.finished < int(math.Ceil(c.Ratio*float64(v.parallelism))) {
			continue
		}
		limit := max(c.LowerBound, time.Duration(float64(median(v.durations))*c.Multiplier))
		for _, t := range v.tasks {
			// A region that is connected by pipelines cannot be run in part.
			if t.state != running || t.restart != nil || t.region != nil || len(t.live) == 0 || s.now-t.live[0].since < limit {
				continue
			}
			s.again(t, c)
		}
	}
}

// again keeps the slow workers free of new tasks and starts an attempt on
// another.
func (s *Scheduler) again(t *task, c *SpeculationConfig) {
	for _, a := range t.live {
		others := slices.ContainsFunc(s.workers, func(w *worker) bool { return w.id != a.worker && w.blocked <= s.now })
		if w := s.worker(a.worker); w != nil && others {
			w.blocked = max(w.blocked, s.now+c.BlockWorker)
		}
	}
	for len(t.live) < c.MaxExecutions {
		w := s.freest(t.live[0].worker)
		if w == nil || s.pressed() {
			return
		}
		s.deploy(t, w, true)
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}
