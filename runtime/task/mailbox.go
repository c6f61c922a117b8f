package task

import (
	"sync"
	"sync/atomic"
)

// mailbox is the one way for others to have something done on the task's
// goroutine.
type mailbox struct {
	mu      sync.Mutex
	mails   []func() error
	closed  bool
	pending atomic.Bool
	wake    chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post queues a mail; false if the task is over.
func (m *mailbox) post(fn func() error) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.mails = append(m.mails, fn)
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
		for _, fn := range mails {
			if err := fn(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.mails = nil
	m.mu.Unlock()
}
