package batch

import (
	"cmp"
	"slices"

	"benchrun/runtime/timeline"
)

// partitionThere begins to track a partition.
func (s *Scheduler) partitionThere(t *task, output int, w Worker) {
	p := &t.parts[output]
	if !p.there {
		t.v.out[output].available++
	}
	p.there, p.worker = true, w
	t.v.out[output].setProducer(t.subtask, Producer{t.winner.Attempt, w})
}

// partitionAway ends it.
func (s *Scheduler) partitionAway(t *task, output int) {
	if p := &t.parts[output]; p.there {
		p.there = false
		t.v.out[output].available--
	}
}

// partitionLost notes that a partition is not there any more.
func (s *Scheduler) partitionLost(t *task, output int, reason string) {
	s.partitionAway(t, output)
	t.lost = t.winner.Attempt
	s.note(timeline.PartitionLost, t.winner.Attempt, func(e *timeline.Event) {
		e.Bytes, e.Reason, e.Detail = sum(t.parts[output].bytes), reason, t.v.out[output].DataSet
	})
}

func sum(bytes []int64) int64 {
	var n int64
	for _, b := range bytes {
		n += b
	}
	return n
}

// producer gives the task and the output of an id, whichever attempt made it.
func (s *Scheduler) producer(id PartitionID) (t *task, output int, ok bool) {
	e := s.byData[id.DataSet]
	if e == nil || id.Producer.Vertex != e.from.ID || id.Producer.Subtask < 0 || id.Producer.Subtask >= len(e.from.tasks) {
		return nil, 0, false
	}
	return e.from.tasks[id.Producer.Subtask], e.output, true
}

// find gives the tracked partition of an id.
func (s *Scheduler) find(id PartitionID) (t *task, output int, ok bool) {
	t, output, ok = s.producer(id)
	return t, output, ok && t.state == finished && t.winner.Attempt == id.Producer
}

// needed tells whether somebody has still to read a partition.
func (s *Scheduler) needed(t *task, output int) bool {
	e := t.v.out[output]
	if e.to.parallelism == 0 {
		return true
	}
	if e.consumers == nil && (e.to.finished < e.to.parallelism || len(s.restarts) == 0) {
		return e.to.finished < e.to.parallelism
	}
	r := e.readers(t.subtask)
	for i := r.first; i <= r.last; i++ {
		if to := e.to.tasks[i]; to.state != finished || to.restart != nil {
			return true
		}
	}
	return false
}

// releases collects partitions by worker.
type releases map[Worker][]PartitionID

func (r releases) add(w Worker, id PartitionID) { r[w] = append(r[w], id) }

func (s *Scheduler) releaseEach(r releases) {
	workers := make([]Worker, 0, len(r))
	for w := range r {
		workers = append(workers, w)
	}
	slices.Sort(workers)
	for _, w := range workers {
		s.release(w, r[w])
	}
}

// release tells a worker, if there still is one.
func (s *Scheduler) release(w Worker, ids []PartitionID) {
	if len(ids) > 0 && s.worker(w) != nil {
		s.emit(Release{Worker: w, Partitions: ids})
	}
}

// releaseConsumed: a task has finished; what nobody else reads of its input can
// go, unless the log has to know first that it has finished.
func (s *Scheduler) releaseConsumed(t *task) {
	if s.cfg.KeepConsumed {
		return
	}
	if s.recording() && s.policy.waits() && s.durable < s.logged {
		s.consumed = append(s.consumed, consumed{s.logged, t, t.winner.Attempt})
		return
	}
	s.releaseInputs(t)
}

// consumed is a finished task whose input is kept until the log is durable.
type consumed struct {
	number  uint64
	t       *task
	attempt AttemptID
}

// advanceReleases releases the input of tasks whose end is durable.
func (s *Scheduler) advanceReleases() {
	n := 0
	for n < len(s.consumed) && s.consumed[n].number <= s.durable {
		if c := s.consumed[n]; c.t.state == finished && c.t.winner.Attempt == c.attempt {
			s.releaseInputs(c.t)
		}
		n++
	}
	s.consumed = s.consumed[n:]
}

func (s *Scheduler) releaseInputs(t *task) {
	r := releases{}
	for _, e := range t.v.in {
		if e.Pipelined || e.consumers == nil && e.to.finished < e.to.parallelism {
			continue
		}
		for p := e.ranges[t.subtask].FirstPartition; p <= e.ranges[t.subtask].LastPartition; p++ {
			s.releaseOne(r, e.from.tasks[p], e.output)
		}
		if e.consumers == nil {
			for _, p := range e.from.tasks {
				s.releaseOne(r, p, e.output)
			}
		}
	}
	s.releaseEach(r)
}

// releaseOne collects a partition if it is there and nobody needs it.
func (s *Scheduler) releaseOne(r releases, t *task, output int) {
	if p := t.parts[output]; p.there && !s.needed(t, output) {
		r.add(p.worker, t.partition(output))
		s.partitionAway(t, output)
	}
}

// releaseAll goes by what is tracked, not by who is there.
func (s *Scheduler) releaseAll() {
	r := releases{}
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			for i := range t.parts {
				if t.parts[i].there {
					r.add(t.parts[i].worker, t.partition(i))
					s.partitionAway(t, i)
				}
			}
		}
	}
	s.releaseEach(r)
}

func byPartition(a, b PartitionID) int {
	return cmp.Or(cmp.Compare(a.DataSet, b.DataSet), cmp.Compare(a.Producer.Subtask, b.Producer.Subtask),
		cmp.Compare(a.Producer.Epoch, b.Producer.Epoch), cmp.Compare(a.Producer.Attempt, b.Producer.Attempt))
}
