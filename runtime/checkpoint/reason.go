package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Reason says why a checkpoint failed. The names are Flink's.
type Reason uint8

// The reasons, in Flink's order.
const (
	NoReason Reason = iota
	PeriodicSchedulerShutdown
	TooManyCheckpointRequests
	MinimumTimeBetweenCheckpoints
	NotAllRequiredTasksRunning
	IOException
	BlockingOutputExist
	CheckpointAsyncException
	ChannelStateSharedStreamException
	CheckpointExpired
	CheckpointSubsumed
	CheckpointDeclined
	DeclinedTaskNotReady
	DeclinedTaskClosing
	DeclinedSubsumed
	DeclinedOnCancellationBarrier
	DeclinedInputEndOfStream
	CoordinatorShutdown
	CoordinatorSuspend
	JobFailoverRegion
	TaskFailure
	TaskCheckpointFailure
	UnknownTaskNotificationFailure
	FinalizeFailure
	TriggerFailure
	numReasons
)

var reasons = [numReasons]struct {
	name      string
	preFlight bool // the checkpoint had not begun
	counts    bool // toward the tolerable failures
}{
	NoReason:                          {name: "NONE"},
	PeriodicSchedulerShutdown:         {name: "PERIODIC_SCHEDULER_SHUTDOWN", preFlight: true},
	TooManyCheckpointRequests:         {name: "TOO_MANY_CHECKPOINT_REQUESTS", preFlight: true},
	MinimumTimeBetweenCheckpoints:     {name: "MINIMUM_TIME_BETWEEN_CHECKPOINTS", preFlight: true},
	NotAllRequiredTasksRunning:        {name: "NOT_ALL_REQUIRED_TASKS_RUNNING", preFlight: true},
	IOException:                       {name: "IO_EXCEPTION", preFlight: true, counts: true},
	BlockingOutputExist:               {name: "BLOCKING_OUTPUT_EXIST", preFlight: true},
	CheckpointAsyncException:          {name: "CHECKPOINT_ASYNC_EXCEPTION", counts: true},
	ChannelStateSharedStreamException: {name: "CHANNEL_STATE_SHARED_STREAM_EXCEPTION"},
	CheckpointExpired:                 {name: "CHECKPOINT_EXPIRED", counts: true},
	CheckpointSubsumed:                {name: "CHECKPOINT_SUBSUMED"},
	CheckpointDeclined:                {name: "CHECKPOINT_DECLINED", counts: true},
	DeclinedTaskNotReady:              {name: "CHECKPOINT_DECLINED_TASK_NOT_READY"},
	DeclinedTaskClosing:               {name: "CHECKPOINT_DECLINED_TASK_CLOSING"},
	DeclinedSubsumed:                  {name: "CHECKPOINT_DECLINED_SUBSUMED"},
	DeclinedOnCancellationBarrier:     {name: "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER"},
	DeclinedInputEndOfStream:          {name: "CHECKPOINT_DECLINED_INPUT_END_OF_STREAM"},
	CoordinatorShutdown:               {name: "CHECKPOINT_COORDINATOR_SHUTDOWN"},
	CoordinatorSuspend:                {name: "CHECKPOINT_COORDINATOR_SUSPEND"},
	JobFailoverRegion:                 {name: "JOB_FAILOVER_REGION"},
	TaskFailure:                       {name: "TASK_FAILURE"},
	TaskCheckpointFailure:             {name: "TASK_CHECKPOINT_FAILURE"},
	UnknownTaskNotificationFailure:    {name: "UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE"},
	FinalizeFailure:                   {name: "FINALIZE_CHECKPOINT_FAILURE", counts: true},
	TriggerFailure:                    {name: "TRIGGER_CHECKPOINT_FAILURE"},
}

// Reasons lists all reasons.
func Reasons() []Reason {
	rs := make([]Reason, 0, numReasons-1)
	for r := NoReason + 1; r < numReasons; r++ {
		rs = append(rs, r)
	}
	return rs
}

func (r Reason) String() string {
	if r < numReasons {
		return reasons[r].name
	}
	return fmt.Sprintf("REASON_%d", uint8(r))
}

// PreFlight tells that the checkpoint had not begun.
func (r Reason) PreFlight() bool { return r < numReasons && reasons[r].preFlight }

// Counts tells whether failures of this reason count toward the tolerable
// ones.
func (r Reason) Counts() bool { return r < numReasons && reasons[r].counts }

// ParseReason reads a reason by its name.
func ParseReason(name string) (Reason, error) {
	for r := NoReason + 1; r < numReasons; r++ {
		if reasons[r].name == name {
			return r, nil
		}
	}
	return NoReason, fmt.Errorf("unknown reason of a checkpoint failure %q", name)
}

// Error is the failure of a checkpoint. Errors that pass through other hands
// keep their reason if they wrap one.
type Error struct {
	Reason Reason
	Err    error // nil if the reason says it all
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Reason.String() + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// reasonOf maps the cause of a failed trigger: a wrapped reason stays, an I/O
// error becomes IOException, everything else is otherwise.
func reasonOf(err error, otherwise Reason) Reason {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != NoReason {
		return e.Reason
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return IOException
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return IOException
	}
	return otherwise
}

// fail makes the error of a reason, without repeating a reason that err
// carries already.
func fail(r Reason, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason == r {
		return e
	}
	return &Error{Reason: r, Err: err}
}
