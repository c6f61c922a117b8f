package batch

import (
	"fmt"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// Names of what the scheduler handles, as the job log spells them.
type (
	Worker    = scheduling.Worker
	TaskID    = joblog.TaskID
	AttemptID = joblog.AttemptID
)

// PartitionID names what one attempt left of a data set.
type PartitionID struct {
	DataSet  string
	Producer AttemptID
}

func (p PartitionID) String() string { return p.DataSet + ":" + p.Producer.String() }

// Mode chooses how a job is logged and recovered.
type Mode string

// The modes, as execution.batch.job-recovery.mode spells them.
const (
	Hardened Mode = "hardened"
	Faithful Mode = "faithful"
)

// Coordinator is an operator coordinator of a vertex.
type Coordinator struct {
	Operator string
	// Snapshots: it can be snapshotted outside a checkpoint, and given back the
	// splits of single subtasks afterwards.
	Snapshots bool
}

// Vertex is what the scheduler has to know of a vertex.
type Vertex struct {
	ID             string
	Parallelism    int // 0: decided at run time
	MaxParallelism int // of one that is decided; 0: no bound of its own
	Source         bool
	Coordinators   []Coordinator
	Commits        bool // its output is committed
}

// Edge is a data set that one vertex leaves for another.
type Edge struct {
	DataSet   string
	From, To  string
	Pointwise bool
	Broadcast bool
	Pipelined bool // read while it is written, and by nobody twice
}

// ParallelismConfig bounds what is decided at run time.
type ParallelismConfig struct {
	DataPerTask   int64
	Min, Max      int
	SourceDefault int // <= 0: Max
}

// SpeculationConfig says which tasks are slow and what is done about them.
type SpeculationConfig struct {
	MaxExecutions int
	BlockWorker   time.Duration
	CheckInterval time.Duration
	Ratio         float64
	Multiplier    float64
	LowerBound    time.Duration
}

// Config describes a job and how it is to be scheduled.
type Config struct {
	Vertices []Vertex // in topological order
	Edges    []Edge

	Mode     Mode   // "": Hardened
	Recovery bool   // log what happens, and go on from a log
	Epoch    uint64 // of this master; from 1

	Parallelism   ParallelismConfig
	WorkerTimeout time.Duration // for workers of the master before
	SlotTimeout   time.Duration // for a slot that does not exist; 0: for ever
	MinPause      time.Duration // between snapshots of coordinators
	Speculation   *SpeculationConfig
	KeepConsumed  bool // do not release what all consumers have read
	Restart       scheduling.RestartConfig
	Silence       time.Duration // after which a worker that is silent is lost
	Seed          uint64
}

// FailureClass says what a failed attempt tells about others.
type FailureClass uint8

// The classes of failures.
const (
	FailureTask     FailureClass = iota
	FailureTransfer              // an input broke off; it is still there
	FailurePartitionLost
	FailureFatal // another try would fail as well
)

// Held is a partition that a worker has.
type Held struct {
	Partition PartitionID
	Bytes     []int64 // by subpartition
}

// Execution is an attempt that a worker runs, or that has finished there while
// nobody could be told.
type Execution struct {
	Attempt     AttemptID
	Parallelism int
	State       scheduling.TaskState // RUNNING or before, or FINISHED
	Result      Result               // FINISHED: all of it; else the splits it has so far
	Inputs      []AttemptID          // whose output it reads
}

// Result is what an attempt reports of its work.
type Result struct {
	Records, BytesIn int64
	Results          []joblog.Result
	Splits           []string
}

// Event is something that the scheduler is told.
type Event interface{ event() }

type (
	// Start begins the job. HasLog: the log of an earlier master is there. Result:
	// the job was over before this master began. Workers are how many are said to
	// live; a log that names fewer of them may have had no time to, and they are
	// waited for as long as Patience.
	Start struct {
		HasLog   bool
		Result   *joblog.JobFinished
		Workers  int
		Patience time.Duration
	}

	// Replayed answers ReplayLog.
	Replayed struct {
		Events []joblog.Event
		Err    error
	}

	// WorkerJoined: a worker has registered.
	WorkerJoined struct {
		ID    Worker
		Slots int
	}

	// WorkerLost: a worker is gone, with all it had. It may be one that the log
	// knows and that never registered here; nobody will take over its folder.
	WorkerLost struct {
		ID  Worker
		Err error
	}

	// Inventory answers AskInventory. Epoch is that of the question. Formerly are
	// workers that are gone and whose folder this one has: it answers for them.
	Inventory struct {
		Worker     Worker
		Epoch      uint64
		Formerly   []Worker
		Partitions []Held
		Running    []Execution
	}

	// TaskChanged: an attempt has reached a state.
	TaskChanged struct {
		Attempt   AttemptID
		Worker    Worker // that says so
		State     scheduling.TaskState
		Err       error // FAILED: why
		Class     FailureClass
		Partition PartitionID // FailurePartitionLost
		Peer      Worker      // FailureTransfer: the other end
		Result    Result      // FINISHED
	}

	// PartitionsGone: these are not there any more.
	PartitionsGone struct {
		Partitions []PartitionID
		Err        error
	}

	// SourceParallelism answers InferParallelism; 0: no opinion.
	SourceParallelism struct {
		Vertex      string
		Parallelism int
	}

	// SplitsDiscovered, SplitsAssigned and SplitsReturned tell where splits are.
	SplitsDiscovered struct {
		Vertex string
		Splits []string
	}
	SplitsAssigned struct {
		Task   TaskID
		Splits []string
	}
	SplitsReturned struct {
		Task   TaskID
		Splits []string
	}

	// SnapshotTaken answers SnapshotCoordinator.
	SnapshotTaken struct {
		Operator string
		Data     []byte
		Err      error
	}

	// LogDurable: the log's events up to this number are durable.
	LogDurable struct{ Number uint64 }

	// LogPressure: the log cannot keep up, or can again.
	LogPressure struct{ On bool }

	// OutputCommitted answers CommitOutput: the output of these attempts is visible,
	// that of the others of the round is not, because of Err. Permanent: another
	// try would not help.
	OutputCommitted struct {
		Attempts  []AttemptID
		Err       error
		Permanent bool
	}

	// OutputWithdrawn answers WithdrawOutput.
	OutputWithdrawn struct{ Err error }

	// GlobalFailure: something outside the tasks has failed.
	GlobalFailure struct {
		Err   error
		Fatal bool
	}

	// CancelJob ends the job.
	CancelJob struct{}

	// Suspend ends the work here, so that another master can go on.
	Suspend struct{ Err error }

	// TimerFired: the time of the last SetTimer has come.
	TimerFired struct{}
)

func (Start) event()             {}
func (Replayed) event()          {}
func (WorkerJoined) event()      {}
func (WorkerLost) event()        {}
func (Inventory) event()         {}
func (TaskChanged) event()       {}
func (PartitionsGone) event()    {}
func (SourceParallelism) event() {}
func (SplitsDiscovered) event()  {}
func (SplitsAssigned) event()    {}
func (SplitsReturned) event()    {}
func (SnapshotTaken) event()     {}
func (LogDurable) event()        {}
func (LogPressure) event()       {}
func (OutputCommitted) event()   {}
func (OutputWithdrawn) event()   {}
func (GlobalFailure) event()     {}
func (CancelJob) event()         {}
func (Suspend) event()           {}
func (TimerFired) event()        {}

// Effect is something that the scheduler wants done.
type Effect interface{ effect() }

// Producer is where a partition lies.
type Producer struct {
	Attempt AttemptID
	Worker  Worker
}

// Input is what an attempt reads of one data set. Producers are those of the
// range's partitions, in order; the slice is shared.
type Input struct {
	DataSet   string
	Range     joblog.InputRange
	Producers []Producer
	Pipelined bool
}

// Output is a data set that an attempt writes.
type Output struct {
	DataSet       string
	Subpartitions int
	Pipelined     bool
	Broadcast     bool
}

type (
	// AskInventory: ask a worker for everything it has of this job.
	AskInventory struct{ Worker Worker }

	// SettleInventory answers an inventory: the worker keeps and releases these
	// partitions, goes on with these attempts and cancels those.
	SettleInventory struct {
		Worker        Worker
		Keep, Release []PartitionID
		Adopt, Cancel []AttemptID
	}

	// Adopted: an attempt of a master before counts under this one from here on,
	// whether it runs or has finished meanwhile.
	Adopted struct{ Attempt AttemptID }

	// ReplayLog: read the log and answer with Replayed.
	ReplayLog struct{}

	// ClearLog: empty the log, so that it can be written anew.
	ClearLog struct{}

	// CloseLog: write what is queued and close; with Clear remove it.
	CloseLog struct{ Clear bool }

	// RecordResult: make durable how the job has ended. Nothing that comes behind
	// it is carried out before: without a log the next master would run the job
	// again.
	RecordResult struct{ Result joblog.JobFinished }

	// Log: append an event. The first one has number 1, as the store counts.
	// Snapshots are the operators whose snapshots (checkpoint -1) belong to it:
	// begin them now and hand them to the store when they are there.
	Log struct {
		Event     joblog.Event
		Cut       bool
		Snapshots []string
		Wait      bool // there is a snapshot, be it of no operator
	}

	// SnapshotCoordinator: take a snapshot with checkpoint -1 and answer with
	// SnapshotTaken.
	SnapshotCoordinator struct{ Vertex, Operator string }

	// RestoreCoordinator: begin from this snapshot (nil: from nothing). Held are
	// the splits of subtasks that finished or go on, which nobody else may get;
	// nil: the snapshot knows.
	RestoreCoordinator struct {
		Vertex, Operator string
		Parallelism      int
		State            []byte
		Held             map[int][]string
	}

	// ResetSubtasks: these subtasks failed; take their splits back, then reset
	// them to checkpoint -1.
	ResetSubtasks struct {
		Vertex, Operator string
		Subtasks         []int
	}

	// InferParallelism: ask a source; answer with SourceParallelism.
	InferParallelism struct{ Vertex string }

	// Deploy: start an attempt. Its end is reported with TaskChanged.
	Deploy struct {
		Attempt     AttemptID
		Worker      Worker
		Parallelism int
		Inputs      []Input
		Outputs     []Output
		Speculative bool
	}

	// Cancel: stop an attempt. Its end is reported with TaskChanged.
	Cancel struct {
		Attempt AttemptID
		Worker  Worker
	}

	// Release: these partitions are not needed any more.
	Release struct {
		Worker     Worker
		Partitions []PartitionID
	}

	// CommitOutput: make the output of these attempts visible, in order. What is
	// asked for again and is visible stays so. Answer with OutputCommitted.
	CommitOutput struct{ Attempts []AttemptID }

	// WithdrawOutput: take back what masters before this one have committed, but
	// that of these attempts. Answer with OutputWithdrawn.
	WithdrawOutput struct{ Keep []AttemptID }

	// SetTimer: send TimerFired at that time; it replaces the one before.
	SetTimer struct{ At time.Duration }

	// StopTimer: no timer is needed.
	StopTimer struct{}

	// JobStatus: the status that users see has changed.
	JobStatus struct {
		Status scheduling.Status
		Err    error
	}

	// Note is for the timeline.
	Note struct{ Event timeline.Event }

	// Terminal: the job has ended here.
	Terminal struct {
		Status scheduling.Status
		Err    error
	}
)

func (AskInventory) effect()        {}
func (SettleInventory) effect()     {}
func (Adopted) effect()             {}
func (ReplayLog) effect()           {}
func (ClearLog) effect()            {}
func (CloseLog) effect()            {}
func (RecordResult) effect()        {}
func (Log) effect()                 {}
func (SnapshotCoordinator) effect() {}
func (RestoreCoordinator) effect()  {}
func (ResetSubtasks) effect()       {}
func (InferParallelism) effect()    {}
func (Deploy) effect()              {}
func (Cancel) effect()              {}
func (Release) effect()             {}
func (CommitOutput) effect()        {}
func (WithdrawOutput) effect()      {}
func (SetTimer) effect()            {}
func (StopTimer) effect()           {}
func (JobStatus) effect()           {}
func (Note) effect()                {}
func (Terminal) effect()            {}

// Problem is something about the shape of a job that recovery cannot deal with.
type Problem struct {
	Vertex, Reason string
	// Partial: the vertex is recovered, but only as a whole.
	Partial bool
}

func (p Problem) Error() string { return fmt.Sprintf("vertex %q: %s", p.Vertex, p.Reason) }
