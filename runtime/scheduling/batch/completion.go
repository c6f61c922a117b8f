package batch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// Bounds of the end of a job.
const (
	// commitPause is between two tries of commits, at least; it doubles up to
	// commitPauseMax, as long as no commit succeeds.
	commitPause, commitPauseMax = 100 * time.Millisecond, 5 * time.Second
	// commitLimit is how long commits are tried of which none succeeds.
	commitLimit = 30 * time.Second
	// logLimit is how long the end of a job waits for a log that cannot be written.
	logLimit = 30 * time.Second
)

// completion is what is left when all tasks have finished.
type completion struct {
	todo      []AttemptID // whose output is to be committed, and is not confirmed
	done      []AttemptID // confirmed
	rounds    int         // of commits under way
	begun     bool        // a round has been asked for
	cancelled bool        // while it was under way
	at        time.Duration
	pause     time.Duration
	failing   time.Duration // since when no commit succeeds; never: they do
	cause     error         // of the last round that failed

	logFrom     time.Duration // since when the log is waited for; never: it is not
	unprotected bool          // it is not waited for any more
	finishing   bool          // JobFinished was logged
}

func newCompletion() completion { return completion{at: never, failing: never, logFrom: never} }

// due is when the end of the job is looked at again; never: when something happens.
func (c *completion) due() time.Duration {
	switch {
	case c.logFrom != never: // whatever else is due has to wait for it
		return c.logFrom + logLimit
	case c.at != never:
		return c.at
	}
	return never
}

// complete ends the job when everything has finished.
func (s *Scheduler) complete() {
	c := &s.completion
	if s.phase == phaseRunning {
		for _, v := range s.vertices {
			if v.parallelism == 0 || v.finished < v.parallelism {
				return
			}
		}
		if len(s.restarts) > 0 || len(s.attempts) > 0 {
			return
		}
		s.phase = phaseCommitting
		s.policy.committing()
	}
	if s.phase != phaseCommitting || s.withdrawing || !s.recorded() {
		return
	}
	if len(c.todo) > 0 {
		if c.rounds == 0 && s.now >= c.at {
			c.at, c.begun = never, true
			s.commit(c.todo)
		}
		return
	}
	if !c.finishing {
		c.finishing, c.begun = true, true
		if s.recording() {
			s.policy.finished(joblog.JobFinished{Status: scheduling.StatusFinished.String()})
		}
		if !s.recorded() {
			return
		}
	}
	s.final = scheduling.StatusFinished
	s.closeDown()
}

// recorded tells whether what cannot be undone may be done: the log has all that
// it was given. If it cannot be had for too long the job ends without it, and
// says so. Nothing is lost by that as long as this master lives; if it does not,
// the next one runs again what the log does not have, and first takes back what
// was committed of it (committing).
func (s *Scheduler) recorded() bool {
	c := &s.completion
	if !s.recording() || !s.policy.waits() || s.durable >= s.logged || c.unprotected {
		c.logFrom = never
		return true
	}
	if c.logFrom == never {
		c.logFrom = s.now
	}
	if s.now < c.logFrom+logLimit {
		return false
	}
	c.logFrom, c.unprotected = never, true
	e := timeline.Job(timeline.Unprotected, "")
	e.Detail = "end"
	e.Reason = fmt.Sprintf("%d events could not be made durable in %v: the job ends unprotected, a master that is lost before that costs what they say", s.logged-s.durable, logLimit)
	s.emit(Note{e})
	return true
}

// commit asks for a round of commits.
func (s *Scheduler) commit(ids []AttemptID) {
	s.completion.rounds++
	s.emit(CommitOutput{Attempts: slices.Clone(ids)})
}

// withdraw asks for the output of masters before to be taken back. Nothing is
// deployed, and nothing committed, before that is done.
func (s *Scheduler) withdraw(keep []AttemptID) {
	s.withdrawing = true
	s.emit(WithdrawOutput{Keep: slices.Clone(keep)})
}

func (s *Scheduler) outputWithdrawn(e OutputWithdrawn) {
	s.withdrawing = false
	if e.Err != nil {
		s.end(scheduling.StatusFailed, fmt.Errorf("take back what was committed before: %w", e.Err))
	}
}

// CommitError: a job has failed while only part of its output is visible.
type CommitError struct {
	Visible, Missing []AttemptID
	Why              string // there is no other try
	Err              error
}

func (e *CommitError) Error() string {
	return fmt.Sprintf("commit the output: %v (no other try: %s); visible is %s; not visible is %s", e.Err, e.Why, listed(e.Visible), listed(e.Missing))
}

func (e *CommitError) Unwrap() error { return e.Err }

// listed names some attempts, and how many more there are.
func listed(ids []AttemptID) string {
	const most = 8
	if len(ids) == 0 {
		return "nothing"
	}
	names := make([]string, 0, most)
	for _, id := range ids[:min(most, len(ids))] {
		names = append(names, id.String())
	}
	text := strings.Join(names, ", ")
	if n := len(ids) - most; n > 0 {
		text += fmt.Sprintf(" and that of %d more", n)
	}
	return "that of " + text
}

