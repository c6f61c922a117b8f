package worker

import (
	"errors"
	"fmt"
	"sync"

	"benchrun/runtime/exchange"
)

// peers are a worker's data connections to others: one an address, made on
// first use, and anew when it has failed.
type peers struct {
	network exchange.Network
	counter *exchange.Counter
	pause   func()
	failed  sync.WaitGroup // connections that are being closed

	mu struct {
		sync.Mutex
		conns  map[string]*peer // by address
		closed bool
	}
}

// peer is the data connection to another worker.
type peer struct {
	dialled chan struct{} // closed when client or err is there
	client  *exchange.Client
	err     error
}

var errClosed = errors.New("worker is shutting down")

// client returns the connection to the worker at an address. Who dials does so
// outside of the lock: a peer that is frozen lets it wait, and nobody else.
func (p *peers) client(name, addr string) (*exchange.Client, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	x := p.mu.conns[addr]
	fresh := x == nil || !x.usable()
	if fresh {
		if broken := x; broken != nil && broken.client != nil {
			p.failed.Go(func() { broken.client.Close(false) })
		}
		x = &peer{dialled: make(chan struct{})}
		if p.mu.conns == nil {
			p.mu.conns = map[string]*peer{}
		}
		p.mu.conns[addr] = x
	}
	p.mu.Unlock()
	if fresh {
		p.dial(x, name, addr)
	}
	<-x.dialled
	return x.client, x.err
}

func (p *peers) dial(x *peer, name, addr string) {
	defer close(x.dialled)
	conn, err := p.network.Dial(addr)
	if err != nil {
		x.err = fmt.Errorf("worker %s: %w", name, err)
		return
	}
	x.client = exchange.NewClient(p.counter.Count(conn), name, p.pause)
}

// usable tells whether a connection is there or on its way.
func (p *peer) usable() bool {
	select {
	case <-p.dialled:
		return p.err == nil && p.client.Err() == nil
	default:
		return true
	}
}

// close ends all connections, and waits; no other is made from here.
func (p *peers) close(reset bool) {
	p.mu.Lock()
	conns := p.mu.conns
	p.mu.conns, p.mu.closed = nil, true
	p.mu.Unlock()
	for _, x := range conns {
		if <-x.dialled; x.client != nil {
			x.client.Close(reset)
		}
	}
	p.failed.Wait()
}
