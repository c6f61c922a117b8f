package exchange

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"

	"benchrun/runtime/record"
)

// Server hands the partitions of one worker to consumers on other workers.
type Server struct {
	listener net.Listener
	counter  *Counter
	pause    func()
	done     sync.WaitGroup

	mu struct {
		sync.Mutex
		partitions map[string]*Partition
		openers    []prefixed
		pending    map[string][]*view // requests for partitions that are not there yet
		conns      map[*serverConn]bool
		closed     bool
	}
}

// NewServer listens and serves until Close.
func NewServer(l net.Listener, counter *Counter, pause func()) *Server {
	s := &Server{listener: l, counter: counter, pause: pause}
	s.mu.partitions = map[string]*Partition{}
	s.mu.pending = map[string][]*view{}
	s.mu.conns = map[*serverConn]bool{}
	s.done.Go(s.accept)
	return s
}

// Addr is where consumers connect.
func (s *Server) Addr() string { return s.listener.Addr().String() }

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		c := &serverConn{server: s, conn: s.counter.Count(conn), views: map[uint32]*view{}, wake: make(chan struct{}, 1)}
		s.mu.Lock()
		if s.mu.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.mu.conns[c] = true
		s.done.Add(2)
		s.mu.Unlock()
		go func() { defer s.done.Done(); c.read() }()
		go func() { defer s.done.Done(); c.write() }()
	}
}

// Register makes a partition available and serves requests that came early.
func (s *Server) Register(p *Partition) {
	s.mu.Lock()
	s.mu.partitions[p.key] = p
	early := s.mu.pending[p.key]
	delete(s.mu.pending, p.key)
	s.mu.Unlock()
	for _, v := range early {
		v.bind(p)
	}
}

// Lookup finds a registered partition for a local channel.
func (s *Server) Lookup(key string) *Partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.partitions[key]
}

// Unregister forgets a partition. Requests that still wait for it stay until
// their connection cancels them.
func (s *Server) Unregister(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.partitions[p.key] == p {
		delete(s.mu.partitions, p.key)
	}
}

func (s *Server) request(v *view, key string) {
	s.mu.Lock()
	p := s.mu.partitions[key]
	var open Opener
	if p == nil {
		if open = openerOf(s.mu.openers, key); open == nil {
			s.mu.pending[key] = append(s.mu.pending[key], v)
		}
	}
	s.mu.Unlock()
	switch {
	case p != nil:
		v.bind(p)
	case open != nil:
		v.bindSource(key, open)
	}
}

func (s *Server) dropConn(c *serverConn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	for key, vs := range s.mu.pending {
		kept := vs[:0]
		for _, v := range vs {
			if v.conn != c {
				kept = append(kept, v)
			}
		}
		if len(kept) == 0 {
			delete(s.mu.pending, key)
		} else {
			s.mu.pending[key] = kept
		}
	}
	s.mu.Unlock()
}

