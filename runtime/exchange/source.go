package exchange

import (
	"errors"
	"fmt"
	"strings"

	"benchrun/runtime/buffer"
)

// Source hands out a finished stream of elements to one consumer, at the
// consumer's pace. Poll and Close may be called from different goroutines.
type Source interface {
	// Attach says whom to tell, from any goroutine, when there may be something
	// to poll. It is called once.
	Attach(ready func())
	// Poll hands out the next element. The buffer's reference passes.
	// Without allowData only an event is handed out.
	Poll(allowData bool) (buffer.Buffer, Polled)
	// Close ends the source. Idempotent.
	Close()
}

// Polled is the answer of Source.Poll.
type Polled struct {
	OK      bool  // there is a buffer
	More    bool  // something else could be handed out now
	Backlog int   // data buffers still to come, as well as is known
	Err     error // the source cannot go on
}

// Opener finds the source of a key that a remote consumer asks for. An error
// that is ErrPartitionLost reaches the consumer as a PartitionLostError.
type Opener func(key string) (Source, error)

// ErrPartitionLost: what a channel reads is gone; its producer has to run again.
var ErrPartitionLost = errors.New("result partition is lost")

// PartitionLostError is ErrPartitionLost with the key of the partition as the consumer
// asked for it.
type PartitionLostError struct {
	Key string
	Err error // what was found
}

func (e *PartitionLostError) Error() string {
	return fmt.Sprintf("result partition %s is lost: %v", e.Key, e.Err)
}

// Unwrap gives the class and the cause.
func (e *PartitionLostError) Unwrap() []error { return []error{ErrPartitionLost, e.Err} }

// TransferError says that the connection to a worker broke. Nothing is known of
// what the worker holds.
type TransferError struct {
	Worker string
	Err    error
}

func (e *TransferError) Error() string { return e.Err.Error() }
func (e *TransferError) Unwrap() error { return e.Err }

// feed is where a view or a local channel takes its elements from.
type feed interface {
	poll(allowData, priorityOnly bool) (buffer.Buffer, polled)
	resume()
	attach(consumer) bool
	detach(consumer)
}

// sourceFeed is the feed of a source, which knows neither priority nor blocking.
type sourceFeed struct{ s Source }

func (f sourceFeed) poll(allowData, priorityOnly bool) (buffer.Buffer, polled) {
	if priorityOnly {
		return buffer.Buffer{}, polled{}
	}
	b, r := f.s.Poll(allowData)
	return b, polled{ok: r.OK, more: r.More && r.Err == nil, backlog: r.Backlog, err: r.Err}
}

func (f sourceFeed) resume() {}

func (f sourceFeed) attach(c consumer) bool {
	f.s.Attach(c.dataAvailable)
	return true
}

func (f sourceFeed) detach(consumer) { f.s.Close() }

// AddSource connects a channel to a source on this worker. The source passes to
// the gate.
func (g *Gate) AddSource(ch int, s Source) error { return g.addFeed(ch, sourceFeed{s}) }

type prefixed struct {
	prefix string
	open   Opener
}

// Serve makes requests for keys with a prefix go to an opener. Such a request
// never waits for a partition to be registered.
func (s *Server) Serve(prefix string, open Opener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.openers = append(s.mu.openers, prefixed{prefix, open})
}

func openerOf(list []prefixed, key string) Opener {
	for _, p := range list {
		if strings.HasPrefix(key, p.prefix) {
			return p.open
		}
	}
	return nil
}

// turns lets a gate connect its channels one after another. It belongs to the
// task's goroutine.
type turns struct {
	connect func(ch int) error
	next    int
}

// ConnectInTurn connects the channels in order, at most window at a time: the
// next one when one has handed out its end. Ended channels are closed, so a gate
// needs the exclusive buffers of window channels only, whatever their number.
func (g *Gate) ConnectInTurn(window int, connect func(ch int) error) error {
	g.turns.connect = connect
	for range max(window, 1) {
		if err := g.connectNext(); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) connectNext() error {
	ch := g.turns.next
	if ch >= len(g.channels) {
		return nil
	}
	g.turns.next++
	if err := g.turns.connect(ch); err != nil {
		return fmt.Errorf("channel %d: %w", ch, err)
	}
	return nil
}

// ended follows the end of a channel that was handed out.
func (g *Gate) ended(ch int) {
	if g.turns.connect == nil {
		return
	}
	g.channels[ch].close()
	if err := g.connectNext(); err != nil {
		g.fail(err)
	}
}
