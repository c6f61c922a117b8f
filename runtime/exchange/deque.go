package exchange

import "benchrun/runtime/buffer"

// deque is a queue of buffers that allocates nothing until it is used and
// lets priority elements in at the front.
type deque struct {
	items []buffer.Buffer // ring, len is a power of two
	head  int
	n     int
	prio  int // the first prio elements are priority events
	data  int // elements that hold data
}

func (q *deque) at(i int) *buffer.Buffer { return &q.items[(q.head+i)&(len(q.items)-1)] }

func (q *deque) grow() {
	if q.n < len(q.items) {
		return
	}
	size := max(4, 2*len(q.items))
	items := make([]buffer.Buffer, size)
	for i := range q.n {
		items[i] = *q.at(i)
	}
	q.items, q.head = items, 0
}

func (q *deque) push(b buffer.Buffer) {
	q.grow()
	*q.at(q.n) = b
	q.n++
	if b.IsData() {
		q.data++
	}
}

// pushPriority puts an event behind the priority events that wait already.
func (q *deque) pushPriority(b buffer.Buffer) {
	q.grow()
	q.head = (q.head - 1) & (len(q.items) - 1)
	for i := range q.prio {
		*q.at(i) = *q.at(i + 1)
	}
	*q.at(q.prio) = b
	q.prio++
	q.n++
}

func (q *deque) pop() buffer.Buffer {
	p := q.at(0)
	b := *p
	*p = buffer.Buffer{}
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
	if q.prio > 0 {
		q.prio--
	}
	if b.IsData() {
		q.data--
	}
	if q.n == 0 && len(q.items) > 64 {
		q.items = nil // a burst must not pin memory in thousands of channels
		q.head = 0
	}
	return b
}

// remove takes out the element at position i, which is no priority event.
func (q *deque) remove(i int) buffer.Buffer {
	b := *q.at(i)
	for k := i; k < q.n-1; k++ {
		*q.at(k) = *q.at(k + 1)
	}
	*q.at(q.n - 1) = buffer.Buffer{}
	q.n--
	if b.IsData() {
		q.data--
	}
	return b
}

func (q *deque) releaseAll() {
	for q.n > 0 {
		b := q.pop()
		b.Release()
	}
	q.items = nil
}
