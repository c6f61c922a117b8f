package exchange

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// kinds runs a test on a local and a remote channel.
func kinds(t *testing.T, c linkConfig, test func(t *testing.T, l *link)) {
	c.channels = max(c.channels, 1)
	for name, local := range map[string]bool{"local": true, "remote": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := c
				c.local = local
				l := newLink(t, c)
				test(t, l)
				l.close()
			})
		})
	}
}

// all polls until nothing is left, and returns numbers and kinds of events.
func (l *link) all() (list []any) {
	for {
		l.settle()
		_, n, ev, ok := l.deliver()
		switch {
		case !ok:
			return list
		case ev != nil:
			list = append(list, ev.Kind)
		default:
			list = append(list, n)
		}
	}
}

func (l *link) expect(want ...any) {
	l.t.Helper()
	got := l.all()
	if len(got) != len(want) {
		l.t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if n, ok := want[i].(int); ok {
			want[i] = uint64(n)
		}
		if got[i] != want[i] {
			l.t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestBlockedUntilResumed(t *testing.T) {
	kinds(t, linkConfig{exclusive: 1, floating: 1}, func(t *testing.T, l *link) {
		l.send(0, 1)
		l.event(0, record.EndOfOutputState)
		l.send(0, 2)
		l.expect(1, record.EndOfOutputState)
		l.gate.Resume(0)
		l.expect(2)
		l.part.Barrier(*barrier(1, record.Aligned), nil)
		l.send(0, 3)
		l.expect(record.Barrier)
		if got := numbers(l.part.Barrier(*barrier(2, record.Unaligned), nil)[0]); len(got) != 1 || got[0] != 3 {
			t.Errorf("overtook %v, want 3", got)
		}
		l.expect(record.Barrier)
		l.gate.Resume(0)
		l.expect(3)
	})
}

// While a channel recovers only priority events pass; all else waits until it
// is opened (INV-6).
func TestRecoveringChannel(t *testing.T) {
	kinds(t, linkConfig{exclusive: 2, floating: 1, recovering: true}, func(t *testing.T, l *link) {
		l.event(0, record.EndOfOutputState)
		l.send(0, 1)
		l.expect()
		numbers(l.part.Barrier(*barrier(1, record.Unaligned), nil)[0])
		l.expect(record.Barrier)
		if !l.gate.Recovering(0) {
			t.Error("open already")
		}
		l.gate.Open(0)
		l.expect(record.EndOfOutputState)
		l.gate.Resume(0)
		l.expect(1)
		l.gate.Open(0) // again: nothing happens
		l.send(0, 2)
		l.expect(2)
	})
}

// A barrier that came while its channel recovers, and times out there, is found
// and made to overtake (CD-28).
func TestConvertWhileRecovering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 1, exclusive: 2, floating: 1, recovering: true})
		l.part.Barrier(*barrier(4, record.AlignedWithTimeout), nil)
		l.expect(record.Announcement)
		l.gate.Convert(0, 3) // not that one
		l.expect()
		l.gate.Convert(0, 4)
		_, b, ok := l.gate.PollPriority()
		if !ok || b.Event.Kind != record.Barrier || b.Event.Barrier != record.Unaligned || b.Event.Sequence == 0 {
			t.Fatalf("got %+v, want the barrier, with word that its producer is blocked", b.Event)
		}
		l.gate.Convert(0, 4) // it is gone
		l.expect()
		l.close()
	})
}

func TestChannelBeforePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 1, exclusive: 1, floating: 1})
		late, err := NewPartition(l.up, PartitionConfig{Key: "late", Subpartitions: 1, MaxBuffers: 8, MaxPerSub: 8, Wake: nop})
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewGate(l.down, GateConfig{Name: "late/0", Channels: 1, Remote: 1, Exclusive: 1, Floating: 1, Wake: nop})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.AddRemote(0, l.client, "late", 0); err != nil {
			t.Fatal(err)
		}
		m := memory{l.up, late.pool}
		late.subs[0].add(m.data(9))
		l.settle()
		l.server.Register(late)
		l.settle()
		if _, b, ok := g.Poll(); !ok || number(b) != 9 {
			t.Error("a request that came early was not served")
		} else {
			b.Release()
		}
		g.Close()
		late.Close()
		l.server.Unregister(late)
		if l.server.Lookup("late") != nil {
			t.Error("still there")
		}
		l.close()
	})
}