// Close ends all connections and waits; with reset as if the process had died.
func (s *Server) Close(reset bool) {
	s.mu.Lock()
	s.mu.closed = true
	conns := make([]*serverConn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	s.listener.Close()
	for _, c := range conns {
		if reset {
			Reset(c.conn)
		}
		c.stop(net.ErrClosed)
	}
	s.done.Wait()
}

// serverConn is the producer's end of the connection of one consuming worker.
type serverConn struct {
	server *Server
	conn   net.Conn
	wake   chan struct{}

	mu    sync.Mutex
	ready []*view
	errs  []viewError
	back  []creditReturn
	views map[uint32]*view
	err   error
}

// creditReturn is credit that a blocked view has no use for.
type creditReturn struct {
	id uint32
	n  int
}

type viewError struct {
	id  uint32
	err error
}

// kind is the frame that tells the consumer.
func (e viewError) kind() byte {
	if errors.Is(e.err, ErrPartitionLost) {
		return frameLost
	}
	return frameError
}

// view connects one subpartition to one remote channel.
type view struct {
	conn *serverConn
	id   uint32
	sub  int
	s    feed

	// under conn.mu
	credit  int
	queued  bool
	blocked bool // handed out a blocking event and was not resumed
	told    int  // backlog that the consumer knows of
	dropped bool
}

func (v *view) bind(p *Partition) {
	s, err := p.sub(v.sub)
	if err != nil || !v.attach(s) {
		if err == nil {
			err = errTaken
		}
		v.fail(fmt.Errorf("partition %s/%d: %w", p.key, v.sub, err))
	}
}

// bindSource serves what open gives for a key.
func (v *view) bindSource(key string, open Opener) {
	src, err := open(key)
	if err != nil {
		v.fail(err)
		return
	}
	v.attach(sourceFeed{src})
}

// attach makes a feed the one that the view sends from, unless it has a
// consumer already.
func (v *view) attach(s feed) bool {
	v.conn.mu.Lock()
	dropped := v.dropped
	v.s = s
	v.conn.mu.Unlock()
	if !dropped {
		if !s.attach(v) {
			return false
		}
		v.conn.mu.Lock()
		dropped = v.dropped
		v.conn.mu.Unlock()
	}
	if dropped { // cancelled before it could be found attached
		s.detach(v)
	}
	return true
}

// fail tells the consumer.
func (v *view) fail(err error) {
	v.conn.mu.Lock()
	v.conn.errs = append(v.conn.errs, viewError{v.id, err})
	v.conn.mu.Unlock()
	v.conn.signal()
}

func (v *view) dataAvailable()     { v.conn.enqueue(v) }
func (v *view) priorityAvailable() { v.conn.enqueue(v) }

func (c *serverConn) enqueue(v *view) {
	c.mu.Lock()
	if v.queued || v.dropped || c.err != nil {
		c.mu.Unlock()
		return
	}
	v.queued = true
	c.ready = append(c.ready, v)
	c.mu.Unlock()
	c.signal()
}

func (c *serverConn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *serverConn) read() {
	r := bufio.NewReaderSize(c.conn, 32<<10)
	var b [smallFrame]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			c.stop(err)
			return
		}
		c.server.pause()
		if err := intact(b[:]); err != nil {
			c.stop(err)
			return
		}
		id, n := binary.LittleEndian.Uint32(b[4:]), int(binary.LittleEndian.Uint32(b[8:]))
		if err := c.frame(r, b[0], id, n); err != nil {
			c.stop(err)
			return
		}
	}
}

func (c *serverConn) frame(r *bufio.Reader, kind byte, id uint32, n int) error {
	if kind == frameRequest {
		if n > maxKey {
			return fmt.Errorf("partition key of %d bytes", n)
		}
		rest := make([]byte, requestTail+n)
		if _, err := io.ReadFull(r, rest); err != nil {
			return err
		}
		crc := binary.LittleEndian.Uint32(rest[8+n:])
		if rest = rest[:8+n]; crc32.Checksum(rest, castagnoli) != crc {
			return errors.New("damaged request for a partition")
		}
		v := &view{conn: c, id: id, credit: int(binary.LittleEndian.Uint32(rest)), sub: int(binary.LittleEndian.Uint32(rest[4:]))}
		c.mu.Lock()
		c.views[id] = v
		c.mu.Unlock()
		c.server.request(v, string(rest[8:]))
		return nil
	}
	c.mu.Lock()
	v := c.views[id]
	if v == nil {
		c.mu.Unlock()
		return nil // cancelled meanwhile
	}
	s := v.s
	switch kind {
	case frameCredit:
		if v.blocked {
			// It must not hold places that other channels wait for.
			c.back = append(c.back, creditReturn{v.id, n})
			c.mu.Unlock()
			c.signal()
			return nil
		}
		v.credit += n
		c.mu.Unlock()
		if s != nil {
			c.enqueue(v)
		}
	case frameResume:
		v.blocked = false
		c.mu.Unlock()
		if s != nil {
			s.resume()
		}
	case frameCancel:
		v.dropped = true
		delete(c.views, id)
		c.mu.Unlock()
		if s != nil {
			s.detach(v)
		}
	default:
		c.mu.Unlock()
		return fmt.Errorf("unknown frame type %d", kind)
	}
	return nil
}

