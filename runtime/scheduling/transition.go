package scheduling

import "time"

// phase is where the transition manager is.
type phase uint8

const (
	cooldown phase = iota
	idling
	stabilizing
	stabilized
	transitioning
)

func (p phase) String() string {
	return [...]string{"Cooldown", "Idling", "Stabilizing", "Stabilized", "Transitioning"}[p]
}

// manager decides when the job goes on to another parallelism. It is restarted
// whenever the scheduler enters WaitingForResources or Executing.
type manager struct {
	phase       phase
	until       time.Duration // of the phase; never: no end
	changed     bool          // during the cooldown
	firstChange time.Duration // since which the delay of the trigger counts
	failed      int           // checkpoints in a row
}

// enterManager starts the manager in the state just entered. Resources or
// wishes may have changed in the state before, so it looks at once.
func (s *Scheduler) enterManager() {
	s.tm = manager{phase: idling, until: never}
	changed := s.hasSufficient()
	if s.state == Executing && s.cfg.Cooldown > 0 {
		s.tm = manager{phase: cooldown, until: s.now + s.cfg.Cooldown, changed: changed}
	} else if changed {
		s.change()
	}
}

// change tells the manager that resources or wishes changed.
func (s *Scheduler) change() {
	if s.state != WaitingForResources && s.state != Executing {
		return
	}
	switch s.tm.phase {
	case cooldown:
		s.tm.changed = true
	case idling:
		s.tm.phase, s.tm.firstChange = stabilizing, s.now
		s.tm.until = s.now + s.stabilization()
		s.settle()
	case stabilizing:
		s.settle()
	}
}

// settle goes on at once with the desired resources, else when the time is up.
func (s *Scheduler) settle() {
	if s.hasDesired() {
		s.tm.phase, s.tm.until = transitioning, never
		return
	}
	if s.tm.until <= s.now {
		s.tm.phase = stabilized
		s.tm.until = s.tm.firstChange + s.maxDelay()
		if s.tm.until <= s.now {
			s.pull()
		}
	}
}

// pull is a trigger.
func (s *Scheduler) pull() {
	if s.tm.phase != stabilized {
		return
	}
	if s.hasSufficient() {
		s.tm.phase, s.tm.until = transitioning, never
		return
	}
	s.tm.phase, s.tm.until = idling, never
	if s.state == Executing {
		s.endRescale(NothingChanged, nil)
	}
}

// tick does what is due.
func (s *Scheduler) tick() {
	if s.tm.until == never || s.tm.until > s.now {
		return
	}
	switch s.tm.phase {
	case cooldown:
		changed := s.tm.changed
		s.tm.phase, s.tm.until = idling, never
		if changed {
			s.change()
		}
	case stabilizing:
		s.settle()
	case stabilized:
		s.pull()
	}
}

func (s *Scheduler) stabilization() time.Duration {
	if s.state == WaitingForResources {
		return s.cfg.SubmissionStabilization
	}
	return s.cfg.Stabilization
}

func (s *Scheduler) maxDelay() time.Duration {
	if s.state == WaitingForResources {
		return 0
	}
	return s.cfg.MaxDelay
}

// checkpointDone is the trigger of a completed checkpoint, or of the last of
// several failed ones.
func (s *Scheduler) checkpointDone(failed bool) {
	if s.state != Executing {
		return
	}
	if failed {
		s.tm.failed++
		if s.cfg.MaxCheckpointFailures <= 0 || s.tm.failed < s.cfg.MaxCheckpointFailures {
			return
		}
	}
	s.tm.failed = 0
	s.pull()
}
