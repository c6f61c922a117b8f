package exchange

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// script is a source of numbered buffers, of which a test decides when they are
// there.
type script struct {
	mem memory

	mu     sync.Mutex
	ready  func()
	total  uint64
	there  uint64 // may be handed out
	next   uint64
	ended  bool
	err    error
	closed int
}

func (s *script) Attach(ready func()) {
	s.mu.Lock()
	s.ready = ready
	s.mu.Unlock()
	ready()
}

func (s *script) Poll(allowData bool) (b buffer.Buffer, p Polled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		p.Err, p.More = s.err, true // More must not matter then
		return b, p
	case s.next == s.total && !s.ended:
		s.ended = true
		return buffer.Buffer{Event: &record.Event{Kind: record.EndOfPartition}}, Polled{OK: true}
	case s.next < s.there && allowData:
		s.next++
		b = s.mem.data(s.next)
		p.OK = true
	}
	p.Backlog = int(s.total - s.next)
	p.More = s.next < s.there || s.next == s.total && !s.ended
	return b, p
}

func (s *script) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func (s *script) change(f func()) {
	s.mu.Lock()
	f()
	ready := s.ready
	s.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// sources are some scripts behind a gate, local or over the wire.
type sources struct {
	*link
	list []*script
	pool *buffer.Local
}

func newSources(t fataler, local bool, exclusive, floating, channels int) *sources {
	l := newLink(t, linkConfig{local: local, channels: 1, exclusive: exclusive, floating: floating})
	l.gate.Close() // it has a channel to the partition of the link
	x := &sources{link: l}
	var err error
	if x.pool, err = l.up.NewLocal("source", 0, 1<<10, 0, nop); err != nil {
		t.Fatal(err)
	}
	for range channels {
		x.list = append(x.list, &script{mem: memory{l.up, x.pool}})
	}
	remote := channels
	if local {
		remote = 0
	} else {
		l.server.Serve("src:", x.open)
	}
	l.gate, err = NewGate(l.down, GateConfig{Name: "sources", Channels: channels, Remote: remote, Exclusive: exclusive, Floating: floating, Wake: nop})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *sources) open(key string) (Source, error) {
	var i int
	if _, err := fmt.Sscanf(key, "src:%d", &i); err != nil || i >= len(x.list) {
		return nil, &PartitionLostError{Key: key, Err: errors.New("never heard of it")}
	}
	return x.list[i], nil
}

func (x *sources) connect(ch int) error {
	if x.server == nil {
		return x.gate.AddSource(ch, x.list[ch])
	}
	return x.gate.AddRemote(ch, x.client, fmt.Sprint("src:", ch), 0)
}

func (x *sources) close() {
	x.t.Helper()
	x.pool.Close()
	x.link.close()
	for i, s := range x.list {
		if s.ready != nil && s.closed == 0 {
			x.t.Fatalf("source %d was not closed", i)
		}
	}
}

// Sources give their buffers in order and once, over any credits, whenever they
// have some, in turns or all at a time.
//
// Fails if ended does not connect the next channel, or if sourceFeed.attach
// gives no ready.
func TestSources(t *testing.T) {
	inBubble(t, func(t *rapid.T) {
		local, channels := rapid.Bool().Draw(t, "local"), rapid.IntRange(1, 5).Draw(t, "channels")
		x := newSources(t, local, rapid.IntRange(0, 2).Draw(t, "exclusive"), rapid.IntRange(1, 3).Draw(t, "floating"), channels)
		for _, s := range x.list {
			s.total = uint64(rapid.IntRange(0, 9).Draw(t, "buffers"))
		}
		window, connected := rapid.IntRange(1, channels).Draw(t, "window"), 0
		err := x.gate.ConnectInTurn(window, func(ch int) error {
			if ch != connected {
				t.Fatalf("channel %d is connected after %d", ch, connected)
			}
			connected++
			return x.connect(ch)
		})
		if err != nil {
			t.Fatal(err)
		}
		got, ended := make([]uint64, channels), 0
		for ended < channels {
			x.settle()
			if connected != min(channels, ended+window) {
				t.Fatalf("%d channels are connected, %d ended, window %d", connected, ended, window)
			}
			for _, s := range x.list {
				if s.there < s.total && rapid.Bool().Draw(t, "more") {
					s.change(func() { s.there += uint64(rapid.IntRange(1, int(s.total-s.there)).Draw(t, "n")) })
				}
			}
			x.settle()
			for {
				ch, n, ev, ok := x.deliver()
				if !ok {
					break
				}
				if ev != nil {
					if ev.Kind != record.EndOfPartition || got[ch] != x.list[ch].total {
						t.Fatalf("channel %d: %v after %d of %d", ch, ev.Kind, got[ch], x.list[ch].total)
					}
					ended++
				} else if got[ch]++; n != got[ch] {
					t.Fatalf("channel %d: buffer %d, want %d", ch, n, got[ch])
				}
				x.settle()
			}
		}
		x.close()
	})
}

// The class of an error passes the wire, and so does its text, once.
//
// Fails if viewError.kind is always frameError.
func TestSourceErrors(t *testing.T) {
	lost := &PartitionLostError{Key: "src:0", Err: errors.New("bad sector")}
	for _, local := range []bool{true, false} {
		for _, c := range []struct {
			err  error
			lost bool
		}{{lost, true}, {errors.New("too many open files"), false}} {
			synctest.Test(t, func(t *testing.T) {
				x := newSources(t, local, 1, 1, 1)
				s := x.list[0]
				s.total, s.there = 3, 1
				if err := x.connect(0); err != nil {
					t.Fatal(err)
				}
				x.settle()
				if _, n, _, ok := x.deliver(); !ok || n != 1 {
					t.Fatal("nothing comes")
				}
				s.change(func() { s.err = c.err })
				x.settle()
				if _, _, _, ok := x.deliver(); ok {
					t.Error("something comes behind the error")
				}
				err := x.gate.Err()
				e, is := errors.AsType[*PartitionLostError](err)
				if errors.Is(err, ErrPartitionLost) != c.lost || is != c.lost || is && e.Key != "src:0" {
					t.Errorf("local %v: %v", local, err)
				}
				if text := fmt.Sprint(err); strings.Count(text, "is lost") != strings.Count(c.err.Error(), "is lost") || !strings.Contains(text, "bad sector") && c.lost {
					t.Errorf("local %v: %v", local, err)
				}
				x.close()
			})
		}
	}
}

// A key that the opener does not know is an error at once; a partition that is not
// registered yet is waited for.
func TestOpenerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSources(t, false, 1, 1, 1)
		if err := x.gate.AddRemote(0, x.client, "src:9", 0); err != nil {
			t.Fatal(err)
		}
		x.settle()
		if err := x.gate.Err(); !errors.Is(err, ErrPartitionLost) || !strings.Contains(err.Error(), "never heard of it") {
			t.Errorf("%v", err)
		}
		x.close()
	})
}

