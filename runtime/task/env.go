package task

import (
	"context"
	"sync/atomic"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/inflight"
	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/timeline"
)

// State is the life of an execution attempt as the master sees it.
type State string

// States of an execution attempt.
const (
	Created      State = "CREATED"
	Deploying    State = "DEPLOYING"
	Initializing State = "INITIALIZING"
	Running      State = "RUNNING"
	Finished     State = "FINISHED"
	Canceling    State = "CANCELING"
	Canceled     State = "CANCELED"
	Failed       State = "FAILED"
)

// Terminal tells whether an attempt in this state is over.
func (s State) Terminal() bool { return s == Finished || s == Canceled || s == Failed }

// ID names one execution attempt.
type ID struct {
	Vertex  string
	Subtask int
	Attempt int
}

// Listener is told what happens in a task. Calls come from the task's
// goroutine or from one that writes a snapshot; they must not block for long
// and must not call back into the task.
type Listener interface {
	State(id ID, s State, err error)
	// Acknowledge tells that everything of a checkpoint is durable.
	Acknowledge(id ID, checkpoint int64, s *snapshot.SubtaskState)
	// Passed tells that the task has sent the barrier on.
	Passed(id ID, checkpoint int64)
	Decline(id ID, checkpoint int64, reason string, err error)
	// Ended tells that the task has seen the end of its data and waits for a
	// last checkpoint.
	Ended(id ID)
	// OperatorEvent goes to the coordinator of the task's head operator.
	OperatorEvent(id ID, payload []byte)
	// Report is what an operator has to tell at the end.
	Report(id ID, operator string, report any)
}

// Env is what a worker lends to its tasks.
type Env struct {
	Global      *buffer.Global
	Recovery    *buffer.Local // network memory for recovered data
	Server      *exchange.Server
	Client      func(ctx context.Context, worker int) (*exchange.Client, error)
	Worker      int // own index
	Writer      *inflight.Writer
	Checkpoints storage.Store
	SpillDir    string
	Filling     chan struct{} // limits how many goroutines read and filter at a time
	OutputDir   string
	Network     NetworkConfig
	Timeline    *timeline.Log
	Uncharged   *atomic.Bool // cost is no longer charged
	Pause       func()       // blocks while the worker is frozen
	Start       time.Time    // when the job first started
}

// NetworkConfig is the cluster's configuration of the network stack.
type NetworkConfig struct {
	Exclusive int // buffers of a remote channel
	Floating  int // buffers of a gate
	MaxPerSub int // buffers of a subpartition
	Overdraft int
}

// PartitionBuffers is the range of buffers of a result partition.
func (c NetworkConfig) PartitionBuffers(subpartitions int) (lo, hi int) {
	lo = subpartitions
	hi = min(subpartitions*max(c.Exclusive, 1)+c.Floating, subpartitions*c.MaxPerSub)
	return lo, max(lo, hi)
}

// Deployment describes one attempt.
type Deployment struct {
	ID
	Execution      int // of the job: partitions of different ones never meet
	Graph          *graph.Graph
	Vertex         int     // in the graph
	Placement      [][]int // worker index by vertex and subtask
	Values         options.Values
	Restore        *Restore // nil: a fresh start
	Draining       bool     // the job is finishing: unbounded sources stop at once
	SavepointToken string   // names the folders of savepoints
	Batch          *Batch   // nil: a task of a streaming job
}

var (
	// FailRecord is passed once a record batch, FailSnapshot in the synchronous
	// part of a snapshot, FailRestore when state is restored, FailClose at the
	// end. The subject is "vertex/subtask/attempt".
	FailRecord   = failpoint.New("task/record")
	FailSnapshot = failpoint.New("task/snapshot")
	FailRestore  = failpoint.New("task/restore")
	FailClose    = failpoint.New("task/close")
)
