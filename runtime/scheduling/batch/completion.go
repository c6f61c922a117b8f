package batch

import (
	"fmt"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
)

// complete ends the job when everything has finished.
func (s *Scheduler) complete() {
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
	if s.phase != phaseCommitting {
		return
	}
	if s.recording() && s.policy.waits() && s.durable < s.logged {
		return
	}
	if !s.asked {
		s.asked = true
		s.commitAll()
	}
	if len(s.commits) > 0 {
		if s.commitAt != never && s.now >= s.commitAt {
			s.commitAt = never
			s.commitAll()
		}
		return
	}
	if !s.finishing {
		s.finishing = true
		if s.recording() {
			s.policy.finished(joblog.JobFinished{Status: scheduling.StatusFinished.String()})
		}
		if s.recording() && s.policy.waits() && s.durable < s.logged {
			return
		}
	}
	s.final = scheduling.StatusFinished
	s.closeDown()
}

// commitAll asks for all commits that are not confirmed.
func (s *Scheduler) commitAll() {
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if s.commits[t.winner.Attempt] {
				s.emit(CommitOutput{Attempt: t.winner.Attempt})
			}
		}
	}
}

func (s *Scheduler) outputCommitted(e OutputCommitted) {
	switch {
	case !s.commits[e.Attempt]:
	case e.Err == nil:
		delete(s.commits, e.Attempt)
	default:
		err := fmt.Errorf("commit the output of %s: %w", e.Attempt, e.Err)
		delay, refused := s.strategy.Failed(s.now)
		if refused != "" {
			s.end(scheduling.StatusFailed, fmt.Errorf("%w (no other try: %s)", err, refused))
			return
		}
		s.commitAt = s.now + delay
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