// What a consumer cannot have is an error that names worker and partition.
func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 1, exclusive: 1, floating: 1})
		for sub, want := range map[int]string{0: "has a consumer already", 7: "no subpartition 7"} {
			g, err := NewGate(l.down, GateConfig{Name: "x", Channels: 1, Remote: 1, Exclusive: 1, Floating: 1, Wake: nop})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.AddRemote(0, l.client, l.part.Key(), sub); err != nil {
				t.Fatal(err)
			}
			l.settle()
			if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "worker 7") || !strings.Contains(err.Error(), l.part.Key()) {
				t.Errorf("subpartition %d: error %v, want one with %q", sub, err, want)
			}
			g.Close()
		}
		l.close()
	})
	l := newLink(t, linkConfig{local: true, channels: 1})
	g, err := NewGate(l.up, GateConfig{Name: "x", Channels: 1, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	if g.AddLocal(0, l.part, 0) == nil || g.AddLocal(0, l.part, 1) == nil {
		t.Error("a subpartition that is taken, or not there, was given")
	}
	g.Close()
	l.close()
}

func TestBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 2, exclusive: 1, floating: 1})
		woken := false
		l.gate.wake = func() { woken = true }
		l.send(0, 1)
		l.send(1, 1)
		l.server.Close(true)
		l.settle()
		if err := l.gate.Err(); err == nil || !strings.Contains(err.Error(), "worker 7") || !strings.Contains(err.Error(), "input gate a->b#0/0") {
			t.Errorf("error %v, want one that names gate and worker", err)
		}
		if !woken {
			t.Error("nobody was told")
		}
		if l.client.Err() == nil {
			t.Error("the client knows nothing")
		}
		g, err := NewGate(l.down, GateConfig{Name: "x", Channels: 1, Remote: 1, Exclusive: 1, Floating: 1, Wake: nop})
		if err != nil {
			t.Fatal(err)
		}
		if g.AddRemote(0, l.client, "k", 0) == nil {
			t.Error("a broken connection takes requests")
		}
		g.Close()
		l.close()
	})
}

// flip is a connection that damages one bit of what is written.
type flip struct {
	net.Conn
	at  int // byte
	bit int
}

func (f *flip) Write(b []byte) (int, error) {
	if f.at >= 0 && f.at < len(b) {
		b = bytes.Clone(b)
		b[f.at] ^= 1 << f.bit
	}
	f.at -= len(b)
	return f.Conn.Write(b)
}

// Every bit that flips between two workers, in a header, an event or a buffer,
// ends the connection with an error that names the peer.
func TestDamagedFrame(t *testing.T) {
	frames := []int{dataHeader + 8, dataHeader + record.EventSize}
	synctest.Test(t, func(t *testing.T) {
		for at := range frames[0] + frames[1] {
			f := &flip{at: at, bit: at % 8}
			l := newLink(t, linkConfig{channels: 1, exclusive: 2, floating: 1, tap: func(c net.Conn) net.Conn {
				f.Conn = c
				return f
			}})
			l.send(0, 1)
			l.event(0, record.EndOfData)
			l.settle()
			if err := l.gate.Err(); err == nil || !strings.Contains(err.Error(), "worker 7") {
				t.Errorf("byte %d: error %v, want one that names the peer", at, err)
			}
			l.close()
		}
	})
}

// A server that breaks the protocol is told off, not believed.
func TestDataWithoutCredit(t *testing.T) {
	l := newLink(t, linkConfig{local: true, channels: 1})
	g, err := NewGate(l.up, GateConfig{Name: "x", Channels: 1, Remote: 1, Exclusive: 1, Floating: 1, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	c := &remoteChannel{gate: g}
	if _, err := c.take(); err == nil {
		t.Error("data without credit were taken")
	}
	c.closed = true
	if s, err := c.take(); s != nil || err != nil {
		t.Error("a closed channel is not silent")
	}
	g.Close()
	l.close()
}

func TestBytesAreCountedAtTheSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 1, exclusive: 2, floating: 1})
		for n := range uint64(20) {
			l.send(0, n)
		}
		l.all()
		want := int64(20 * (dataHeader + 8))
		if got := l.received.Received.Load(); got < want || got != l.sent.Sent.Load() || l.sent.Received.Load() != l.received.Sent.Load() {
			t.Errorf("server sent %d and received %d, client sent %d and received %d; want at least %d",
				l.sent.Sent.Load(), l.sent.Received.Load(), l.received.Sent.Load(), got, want)
		}
		l.close()
	})
}

// Channels that have nothing but floating buffers take turns, however much each
// has to send.
func TestFloatingBuffersAreSharedFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, linkConfig{channels: 3, exclusive: 0, floating: 1})
		for n := range uint64(30) {
			for ch := range 3 {
				l.send(ch, n)
			}
		}
		var got [3]int
		for range 30 {
			l.settle()
			ch, _, _, ok := l.deliver()
			if !ok {
				t.Fatalf("nothing comes after %v", got)
			}
			got[ch]++
		}
		for ch, n := range got {
			if n < 8 {
				t.Errorf("channel %d got %d of 30 turns; all: %v", ch, n, got)
			}
		}
		l.close()
	})
}

// A gate that cannot have its guaranteed buffers does not come to be.
func TestGateNeedsItsMemory(t *testing.T) {
	for _, total := range []int{0, 3, 6} {
		g := buffer.NewGlobal(64, total)
		if _, err := NewGate(g, GateConfig{Name: "x", Channels: 3, Remote: 3, Exclusive: 2, Floating: 8, Wake: nop}); err == nil {
			t.Errorf("a gate that needs 7 buffers was made of %d", total)
		}
		if s := g.Stats(); s.Used != 0 || s.Pools != 0 {
			t.Errorf("the failed gate keeps memory: %+v", s)
		}
	}
}