// outputCommitted takes the end of a round. Whatever failed in it is one failure.
func (s *Scheduler) outputCommitted(e OutputCommitted) {
	c := &s.completion
	if c.rounds == 0 {
		return
	}
	c.rounds--
	visible := make(map[AttemptID]bool, len(e.Attempts))
	for _, id := range e.Attempts {
		visible[id] = true
	}
	c.todo = slices.DeleteFunc(c.todo, func(id AttemptID) bool { return visible[id] })
	c.done = append(c.done, e.Attempts...)
	if len(e.Attempts) > 0 {
		c.failing, c.pause = never, 0
	}
	if e.Err == nil || s.phase != phaseRunning && s.phase != phaseCommitting {
		return
	}
	note := timeline.Job(timeline.Uncommitted, e.Err.Error())
	note.Detail = fmt.Sprintf("%d committed, %d not", len(c.done), len(c.todo))
	s.emit(Note{note})
	if c.failing == never {
		c.failing = s.now
	}
	switch {
	case e.Permanent:
		s.uncommitted(e.Err, "it would fail in the same way")
	case c.cancelled:
		s.uncommitted(e.Err, becauseCancelled)
	case s.now-c.failing >= commitLimit:
		s.uncommitted(e.Err, fmt.Sprintf("it has failed for %v", s.now-c.failing))
	default:
		delay, refused := s.strategy.Failed(s.now)
		if refused != "" {
			s.uncommitted(e.Err, refused)
			return
		}
		c.pause = min(max(2*c.pause, commitPause), commitPauseMax)
		c.at = s.now + max(delay, c.pause)
		c.cause = e.Err
	}
}

const becauseCancelled = "the job was cancelled"

// uncommitted ends a job whose output cannot be committed.
func (s *Scheduler) uncommitted(err error, why string) {
	c := &s.completion
	if c.cancelled && len(c.done) == 0 {
		s.end(scheduling.StatusCanceled, nil)
		return
	}
	s.end(scheduling.StatusFailed, &CommitError{Visible: slices.Clone(c.done), Missing: slices.Clone(c.todo), Why: why, Err: err})
}

// StalledError: nothing of a job runs, and nothing that could happen would change
// that. A vertex was never initialized although its producers have finished.
type StalledError struct{ Vertex string }

func (e *StalledError) Error() string {
	return fmt.Sprintf("the job stands still: vertex %q was not initialized before its master was lost, as far as the log knows, and nobody does it now (hazard H1: Flink would wait for ever)", e.Vertex)
}

// standstill ends a job that would hang. Only a faithful master's does, and it would
// until somebody loses patience.
func (s *Scheduler) standstill() {
	if s.phase != phaseRunning || len(s.attempts) > 0 || len(s.restarts) > 0 || len(s.ready) > 0 || len(s.candidates) > 0 {
		return
	}
	for _, v := range s.vertices {
		switch {
		case v.parallelism == 0 && v.inferring:
			return // the answer comes
		case v.parallelism == 0:
			s.end(scheduling.StatusFailed, &StalledError{v.ID})
			return
		case v.finished < v.parallelism:
			return
		}
	}
}

// cancelJob ends the job. What is being committed is done, if it can be: a job
// half of whose output is visible has failed.
func (s *Scheduler) cancelJob() {
	c := &s.completion
	switch {
	case s.phase != phaseCommitting || !c.begun:
		s.end(scheduling.StatusCanceled, nil)
	default:
		c.cancelled = true
		if c.rounds == 0 && len(c.todo) > 0 { // it waits for the next try
			s.uncommitted(c.cause, becauseCancelled)
		}
	}
}

// end cancels what runs; the job is over when it has ended.
func (s *Scheduler) end(st scheduling.Status, err error) {
	if s.phase == phaseEnding {
		return
	}
	s.phase, s.final, s.cause = phaseEnding, st, err
	s.restarts, s.global = nil, nil
	if st == scheduling.StatusCanceled {
		s.setStatus(scheduling.StatusCancelling, err)
	} else {
		s.setStatus(scheduling.StatusFailing, err)
	}
	for _, a := range s.sortedAttempts() {
		s.cancel(a)
	}
}

// closeDown is the end of a job of which nothing runs.
func (s *Scheduler) closeDown() {
	e := joblog.JobFinished{Status: s.final.String()}
	if s.cause != nil {
		e.Error = s.cause.Error()
	}
	if s.final != scheduling.StatusFinished && s.recording() {
		s.policy.finished(e)
	}
	s.emit(RecordResult{e})
	s.releaseAll()
	if s.cfg.Recovery {
		s.emit(CloseLog{Clear: true})
	}
	s.terminal(s.final, s.cause)
}

func (s *Scheduler) terminal(st scheduling.Status, err error) {
	s.phase = phaseEnded
	s.setStatus(st, err)
	s.emit(Terminal{Status: st, Err: err})
}
