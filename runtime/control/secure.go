package control

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"benchrun/runtime/exchange"
)

// HandshakeTimeout bounds how long the other side may take to prove itself.
const HandshakeTimeout = 5 * time.Second

// SecretSize is the length of a secret in bytes.
const SecretSize = 32

// NewSecret makes a secret for one cluster.
func NewSecret() []byte {
	b := make([]byte, SecretSize)
	rand.Read(b) // never fails
	return b
}

// Refusal says why two sides do not talk.
type Refusal string

// The refusals.
const (
	BadProtocol Refusal = "protocol" // another version, or no peer of ours at all
	BadSecret   Refusal = "secret"
	BadBuild    Refusal = "build"
)

// HandshakeError is a connection that was refused, by this side or by the other.
type HandshakeError struct {
	Refusal Refusal
	Detail  string
}

func (e *HandshakeError) Error() string { return fmt.Sprintf("handshake refused: %s", e.Detail) }

// Secure puts a handshake in front of every connection of a network: both
// sides prove that they know the secret, which itself does not travel, and
// that they are of the same build. Connections that fail never reach who
// accepts.
func Secure(n exchange.Network, secret []byte, build string) exchange.Network {
	return &secured{Network: n, secret: secret, build: sha256.Sum256([]byte(build))}
}

type secured struct {
	exchange.Network
	secret []byte
	build  [sha256.Size]byte
}

// Handshake, all fields of fixed size:
//
//	dialler  -> acceptor   magic (4), protocol (1), nonce (16)
//	acceptor -> dialler    magic (4), protocol (1), nonce (16), HMAC (32) over "accept", both nonces, address
//	dialler  -> acceptor   HMAC (32) over "dial", both nonces, build, address; build (32)
//	acceptor -> dialler    verdict (1), HMAC (32) over "verdict", both nonces, verdict, build, address; build (32)
//
// The address is the acceptor's, which each side knows from its own socket: whoever
// has taken the port of a process that died cannot pass the handshake on to another.
const (
	secureMagic = "BRhs"
	nonceSize   = 16
	helloSize   = len(secureMagic) + 1 + nonceSize

	verdictWelcome = 1
	verdictBuild   = 2
)

var errBadMAC = &HandshakeError{BadSecret, "the other side does not know this cluster's secret, or answers for another address"}

func (s *secured) mac(role string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(role))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func (s *secured) hello() []byte {
	b := append([]byte(secureMagic), protocol)
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	return append(b, nonce...)
}

func checkHello(b []byte) (nonce []byte, err error) {
	if string(b[:len(secureMagic)]) != secureMagic {
		return nil, &HandshakeError{BadProtocol, "the other side is no part of a cluster: it begins otherwise"}
	}
	if v := b[len(secureMagic)]; v != protocol {
		return nil, &HandshakeError{BadProtocol, fmt.Sprintf("the other side speaks protocol %d, not %d", v, protocol)}
	}
	return b[len(secureMagic)+1 : helloSize], nil
}

// dial is the dialler's half.
func (s *secured) dial(c net.Conn) error {
	mine := s.hello()
	if _, err := c.Write(mine); err != nil {
		return refusedBy(err)
	}
	theirs := make([]byte, helloSize+sha256.Size)
	if n, err := io.ReadFull(c, theirs); err != nil {
		if n > len(secureMagic) { // one of another version says no more than that
			if _, err := checkHello(theirs); err != nil {
				return err
			}
		}
		return refusedBy(err)
	}
	sn, err := checkHello(theirs)
	if err != nil {
		return err
	}
	cn, addr := mine[len(mine)-nonceSize:], []byte(c.RemoteAddr().String())
	if !hmac.Equal(theirs[helloSize:], s.mac("accept", cn, sn, addr)) {
		return errBadMAC
	}
	if _, err := c.Write(append(s.mac("dial", cn, sn, s.build[:], addr), s.build[:]...)); err != nil {
		return refusedBy(err)
	}
	verdict := make([]byte, 1+2*sha256.Size)
	if _, err := io.ReadFull(c, verdict); err != nil {
		return refusedBy(err)
	}
	build := verdict[1+sha256.Size:]
	if !hmac.Equal(verdict[1:1+sha256.Size], s.mac("verdict", cn, sn, verdict[:1], build, addr)) {
		return errBadMAC
	}
	return s.sameBuild(build)
}

// accept is the acceptor's half.
func (s *secured) accept(c net.Conn) error {
	theirs := make([]byte, helloSize)
	if _, err := io.ReadFull(c, theirs); err != nil {
		return err
	}
	cn, err := checkHello(theirs)
	if err != nil {
		c.Write(s.hello()[:len(secureMagic)+1]) // so that another version can say what is wrong
		return err
	}
	mine := s.hello()
	sn, addr := mine[len(mine)-nonceSize:], []byte(c.LocalAddr().String())
	if _, err := c.Write(append(mine, s.mac("accept", cn, sn, addr)...)); err != nil {
		return err
	}
	proof := make([]byte, 2*sha256.Size)
	if _, err := io.ReadFull(c, proof); err != nil {
		return err
	}
	build := proof[sha256.Size:]
	if !hmac.Equal(proof[:sha256.Size], s.mac("dial", cn, sn, build, addr)) {
		return errBadMAC
	}
	err = s.sameBuild(build)
	verdict := []byte{verdictWelcome}
	if err != nil {
		verdict[0] = verdictBuild
	}
	answer := append(append(verdict, s.mac("verdict", cn, sn, verdict, s.build[:], addr)...), s.build[:]...)
	if _, werr := c.Write(answer); err == nil {
		err = werr
	}
	return err
}

