package cluster

import "sync"

// outcome is how a job has ended. It is told once; what is told later does not
// count. Its lock is a leaf.
type outcome struct {
	done chan struct{}

	mu   sync.Mutex
	told bool
	err  error
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

// end tells it; nil: the job has finished.
func (o *outcome) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told {
		o.told, o.err = true, err
		close(o.done)
	}
}

func (o *outcome) over() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

// Done implements Running.
func (o *outcome) Done() <-chan struct{} { return o.done }

// Err implements Running.
func (o *outcome) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