// A consumer that goes away, at any time, closes its source.
func TestSourceIsClosed(t *testing.T) {
	for _, local := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			x := newSources(t, local, 1, 1, 2)
			for ch, s := range x.list {
				s.total, s.there = 5, 4
				if err := x.connect(ch); err != nil {
					t.Fatal(err)
				}
			}
			x.deliver()
			x.gate.Close()
			if x.client != nil {
				x.settle()
				x.client.Close(true)
			}
			x.settle()
			x.close()
		})
	}
}

// A source that is opened while its consumer goes away is closed as well.
//
// Fails if view.attach does not look whether it was dropped.
func TestSourceOpenedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSources(t, false, 1, 1, 1)
		gone := make(chan struct{})
		x.server.Serve("late:", func(string) (Source, error) {
			<-gone
			return x.list[0], nil
		})
		if err := x.gate.AddRemote(0, x.client, "late:", 0); err != nil {
			t.Fatal(err)
		}
		x.settle()
		done := make(chan struct{})
		go func() { defer close(done); x.server.Close(true) }()
		x.settle()
		close(gone)
		<-done
		if n := x.list[0].closed; n == 0 {
			t.Error("the source is still open")
		}
		x.close()
	})
}

// A channel that cannot be connected in its turn fails the gate.
func TestTurnFails(t *testing.T) {
	x := newSources(t, true, 0, 0, 2)
	boom := errors.New("boom")
	err := x.gate.ConnectInTurn(1, func(ch int) error {
		if ch == 1 {
			return boom
		}
		return x.connect(ch)
	})
	if err != nil {
		t.Fatal(err)
	}
	x.deliver() // the end of channel 0
	if err := x.gate.Err(); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	x.close()
}