func (s *secured) sameBuild(build []byte) error {
	if hmac.Equal(build, s.build[:]) {
		return nil
	}
	return &HandshakeError{BadBuild, fmt.Sprintf("the other side is build %x, this one is %x: all processes of a cluster must be of one build", build[:6], s.build[:6])}
}

// refusedBy words the end of a connection in the middle of a handshake.
func refusedBy(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &HandshakeError{BadSecret, "the other side hung up: it knows another secret, or speaks another protocol"}
	}
	return fmt.Errorf("handshake: %w", err)
}

var errNoHandshake = fmt.Errorf("the other side did not prove itself within %v", HandshakeTimeout)

// Dial implements exchange.Network. Who is stopped neither accepts nor answers:
// the time-out is for both, and the end of the context ends both.
func (s *secured) Dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, HandshakeTimeout, errNoHandshake)
	defer cancel()
	c, err := s.Network.Dial(ctx, addr)
	if err == nil {
		if err = during(ctx, c, s.dial); err != nil {
			c.Close()
			err = fmt.Errorf("%s: %w", addr, err)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%s: %w", addr, context.Cause(ctx))
		}
		return nil, err
	}
	return c, nil
}

// during runs a half of a handshake, which breaks off when the context is over.
func during(ctx context.Context, c net.Conn, half func(net.Conn) error) error {
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.SetDeadline(time.Now())
		close(broken)
	})
	err := half(c)
	if !stop() {
		<-broken // the deadline would strike who gets the connection
		return context.Cause(ctx)
	}
	return err
}

func bounded(c net.Conn, half func(net.Conn) error) error {
	c.SetDeadline(time.Now().Add(HandshakeTimeout))
	if err := half(c); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// Listen implements exchange.Network.
func (s *secured) Listen() (net.Listener, error) {
	l, err := s.Network.Listen()
	if err != nil {
		return nil, err
	}
	x := &secureListener{Listener: l, s: s, proven: make(chan net.Conn), closed: make(chan struct{})}
	x.mu.pending = map[net.Conn]uint64{}
	x.work.Go(x.acceptAll)
	return x, nil
}

// maxPending bounds the connections that have yet to prove themselves.
const maxPending = 256

// secureListener proves connections side by side, so that one that says
// nothing keeps no other waiting.
type secureListener struct {
	net.Listener
	s      *secured
	proven chan net.Conn
	closed chan struct{}
	once   sync.Once
	work   sync.WaitGroup

	mu struct {
		sync.Mutex
		err     error               // of the listener
		pending map[net.Conn]uint64 // by when they came
		came    uint64
	}
}

func (l *secureListener) acceptAll() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.mu.Lock()
			l.mu.err = err
			l.mu.Unlock()
			l.shut()
			return
		}
		l.mu.Lock()
		if len(l.mu.pending) >= maxPending {
			l.dropOldestLocked()
		}
		l.mu.came++
		l.mu.pending[c] = l.mu.came
		l.mu.Unlock()
		l.work.Go(func() { l.prove(c) })
	}
}

// dropOldestLocked closes the one that has taken longest to prove itself: most
// likely it never will, while the newest may be one of ours.
func (l *secureListener) dropOldestLocked() {
	var oldest net.Conn
	for c, n := range l.mu.pending {
		if oldest == nil || n < l.mu.pending[oldest] {
			oldest = c
		}
	}
	delete(l.mu.pending, oldest)
	oldest.Close()
}

func (l *secureListener) prove(c net.Conn) {
	err := bounded(c, l.s.accept)
	l.mu.Lock()
	delete(l.mu.pending, c)
	l.mu.Unlock()
	if err == nil {
		select {
		case l.proven <- c:
			return
		case <-l.closed:
		}
	}
	c.Close()
}

// Accept gives connections that have proven themselves.
func (l *secureListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.proven:
		return c, nil
	case <-l.closed:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mu.err != nil {
			return nil, l.mu.err
		}
		return nil, net.ErrClosed
	}
}

func (l *secureListener) shut() {
	l.once.Do(func() { close(l.closed) })
	l.mu.Lock()
	for c := range l.mu.pending {
		c.Close()
	}
	l.mu.Unlock()
}

// Close ends the listener and the handshakes, and waits for them.
func (l *secureListener) Close() error {
	err := l.Listener.Close()
	l.shut()
	l.work.Wait()
	return err
}
