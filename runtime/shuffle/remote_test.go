package shuffle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
)

// holder is a worker that serves its store, and the connection of another one.
type holder struct {
	*Store
	server         *exchange.Server
	client         *exchange.Client
	conn           net.Conn // of the client
	sent, received exchange.Counter
}

func serve(t fataler, s *Store) *holder {
	t.Helper()
	h := &holder{Store: s}
	l, err := exchange.Loopback{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	h.server = exchange.NewServer(l, &h.sent, func() {})
	h.server.Serve(KeyPrefix, s.Source)
	h.connect(t)
	return h
}

func (h *holder) connect(t fataler) {
	t.Helper()
	conn, err := exchange.Loopback{}.Dial(context.Background(), h.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	h.conn = conn
	h.client = exchange.NewClient(h.received.Count(conn), "7", func() {})
}

func (h *holder) input(id PartitionID, r Range) Input {
	return Input{Partition: id, Range: r, Holder: func(context.Context) (*exchange.Client, error) { return h.client, nil }}
}

func (h *holder) shut(t fataler) {
	t.Helper()
	h.client.Close(false)
	h.server.Close(false)
	shut(t, h.Store)
}

// gate reads inputs to the end, remote ones from other workers.
func gate(t fataler, s *Store, inputs []Input, window int) ([]*channel, error) {
	t.Helper()
	g := buffer.NewGlobal(s.c.SegmentSize, 1<<10)
	remote := 0
	for _, in := range inputs {
		if in.Holder != nil {
			remote++
		}
	}
	x := newGate(t, g, len(inputs), min(remote, window))
	err := s.Connect(context.Background(), x.Gate, inputs, window)
	var list []*channel
	if err == nil {
		list, err = x.drain()
	}
	x.Close()
	if st := g.Stats(); err == nil && (st.Used != 0 || st.Pools != 0) {
		t.Fatalf("memory of the gate is not back: %+v", st)
	}
	return list, err
}

// A subtask reads partitions of its own worker and of another one, some at a
// time, by one gate: to its code all channels are alike.
func TestGateOverTwoWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "shuffle")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		near := open(t, small(dir+"/near"))
		far := serve(t, open(t, small(dir+"/far")))
		var inputs []Input
		var outputs []*output
		for i := range rapid.IntRange(1, 8).Draw(t, "partitions") {
			subs := 1 + rnd.IntN(5)
			o := randomOutput(rnd, subs, rnd.IntN(200), 400)
			first := rnd.IntN(subs)
			in := Input{Partition: partitionOf("job", i), Range: Range{first, first + rnd.IntN(subs-first)}}
			store := near
			if rnd.IntN(2) == 0 {
				store, in = far.Store, far.input(in.Partition, in.Range)
			}
			o.make(t, store, in.Partition, 1<<10+rnd.IntN(8<<10), Codec(rnd.IntN(3)))
			inputs, outputs = append(inputs, in), append(outputs, o)
		}
		list, err := gate(t, near, inputs, rapid.IntRange(1, len(inputs)).Draw(t, "window"))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range list {
			outputs[i].check(t, c, inputs[i].Range)
		}
		far.shut(t)
		shut(t, near)
	})
}

// Many consumers at once, local and remote, of few open files, while other
// partitions are written and released. For the race detector, too.
func TestConcurrentReaders(t *testing.T) {
	rnd := seeded(t)
	c := small(t.TempDir())
	c.MaxOpen = 2
	h := serve(t, open(t, c))
	const partitions, readers = 6, 24
	var outputs []*output
	for i := range partitions {
		outputs = append(outputs, randomOutput(rnd, 4, 200, 200))
		outputs[i].make(t, h.Store, partitionOf("job", i), 4<<10, Codec(i%3))
	}
	var wg sync.WaitGroup
	errs := make(chan error, readers+4)
	for i := range readers {
		r := Range{rnd.IntN(4), 3}
		wg.Go(func() {
			var inputs []Input
			for k := range partitions {
				if (i+k)%2 == 0 {
					inputs = append(inputs, h.input(partitionOf("job", k), r))
				} else {
					inputs = append(inputs, Input{Partition: partitionOf("job", k), Range: r})
				}
			}
			list, err := gate(panicking{}, h.Store, inputs, 1+i%3)
			if err != nil {
				errs <- err
				return
			}
			for k, ch := range list {
				outputs[k].check(panicking{}, ch, r)
			}
		})
	}
	for i := range 4 {
		wg.Go(func() {
			for k := range 5 {
				id := partitionOf(fmt.Sprint("other", i), k)
				outputs[i].make(panicking{}, h.Store, id, 4<<10, None)
				errs <- h.Release(id)
				<-errs
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	h.files.mu.Lock()
	if n := len(h.files.open); n > c.MaxOpen {
		t.Errorf("%d files are open, the limit is %d", n, c.MaxOpen)
	}
	h.files.mu.Unlock()
	for i := range partitions {
		if err := h.Release(partitionOf("job", i)); err != nil {
			t.Error(err)
		}
	}
	checkEmpty(t, h.Store)
	h.shut(t)
}

// panicking fails in goroutines that may not call Fatal of a test.
type panicking struct{}

func (panicking) Helper()                           {}
func (panicking) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (panicking) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
