package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"benchrun/runtime/exchange"
)

// meet dials one network's listener from another and tells what both saw.
func meet(t *testing.T, accepting, dialling exchange.Network) (accepted bool, err error) {
	t.Helper()
	l, err := accepting.Listen()
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		io.WriteString(c, "in")
		got <- c
	}()
	c, err := dialling.Dial(t.Context(), l.Addr().String())
	if err == nil {
		defer c.Close()
		b := make([]byte, 2)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "in" {
			t.Errorf("read %q, %v", b, err)
		}
	}
	l.Close()
	x, ok := <-got
	if ok {
		x.Close()
	}
	return ok, err
}

// Fails if accept or dial skips the comparison of the secret or of the build
// (return nil from sameBuild; drop the hmac.Equal of "dial").
func TestHandshake(t *testing.T) {
	one, other := NewSecret(), NewSecret()
	if bytes.Equal(one, other) {
		t.Fatal("two secrets are equal")
	}
	in := Secure(exchange.Loopback{}, one, "build 1")
	for _, x := range []struct {
		name    string
		dial    exchange.Network
		refusal Refusal
	}{
		{"same", Secure(exchange.Loopback{}, one, "build 1"), ""},
		{"another secret", Secure(exchange.Loopback{}, other, "build 1"), BadSecret},
		{"no secret", Secure(exchange.Loopback{}, nil, "build 1"), BadSecret},
		{"another build", Secure(exchange.Loopback{}, one, "build 2"), BadBuild},
	} {
		t.Run(x.name, func(t *testing.T) {
			accepted, err := meet(t, in, x.dial)
			var h *HandshakeError
			errors.As(err, &h)
			switch {
			case x.refusal == "" && (err != nil || !accepted):
				t.Errorf("accepted: %v, %v", accepted, err)
			case x.refusal != "" && (h == nil || h.Refusal != x.refusal || accepted):
				t.Errorf("accepted: %v, %v; want a refusal because of the %s", accepted, err, x.refusal)
			}
		})
	}
}

// A stranger that knows the protocol but not the secret: whatever it says, the
// acceptor's reader never sees the connection. The listener goes on serving.
// Fails if the acceptor's check of "dial" is dropped.
func TestStrangerIsNotAccepted(t *testing.T) {
	secret := NewSecret()
	n := Secure(exchange.Loopback{}, secret, "b").(*secured)
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	hello := n.hello()
	for name, says := range map[string][]byte{
		"nothing":          nil,
		"the old protocol": append([]byte{protocol}, bytes.Repeat([]byte{7}, 200)...),
		"another version":  append([]byte(secureMagic), append([]byte{protocol + 1}, make([]byte, 100)...)...),
		"a hello and rubbish": append(append([]byte{}, hello...),
			bytes.Repeat([]byte{9}, 64)...),
		"the right build, no proof": append(append(append([]byte{}, hello...),
			bytes.Repeat([]byte{9}, 32)...), n.build[:]...),
		"its own hello back": append(append([]byte{}, hello...), hello...),
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(says)
		c.(*net.TCPConn).CloseWrite()
		c.SetDeadline(time.Now().Add(HandshakeTimeout))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	c, err := n.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	first := <-accepted
	first.Close()
	l.Close()
	for c := range accepted {
		t.Errorf("%v was accepted", c.RemoteAddr())
		c.Close()
	}
}

// An acceptor that does not know the secret is left before it has seen a proof
// that it could pass on. Fails if dial does not check the acceptor's.
func TestImpostorGetsNoProof(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int64, 1)
	n := Secure(exchange.Loopback{}, NewSecret(), "b").(*secured)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		defer c.Close()
		io.CopyN(io.Discard, c, int64(helloSize))
		c.Write(append(n.hello(), make([]byte, 32)...))
		rest, _ := io.Copy(io.Discard, c)
		got <- rest
	}()
	_, err = n.Dial(t.Context(), l.Addr().String())
	var h *HandshakeError
	if !errors.As(err, &h) || h.Refusal != BadSecret {
		t.Errorf("error %v", err)
	}
	if rest := <-got; rest != 0 {
		t.Errorf("the impostor got %d bytes more", rest)
	}
}

