package target

import (
	"context"
	"errors"
	"time"

	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// ErrUnsupported marks what a target cannot do; the trial's outcome is then
// "unsupported", never a number.
var ErrUnsupported = errors.New("not supported by this target")

// Target can run jobs.
type Target interface {
	// Name is the word of the workload file: embedded, process, flink.
	Name() string
	// Version names the system under test, for provenance.
	Version() string
	// Start brings up a fresh cluster and submits the job. The job's events go
	// to log, whose origin is the trial's start. The caller must Close the job,
	// also when a later step fails.
	Start(ctx context.Context, r Request, log *timeline.Log) (Job, error)
}

// Request is all that a target needs for one trial.
type Request struct {
	Workload *spec.Workload // with the cell's values put in; parallelism and options resolved
	Dir      string         // the trial's own folder: checkpoints, spill, committed output
	Seed     uint64         // of this block: drives everything random in the job
	Keep     bool           // the last checkpoints stay when the job ends
	// Submission is the job's id in all that it leaves, which no other job has; empty:
	// one is made.
	Submission string
	// FromScratch lets a new master that cannot read the log of its batch job wipe
	// it and begin the job anew, where it would otherwise fail.
	FromScratch bool
	// Delays slow fault points of the engine down, by their names: a known
	// slow-down that the measuring must find.
	Delays map[string]time.Duration
}

// Job is one running job on its own cluster. Its methods may be called from
// one goroutine at a time, except Status, Done and Close.
type Job interface {
	// Options are the values that the running tasks use, by Flink's keys, typed
	// (bool, int64, float64, string for durations, sizes and names).
	Options() map[string]any
	// Inject disturbs the job. It adds the fault event to the timeline at the
	// instant it acts and returns that stamp. It does not wait for recovery.
	Inject(ctx context.Context, f Fault) (t0 time.Duration, err error)
	// Savepoint takes one and returns its path; with stop the job ends FINISHED.
	Savepoint(ctx context.Context, stop bool) (path string, err error)
	// Finish lets sources end (unbounded ones stop), waits for the final
	// checkpoint and all commits, and returns what came out.
	Finish(ctx context.Context) (*Output, error)
	// Cancel stops the job at once, without an outcome.
	Cancel(ctx context.Context) error
	// Status is a cheap look at the counters that no event carries.
	Status() Status
	// Done is closed when the job has reached a terminal state; Err tells why.
	Done() <-chan struct{}
	Err() error
	// Close stops everything and waits until it is gone. Idempotent.
	Close() error
}

// Fault is one disturbance. Kind is the word of the workload file; the other
// fields are set as that kind needs them, random choices already made.
type Fault struct {
	Step         string // name of the step, goes into the event's detail
	Kind         string
	Parallelism  map[string]int // rescale: vertex -> parallelism
	Vertex       string         // fail-task, drop-partition
	Subtask      int            // fail-task, drop-partition
	Worker       int            // kill-worker, freeze-worker: index among live workers that run a task
	For          time.Duration  // freeze-worker, fail-storage
	ReplaceAfter time.Duration  // kill-worker; < 0: never
	StorageKind  string         // fail-storage: error, slow, full, torn
	DownFor      time.Duration  // kill-jobmanager
}

// Accountant is a Job some of which runs in other processes.
type Accountant interface {
	// Usage is what they have used. It is complete after Close.
	Usage() Usage
}

// Usage sums over processes. A nil number is not known.
type Usage struct {
	Processes    int
	CPU          time.Duration
	MaxRSS       int64
	ReadBytes    *int64
	WrittenBytes *int64
}

// Status holds running counters.
type Status struct {
	SinkRecords      int64 // records that arrived at sinks, duplicates of replays included
	WorkersWithTasks int   // live workers that run at least one task of the job
	InFlightBytes    int64 // bytes queued in channels now
	// RestoredShare is the processed part of the in-flight bytes that are being
	// restored; 1 when there are none, and only after the restore-drained events
	// were added.
	RestoredShare float64
	NetBytes      int64 // counted at the sockets between workers
	// Progress of a batch job, 0 to 1: see Progress.
	Progress float64
}

// Progress of a batch job is the mean over its vertices of the records that they
// have consumed, sources those that they have emitted, over what they will
// (expect.Consumption). It is an estimate while tasks run: work that is lost and
// done again does not count twice, so a share is at most 1.
func Progress(consumed, expected map[string]int64) float64 {
	sum := 0.0
	for id, all := range expected {
		if all <= 0 {
			sum++ // nothing to do
			continue
		}
		sum += min(1, float64(max(0, consumed[id]))/float64(all))
	}
	if len(expected) == 0 {
		return 0
	}
	return sum / float64(len(expected))
}

// Output is what the finished job produced, for the proof of correctness.
type Output struct {
	// Proved is false for a job whose only sinks discard.
	Proved         bool
	Received       int64 // arrivals at verifying sinks, or records in committed files
	Expected       int64 // records that must arrive, from the sources' final positions
	Lost           int64
	Duplicated     int64
	OutOfOrder     int64
	Digest         string
	ExpectedDigest string
	// Wrong says in words what else is not as it must be, though all records may be
	// right: of a batch job, what was committed twice, splits that were not read, and
	// files that were left behind.
	Wrong []string
	// Batch holds what only the engine can count of a batch job; nil otherwise.
	Batch *BatchFigures
}

// BatchFigures are the engine's own accounts of a batch job, over all its
// masters. A nil number is not known.
type BatchFigures struct {
	HookTime      time.Duration // that masters spent in recording what happened, on their event loops
	WriterCPU     time.Duration // of the writer of the event log
	EventLogBytes *int64        // written to the event log; nil: not known, nor are the two above
	Flushes       *int64        // of the event log
	LeftoverBytes *int64        // in the workers' folders after the job's end, before clean-up; nil if Unheard
	Unheard       []string      // workers that did not say what is in their folders
}