// write sends what views have, one element of each in turn. It flushes when
// nothing is left to send.
func (c *serverConn) write() {
	w := bufio.NewWriterSize(c.conn, 128<<10)
	var ready []*view
	var errs []viewError
	var back []creditReturn
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		ready, c.ready = c.ready, ready[:0]
		errs, c.errs = c.errs, errs[:0]
		back, c.back = c.back, back[:0]
		c.mu.Unlock()
		if len(ready) == 0 && len(errs) == 0 && len(back) == 0 {
			if err := w.Flush(); err != nil {
				c.stop(err)
				return
			}
			<-c.wake
			continue
		}
		c.server.pause()
		for _, e := range errs {
			if err := writeFrame(w, header{kind: e.kind(), channel: e.id}, message(e.err)); err != nil {
				c.stop(err)
				return
			}
		}
		for _, x := range back {
			if err := writeFrame(w, header{kind: frameReturn, channel: x.id, backlog: x.n}, nil); err != nil {
				c.stop(err)
				return
			}
		}
		for i, v := range ready {
			ready[i] = nil
			if err := c.sendOne(w, v); err != nil {
				c.stop(err)
				return
			}
		}
	}
}

func (c *serverConn) sendOne(w *bufio.Writer, v *view) error {
	c.mu.Lock()
	v.queued = false
	credit, dropped := v.credit, v.dropped
	c.mu.Unlock()
	if dropped {
		return nil
	}
	b, r := v.s.poll(credit > 0, false)
	if r.err != nil {
		e := viewError{v.id, r.err}
		return writeFrame(w, header{kind: e.kind(), channel: v.id}, message(r.err))
	}
	c.mu.Lock()
	returned := 0
	if r.ok && b.IsData() {
		v.credit--
	} else if r.ok && b.Event.Blocks() {
		v.blocked = true
		returned, v.credit = v.credit, 0
	}
	tellBacklog := !r.ok && r.backlog > 0 && v.credit == 0 && v.told < r.backlog
	if r.ok || tellBacklog {
		v.told = r.backlog
	}
	again := r.morePrio || r.more && (v.credit > 0 || r.ok)
	c.mu.Unlock()
	if again {
		c.enqueue(v)
	}
	switch {
	case tellBacklog:
		return writeFrame(w, header{kind: frameBacklog, channel: v.id, backlog: r.backlog}, nil)
	case !r.ok:
		return nil
	case b.IsData():
		err := writeFrame(w, header{kind: frameData, channel: v.id, backlog: r.backlog}, b.Data)
		b.Release()
		return err
	default:
		var e [record.EventSize]byte
		b.Event.Put(e[:])
		err := writeFrame(w, header{kind: frameEvent, channel: v.id, backlog: r.backlog}, e[:])
		if err == nil && returned > 0 {
			err = writeFrame(w, header{kind: frameReturn, channel: v.id, backlog: returned}, nil)
		}
		return err
	}
}

// message is the text of an error, cut to what a frame may carry.
func message(err error) []byte {
	if lost, ok := errors.AsType[*PartitionLostError](err); ok {
		err = lost.Err // the consumer says the rest
	}
	text := err.Error()
	return []byte(text[:min(len(text), maxMessage)])
}

func writeFrame(w *bufio.Writer, h header, payload []byte) error {
	h.length = len(payload)
	if len(payload) > 0 {
		h.crc = crc32.Checksum(payload, castagnoli)
	}
	var hb [dataHeader]byte
	h.put(&hb)
	if _, err := w.Write(hb[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

func (c *serverConn) stop(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if errors.Is(err, io.EOF) {
		err = net.ErrClosed
	}
	c.err = err
	attached := make(map[*view]feed, len(c.views))
	for _, v := range c.views {
		v.dropped = true
		if v.s != nil {
			attached[v] = v.s
		}
	}
	c.mu.Unlock()
	c.conn.Close()
	c.signal()
	for v, s := range attached {
		s.detach(v)
	}
	c.server.dropConn(c)
}