// A version of the future says which it speaks, on both sides.
func TestHandshakeOfAnotherVersion(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, secureMagic+string([]byte{protocol + 1}))
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}()
	_, err = Secure(exchange.Loopback{}, NewSecret(), "b").Dial(t.Context(), l.Addr().String())
	var h *HandshakeError
	if !errors.As(err, &h) || h.Refusal != BadProtocol {
		t.Errorf("error %v, want a refusal because of the protocol", err)
	}
}

// A connection that says nothing keeps nobody waiting, and Close ends it.
func TestSilentConnectionBlocksNobody(t *testing.T) {
	n := Secure(exchange.Loopback{}, NewSecret(), "b")
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go n.Dial(t.Context(), l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	begin := time.Now()
	l.Close()
	if d := time.Since(begin); d > HandshakeTimeout/2 {
		t.Errorf("Close took %v", d)
	}
}

// The other side accepts and says nothing, as a stopped process does: the dial ends
// with its context, for its cause, and the connection is closed. Fails if the
// handshake does not look at the context.
func TestDialOfASilentProcessCanBeCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := errors.New("the attempt was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	heard := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			heard <- err
			return
		}
		defer c.Close()
		io.CopyN(io.Discard, c, int64(helloSize)) // the handshake is under way
		cancel(why)
		_, err = io.Copy(io.Discard, c)
		heard <- err
	}()
	begin := time.Now()
	_, err = Secure(exchange.Loopback{}, NewSecret(), "b").Dial(ctx, l.Addr().String())
	if d := time.Since(begin); !errors.Is(err, why) || d >= HandshakeTimeout {
		t.Errorf("after %v: %v", d, err)
	}
	if err := <-heard; err != nil {
		t.Errorf("the connection: %v", err)
	}
}

// Strangers that say nothing fill all places: who knows the secret gets in
// nevertheless. Fails if the one that comes is dropped instead of the oldest.
func TestStrangersShutNobodyOut(t *testing.T) {
	n := Secure(exchange.Loopback{}, NewSecret(), "b")
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range maxPending + 3 {
		silent, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}()
	begin := time.Now()
	c, err := n.Dial(t.Context(), l.Addr().String())
	if d := time.Since(begin); err != nil || d >= HandshakeTimeout {
		t.Fatalf("after %v: %v", d, err)
	}
	c.Close()
}

// A process that knows no secret and passes each byte on to one that does is not
// taken for it. Fails if the proofs leave the address out.
func TestHandshakeIsNotPassedOn(t *testing.T) {
	n := Secure(exchange.Loopback{}, NewSecret(), "b")
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan bool, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		accepted <- err == nil
	}()
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		from, err := relay.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			from.Close()
			return
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			io.Copy(from, to)
			from.Close()
		}()
		io.Copy(to, from)
		to.Close()
		<-back
	}()
	c, err := n.Dial(t.Context(), relay.Addr().String())
	var h *HandshakeError
	if !errors.As(err, &h) || h.Refusal != BadSecret {
		t.Errorf("through a relay: %v", err)
	}
	if err == nil {
		c.Close()
	}
	<-passed
	l.Close()
	if <-accepted {
		t.Error("the relay was let in")
	}
}

// Flush returns when the other side can have everything, and not before; it
// does not outlive its limit.
func TestFlush(t *testing.T) {
	a, b := net.Pipe()
	x := newSide(a, nop)
	x.Send(Passed{Checkpoint: 1})
	if err := x.Flush(20 * time.Millisecond); err == nil {
		t.Error("flushed although nobody reads") // fails if Flush looks at the queue alone
	}
	y := newSide(b, nop)
	if err := x.Flush(10 * time.Second); err != nil {
		t.Error(err)
	}
	x.Close(false)
	y.Close(false)
	if len(y.got) != 1 {
		t.Errorf("%d messages came", len(y.got))
	}
	if err := x.Flush(time.Second); err == nil {
		t.Error("flushed a closed connection")
	}
}