// worker is a consuming goroutine that sleeps until it is woken.
type sleeper struct{ wake chan struct{} }

func newSleeper() *sleeper { return &sleeper{make(chan struct{}, 1)} }

func (s *sleeper) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// TestLoopback moves records between goroutines over real sockets and inside a
// worker at once: three producers, two consumers, little memory, priority
// events in between. A wake-up that gets lost shows as a hang.
func TestLoopback(t *testing.T) {
	loopback(t, loopbackConfig{producers: 3, consumers: 2, records: 4000, exclusive: 1, floating: 2, perSub: 4, buffers: 6})
}

type loopbackConfig struct {
	producers, consumers, records        int // records of each producer for each consumer
	exclusive, floating, perSub, buffers int
}

func loopback(t *testing.T, x loopbackConfig) {
	producers, consumers, perEach := x.producers, x.consumers, x.records
	up, down := buffer.NewGlobal(256, 64), buffer.NewGlobal(256, 64)
	var sent, received Counter
	listener, err := Loopback{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(listener, &sent, nop)
	conn, err := Loopback{}.Dial(t.Context(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(received.Count(conn), "0", nop)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var parts []*Partition
	var once sync.Once
	giveUp := func(err error) {
		t.Error(err)
		once.Do(func() { close(stop) })
	}
	for p := range producers {
		mem := up
		if p == 0 { // consumer 0 has this one on its own worker
			mem = down
		}
		s := newSleeper()
		part, err := NewPartition(mem, PartitionConfig{
			Key: string(rune('a' + p)), Subpartitions: consumers, MinBuffers: consumers, MaxBuffers: x.buffers, MaxPerSub: x.perSub, Overdraft: 1, Wake: s.signal, Stop: stop,
		})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		server.Register(part)
		wg.Go(func() {
			r := record.Record{Source: uint16(p), Data: make([]byte, 16)}
			for n := range perEach * consumers {
				for !part.Available() {
					part.Flush() // as a task does from time to time
					select {
					case <-s.wake:
					case <-stop:
						return
					}
				}
				r.Number = uint64(n / consumers)
				if err := part.Write(n%consumers, &r); err != nil {
					giveUp(err)
					return
				}
				if n%500 == 250 {
					for _, bs := range part.Barrier(*barrier(int64(n), record.Unaligned), nil) {
						release(bs)
					}
				}
				if n%97 == 0 {
					part.Flush()
				}
			}
			part.EmitAll(record.Event{Kind: record.EndOfPartition})
		})
	}
	var total, barriers atomic.Int64
	for c := range consumers {
		s := newSleeper()
		g, err := NewGate(down, GateConfig{Name: "g", Channels: producers, Remote: producers - 1, Exclusive: min(c, x.exclusive), Floating: x.floating, Wake: s.signal})
		if err != nil {
			t.Fatal(err)
		}
		for p := range producers {
			if p == 0 {
				err = g.AddLocal(p, parts[p], c)
			} else {
				err = g.AddRemote(p, client, parts[p].Key(), c)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() {
			defer g.Close()
			des := make([]record.Deserializer, producers)
			next := make([]uint64, producers)
			var r record.Record
			for open := producers; open > 0; {
				ch, b, ok := g.Poll()
				if !ok {
					if err := g.Err(); err != nil {
						giveUp(err)
						return
					}
					select {
					case <-s.wake:
					case <-stop:
						return
					}
					continue
				}
				if !b.IsData() {
					if b.Event.Kind == record.EndOfPartition {
						open--
					} else {
						barriers.Add(1)
					}
					continue
				}
				des[ch].Feed(b.Data)
				for {
					body, err := des[ch].Next()
					if err != nil {
						giveUp(err)
						return
					}
					if body == nil {
						break
					}
					if r.Get(body); r.Number != next[ch] || int(r.Source) != ch {
						giveUp(fmt.Errorf("channel %d: record %d of %d, want %d", ch, r.Number, r.Source, next[ch]))
						return
					}
					next[ch]++
					total.Add(1)
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if want := int64(producers * consumers * perEach); total.Load() != want {
		t.Errorf("%d records came, want %d", total.Load(), want)
	}
	if want := int64(producers * consumers * ((perEach*consumers + 249) / 500)); barriers.Load() != want {
		t.Errorf("%d barriers came, want %d", barriers.Load(), want)
	}
	once.Do(func() { close(stop) })
	for _, p := range parts {
		server.Unregister(p)
		p.Close()
	}
	client.Close(false)
	server.Close(false)
	for _, g := range []*buffer.Global{up, down} {
		if s := g.Stats(); s.Used != 0 || s.Pools != 0 {
			t.Errorf("memory is not back: %+v", s)
		}
	}
	if sent.Sent.Load() != received.Received.Load() {
		t.Errorf("sent %d bytes, received %d", sent.Sent.Load(), received.Received.Load())
	}
}
