package exchange

import (
	"context"
	"net"
	"sync/atomic"
)

// Network makes the connections between workers, so that a test can put
// something else under the wire protocol than sockets.
type Network interface {
	Listen() (net.Listener, error)
	// Dial returns as soon as the context is over: with its cause, or with a
	// connection that came just then.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// Loopback is TCP on 127.0.0.1.
type Loopback struct{}

// Listen opens a port of the kernel's choice.
func (Loopback) Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Dial connects to an address that Listen gave.
func (Loopback) Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// Counter counts the bytes that pass one worker's sockets.
type Counter struct {
	Sent, Received atomic.Int64
}

type countedConn struct {
	net.Conn
	c *Counter
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.c.Received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.c.Sent.Add(int64(n))
	return n, err
}

// Count wraps a connection so that its bytes are counted.
func (c *Counter) Count(conn net.Conn) net.Conn { return countedConn{conn, c} }

// Reset closes a connection the way a dying process does: the peer sees a
// reset, what was not sent is lost.
func Reset(conn net.Conn) {
	if c, ok := conn.(countedConn); ok {
		conn = c.Conn
	}
	if t, ok := conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	conn.Close()
}
