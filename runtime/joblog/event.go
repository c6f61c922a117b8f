package joblog

import "fmt"

// TaskID names a subtask of a vertex.
type TaskID struct {
	Vertex  string
	Subtask int
}

func (t TaskID) String() string { return fmt.Sprintf("%s/%d", t.Vertex, t.Subtask) }

// AttemptID names one execution of a subtask. The epoch is that of the master
// that deployed it: attempts of two masters never have the same name.
type AttemptID struct {
	TaskID
	Epoch   uint64
	Attempt int
}

func (a AttemptID) String() string { return fmt.Sprintf("%s#%d@%d", a.TaskID, a.Attempt, a.Epoch) }

// Kind is the type of an event. The first three have the numbers that Flink
// gives them.
type Kind uint8

// The kinds of events.
const (
	KindVertexFinished       Kind = 1
	KindVerticesReset        Kind = 2
	KindJobVertexInitialized Kind = 3
	KindCoordinatorSnapshot  Kind = 4
	KindEpochStarted         Kind = 5
	KindWorkerSet            Kind = 6
	KindJobFinished          Kind = 7

	kindHeader Kind = 0xff // of a file, not an event
)

func (k Kind) String() string {
	switch k {
	case KindVertexFinished:
		return "vertex-finished"
	case KindVerticesReset:
		return "vertices-reset"
	case KindJobVertexInitialized:
		return "job-vertex-initialized"
	case KindCoordinatorSnapshot:
		return "coordinator-snapshot"
	case KindEpochStarted:
		return "epoch-started"
	case KindWorkerSet:
		return "worker-set"
	case KindJobFinished:
		return "job-finished"
	case kindHeader:
		return "header"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Event is one entry of the log.
type Event interface{ Kind() Kind }

// Snapshot is the state of one coordinator.
type Snapshot struct {
	Operator string
	Data     []byte
}

// Result is what a finished attempt left of one data set.
type Result struct {
	DataSet string
	Bytes   []int64 // by subpartition
}

// InputRange says which part of a data set one subtask reads. Both ranges are
// inclusive.
type InputRange struct {
	FirstPartition, LastPartition       int
	FirstSubpartition, LastSubpartition int
}

// InputInfo is the mapping of one input of a vertex.
type InputInfo struct {
	DataSet  string
	Subtasks []InputRange // by subtask
}

type (
	// VertexFinished: an attempt has finished, and is the one that counts.
	VertexFinished struct {
		Attempt   AttemptID
		Worker    string
		Records   int64 // read, or made by a source
		BytesIn   int64
		Results   []Result
		Splits    []string // that a source subtask has read, all of them
		Snapshots []Snapshot
		// Snapshotted: this event closes a snapshot of all coordinators that had
		// changed, be it empty. Only the faithful log uses both.
		Snapshotted bool
	}

	// VerticesReset: these tasks will run again.
	VerticesReset struct{ Tasks []TaskID }

	// JobVertexInitialized: the parallelism and the inputs of a vertex are
	// settled.
	JobVertexInitialized struct {
		Vertex      string
		Parallelism int
		Inputs      []InputInfo
	}

	// CoordinatorSnapshot replaces the one before of the same operator.
	CoordinatorSnapshot struct{ Snapshot }

	// EpochStarted: a new master has taken over and kept these attempts. Tasks
	// that finished before and are not in the list are void.
	EpochStarted struct {
		Epoch uint64
		Kept  []AttemptID
	}

	// WorkerSet: the workers that hold something of this job.
	WorkerSet struct{ Workers []string }

	// JobFinished: the job is over; nothing follows.
	JobFinished struct {
		Status string
		Error  string
	}
)

// Kind implements Event.
func (VertexFinished) Kind() Kind { return KindVertexFinished }

// Kind implements Event.
func (VerticesReset) Kind() Kind { return KindVerticesReset }

// Kind implements Event.
func (JobVertexInitialized) Kind() Kind { return KindJobVertexInitialized }

// Kind implements Event.
func (CoordinatorSnapshot) Kind() Kind { return KindCoordinatorSnapshot }

// Kind implements Event.
func (EpochStarted) Kind() Kind { return KindEpochStarted }

// Kind implements Event.
func (WorkerSet) Kind() Kind { return KindWorkerSet }

// Kind implements Event.
func (JobFinished) Kind() Kind { return KindJobFinished }
