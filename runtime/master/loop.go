package master

import (
	"context"
	"errors"
	"sync"
	"time"
)

// loop runs events one after the other, in the order in which they were posted.
// What only its events touch needs no lock.
type loop struct {
	mu     sync.Mutex
	posted []func()
	closed bool
	wake   chan struct{} // holds one token
	done   chan struct{} // closed when no event runs any more

	// Of the loop's goroutine.
	following []func() // what follows from the event at hand
	stepping  bool
}

// newLoop starts one.
func newLoop() *loop {
	l := &loop{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *loop) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		events, closed := l.posted, l.closed
		l.posted = nil
		l.mu.Unlock()
		if closed {
			return
		}
		if len(events) == 0 {
			<-l.wake
			continue
		}
		for _, fn := range events {
			if l.isClosed() {
				return
			}
			fn()
		}
	}
}

func (l *loop) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// post hands an event to the loop. Safe from any goroutine, also from the loop's
// own; it never waits. After close nothing runs any more. What bounds the
// mailbox is in the package's comment.
func (l *loop) post(fn func()) {
	l.mu.Lock()
	if !l.closed {
		l.posted = append(l.posted, fn)
	}
	l.mu.Unlock()
	l.signal()
}

func (l *loop) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// enqueue runs a step of the event at hand: at once, or behind the steps that are
// due already when one of them calls it. So the effects of one step are carried
// out before the next begins. Only for events of the loop.
func (l *loop) enqueue(fn func()) {
	l.following = append(l.following, fn)
	if l.stepping {
		return
	}
	l.stepping = true
	for len(l.following) > 0 {
		next := l.following[0]
		l.following[0] = nil
		l.following = l.following[1:]
		next()
	}
	l.following = nil
	l.stepping = false
}

// ask runs a request in the loop and waits for what it returns. If the wait ends
// before, the request may still run.
func (l *loop) ask(ctx context.Context, fn func() error) error {
	got := make(chan error, 1)
	l.post(func() { got <- fn() })
	select {
	case err := <-got:
		return err
	case <-l.done:
		select {
		case err := <-got:
			return err
		default:
			return errMasterEnded
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errMasterEnded = errors.New("the master has ended")

// timer makes a timer that posts an event each time it fires. It is stopped at
// first, and its owner stops it.
func (l *loop) timer(fn func()) *time.Timer {
	t := time.AfterFunc(time.Hour, func() { l.post(fn) })
	t.Stop()
	return t
}

// close lets the event that has begun end and waits for that; those behind it are
// dropped. Not for events of the loop.
func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
	<-l.done
}
