package exchange

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// Client is the consumer's end of the connection to one other worker.
type Client struct {
	conn  net.Conn
	peer  string
	pause func() // blocks while the worker is frozen

	mu        sync.Mutex
	channels  []*remoteChannel // by id; nil once forgotten
	out       []byte
	announced []*remoteChannel
	err       error
	wake      chan struct{}
	done      sync.WaitGroup
}

// NewClient starts the two goroutines of a connection. Close ends them.
func NewClient(conn net.Conn, peer string, pause func()) *Client {
	c := &Client{conn: conn, peer: peer, pause: pause, wake: make(chan struct{}, 1)}
	c.done.Go(c.write)
	c.done.Go(c.read)
	return c
}

func (c *Client) request(r *remoteChannel, key string, subpartition, credit int) error {
	if len(key) > maxKey {
		return fmt.Errorf("partition key of %d bytes", len(key))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	r.id = uint32(len(c.channels))
	c.channels = append(c.channels, r)
	c.out = appendRequest(c.out, r.id, key, credit, subpartition)
	c.signal()
	return nil
}

func (c *Client) send(kind byte, id uint32, n int) {
	c.mu.Lock()
	c.out = appendSmall(c.out, kind, id, n)
	c.mu.Unlock()
	c.signal()
}

func (c *Client) announce(r *remoteChannel) {
	c.mu.Lock()
	c.announced = append(c.announced, r)
	c.mu.Unlock()
	c.signal()
}

func (c *Client) forget(r *remoteChannel) {
	c.mu.Lock()
	if int(r.id) < len(c.channels) && c.channels[r.id] == r {
		c.channels[r.id] = nil
		c.out = appendSmall(c.out, frameCancel, r.id, 0)
	}
	c.mu.Unlock()
	c.signal()
}

func (c *Client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Client) write() {
	var out []byte
	var list []*remoteChannel
	for range c.wake {
		c.pause()
		c.mu.Lock()
		out, c.out = c.out, out[:0]
		list, c.announced = c.announced, list[:0]
		stop := c.err != nil
		c.mu.Unlock()
		if stop {
			return
		}
		for _, r := range list {
			if n := r.takeUnannounced(); n > 0 {
				out = appendSmall(out, frameCredit, r.id, n)
			}
		}
		clear(list)
		if len(out) == 0 {
			continue
		}
		if _, err := c.conn.Write(out); err != nil {
			c.fail(&TransferError{c.peer, fmt.Errorf("connection to worker %s: %w", c.peer, err)})
			return
		}
	}
}

func (c *Client) read() {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	var hb [dataHeader]byte
	var h header
	for {
		if _, err := io.ReadFull(r, hb[:]); err != nil {
			c.fail(&TransferError{c.peer, fmt.Errorf("connection to worker %s was lost: %w", c.peer, err)})
			return
		}
		c.pause()
		err := h.get(&hb)
		if err == nil {
			err = c.frame(r, &h)
		}
		if err != nil {
			c.fail(&TransferError{c.peer, fmt.Errorf("connection to worker %s: %w", c.peer, err)})
			return
		}
	}
}

func (c *Client) frame(r *bufio.Reader, h *header) error {
	c.mu.Lock()
	var ch *remoteChannel
	if int(h.channel) < len(c.channels) {
		ch = c.channels[h.channel]
	} else {
		c.mu.Unlock()
		return fmt.Errorf("frame for unknown channel %d", h.channel)
	}
	c.mu.Unlock()
	switch h.kind {
	case frameData:
		return c.data(r, h, ch)
	case frameEvent:
		var b [record.EventSize]byte
		if h.length != len(b) {
			return fmt.Errorf("event of %d bytes", h.length)
		}
		if err := payload(r, h, b[:]); err != nil {
			return err
		}
		ev, err := record.ReadEvent(b[:])
		if err != nil {
			return err
		}
		if ch != nil {
			ch.received(buffer.Buffer{Event: &ev}, h.backlog)
		}
		return nil
	case frameBacklog:
		if ch != nil {
			ch.sawBacklog(h.backlog)
		}
		return nil
	case frameReturn:
		if ch != nil {
			ch.returned(h.backlog)
		}
		return nil
	case frameError, frameLost:
		if h.length > maxMessage {
			return fmt.Errorf("error message of %d bytes", h.length)
		}
		b := make([]byte, h.length)
		if err := payload(r, h, b); err != nil {
			return err
		}
		if ch != nil {
			err := fmt.Errorf("worker %s: %s", c.peer, b)
			if h.kind == frameLost {
				err = &PartitionLostError{Key: ch.key, Err: err}
			}
			ch.gate.fail(err)
		}
		return nil
	default:
		return fmt.Errorf("unknown frame type %d", h.kind)
	}
}

func (c *Client) data(r *bufio.Reader, h *header, ch *remoteChannel) error {
	var seg *buffer.Segment
	if ch != nil {
		var err error
		if seg, err = ch.take(); err != nil {
			return err
		}
	}
	if seg == nil { // the channel is closed
		_, err := r.Discard(h.length)
		return err
	}
	if h.length > len(seg.Mem()) {
		seg.Release()
		return fmt.Errorf("buffer of %d bytes does not fit a segment of %d", h.length, len(seg.Mem()))
	}
	data := seg.Mem()[:h.length]
	if err := payload(r, h, data); err != nil {
		seg.Release()
		return err
	}
	ch.received(buffer.Buffer{Seg: seg, Data: data}, h.backlog)
	return nil
}

// payload reads and checks what follows a header.
func payload(r *bufio.Reader, h *header, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if crc := crc32.Checksum(b, castagnoli); crc != h.crc {
		return fmt.Errorf("damaged frame: checksum %08x, want %08x", crc, h.crc)
	}
	return nil
}

// fail tells all channels that the connection is gone.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	channels := slices.Clone(c.channels) // they go on being forgotten
	c.mu.Unlock()
	c.conn.Close() // the other side must not wait for one that reads no more
	c.signal()
	for _, r := range channels {
		if r != nil {
			r.gate.fail(err)
		}
	}
}

// Err is the error that ended the connection.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and waits for its goroutines. With reset, it ends
// as if the process had died.
func (c *Client) Close(reset bool) {
	c.mu.Lock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	c.mu.Unlock()
	if reset {
		Reset(c.conn)
	} else {
		c.conn.Close()
	}
	c.signal()
	c.done.Wait()
}
