package batch

import (
	"time"

	"benchrun/runtime/timeline"
)

// backlogLimit is how long nothing is deployed because the log cannot keep up.
const backlogLimit = logLimit

// backlog is more than the log's queue is to hold. What runs goes on; what would
// add to it waits, but not for ever: a disk that is away for good would cost the
// job, and without a log nobody would lose it. Then the queue is bounded by what
// is left of the job.
type backlog struct {
	since  time.Duration // never: there is none
	waited bool          // long enough
}

// logPressure takes whether the log has a backlog.
func (s *Scheduler) logPressure(on bool) {
	b := &s.backlog
	switch {
	case on && b.since == never:
		b.since = s.now
	case !on:
		if b.waited {
			s.emit(Note{backlogNote(timeline.Protected, "")})
		}
		*b = backlog{since: never}
	}
}

// pressed tells whether nothing is to be deployed.
func (s *Scheduler) pressed() bool {
	b := &s.backlog
	if b.since == never || b.waited {
		return false
	}
	if s.now < b.since+backlogLimit {
		return true
	}
	b.waited = true
	s.emit(Note{backlogNote(timeline.Unprotected, "the log could not take what it was given in "+backlogLimit.String()+": tasks are deployed all the same, and what has finished meanwhile would run again")})
	return false
}

// due is when pressure has lasted too long; never: there is none that counts.
func (b *backlog) due() time.Duration {
	if b.since == never || b.waited {
		return never
	}
	return b.since + backlogLimit
}

func backlogNote(state, reason string) timeline.Event {
	e := timeline.Job(state, reason)
	e.Detail = "backlog"
	return e
}
