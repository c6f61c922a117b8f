package exchange

import (
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// creditRun is some channels of one gate under a random schedule.
type creditRun struct {
	*link
	rival   *buffer.Local // takes the consumer's memory away and gives it back
	stolen  []*buffer.Segment
	sent    []uint64 // by channel: data buffers queued
	got     []uint64
	events  []int // on their way
	blocked []bool
	held    []buffer.Buffer
	shut    bool
	id      int64
}

// TestCredits checks what must hold between a server and the channels of a gate
// at any time: places add up, both sides agree on the credit once all has been
// delivered, nobody sleeps who could go on, and everything comes in order.
func TestCredits(t *testing.T) {
	inBubble(t, func(t *rapid.T) {
		exclusive, floating, channels := rapid.IntRange(0, 2).Draw(t, "exclusive"), rapid.IntRange(1, 3).Draw(t, "floating"), rapid.IntRange(1, 4).Draw(t, "channels")
		need := channels*exclusive + 1
		r := &creditRun{
			link: newLink(t, linkConfig{
				channels: channels, exclusive: exclusive, floating: floating, recovering: rapid.Bool().Draw(t, "recovering"),
				downMemory: need + rapid.IntRange(0, 4).Draw(t, "spare memory"),
			}),
			sent: make([]uint64, channels), got: make([]uint64, channels), events: make([]int, channels), blocked: make([]bool, channels),
		}
		var err error
		if r.rival, err = r.down.NewLocal("rival", 0, 100, 0, nop); err != nil {
			t.Fatal(err)
		}
		channel := rapid.IntRange(0, channels-1)
		send := func(t *rapid.T) {
			ch := channel.Draw(t, "channel")
			for range rapid.IntRange(1, 6).Draw(t, "n") {
				r.sent[ch]++
				r.send(ch, r.sent[ch])
			}
		}
		consume := func(t *rapid.T) {
			for range rapid.IntRange(1, 4).Draw(t, "n") {
				r.consume(t, rapid.Bool().Draw(t, "hold"))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": send, "send 2": send, "consume": consume, "consume 2": consume,
			"event": func(t *rapid.T) {
				ch := channel.Draw(t, "channel")
				r.events[ch]++
				r.event(ch, record.EndOfData)
			},
			"aligned": func(t *rapid.T) { r.barrier(record.Aligned) },
			"urgent":  func(t *rapid.T) { r.barrier(record.Unaligned) },
			"resume": func(t *rapid.T) {
				if ch := channel.Draw(t, "channel"); r.blocked[ch] {
					r.blocked[ch] = false
					r.gate.Resume(ch)
				}
			},
			"open":   func(t *rapid.T) { r.gate.Open(channel.Draw(t, "channel")) },
			"hold":   func(*rapid.T) { r.shut = true; r.hold(true) },
			"let go": func(*rapid.T) { r.shut = false; r.hold(false) },
			"release": func(t *rapid.T) {
				for n := rapid.IntRange(1, 4).Draw(t, "n"); n > 0 && len(r.held) > 0; n-- {
					i := rapid.IntRange(0, len(r.held)-1).Draw(t, "i")
					r.held[i].Release()
					r.held = append(r.held[:i:i], r.held[i+1:]...)
				}
			},
			"steal": func(*rapid.T) {
				if s := r.rival.Poll(); s != nil {
					r.stolen = append(r.stolen, s)
				}
			},
			"give back": func(*rapid.T) { r.giveBack() },
			"":          r.check,
		})
		r.drain(t)
		r.giveBack()
		r.rival.Close()
		r.close()
	})
}

func (r *creditRun) barrier(k record.BarrierKind) {
	r.id++
	for _, bs := range r.part.Barrier(*barrier(r.id, k), nil) {
		numbers(bs)
	}
	for ch := range r.events {
		r.events[ch]++
	}
}

func (r *creditRun) giveBack() {
	for _, s := range r.stolen {
		s.Release()
	}
	r.stolen = nil
}

func (r *creditRun) consume(t *rapid.T, hold bool) bool {
	ch, b, ok := r.gate.Poll()
	switch {
	case !ok:
		return false
	case !b.IsData():
		r.events[ch]--
		r.blocked[ch] = r.blocked[ch] || b.Event.Blocks()
		return true
	}
	if r.got[ch]++; number(b) != r.got[ch] {
		t.Fatalf("channel %d: got buffer %d, want %d", ch, number(b), r.got[ch])
	}
	if hold {
		r.held = append(r.held, b)
	} else {
		b.Release()
	}
	return true
}

func (r *creditRun) check(t *rapid.T) {
	synctest.Wait()
	if err := r.gate.Err(); err != nil {
		t.Fatal(err)
	}
	for i, x := range r.gate.channels {
		c := x.(*remoteChannel)
		c.mu.Lock()
		credit, exclusive, inUse, floating := c.credit, c.exclusive, c.inUse, len(c.floating)
		c.mu.Unlock()
		if credit < 0 || exclusive < 0 || inUse < 0 || credit < floating || exclusive+inUse+credit-floating != r.gate.exclusive {
			t.Fatalf("channel %d: %d exclusive places: %d are free, %d in use, credit %d of which %d floating", i, r.gate.exclusive, exclusive, inUse, credit, floating)
		}
		if r.shut {
			continue
		}
		v := r.view(i)
		if v.credit != credit {
			t.Fatalf("channel %d: the sender has a credit of %d, the receiver counts %d", i, v.credit, credit)
		}
		s := &r.part.subs[i]
		switch {
		case s.q.n == 0:
		case s.q.prio > 0:
			t.Fatalf("channel %d: a priority event waits", i)
		case s.blocked:
			if credit > 0 {
				t.Fatalf("channel %d: a blocked sender keeps a credit of %d", i, credit)
			}
		case !s.q.at(0).IsData():
			t.Fatalf("channel %d: event %s waits", i, s.q.at(0).Event.Kind)
		case credit > 0:
			t.Fatalf("channel %d: %d buffers wait with a credit of %d", i, s.q.data, credit)
		case r.gate.Recovering(i):
		case exclusive > 0:
			t.Fatalf("channel %d: %d buffers wait with %d free places", i, s.q.data, exclusive)
		case inUse == 0:
			if f := r.gate.floats.Poll(); f != nil {
				t.Fatalf("channel %d: %d buffers wait although there is a floating one", i, s.q.data)
			}
		}
	}
	if n := len(r.gate.mu.hungry.items); n > 4 {
		t.Fatalf("the queue for floating buffers has grown to %d for %d channels", n, r.gate.Channels())
	}
}

// view finds the server's end of a channel.
func (r *creditRun) view(ch int) *view {
	for c := range r.server.mu.conns {
		return c.views[r.gate.channels[ch].(*remoteChannel).id]
	}
	return nil
}

// drain lets everything through.
func (r *creditRun) drain(t *rapid.T) {
	r.hold(false)
	r.shut = false
	for ch := range r.blocked {
		r.gate.Open(ch)
	}
	for more := true; more; {
		for _, b := range r.held {
			b.Release()
		}
		r.held = nil
		more = false
		for ch := range r.blocked {
			if r.blocked[ch] {
				more = true
				r.blocked[ch] = false
				r.gate.Resume(ch)
			}
		}
		r.check(t)
		for r.consume(t, false) {
			more = true
		}
	}
	for ch := range r.sent {
		if r.got[ch] != r.sent[ch] || r.events[ch] != 0 {
			t.Fatalf("channel %d: %d of %d buffers came, %d events are missing", ch, r.got[ch], r.sent[ch], r.events[ch])
		}
	}
}
