package worker

import (
	"context"
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
	work    sync.WaitGroup // connections that are being made or closed

	mu struct {
		sync.Mutex
		conns  map[string]*peer        // by address
		hangUp context.CancelCauseFunc // ends what is being dialled
		ctx    context.Context
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

// client returns the connection to the worker at an address. One dial is for
// all who want it, so it goes on when one of them wants it no more: a peer that is
// frozen lets nobody wait beyond the end of its context.
func (p *peers) client(ctx context.Context, name, addr string) (*exchange.Client, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	x := p.mu.conns[addr]
	if x == nil || !x.usable() {
		if broken := x; broken != nil && broken.client != nil {
			p.work.Go(func() { broken.client.Close(false) })
		}
		x = &peer{dialled: make(chan struct{})}
		if p.mu.conns == nil {
			p.mu.conns = map[string]*peer{}
			p.mu.ctx, p.mu.hangUp = context.WithCancelCause(context.Background())
		}
		p.mu.conns[addr] = x
		dialling := p.mu.ctx
		p.work.Go(func() { p.dial(dialling, x, name, addr) })
	}
	p.mu.Unlock()
	select {
	case <-x.dialled:
		return x.client, x.err
	case <-ctx.Done():
		return nil, fmt.Errorf("worker %s: %w", name, context.Cause(ctx))
	}
}

func (p *peers) dial(ctx context.Context, x *peer, name, addr string) {
	defer close(x.dialled)
	conn, err := p.network.Dial(ctx, addr)
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
	hangUp := p.mu.hangUp
	p.mu.Unlock()
	if hangUp != nil {
		hangUp(errClosed)
	}
	for _, x := range conns {
		if <-x.dialled; x.client != nil {
			x.client.Close(reset)
		}
	}
	p.work.Wait()
}
