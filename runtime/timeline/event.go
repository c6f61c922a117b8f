package timeline

import "time"

// Kind names what happened. The set is part of the public result format.
type Kind string

// Kinds of events, in the order in which a recovery meets them.
const (
	Fault                  Kind = "fault"
	JobState               Kind = "job-state"
	TaskState              Kind = "task-state"
	WorkerLost             Kind = "worker-lost"
	MasterElected          Kind = "master-elected"
	CheckpointTriggered    Kind = "checkpoint-triggered"
	CheckpointAcknowledged Kind = "checkpoint-acknowledged"
	CheckpointCompleted    Kind = "checkpoint-completed"
	CheckpointFailed       Kind = "checkpoint-failed"
	CheckpointDeclined     Kind = "checkpoint-declined"
	RestoreAssigned        Kind = "restore-assigned"
	RestoreRead            Kind = "restore-read"
	RestoreFiltered        Kind = "restore-filtered"
	RestoreSpilled         Kind = "restore-spilled"
	RestoreDrained         Kind = "restore-drained"
	FirstOutput            Kind = "first-output"
	CaughtUp               Kind = "caught-up"
	PartitionKept          Kind = "partition-kept"
	PartitionLost          Kind = "partition-lost"
	EventReplayed          Kind = "event-replayed"
	HostSample             Kind = "host-sample"
	Throughput             Kind = "throughput"
)

// TooLate is the reason of a PartitionKept of a partition that was given up, was intact
// after all, and does not count: its task runs again, or has to.
const TooLate = "too-late"

// States of a JobState that no scheduler decides on.
const (
	// Submitted: a batch job was handed to its first master. It is in the timeline
	// whatever becomes of that one.
	Submitted = "SUBMITTED"
	// Suspended: a worker has lost the master of a job that is not over, or the
	// supervisor has seen it end; as far as they see, nobody leads the job. The
	// detail names who noticed, and the epoch of the master if it led.
	Suspended = "SUSPENDED"
	// Unprotected: what finishes is not durable from here on, with the reason;
	// Protected: it is again.
	Unprotected = "UNPROTECTED"
	Protected   = "PROTECTED"
	// Uncommitted: a round of commits has failed, with the reason.
	Uncommitted = "UNCOMMITTED"
)

// Supervisor is what the detail of an event begins with that the one who starts and
// ends masters has seen.
const Supervisor = "supervisor"

// Job makes an event of the job.
func Job(state, reason string) Event {
	e := Of(JobState)
	e.State, e.Reason = state, reason
	return e
}

// None marks a numeric field that does not apply to an event.
const None = -1

// Event is one entry of the log. Build one with Of, so that the fields that
// do not apply hold None rather than a plausible zero.
type Event struct {
	T          time.Duration // since the log's origin, monotonic
	Kind       Kind
	Vertex     string
	Subtask    int
	Attempt    int
	State      string
	Checkpoint int64
	Bytes      int64
	Records    int64         // throughput: records that left the sources since the one before
	Lag        time.Duration // throughput: how late a rated source is; None without a rate
	Reason     string
	Detail     string
}

// Of returns an event of a kind with no field set.
func Of(k Kind) Event {
	return Event{Kind: k, Subtask: None, Attempt: None, Checkpoint: None, Bytes: None, Records: None, Lag: None}
}

// Task returns an event of a kind about one execution attempt.
func Task(k Kind, vertex string, subtask, attempt int) Event {
	e := Of(k)
	e.Vertex, e.Subtask, e.Attempt = vertex, subtask, attempt
	return e
}
