package cluster_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"benchrun/runtime/exchange"
)

// breakable is a network whose connections between workers can be broken: those
// to any listener but the first, which is the master's.
type breakable struct {
	exchange.Loopback
	mu     sync.Mutex
	master string
	data   []net.Conn
}

func (b *breakable) Listen() (net.Listener, error) {
	l, err := b.Loopback.Listen()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.master == "" {
		b.master = l.Addr().String()
	}
	return l, err
}

func (b *breakable) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := b.Loopback.Dial(ctx, addr)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && addr != b.master {
		b.data = append(b.data, c)
	}
	return c, err
}

func (b *breakable) breakData(t testing.TB) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.data) == 0 {
		t.Error("there is no connection between workers")
	}
	for _, c := range b.data {
		exchange.Reset(c)
	}
	b.data = nil
}
