package scheduling

import (
	"maps"
	"slices"
	"time"
)

// Exception is a failure and what was done about it.
type Exception struct {
	At         time.Duration
	Task       *Task // nil: not of a task
	Worker     Worker
	Err        error
	Decision   string // "restart job", "restart region", "fail job", "ignore"
	Concurrent []Exception
}

// maxConcurrent bounds the failures that are kept beside the first of a
// restart.
const maxConcurrent = 16

func (s *Scheduler) recordException(x Exception) {
	s.exceptions = append(s.exceptions, x)
	if over := len(s.exceptions) - s.cfg.MaxExceptions; over > 0 {
		s.exceptions = slices.Delete(s.exceptions, 0, over)
	}
}

// recordConcurrent adds a failure to the one that is being dealt with.
func (s *Scheduler) recordConcurrent(x Exception) {
	n := len(s.exceptions)
	if n == 0 {
		s.recordException(x)
		return
	}
	if root := &s.exceptions[n-1]; len(root.Concurrent) < maxConcurrent {
		root.Concurrent = append(root.Concurrent, x)
	}
}

// Exceptions is the history of failures, oldest first.
func (s *Scheduler) Exceptions() []Exception { return slices.Clone(s.exceptions) }

// Cause is why a rescale was begun.
type Cause string

// The causes of rescales.
const (
	InitialSchedule     Cause = "INITIAL_SCHEDULE"
	UpdateRequirement   Cause = "UPDATE_REQUIREMENT"
	NewResource         Cause = "NEW_RESOURCE_AVAILABLE"
	RecoverableFailover Cause = "RECOVERABLE_FAILOVER"
)

// Reason is why a rescale ended.
type Reason string

// The reasons for which rescales end.
const (
	Succeeded            Reason = "SUCCEEDED"
	ExceptionOccurred    Reason = "EXCEPTION_OCCURRED"
	RequirementsUpdated  Reason = "RESOURCE_REQUIREMENTS_UPDATED"
	NothingChanged       Reason = "NO_RESOURCES_OR_PARALLELISMS_CHANGE"
	JobFinished          Reason = "JOB_FINISHED"
	JobFailing           Reason = "JOB_FAILING"
	JobFailoverRestarted Reason = "JOB_FAILOVER_RESTARTING"
	JobCanceling         Reason = "JOB_CANCELING"
)

// Outcome is how a rescale that ended for the reason is classified.
func (r Reason) Outcome() string {
	switch r {
	case Succeeded:
		return "COMPLETED"
	case ExceptionOccurred:
		return "FAILED"
	}
	return "IGNORED"
}

// RescaleRecord is one attempt to bring the job to another parallelism, its
// first start included. It ends when the job enters Executing: not when its
// tasks run.
type RescaleRecord struct {
	ID           int // from 1
	Requirements int // counts the changes of the desired parallelism
	Attempt      int // restarts so far
	Cause        Cause
	Reason       Reason // "" while it is in progress
	Start, End   time.Duration
	Vertices     []RescaleVertex
	// Slots desired, needed at least, before and after.
	DesiredSlots, MinimalSlots, PreSlots, PostSlots int
	States                                          []RescaleState
}

// RescaleVertex is a vertex in a rescale.
type RescaleVertex struct {
	ID                             string
	Desired, Sufficient, Pre, Post int
}

// RescaleState is a stay in a state of the scheduler.
type RescaleState struct {
	State        State
	Enter, Leave time.Duration
	Err          error
}

// Rescales are the rescale records, oldest first; the last one may be in
// progress.
func (s *Scheduler) Rescales() []RescaleRecord { return slices.Clone(s.rescales) }

// openRescale is the record in progress, or nil.
func (s *Scheduler) openRescale() *RescaleRecord {
	if n := len(s.rescales); n > 0 && s.rescales[n-1].Reason == "" {
		return &s.rescales[n-1]
	}
	return nil
}

// beginRescale opens a record; one in progress ends for the given reason.
func (s *Scheduler) beginRescale(cause Cause, before Reason) {
	s.endRescale(before, nil)
	s.rescaleID++
	r := RescaleRecord{
		ID: s.rescaleID, Requirements: s.requirementsID, Attempt: s.execution, Cause: cause, Start: s.now,
		DesiredSlots: widest(s.desired), MinimalSlots: widest(s.lower), PreSlots: widest(s.parallelism),
		States: []RescaleState{{State: s.state, Enter: s.now, Leave: never}},
	}
	for _, v := range s.vertices {
		r.Vertices = append(r.Vertices, RescaleVertex{ID: v, Desired: s.desired[v], Sufficient: s.lower[v], Pre: s.parallelism[v]})
	}
	s.rescales = append(s.rescales, r)
	if over := len(s.rescales) - s.cfg.MaxRescales; over > 0 {
		s.rescales = slices.Delete(s.rescales, 0, over)
	}
}

// endRescale closes the record in progress.
func (s *Scheduler) endRescale(reason Reason, err error) {
	r := s.openRescale()
	if r == nil {
		return
	}
	r.Reason, r.End = reason, s.now
	last := &r.States[len(r.States)-1]
	last.Leave, last.Err = s.now, err
	if reason == Succeeded {
		r.PostSlots = widest(s.parallelism)
		for i := range r.Vertices {
			r.Vertices[i].Post = s.parallelism[r.Vertices[i].ID]
		}
	}
}

// enterInRescale notes a change of state in the record in progress.
func (s *Scheduler) enterInRescale(state State) {
	if r := s.openRescale(); r != nil {
		r.States[len(r.States)-1].Leave = s.now
		r.States = append(r.States, RescaleState{State: state, Enter: s.now, Leave: never})
	}
}

// Parallelism is that of the running execution.
func (s *Scheduler) Parallelism() map[string]int { return maps.Clone(s.parallelism) }

// State is the state of the scheduler.
func (s *Scheduler) State() State { return s.state }
