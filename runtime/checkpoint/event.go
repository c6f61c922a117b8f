package checkpoint

import (
	"fmt"
	"time"

	"benchrun/runtime/snapshot"
)

// Task is one execution attempt of a subtask.
type Task struct {
	Vertex           string
	Subtask, Attempt int
}

func (t Task) String() string { return fmt.Sprintf("%s/%d#%d", t.Vertex, t.Subtask, t.Attempt) }

// Event is something that the coordinator is told.
type Event interface{ event() }

type (
	// Start: all tasks are RUNNING or FINISHED. The first periodic checkpoint
	// is triggered at once.
	Start struct{}

	// Stop: a task is neither RUNNING nor FINISHED any more. Pending and queued
	// checkpoints are aborted; finalizations go on.
	Stop struct{}

	// TimerFired: the time of the last SetTimer has come.
	TimerFired struct{}

	// TriggerRequest asks for a checkpoint or savepoint outside the period. It
	// gets exactly one Reply unless Token is 0.
	TriggerRequest struct {
		Token     uint64
		Savepoint bool
		Stop      bool // a savepoint after which all tasks end
		Drain     bool // with Stop: sources send end of input first
		Forced    bool // ignore the limit of concurrent ones
	}

	// EndOfData: a task has nothing more to do but to wait for a checkpoint.
	EndOfData struct{}

	// Backlog: a source processes, or no longer processes, old data.
	Backlog struct {
		Source string
		On     bool
	}

	// PlanComputed answers ComputePlan.
	PlanComputed struct {
		Seq           uint64
		Trigger       []Task   // get the trigger: running, without a running task upstream
		Ack           []Task   // must acknowledge: all that run
		Finished      []Task   // had finished
		FullyFinished []string // vertices all of whose subtasks had
	}

	// PlanRejected answers ComputePlan when no checkpoint can be taken.
	PlanRejected struct {
		Seq    uint64
		Reason Reason
		Err    error
	}

	// LocationReady answers InitLocation.
	LocationReady struct {
		ID     int64
		Folder string
	}

	// LocationFailed answers InitLocation.
	LocationFailed struct {
		ID  int64
		Err error
	}

	// CoordinatorsAcked answers SnapshotCoordinators: all have given their
	// state, gateways are closed, and all events sent before have been
	// acknowledged by their tasks.
	CoordinatorsAcked struct {
		ID     int64
		States []snapshot.CoordinatorState
	}

	// CoordinatorsFailed answers SnapshotCoordinators.
	CoordinatorsFailed struct {
		ID  int64
		Err error
	}

	// TriggerFailed: a task could not be told of a checkpoint.
	TriggerFailed struct {
		ID   int64
		Task Task
		Err  error
	}

	// Ack: a task has taken its snapshot.
	Ack struct {
		Task  Task
		ID    int64
		State *snapshot.SubtaskState
	}

	// Decline: a task could not take its snapshot.
	Decline struct {
		Task   Task
		ID     int64
		Reason Reason // NoReason: CheckpointDeclined
		Err    error
	}

	// TaskFailed: an attempt has failed; what it did not acknowledge it never
	// will.
	TaskFailed struct{ Task Task }

	// JobFailover: tasks are being restarted.
	JobFailover struct{}

	// Finalized: the metadata is durable.
	Finalized struct{ ID int64 }

	// FinalizeFailed: it is not, or nobody knows (UnknownOutcome).
	FinalizeFailed struct {
		ID             int64
		Err            error
		UnknownOutcome bool
	}

	// Discarded answers Discard.
	Discarded struct {
		ID  int64
		Err error
	}

	// Restored: the job goes on from this checkpoint. One that the coordinator
	// does not know is added to the completed ones; unless Claimed it is never
	// deleted, and the next checkpoint is a full one.
	Restored struct {
		ID        int64
		Folder    string
		Savepoint bool
		Claimed   bool
	}

	// RestoreRequest asks which checkpoint a restart is to begin from. It gets
	// exactly one RestoreFrom.
	RestoreRequest struct{ Token uint64 }

	// Damaged: a completed checkpoint cannot be read. It is never used again;
	// its files stay.
	Damaged struct{ ID int64 }

	// Shutdown: the job has ended. Nothing is triggered any more.
	Shutdown struct{ Status Status }
)

func (Start) event()              {}
func (Stop) event()               {}
func (TimerFired) event()         {}
func (TriggerRequest) event()     {}
func (EndOfData) event()          {}
func (Backlog) event()            {}
func (PlanComputed) event()       {}
func (PlanRejected) event()       {}
func (LocationReady) event()      {}
func (LocationFailed) event()     {}
func (CoordinatorsAcked) event()  {}
func (CoordinatorsFailed) event() {}
func (TriggerFailed) event()      {}
func (Ack) event()                {}
func (Decline) event()            {}
func (TaskFailed) event()         {}
func (JobFailover) event()        {}
func (Finalized) event()          {}
func (FinalizeFailed) event()     {}
func (Discarded) event()          {}
func (Restored) event()           {}
func (RestoreRequest) event()     {}
func (Damaged) event()            {}
func (Shutdown) event()           {}

