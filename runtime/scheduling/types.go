package scheduling

import (
	"fmt"
	"time"
)

// Worker names a worker.
type Worker string

// Task is one execution attempt of a subtask.
type Task struct {
	Vertex           string
	Subtask, Attempt int
}

func (t Task) String() string { return fmt.Sprintf("%s/%d#%d", t.Vertex, t.Subtask, t.Attempt) }

// TaskState is a state of an execution attempt.
type TaskState uint8

// The states of an attempt, in order. From every one that is not terminal it
// can go to Canceling, Canceled and Failed.
const (
	TaskCreated TaskState = iota
	TaskScheduled
	TaskDeploying
	TaskInitializing
	TaskRunning
	TaskCanceling
	TaskFinished
	TaskCanceled
	TaskFailed
)

var taskStates = [...]string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"}

func (s TaskState) String() string { return taskStates[s] }

// ParseTaskState reads a state by its name.
func ParseTaskState(name string) (TaskState, error) {
	for i, n := range taskStates {
		if n == name {
			return TaskState(i), nil
		}
	}
	return 0, fmt.Errorf("unknown task state %q", name)
}

// Terminal tells that nothing follows.
func (s TaskState) Terminal() bool { return s >= TaskFinished }

// State is a state of the scheduler.
type State uint8

// The states of the scheduler.
const (
	Created State = iota
	WaitingForResources
	CreatingExecutionGraph
	Executing
	Restarting
	StopWithSavepoint
	Canceling
	Failing
	Finished
)

func (s State) String() string {
	return [...]string{"Created", "WaitingForResources", "CreatingExecutionGraph", "Executing", "Restarting",
		"StopWithSavepoint", "Canceling", "Failing", "Finished"}[s]
}

// Status is the status of the job that users see.
type Status uint8

// The statuses of a job. RUNNING does not mean that all tasks run, only that
// they are being deployed.
const (
	StatusCreated Status = iota
	StatusRunning
	StatusRestarting
	StatusCancelling
	StatusFailing
	StatusSuspended
	StatusCanceled
	StatusFinished
	StatusFailed
)

func (s Status) String() string {
	return [...]string{"CREATED", "RUNNING", "RESTARTING", "CANCELLING", "FAILING", "SUSPENDED", "CANCELED", "FINISHED", "FAILED"}[s]
}

// Vertex is what the scheduler has to know of a vertex.
type Vertex struct {
	ID             string
	Parallelism    int // desired
	Lower          int // below this the job does not run; <= 0: 1
	MaxParallelism int
}

// Config describes a job and how it is to be scheduled.
type Config struct {
	Vertices []Vertex   // in topological order
	Regions  [][]string // sets of vertices that are linked by pipelined edges
	Blocking []Edge     // edges between regions
	// RegionFailover restarts only the regions that a failed task concerns.
	RegionFailover bool

	ResourceWait            time.Duration // in WaitingForResources; < 0: for ever
	SubmissionStabilization time.Duration
	Cooldown                time.Duration // after a restart
	Stabilization           time.Duration // of a running job
	MaxDelay                time.Duration // of the trigger of a rescale
	MaxCheckpointFailures   int           // in a row trigger a rescale; <= 0: never

	Restart RestartConfig
	Seed    uint64 // of the jitter of restart delays

	// FirstAttempt numbers the first attempt of each vertex: that of a master that
	// follows another is above those of the one before.
	FirstAttempt int

	MaxExceptions int // entries of the exceptions history; <= 0: 16
	MaxRescales   int // rescale records; <= 0: 16
}

// Edge leads from one vertex to another.
type Edge struct{ From, To string }

// Event is something that the scheduler is told.
type Event interface{ event() }

