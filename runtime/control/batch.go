package control

import (
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/task"
)

// Batch jobs. What the master decides for one worker comes in the order in
// which it was decided; so a partition that is released is not asked for later.

// BatchJob tells a worker that has joined about the job.
type BatchJob struct {
	Epoch   int64
	Job     string // names its partitions
	Run     string // names it in the files of its sinks
	Graph   graph.Graph
	Options map[string]any
	Started time.Duration // when the job first started, on the cluster's clock
}

// Peers tells where workers serve their partitions: all that have joined.
type Peers struct {
	Epoch   int64
	Workers []Peer
}

// Peer is a worker as this master calls it. Another master may call it otherwise, and
// another one by this name: what is to last goes by the identity.
type Peer struct {
	Name           batch.Worker
	Identity, Addr string
}

// AskInventory asks for everything that a worker has of the job.
type AskInventory struct{ Epoch int64 }

// Inventory answers it. Epoch is that of the question. Formerly are the names of
// those who worked on the same folder before: this answers for them. Records are
// those of the partitions, all subpartitions together.
type Inventory struct {
	Epoch      int64
	Formerly   []batch.Worker
	Partitions []batch.Held
	Records    []int64
	Running    []batch.Execution
}

// Settle tells a worker what becomes of its inventory.
type Settle struct {
	Epoch         int64
	Keep, Release []batch.PartitionID
	Adopt, Cancel []joblog.AttemptID
}

// Producers tells where partitions of a data set come from, from the partition
// First on. A worker keeps what it was told of a job, so that attempts which read
// the same partitions need not be told again.
type Producers struct {
	Epoch   int64
	DataSet string
	First   int
	List    []batch.Producer
}

// DeployAttempt starts an attempt. Its inputs name what it reads by ranges alone;
// the producers have been told before.
type DeployAttempt struct {
	Epoch       int64
	Attempt     joblog.AttemptID
	Parallelism int
	Inputs      []batch.Input
	Outputs     []batch.Output
}

// CancelAttempt stops one.
type CancelAttempt struct {
	Epoch   int64
	Attempt joblog.AttemptID
	Failure string // not empty: as if it had thrown this
}

// ReleasePartitions deletes partitions.
type ReleasePartitions struct {
	Epoch      int64
	Partitions []batch.PartitionID
}

// Recorded tells a worker that the log has the ends of these attempts: it need not
// remember them for a master to come.
type Recorded struct {
	Epoch    int64
	Attempts []joblog.AttemptID
}

// DropData deletes the data of a partition behind the worker's back, as a
// failing disk would.
type DropData struct {
	Epoch     int64
	Partition batch.PartitionID
}

// JobOver ends the job on a worker. It is answered with Leftover, and then
// nothing of the job is left.
type JobOver struct{ Epoch int64 }

// LeftoverUnknown are the bytes of a worker that cannot tell.
const LeftoverUnknown = -1

// Leftover is what a worker still had in its folder when the job was over.
type Leftover struct {
	Epoch int64
	Bytes int64
}

// AttemptState reports a transition.
type AttemptState struct {
	Attempt     joblog.AttemptID
	Parallelism int
	State       scheduling.TaskState
	Error       string
	Class       batch.FailureClass
	Partition   batch.PartitionID // lost
	Peer        batch.Worker      // to which the connection broke
	Result      batch.Result      // finished
	Records     []int64           // finished: written, by data set of the result
}

// AttemptCount is how many records an attempt has consumed so far.
type AttemptCount struct {
	Attempt  joblog.AttemptID
	Consumed int64
}

// Counts tells how far the attempts of a worker are.
type Counts struct{ Attempts []AttemptCount }

// ToAttempt is an event of a source's coordinator.
type ToAttempt struct {
	Epoch   int64
	Attempt joblog.AttemptID
	Payload []byte
	Splits  []string // that it hands over
}

// FromAttempt is an event for the coordinator of a source.
type FromAttempt struct {
	Attempt joblog.AttemptID
	Payload []byte
}

// AttemptsPerEpoch keeps the numbers of one master's attempts above those of the
// one before, which nobody can ask how many there were. A task would have to fail
// for days to reach it: restarts without progress are paced.
const AttemptsPerEpoch = 1_000_000

// TaskID is the name of an attempt where its epoch has no place of its own.
func TaskID(a joblog.AttemptID) task.ID {
	return task.ID{Vertex: a.Vertex, Subtask: a.Subtask, Attempt: int(a.Epoch-1)*AttemptsPerEpoch + a.Attempt}
}
