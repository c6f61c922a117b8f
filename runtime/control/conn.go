package control

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"benchrun/runtime/exchange"
)

// protocol is the first byte on a connection. It counts up whenever a message
// changes.
const protocol = 5

// Conn is one end of a connection.
type Conn struct {
	conn  net.Conn
	pause func()

	mu    sync.Mutex
	queue []envelope
	busy  bool // the writer has something that is not on the wire yet
	idle  chan struct{}
	err   error
	wake  chan struct{}
	ended chan struct{} // closed when nothing more comes
	done  sync.WaitGroup
}

// envelope lets gob carry any message.
type envelope struct{ M any }

// NewConn starts the goroutines of a connection. Each message that arrives is
// given to receive, and the error that ends the connection to lost, once; both
// are called from one goroutine. pause blocks while the owner is frozen.
func NewConn(c net.Conn, pause func(), receive func(m any), lost func(error)) *Conn {
	x := &Conn{conn: c, pause: pause, wake: make(chan struct{}, 1), idle: make(chan struct{}, 1), ended: make(chan struct{})}
	x.done.Go(x.write)
	x.done.Go(func() {
		err := x.read(receive)
		x.fail(err)
		lost(err)
		close(x.ended)
	})
	return x
}

// Send queues a message. After the connection has ended it does nothing.
func (c *Conn) Send(m any) {
	c.mu.Lock()
	if c.err == nil {
		c.queue = append(c.queue, envelope{m})
	}
	c.mu.Unlock()
	c.signal()
}

// report tells Flush that it may look again.
func (c *Conn) report() {
	select {
	case c.idle <- struct{}{}:
	default:
	}
}

// Flush waits until all that was sent is with the kernel, the connection has
// ended, or the time is over. One goroutine may call it.
func (c *Conn) Flush(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		c.mu.Lock()
		err, rest := c.err, len(c.queue) > 0 || c.busy
		c.mu.Unlock()
		if err != nil || !rest {
			return err
		}
		select {
		case <-c.idle:
		case <-timer.C:
			return fmt.Errorf("control connection: %w", os.ErrDeadlineExceeded)
		}
	}
}

func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Conn) write() {
	w := bufio.NewWriterSize(c.conn, 64<<10)
	enc := gob.NewEncoder(w)
	w.WriteByte(protocol)
	var batch []envelope
	for {
		c.mu.Lock()
		batch, c.queue = c.queue, batch[:0]
		stop := c.err != nil
		c.busy = c.busy || len(batch) > 0
		c.mu.Unlock()
		if stop {
			return
		}
		if len(batch) == 0 {
			if err := w.Flush(); err != nil {
				c.fail(err)
				return
			}
			c.mu.Lock()
			c.busy = false
			c.mu.Unlock()
			c.report()
			<-c.wake
			continue
		}
		c.pause()
		for i := range batch {
			if err := enc.Encode(&batch[i]); err != nil {
				c.fail(fmt.Errorf("message %T: %w", batch[i].M, err))
				return
			}
			batch[i] = envelope{}
		}
	}
}

func (c *Conn) read(receive func(m any)) error {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	v, err := r.ReadByte()
	if err != nil {
		return lostError(err)
	}
	if v != protocol {
		return fmt.Errorf("control connection speaks protocol %d, not %d", v, protocol)
	}
	dec := gob.NewDecoder(r)
	for {
		var e envelope
		if err := dec.Decode(&e); err != nil {
			return lostError(err)
		}
		c.pause()
		receive(e.M)
	}
}

func lostError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return errors.New("control connection was closed by the other side")
	}
	return fmt.Errorf("control connection: %w", err)
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		c.queue = nil
	}
	c.mu.Unlock()
	c.conn.Close()
	c.signal()
	c.report()
}

// Drain waits until the other side has hung up and all that it sent has been
// given to receive, at most for a time.
func (c *Conn) Drain(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-t.C:
	}
}

// Close ends the connection at once and waits; with reset as if the process had
// died. What is queued is lost.
func (c *Conn) Close(reset bool) {
	if reset {
		c.mu.Lock()
		c.queue = nil
		c.mu.Unlock()
		exchange.Reset(c.conn)
	}
	c.fail(net.ErrClosed)
	c.done.Wait()
}