// Effect is something that the coordinator wants done.
type Effect interface{ effect() }

// Kind is how barriers travel.
type Kind uint8

// Kinds of checkpoints.
const (
	Aligned            Kind = iota
	Unaligned               // barriers overtake records at once
	AlignedWithTimeout      // they do after a time
)

func (k Kind) String() string {
	return [...]string{"aligned", "unaligned", "aligned-with-timeout"}[k]
}

// Options is what tasks are told with the trigger.
type Options struct {
	Kind           Kind
	AlignedTimeout time.Duration
	Savepoint      bool
	Stop           bool // end after the notification of completion
	Drain          bool
	Full           bool // refer to no files of earlier checkpoints
	Folder         string
}

// Completed is a durable checkpoint or savepoint.
type Completed struct {
	ID        int64
	Folder    string
	Savepoint bool
	Triggered time.Duration // when it was begun
	Finished  time.Duration // when it had become durable

	restored bool // came from outside
	keep     bool // is never deleted
}

type (
	// ComputePlan: say which tasks to trigger and to wait for. Answer with
	// PlanComputed or PlanRejected, with the same Seq.
	ComputePlan struct{ Seq uint64 }

	// InitLocation: make ready the folder of a checkpoint.
	InitLocation struct {
		ID        int64
		Savepoint bool
	}

	// SnapshotCoordinators: mark the gateways, ask all operator coordinators
	// for their state, close the gateways.
	SnapshotCoordinators struct{ ID int64 }

	// TriggerTasks: send the trigger to the tasks.
	TriggerTasks struct {
		ID      int64
		Options Options
		Tasks   []Task
	}

	// Finalize: write the metadata, durably.
	Finalize struct {
		ID           int64
		Folder       string
		Savepoint    bool
		Unaligned    bool
		Triggered    time.Duration
		Plan         PlanComputed
		States       map[Task]*snapshot.SubtaskState // of all Plan.Ack
		Coordinators []snapshot.CoordinatorState
	}

	// NotifyComplete: tell tasks and operator coordinators, in this order.
	NotifyComplete struct {
		ID       int64
		Subsumed int64 // the one that went for it, or 0
		Tasks    []Task
	}

	// NotifyAborted: tell tasks and operator coordinators; gateways reopen.
	NotifyAborted struct {
		ID     int64
		Latest int64 // completed, or 0
		Tasks  []Task
	}

	// Discard: delete a folder with all in it. Answer with Discarded.
	Discard struct {
		ID     int64
		Folder string
	}

	// DiscardState: delete what a task wrote for a checkpoint that goes on
	// without it, or that nobody knows (Folder is "").
	DiscardState struct {
		ID     int64
		Folder string
		Task   Task
		State  *snapshot.SubtaskState
	}

	// FailJob: too many checkpoints failed. Task is nil if none is to blame.
	FailJob struct {
		Reason Reason
		ID     int64
		Task   *Task
		Err    error
	}

	// SetTimer: send TimerFired at that time; it replaces the one before.
	SetTimer struct{ At time.Duration }

	// StopTimer: no timer is needed.
	StopTimer struct{}

	// Reply answers a TriggerRequest. Err is nil or an *Error.
	Reply struct {
		Token  uint64
		Result Completed
		Err    error
	}

	// RestoreFrom answers a RestoreRequest. Found is false if there is no
	// completed checkpoint.
	RestoreFrom struct {
		Token      uint64
		Found      bool
		Checkpoint Completed
	}

	// ReportTriggered, ReportCompleted, ReportFailed and ReportDiscardFailed
	// are for the log and the statistics.
	ReportTriggered struct {
		ID        int64
		Savepoint bool
	}
	ReportCompleted struct{ Checkpoint Completed }
	ReportFailed    struct {
		ID     int64 // 0: it had none yet
		Reason Reason
		Task   *Task // who declined
		Err    error
	}
	ReportDiscardFailed struct {
		ID     int64
		Folder string
		Err    error
		Final  bool // it is not tried again
	}
)

func (ComputePlan) effect()          {}
func (InitLocation) effect()         {}
func (SnapshotCoordinators) effect() {}
func (TriggerTasks) effect()         {}
func (Finalize) effect()             {}
func (NotifyComplete) effect()       {}
func (NotifyAborted) effect()        {}
func (Discard) effect()              {}
func (DiscardState) effect()         {}
func (FailJob) effect()              {}
func (SetTimer) effect()             {}
func (StopTimer) effect()            {}
func (Reply) effect()                {}
func (RestoreFrom) effect()          {}
func (ReportTriggered) effect()      {}
func (ReportCompleted) effect()      {}
func (ReportFailed) effect()         {}
func (ReportDiscardFailed) effect()  {}
