package control

import (
	"time"

	"benchrun/runtime/timeline"
)

// What the processes of a cluster and the one that supervises them tell each
// other: one connection a process, from the process to its supervisor.

// Attach is the first message of a process.
type Attach struct {
	Name string // that the supervisor gave it
	// Bound is how far its stamps may be off on the supervisor's clock; 0 where
	// both read the same one.
	Bound time.Duration
}

// Clock asks for the supervisor's time, and is the answer with At filled in.
type Clock struct {
	Seq uint64
	At  time.Duration
}

// Events are what happened in the process, in order, on the supervisor's clock.
type Events struct {
	Events  []timeline.Event
	Dropped int // that its own log had no room for, since the message before
}

// Leading tells that a master has taken over and where workers find it.
type Leading struct {
	Epoch   int64
	Addr    string
	Started time.Duration // when the first master had the job
}

// JobEnded tells how.
type JobEnded struct {
	Epoch int64
	Error string // empty: it has finished
	// State: a master cannot read the state folder, so it never led, or the epoch is
	// 0 because it cannot tell its own; Error says why.
	State bool
	// JobLog: the master cannot read the job's log, so it never led; Error says why.
	JobLog bool
}

// Ask is a request of the supervisor; Told answers it. What is one of the types
// below.
type Ask struct {
	Seq  uint64
	What any
}

// Told answers an Ask.
type Told struct {
	Seq   uint64
	At    time.Duration // when it was carried out; None where that means nothing
	Path  string        // of a savepoint
	Error string
	Data  any // Load, Reports, Options
}

// Requests to a master.
type (
	// Rescale asks for another parallelism, by vertex.
	Rescale struct{ Parallelism map[string]int }
	// FailSubtask makes the current attempt of a subtask throw.
	FailSubtask struct {
		Vertex  string
		Subtask int
		Reason  string
	}
	// TakeSavepoint takes one; with Stop the job ends after it.
	TakeSavepoint struct{ Stop bool }
	// EndSources lets unbounded sources end.
	EndSources struct{}
	// CancelJob ends the job.
	CancelJob struct{}
	// DropPartition makes the finished output of a batch task disappear.
	DropPartition struct {
		Vertex  string
		Subtask int
	}
	// WorkerGone tells the master of a batch job that a worker's process has ended,
	// also one that it has never heard of.
	WorkerGone struct{ Index int }
	// GetReports asks for what operators reported at the end.
	GetReports struct{}
	// GetOptions asks for the options that the tasks run with.
	GetOptions struct{}
)

// Requests to any process.
type (
	// GetLoad asks for counters.
	GetLoad struct{ Queued bool }
	// BreakStorage makes checkpoint storage misbehave, as this process sees it.
	BreakStorage struct {
		Kind string
		For  time.Duration
	}
	// Leave asks a process to stop in order.
	Leave struct{}
)

// Load is a look at counters that no event carries.
type Load struct {
	Tasks       int
	SinkRecords int64
	QueuedBytes int64
	Restored    int64 // in-flight bytes that running tasks had to restore
	Drained     int64 // of those, processed
	NetBytes    int64
	Restoring   bool // of a master: an execution with in-flight data to restore is coming up
	// Of the master of a batch job.
	Consumed map[string]int64 // records by vertex
	Batch    BatchFigures
}

// BatchFigures is what the log of a batch job has cost one master so far, and
// what the job has left behind.
type BatchFigures struct {
	HookTime  time.Duration // in which the job had to wait for the recording of events
	WriterCPU time.Duration // of the log's writer; 0 where the system does not tell
	LogBytes  int64
	Flushes   int64
	GapTasks  int   // finished tasks that are not durable now
	Leftover  int64 // bytes on the disks of Heard after the job's end, before they were cleaned
	Heard     []int // workers that have said what they had left, by the index that they came with
	Ended     bool  // there is no more to come
}

// Reports answers GetReports.
type Reports struct{ Reports []Report }

// Options answers GetOptions.
type Options struct{ Options map[string]any }
