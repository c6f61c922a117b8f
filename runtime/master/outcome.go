package master

import (
	"fmt"
	"maps"
	"sync"

	"benchrun/runtime/timeline"
)

// outcome is what the loop tells everybody: how the job has ended, and the options
// that its tasks run with.
type outcome struct {
	done     chan struct{} // closed when the job has ended
	reported chan struct{} // closed when a worker has reported its options

	mu       sync.Mutex
	err      error
	options  map[string]any
	disputed map[string]bool // options in which workers disagree
}

func newOutcome() *outcome {
	return &outcome{done: make(chan struct{}), reported: make(chan struct{}), disputed: map[string]bool{}}
}

// Done is closed when the job has ended.
func (o *outcome) Done() <-chan struct{} { return o.done }

// Err tells why the job ended, after Done; nil if it finished.
func (o *outcome) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Options are the values that the tasks run with, as the workers reported them.
// Where workers disagree the value says so, which no option can equal.
func (o *outcome) Options() map[string]any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.options)
}

// end notes the end of the job, once.
func (o *outcome) end(err error) {
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	close(o.done)
}

func (o *outcome) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// inUse notes what a worker reported.
func (o *outcome) inUse(options map[string]any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.options == nil {
		o.options = maps.Clone(options)
		close(o.reported)
		return
	}
	for k, v := range options {
		old, known := o.options[k]
		switch {
		case !known:
			o.options[k] = v
		case old != v && !o.disputed[k]:
			o.disputed[k] = true
			o.options[k] = fmt.Sprintf("%v on one worker, %v on another", old, v)
		}
	}
}

// jobEvent tells the timeline in which state the job is now.
func jobEvent(log *timeline.Log, state string, err error) {
	e := timeline.Of(timeline.JobState)
	e.State = state
	if err != nil {
		e.Reason = err.Error()
	}
	log.Add(e)
}
