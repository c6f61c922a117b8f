package master

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/timeline"
)

// roll writes down what a registry tells.
type roll struct {
	mu    sync.Mutex
	lines []string
}

func (r *roll) add(format string, a ...any) {
	r.mu.Lock()
	r.lines = append(r.lines, fmt.Sprintf(format, a...))
	r.mu.Unlock()
}

func (r *roll) workerJoined(w *worker)          { r.add("%s joined: %d slots", w.id, w.slots) }
func (r *roll) workerMessage(w *worker, m any)  { r.add("%s: %T%v", w.id, m, m) }
func (r *roll) workerLost(w *worker, err error) { r.add("%s left: %v", w.id, err) }

func (r *roll) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.lines
	r.lines = nil
	return got
}

// watched is a registry whose workers may be silent for a second.
type watched struct {
	*registry
	*roll
	network *pipe
	log     *timeline.Log
}

func watch(t *testing.T) *watched {
	t.Helper()
	x := &watched{roll: &roll{}, network: newPipe(), log: timeline.New()}
	var err error
	x.registry, err = newRegistry(registryConfig{
		loop: newLoop(), members: x.roll, transport: x.network, timeline: x.log, now: x.log.Now, epoch: 4, silence: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.start()
	return x
}

func (x *watched) end() {
	x.loop.close()
	x.registry.close(false)
}

// tells fails if the registry has told anything else since the last call.
func (x *watched) tells(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	got := x.got()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got  %.500q\nwant %q", fmt.Sprint(got), want)
	}
}

// ended tells whether the connection of a worker has ended.
func (w *fakeWorker) ended() bool {
	begin := time.Now()
	w.Drain(time.Nanosecond)
	return time.Since(begin) == 0
}

// beat keeps a worker from being silent until the returned function is called.
func (w *fakeWorker) beat() (stop func()) {
	over := make(chan struct{})
	go func() {
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				w.Send(control.Heartbeat{})
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// Indices go to who asks for them, once in the life of a master: a second worker,
// and one that comes after the loss of the first, get the lowest that is free. A
// second hello of the same worker changes nothing.
// Fails if taken is cleared by a loss, or if join takes a worker that has joined.
func TestRegistryIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := watch(t)
		var all []*fakeWorker
		for _, c := range []struct {
			asks, gets int
			lose       bool
		}{{asks: 1, gets: 1}, {asks: 1, gets: 0, lose: true}, {asks: 0, gets: 2}, {asks: -3, gets: 3}, {asks: 9, gets: 9}} {
			w := joinAs(t, x.network, control.Hello{Index: c.asks, Slots: c.asks + 10})
			w.Send(control.Hello{Index: 7, Slots: 99})
			x.tells(t, fmt.Sprintf("worker-%d joined: %d slots", c.gets, c.asks+10))
			if m := <-w.got; m != (control.Welcome{Epoch: 4, Worker: c.gets}) {
				t.Errorf("asked for %d: %+v", c.asks, m)
			}
			if c.lose {
				w.Close(false)
				x.tells(t, "worker-0 left: control connection was closed")
				continue
			}
			all = append(all, w)
		}
		if err := x.loop.ask(t.Context(), func() error {
			var order []int
			for _, w := range x.inOrder() {
				order = append(order, w.index)
			}
			if fmt.Sprint(order) != "[1 2 3 9]" {
				t.Errorf("in order: %v", order)
			}
			x.shut = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		late := joinAs(t, x.network, control.Hello{Index: 20, Slots: 1})
		x.tells(t)
		x.end()
		for _, w := range append(all, late) {
			if !w.ended() { // fails if close forgets those that have not joined
				t.Error("a connection outlives the registry")
			}
			w.Close(false)
		}
	})
}

// A connection that never says hello is closed when it has been silent for too
// long; nobody is told of it, and what it says does not count.
// Fails if only workers that have joined are watched.
func TestRegistryWithoutHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := watch(t)
		begin := time.Now()
		c, err := x.network.Dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		lost := make(chan time.Duration, 1)
		mute := control.NewConn(c, func() {}, func(any) {}, func(error) { lost <- time.Since(begin) })
		mute.Send(control.Leftover{})
		if d := <-lost; d < time.Second || d > 1200*time.Millisecond {
			t.Errorf("the connection ended after %v", d)
		}
		x.tells(t)
		x.end()
		mute.Close(false)
	})
}

// The loss of a worker is told once, whatever else follows, and nothing that it
// says afterwards counts. Fails if lose does not remember.
func TestRegistryTellsALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := watch(t)
		w := joinAs(t, x.network, control.Hello{Slots: 1})
		x.tells(t, "worker-0 joined")
		hold := make(chan struct{})
		x.loop.post(func() { <-hold })
		time.Sleep(1500 * time.Millisecond) // a look at it waits behind the event above
		close(hold)
		x.tells(t, "worker-0 left: no heartbeat for 1.5s (heartbeat.timeout is 1s)")
		if !w.ended() {
			t.Error("the door is open")
		}
		w.Send(control.Heartbeat{})
		time.Sleep(5 * time.Second)
		x.tells(t)
		if l := lost(x.log); len(l) != 1 || !strings.HasPrefix(l[0], "worker-0: no heartbeat") {
			t.Errorf("the timeline has %q", l)
		}
		x.end()
		w.Close(false)
	})
}

// A worker that sends more than the loop takes is made to wait, in order and
// without loss; that its connection is not read then does not make it silent.
// Fails if welcome does not wait for room, or if loseSilent takes one whose mail
// waits.
func TestRegistryBoundsTheMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := watch(t)
		hold := make(chan struct{})
		w := joinAs(t, x.network, control.Hello{Slots: 1})
		x.tells(t, "worker-0 joined")
		x.loop.post(func() { <-hold })
		time.Sleep(200 * time.Millisecond) // a look at the silent is the next event
		const n = 3 * mailLimit
		for i := range n {
			w.Send(control.Leftover{Bytes: int64(i)})
		}
		stop := w.beat()
		time.Sleep(time.Minute)
		x.loop.mu.Lock()
		waiting := len(x.loop.posted)
		x.loop.mu.Unlock()
		if waiting > mailLimit+1 {
			t.Errorf("%d events wait in the mailbox", waiting)
		}
		close(hold)
		stop()
		synctest.Wait()
		next := 0
		for _, line := range x.got() {
			switch want := fmt.Sprintf("worker-0: control.Leftover{0 %d}", next); {
			case line == want:
				next++
			case !strings.HasPrefix(line, "worker-0: control.Heartbeat"):
				t.Fatalf("got %q, want %q", line, want)
			}
		}
		if next != n {
			t.Errorf("%d messages of %d came", next, n)
		}
		x.end()
		w.Close(false)
	})
}

// close hangs up on all, also while the loop's last event kept messages waiting.
func TestRegistryCloseReleasesReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := watch(t)
		w := joinAs(t, x.network, control.Hello{Slots: 1})
		x.tells(t, "worker-0 joined")
		hold := make(chan struct{})
		x.loop.post(func() { <-hold })
		for range 2 * mailLimit {
			w.Send(control.Heartbeat{})
		}
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(hold) })
		x.end()
		if !w.ended() {
			t.Error("the connection is open")
		}
		x.tells(t)
		w.Close(false)
	})
}
