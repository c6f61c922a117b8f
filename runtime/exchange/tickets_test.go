package exchange

import (
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// Bugs of other runtimes that must not be ours. The mutation beside each is one
// that it was seen to find.

// Data that were persisted at the start of a capture came again when they were
// polled, and the next restore found a corrupt stream.
//
// Mutation: localChannel.captureStart returns copyData of its subpartition.
func TestFLINK40016_LocalChannelPersistsOnce(t *testing.T) {
	l := newLink(t, linkConfig{local: true, channels: 1})
	for n := range uint64(3) {
		l.send(0, n)
	}
	queued := numbers(l.gate.CaptureStart(0, 1))
	for range 3 {
		l.deliver()
	}
	l.part.Barrier(*barrier(1, record.Aligned), nil)
	l.send(0, 9) // behind the barrier
	l.deliver()
	l.gate.Resume(0)
	l.deliver()
	live := numbers(l.gate.CaptureStop(0, 1))
	if len(queued) != 0 || len(live) != 3 || live[0] != 0 || live[1] != 1 || live[2] != 2 {
		t.Errorf("captured %v at the start and %v later, want 0 1 2 once", queued, live)
	}
	l.close()
}

// A blocked subpartition said "nothing available" to a remote reader although a
// priority barrier was queued; the checkpoint timed out during recovery.
//
// Mutation: Subpartition.poll asks for !s.blocked before s.q.prio.
func TestFLINK40519_PriorityPassesABlockedSender(t *testing.T) {
	kinds(t, linkConfig{exclusive: 0, floating: 1}, func(t *testing.T, l *link) {
		l.event(0, record.EndOfOutputState)
		l.send(0, 1)
		l.expect(record.EndOfOutputState)
		numbers(l.part.Barrier(*barrier(1, record.Unaligned), nil)[0])
		l.expect(record.Barrier)
		l.gate.Resume(0)
		l.expect(1)
	})
}

// The pending flag of a priority barrier on a local channel was not
// synchronised and could be lost.
//
// Mutation: Gate.Poll and PollPriority clear flagPrio after the poll instead of
// before it.
func TestFLINK40521_NoPriorityEventIsLost(t *testing.T) {
	l := newLink(t, linkConfig{local: true, channels: 1})
	c := &lateEvent{channel: l.gate.channels[0], gate: l.gate}
	l.gate.channels[0] = c
	for _, poll := range []func() (int, buffer.Buffer, bool){l.gate.PollPriority, l.gate.Poll} {
		c.events = []*record.Event{barrier(1, record.Unaligned), barrier(2, record.Unaligned)}
		l.gate.notify(0, flagPrio)
		for want := range int64(2) {
			if _, b, ok := poll(); !ok || b.Event.Checkpoint != want+1 {
				t.Fatalf("barrier %d is lost", want+1)
			}
		}
	}
	l.close()
}

// lateEvent is a channel to which the next event comes while one is polled, but
// too late for that poll to see it.
type lateEvent struct {
	channel
	gate   *Gate
	events []*record.Event
}

func (c *lateEvent) poll(bool) (b buffer.Buffer, r polled) {
	if len(c.events) == 0 {
		return b, r
	}
	b.Event, c.events = c.events[0], c.events[1:]
	if len(c.events) > 0 {
		c.gate.notify(0, flagPrio)
	}
	return b, polled{ok: true}
}

// lockWatcher fails when it is told something under the queue's lock.
type lockWatcher struct {
	t    *testing.T
	s    *Subpartition
	told int
}

func (w *lockWatcher) look() {
	w.told++
	if !w.s.mu.TryLock() {
		w.t.Error("notified while the queue is locked")
		return
	}
	w.s.mu.Unlock()
}

func (w *lockWatcher) dataAvailable()     { w.look() }
func (w *lockWatcher) priorityAvailable() { w.look() }

// A notification under the queue's lock met one that came the other way.
//
// Mutation: Subpartition.addPriority calls the consumer before it unlocks.
func TestFLINK40525_NotificationsComeUnlocked(t *testing.T) {
	mem := newMemory(t, 16)
	s := newSubpartition(t, mem)
	w := &lockWatcher{t: t, s: s}
	s.add(mem.data(1))
	s.addPriority(barrier(1, record.Unaligned), false)
	told := 0
	more := func(what string) {
		t.Helper()
		if w.told == told {
			t.Errorf("%s tells nobody", what)
		}
		told = w.told
	}
	s.attach(w)
	more("attach")
	for range 2 {
		b, _ := s.poll(true, false)
		b.Release()
	}
	s.add(mem.data(2))
	more("add")
	s.add(buffer.Buffer{Event: barrier(2, record.AlignedWithTimeout)})
	overtaken, _ := s.timeOut(2)
	numbers(overtaken)
	more("timeOut")
	s.addPriority(barrier(3, record.Unaligned), false)
	more("addPriority")
	s.resume()
	more("resume")
	s.part.Close()
	mem.back(t)
}

// Cancelling met recycling, and a channel that waited for a buffer was
// forgotten or waited for ever.
//
// Mutation: remoteChannel.close releases what is queued before it unlocks.
func TestFLINK18595_CloseWhileBuffersComeBack(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			l := newLink(t, linkConfig{channels: 3, exclusive: 1, floating: 2})
			for ch := range 3 {
				for n := range uint64(5) {
					l.send(ch, n)
				}
			}
			l.settle()
			var held []buffer.Buffer
			for {
				_, b, ok := l.gate.Poll()
				if !ok {
					break
				}
				held = append(held, b)
			}
			var wg sync.WaitGroup
			for i := range held {
				wg.Go(held[i].Release)
			}
			wg.Go(l.gate.Close)
			wg.Go(func() { l.client.Close(true) })
			wg.Wait()
			l.close()
		})
	}
}

// A listener for a buffer was registered after the buffer had come back.
//
// Mutation: remoteChannel.takeFloating joins the queue after the second
// TryRequest instead of before it.
func TestFLINK23466_NoHungryChannelIsForgotten(t *testing.T) {
	l := newLink(t, linkConfig{local: true, channels: 1})
	g, err := NewGate(l.up, GateConfig{Name: "g", Channels: 1, Remote: 1, Exclusive: 0, Floating: 1, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	c := &remoteChannel{gate: g, client: &Client{wake: make(chan struct{}, 1)}}
	g.channels[0] = c
	for range 50 {
		other := g.floats.TryRequest() // the only one
		g.mu.Lock()                    // the channel gets no further than to the queue
		var wg sync.WaitGroup
		wg.Go(func() { c.sawBacklog(1) })
		for range 1000 {
			goruntime.Gosched()
		}
		g.mu.Unlock()
		other.Release()
		wg.Wait()
		credit, floating := c.credit, c.floating
		c.credit, c.floating, c.demand = 0, nil, 0
		if credit != 1 {
			t.Fatal("the channel got no buffer although there is one")
		}
		floating[0].Free()
	}
	c.closed = true
	g.Close()
	l.close()
}
