package worker

import (
	"context"
	"errors"
	"net"
	"testing"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/scheduling/batch"
)

// A name is looked up at the newest master; an identity keeps its address through a
// change of masters, until the new one has settled or told of it.
//
// Fails if called looks at names of masters before, if learn keeps
// whom its own master has lost, or drops those of the master before, or if settled does
// nothing.
func TestOthers(t *testing.T) {
	peers := func(epoch int64, all ...string) control.Peers {
		m := control.Peers{Epoch: epoch}
		for i := 0; i < len(all); i += 2 {
			m.Workers = append(m.Workers, control.Peer{Name: batch.Worker(all[i]), Identity: all[i+1], Addr: "at " + all[i+1]})
		}
		return m
	}
	o := others{}
	for _, x := range []struct {
		what   string
		do     func()
		called map[batch.Worker]string
		there  string // identities with an address, a letter each
	}{
		{"the first master", func() { o.learn(peers(1, "w0", "a", "w1", "b")) }, map[batch.Worker]string{"w0": "a", "w1": "b", "w2": ""}, "ab"},
		{"it takes w0 for dead", func() { o.learn(peers(1, "w1", "b")) }, map[batch.Worker]string{"w0": "", "w1": "b"}, "b"},
		{"which comes back", func() { o.learn(peers(1, "w1", "b", "w2", "a")) }, map[batch.Worker]string{"w0": "", "w2": "a"}, "ab"},
		{"the next master begins", func() { o.learn(peers(2, "w0", "a")) }, map[batch.Worker]string{"w0": "a", "w1": "", "w2": ""}, "ab"},
		{"another one gets the name", func() { o.learn(peers(2, "w0", "a", "w2", "c")) }, map[batch.Worker]string{"w0": "a", "w2": "c"}, "abc"},
		{"it has settled", func() { o.settled(2) }, map[batch.Worker]string{"w0": "a", "w2": "c", "w1": ""}, "ac"},
	} {
		x.do()
		for name, id := range x.called {
			if got := o.called(name); got != id {
				t.Errorf("%s: %s is %q, not %q", x.what, name, got, id)
			}
		}
		for _, id := range []string{"a", "b", "c"} {
			want := ""
			for _, c := range x.there {
				if string(c) == id {
					want = "at " + id
				}
			}
			if got := o[id].addr; got != want {
				t.Errorf("%s: %s is at %q, not %q", x.what, id, got, want)
			}
		}
	}
}

// deadNetwork notes who was dialled last, and reaches nobody.
type deadNetwork struct {
	exchange.Network
	addr string
}

func (d *deadNetwork) Dial(_ context.Context, addr string) (net.Conn, error) {
	d.addr = addr
	return nil, errors.New("nobody there")
}

// A task was told to read from worker-2; at the next master that is worker-0, and
// another process is worker-2.
//
// Fails if client looks for who has the name now, or if what breaks is told by the name
// at the master before.
func TestAdoptedTasksReadFromWhoHasTheirInput(t *testing.T) {
	n := &deadNetwork{}
	w := &Batch{}
	w.peers = peers{network: n}
	defer w.peers.close(false)
	w.mu.others = others{}
	w.mu.others.learn(control.Peers{Epoch: 1, Workers: []control.Peer{{Name: "worker-2", Identity: "a", Addr: "there"}}})
	holder := w.mu.others.called("worker-2")
	w.mu.others.learn(control.Peers{Epoch: 2, Workers: []control.Peer{{Name: "worker-0", Identity: "a", Addr: "there"}, {Name: "worker-2", Identity: "b", Addr: "elsewhere"}}})
	_, err := w.client(t.Context(), holder)
	if n.addr != "there" {
		t.Errorf("%q is dialled: %v", n.addr, err)
	}
	if _, _, peer := (&attempt{w: w}).classify(err); peer != "worker-0" {
		t.Errorf("the master is told of %q", peer)
	}
	if _, err := w.client(t.Context(), w.mu.others.called("worker-1")); !errors.Is(err, errNoAddress) {
		t.Errorf("one that there is not: %v", err)
	}
}
