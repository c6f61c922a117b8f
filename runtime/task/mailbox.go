package task

import (
	"sync"
	"sync/atomic"
)

// mailbox is the one way for others to have something done on the task's
// goroutine.
type mailbox struct {
	mu      sync.Mutex
	mails   []mail
	closed  bool
	pending atomic.Bool
	wake    chan struct{}
}

// mail is one thing to do. dropped, if set, is called instead when the task
// ended before it came to it.
type mail struct {
	do      func() error
	dropped func()
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post queues a mail; false if the task is over.
func (m *mailbox) post(fn func() error) bool { return m.postOr(fn, nil) }

// postOr is post with a say in what happens if nobody comes to do it.
func (m *mailbox) postOr(fn func() error, dropped func()) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.mails = append(m.mails, mail{fn, dropped})
	m.pending.Store(true)
	m.mu.Unlock()
	m.signal()
	return true
}

// signal makes a waiting loop look again. Safe from any goroutine.
func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run does all mails that are there.
func (m *mailbox) run() error {
	for m.pending.Load() {
		m.mu.Lock()
		mails := m.mails
		m.mails = nil
		m.pending.Store(false)
		m.mu.Unlock()
		for i, x := range mails {
			if err := x.do(); err != nil {
				drop(mails[i+1:])
				return err
			}
		}
	}
	return nil
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	left := m.mails
	m.mails = nil
	m.mu.Unlock()
	drop(left)
}

func drop(mails []mail) {
	for _, x := range mails {
		if x.dropped != nil {
			x.dropped()
		}
	}
}
