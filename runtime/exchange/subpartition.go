package exchange

import (
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// consumer is told when its subpartition has something to hand out.
type consumer interface {
	dataAvailable()
	priorityAvailable()
}

// Subpartition is the queue between one producing and one consuming subtask.
type Subpartition struct {
	part  *Partition
	index int

	mu       sync.Mutex
	q        deque
	consumer consumer
	blocked  bool
	full     bool // counted in part.fullSubs
	released bool
}

// polled is the answer of poll.
type polled struct {
	ok       bool
	more     bool // something else could be handed out now, credit aside
	morePrio bool
	backlog  int   // data buffers that wait
	err      error // the source cannot go on
}

// add queues a data buffer or an ordinary event and takes over its reference.
func (s *Subpartition) add(b buffer.Buffer) {
	s.mu.Lock()
	if s.released {
		s.mu.Unlock()
		b.Release()
		return
	}
	s.q.push(b)
	if b.IsData() && !s.full && s.q.data >= s.part.maxPerSub {
		s.full = true
		s.part.fullSubs.Add(1)
	}
	c := s.consumer
	if s.q.n-s.q.prio > 1 || s.blocked {
		c = nil // the consumer knows, or must not know yet
	}
	s.mu.Unlock()
	if c != nil {
		c.dataAvailable()
	}
}

// addPriority puts an event at the head and returns the data buffers that it
// overtakes, each with a reference of its own.
func (s *Subpartition) addPriority(ev *record.Event, capture bool) (overtaken []buffer.Buffer) {
	s.mu.Lock()
	if s.released {
		s.mu.Unlock()
		return nil
	}
	if capture {
		overtaken = s.copyData(s.q.n)
	}
	s.q.pushPriority(buffer.Buffer{Event: ev})
	c := s.consumer
	s.mu.Unlock()
	if c != nil {
		c.priorityAvailable()
	}
	return overtaken
}

// copyData retains the data buffers among the first n elements. REQUIRES s.mu.
func (s *Subpartition) copyData(n int) (data []buffer.Buffer) {
	if s.q.data == 0 {
		return nil
	}
	data = make([]buffer.Buffer, 0, s.q.data)
	for i := range n {
		if b := s.q.at(i); b.IsData() {
			b.Retain()
			data = append(data, *b)
		}
	}
	return data
}

// timeOut turns a waiting aligned barrier with time-out into an unaligned one
// and returns the data that it overtakes. done tells that the barrier was
// still there.
func (s *Subpartition) timeOut(checkpoint int64) (overtaken []buffer.Buffer, done bool) {
	s.mu.Lock()
	for i := s.q.prio; i < s.q.n; i++ {
		ev := s.q.at(i).Event
		if ev == nil || ev.Kind != record.Barrier || ev.Checkpoint != checkpoint || ev.Barrier != record.AlignedWithTimeout {
			continue
		}
		overtaken = s.copyData(i)
		s.q.remove(i)
		urgent := *ev
		urgent.Barrier = record.Unaligned
		s.q.pushPriority(buffer.Buffer{Event: &urgent})
		c := s.consumer
		s.mu.Unlock()
		if c != nil {
			c.priorityAvailable()
		}
		return overtaken, true
	}
	s.mu.Unlock()
	return nil, false
}

// poll hands out the next element. Without allowData only events are.
func (s *Subpartition) poll(allowData, priorityOnly bool) (b buffer.Buffer, r polled) {
	var wakeProducer bool
	var left *record.Event
	s.mu.Lock()
	if can := s.q.n > 0 && (s.q.prio > 0 || !s.blocked && !priorityOnly && (allowData || !s.q.at(0).IsData())); can {
		b = s.q.pop()
		r.ok = true
		switch {
		case b.IsData():
			if s.full && s.q.data < s.part.maxPerSub {
				s.full = false
				wakeProducer = s.part.fullSubs.Add(-1) == 0
			}
		case b.Event.Blocks():
			s.blocked = true
			if b.Event.Kind == record.Barrier && b.Event.Barrier == record.AlignedWithTimeout {
				left = b.Event
			}
		}
	}
	r.morePrio = s.q.prio > 0
	r.more = r.morePrio || s.q.n > 0 && !s.blocked && !priorityOnly
	if !s.blocked { // what waits behind a block needs no places yet
		r.backlog = s.q.data
	}
	s.mu.Unlock()
	if wakeProducer {
		s.part.wake()
	}
	if left != nil {
		s.part.barrierLeft(left.Checkpoint)
	}
	return b, r
}

// resume lets a blocked subpartition go on.
func (s *Subpartition) resume() {
	s.mu.Lock()
	s.blocked = false
	c := s.consumer
	if s.q.n == 0 {
		c = nil
	}
	s.mu.Unlock()
	if c != nil {
		c.dataAvailable()
	}
}

// attach sets the consumer, once.
func (s *Subpartition) attach(c consumer) bool {
	s.mu.Lock()
	if s.released || s.consumer != nil {
		s.mu.Unlock()
		return false
	}
	s.consumer = c
	data, prio := s.q.n > 0 && !s.blocked, s.q.prio > 0
	s.mu.Unlock()
	if prio {
		c.priorityAvailable()
	}
	if data {
		c.dataAvailable()
	}
	return true
}

// detach forgets the consumer, whose worker is gone or who is done.
func (s *Subpartition) detach(c consumer) {
	s.mu.Lock()
	if s.consumer == c {
		s.consumer = nil
	}
	s.mu.Unlock()
}

func (s *Subpartition) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.data == 0
}

func (s *Subpartition) queuedBytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.q.n {
		n += int64(len(s.q.at(i).Data))
	}
	return n
}

func (s *Subpartition) release() {
	s.mu.Lock()
	s.released = true
	s.consumer = nil
	s.q.releaseAll() // segments go to their pools, which take no lock of ours
	if s.full {
		s.full = false
		s.part.fullSubs.Add(-1)
	}
	s.mu.Unlock()
}
