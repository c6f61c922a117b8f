package task

import (
	"time"
)

// Tick tells that some time has passed: partly filled buffers and watermarks
// are due. Safe from any goroutine.
func (t *Task) Tick() {
	t.ticked.Store(true)
	t.mail.signal()
}

// loop runs until the task has nothing left to do.
func (t *Task) loop() error {
	for {
		if t.isStopped() {
			return errCanceled
		}
		if t.mail.pending.Load() {
			if err := t.mail.run(); err != nil {
				return err
			}
			continue
		}
		if t.finishing {
			return nil
		}
		if err := t.priority(); err != nil {
			return err
		}
		if t.ticked.Load() {
			t.ticked.Store(false)
			if err := t.tick(); err != nil {
				return err
			}
		}
		if len(t.timers) > 0 {
			if err := t.ring(); err != nil {
				return err
			}
		}
		t.deadline = time.Time{}
		worked := false
		if t.holding == 0 && t.available() {
			var err error
			if worked, err = t.step(); err != nil {
				return err
			}
		}
		if !worked && !t.finishing {
			t.env.Pause()
			t.wait()
		}
	}
}

// wait blocks until somebody signals or the deadline passes.
func (t *Task) wait() {
	for _, a := range t.timers {
		t.until(a.at)
	}
	if t.deadline.IsZero() {
		select {
		case <-t.mail.wake:
		case <-t.stop:
		}
		return
	}
	t.timer.Reset(time.Until(t.deadline))
	select {
	case <-t.mail.wake:
	case <-t.stop:
	case <-t.timer.C:
	}
	t.timer.Stop()
}

func (t *Task) until(at time.Time) {
	if t.deadline.IsZero() || at.Before(t.deadline) {
		t.deadline = at
	}
}

// available tells whether all outputs can take a record.
func (t *Task) available() bool {
	for _, p := range t.parts {
		if !p.Available() {
			return false
		}
	}
	return true
}

// interrupted tells, cheaply, whether the loop should look up from its
// records.
func (t *Task) interrupted() bool {
	if t.mail.pending.Load() || t.ticked.Load() {
		return true
	}
	for _, in := range t.inputs {
		if in.gate.Urgent() {
			return true
		}
	}
	return false
}

func (t *Task) step() (bool, error) {
	if t.reader != nil {
		return t.stepSource()
	}
	return t.stepInputs()
}

func (t *Task) tick() error {
	for _, p := range t.parts {
		p.Flush()
	}
	t.snapshots.flush()
	t.updateCounts()
	if t.reader != nil {
		return t.tickSource()
	}
	return nil
}

func (t *Task) updateCounts() {
	if t.reader != nil {
		t.emitted.Store(t.reader.Emitted())
		if lag, ok := t.reader.Lag(time.Now()); ok {
			t.lag.Store(int64(lag))
		}
	}
	t.consumed.Store(t.read[0])
	t.bytesIn.Store(t.read[1])
	if t.chain == nil {
		return
	}
	if c := t.chain.ops[len(t.chain.ops)-1].counts; c != nil {
		t.arrived.Store(c.Arrived())
	}
}

// ring handles alarms that are due.
func (t *Task) ring() error {
	now := time.Now()
	due := t.timers[:0:0]
	kept := t.timers[:0]
	for _, a := range t.timers {
		if a.at.After(now) {
			kept = append(kept, a)
		} else {
			due = append(due, a)
		}
	}
	t.timers = kept
	for _, a := range due {
		if a.output {
			t.snapshots.outputTimeout(a.checkpoint)
		} else if err := t.handler.timeout(a.checkpoint); err != nil {
			return err
		}
	}
	return nil
}
