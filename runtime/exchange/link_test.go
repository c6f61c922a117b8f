package exchange

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// pipes is a network of net.Pipe, for bubbles of synctest. tap, if set, stands
// between the server and what a client reads.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	tap    func(net.Conn) net.Conn
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	if p.tap != nil {
		far = p.tap(far)
	}
	p.conns <- far
	return near
}

// link is a producing and a consuming worker and the connection between them,
// or the two ends of local channels.
type link struct {
	t        fataler
	up, down *buffer.Global // the same for local channels
	part     *Partition
	gate     *Gate
	server   *Server
	client   *Client
	wire     *pipes
	data     *sluice // from the server to the client
	woken    int
	sent     Counter
	received Counter
}

type linkConfig struct {
	local               bool
	channels            int
	exclusive, floating int
	downMemory          int // segments of the consumer, for scarcity
	recovering          bool
	tap                 func(net.Conn) net.Conn
}

func nop() {}

// sluice is a connection whose writes can be held up, so that a test decides
// what arrives when.
type sluice struct {
	net.Conn
	mu   sync.Mutex
	cond *sync.Cond
	shut bool
}

func newSluice() *sluice {
	s := &sluice{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func (s *sluice) on(c net.Conn) net.Conn {
	s.Conn = c
	return s
}

func (s *sluice) set(shut bool) {
	s.mu.Lock()
	s.shut = shut
	s.mu.Unlock()
	s.cond.Broadcast()
}

func (s *sluice) Write(b []byte) (int, error) {
	s.mu.Lock()
	for s.shut {
		s.cond.Wait()
	}
	s.mu.Unlock()
	return s.Conn.Write(b)
}

func newLink(t fataler, c linkConfig) *link {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if c.downMemory == 0 {
		c.downMemory = 1 << 10
	}
	l := &link{t: t, up: buffer.NewGlobal(64, 1<<16), down: buffer.NewGlobal(64, c.downMemory)}
	if c.local {
		l.down = l.up
	}
	var err error
	l.part, err = NewPartition(l.up, PartitionConfig{
		Key: "0/a->b#0/0", Subpartitions: c.channels, MaxBuffers: 1 << 16, MaxPerSub: 1 << 16, Wake: nop,
	})
	check(err)
	remote := c.channels
	if c.local {
		remote = 0
	}
	l.gate, err = NewGate(l.down, GateConfig{Name: "a->b#0/0", Channels: c.channels, Remote: remote, Exclusive: c.exclusive, Floating: c.floating, Wake: func() { l.woken++ }})
	check(err)
	if c.recovering {
		l.gate.SetRecovering()
	}
	if c.local {
		for i := range c.channels {
			check(l.gate.AddLocal(i, l.part, i))
		}
		return l
	}
	// Wakes come from other goroutines, of which none runs while the bubble waits.
	l.gate.wake = nop
	l.wire = newPipes()
	l.data = newSluice()
	l.wire.tap = l.data.on
	if c.tap != nil {
		l.wire.tap = c.tap
	}
	l.server = NewServer(l.wire, &l.sent, nop)
	t.Cleanup(l.stop) // of a test that failed on its way
	l.server.Register(l.part)
	l.client = NewClient(l.received.Count(l.wire.dial()), "7", nop)
	for i := range c.channels {
		check(l.gate.AddRemote(i, l.client, l.part.Key(), i))
	}
	return l
}

// settle lets everything that can happen by itself happen.
func (l *link) settle() {
	if l.server != nil {
		synctest.Wait()
	}
}

// send queues a numbered buffer.
func (l *link) send(ch int, n uint64) {
	m := memory{l.up, l.part.pool}
	l.part.subs[ch].add(m.data(n))
}

func (l *link) event(ch int, k record.EventKind) { l.part.Emit(ch, &record.Event{Kind: k}) }

// hold keeps back what the server sends.
func (l *link) hold(shut bool) {
	if l.data != nil {
		l.data.set(shut)
	}
}

func (l *link) stop() {
	if l.server != nil {
		l.data.set(false)
		l.client.Close(false)
		l.server.Close(false)
	}
}

// close ends everything and checks that all memory is back.
func (l *link) close() {
	l.t.Helper()
	l.gate.Close()
	l.part.Close()
	l.settle()
	l.stop()
	for _, g := range []*buffer.Global{l.up, l.down} {
		if s := g.Stats(); s.Used != 0 || s.Pools != 0 || s.Waiters != 0 {
			l.t.Fatalf("memory is not back: %+v", s)
		}
	}
}

// deliver polls one element; data is released.
func (l *link) deliver() (ch int, n uint64, ev *record.Event, ok bool) {
	ch, b, ok := l.gate.Poll()
	if !ok {
		return 0, 0, nil, false
	}
	if !b.IsData() {
		return ch, 0, b.Event, true
	}
	n = number(b)
	b.Release()
	return ch, n, nil, true
}

// inBubble checks a property in a bubble; rapid must not ask for a deadline
// there.
func inBubble(t *testing.T, property func(*rapid.T)) {
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, property) })
}