type (
	// Submit starts the job.
	Submit struct{}

	// WorkerAdded: a worker has joined.
	WorkerAdded struct {
		ID    Worker
		Slots int
	}

	// WorkerLost: a worker is gone, and all tasks on it.
	WorkerLost struct {
		ID  Worker
		Err error
	}

	// Prepared answers Prepare. A Fatal error is not worth another try.
	Prepared struct {
		Execution int
		Err       error
		Fatal     bool
	}

	// TaskChanged: an attempt has reached a state.
	TaskChanged struct {
		Task  Task
		State TaskState
		Err   error // TaskFailed: why
		Fatal bool  // TaskFailed: a restart would not help
		// SideEffect: TaskFailed after the savepoint that stops the job, in
		// something that the savepoint does not need.
		SideEffect bool
	}

	// Rescale replaces the desired parallelism of some vertices, and the lower
	// bounds if given. It gets a Reply unless Token is 0.
	Rescale struct {
		Token       uint64
		Parallelism map[string]int
		Lower       map[string]int
	}

	// GlobalFailure: something outside the tasks has failed.
	GlobalFailure struct {
		Err   error
		Fatal bool
	}

	// CheckpointCompleted: a checkpoint of the running execution is durable.
	CheckpointCompleted struct{}

	// CheckpointFailed: one has failed; PreFlight if it had not begun.
	CheckpointFailed struct{ PreFlight bool }

	// StopRequest asks for a savepoint and the end of the job. It gets a Reply.
	StopRequest struct {
		Token uint64
		Drain bool
	}

	// SavepointDone answers TakeSavepoint.
	SavepointDone struct {
		Token uint64
		Path  string
		Err   error
	}

	// CancelJob ends the job.
	CancelJob struct{}

	// Suspend ends the work on the job here, so that it can go on elsewhere.
	Suspend struct{ Err error }

	// TimerFired: the time of the last SetTimer has come.
	TimerFired struct{}
)

func (Submit) event()              {}
func (WorkerAdded) event()         {}
func (WorkerLost) event()          {}
func (Prepared) event()            {}
func (TaskChanged) event()         {}
func (Rescale) event()             {}
func (GlobalFailure) event()       {}
func (CheckpointCompleted) event() {}
func (CheckpointFailed) event()    {}
func (StopRequest) event()         {}
func (SavepointDone) event()       {}
func (CancelJob) event()           {}
func (Suspend) event()             {}
func (TimerFired) event()          {}

// Effect is something that the scheduler wants done.
type Effect interface{ effect() }

type (
	// StateChanged is for the log.
	StateChanged struct{ From, To State }

	// JobStatus: the status that users see has changed.
	JobStatus struct {
		Status Status
		Err    error
	}

	// Prepare: find and load the newest completed checkpoint and assign its
	// state to the subtasks of these vertices. Global: operator coordinators
	// are reset to it too; else the subtasks are reset at the coordinators.
	Prepare struct {
		Execution   int
		Global      bool
		Vertices    []string
		Parallelism map[string]int
	}

	// Deploy: start the tasks. Subtask i of each vertex runs on Slots[i].
	Deploy struct {
		Execution   int
		Global      bool
		Vertices    []string
		Parallelism map[string]int
		Attempts    map[string]int
		Slots       []Worker
	}

	// CancelTasks: stop them. The end of each is reported with TaskChanged.
	CancelTasks struct{ Tasks []Task }

	// StartCheckpointing: all tasks are RUNNING or FINISHED.
	StartCheckpointing struct{}

	// StopCheckpointing: they no longer are. It comes before any CancelTasks.
	StopCheckpointing struct{}

	// TakeSavepoint: take the savepoint that stops the job. Answer with
	// SavepointDone.
	TakeSavepoint struct {
		Token uint64
		Drain bool
	}

	// Reply answers a Rescale or a StopRequest. Path and Err are both set if the
	// savepoint is good and the job failed afterwards.
	Reply struct {
		Token uint64
		Path  string
		Err   error
	}

	// SetTimer: send TimerFired at that time; it replaces the one before.
	SetTimer struct{ At time.Duration }

	// StopTimer: no timer is needed.
	StopTimer struct{}

	// Terminal: the job has ended.
	Terminal struct {
		Status    Status
		Err       error
		Savepoint string
	}
)

func (StateChanged) effect()       {}
func (JobStatus) effect()          {}
func (Prepare) effect()            {}
func (Deploy) effect()             {}
func (CancelTasks) effect()        {}
func (StartCheckpointing) effect() {}
func (StopCheckpointing) effect()  {}
func (TakeSavepoint) effect()      {}
func (Reply) effect()              {}
func (SetTimer) effect()           {}
func (StopTimer) effect()          {}
func (Terminal) effect()           {}
