package control

import (
	"encoding/gob"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/record"
	"benchrun/runtime/task"
)

// Hello is a worker's first message.
type Hello struct {
	Index    int // that it would like to have; a worker that is new to the cluster has its place among its peers by it
	Slots    int
	DataAddr string // where other workers get result partitions
	Identity string // batch: of its folder, under whatever names masters knew it
}

// Welcome is the master's answer.
type Welcome struct {
	Epoch  int64
	Worker int // its index, never used twice
}

// Heartbeat tells that the sender lives.
type Heartbeat struct{}

// TaskSpec is one task to deploy.
type TaskSpec struct {
	ID     task.ID
	Vertex int
}

// Deploy starts tasks of one execution on a worker. It comes in one message,
// so that all result partitions of the worker exist before a consumer looks
// for them.
type Deploy struct {
	Epoch          int64
	Execution      int
	Graph          graph.Graph
	Placement      [][]int        // worker by vertex and subtask; -1: not of this execution
	Addrs          map[int]string // data addresses of workers
	Options        map[string]any
	Tasks          []TaskSpec
	RestoreURL     string // of the store; empty: a fresh start
	RestoreFolder  string
	Started        time.Duration // when the job first started, on the cluster's clock
	Draining       bool
	SavepointToken string
}

// Cancel stops tasks.
type Cancel struct {
	Epoch int64
	Tasks []task.ID
}

// Trigger starts a checkpoint in tasks that get no barriers.
type Trigger struct {
	Epoch int64
	Event record.Event
	Tasks []task.ID
}

// Notify tells tasks how a checkpoint ended.
type Notify struct {
	Epoch      int64
	Checkpoint int64
	Completed  bool
	Tasks      []task.ID
}

// ToReader is an event of an operator coordinator.
type ToReader struct {
	Epoch   int64
	Seq     uint64 // acknowledged by ReaderGot
	Task    task.ID
	Payload []byte
}

// StopSources lets unbounded sources end; from here cost is not charged.
type StopSources struct {
	Epoch int64
	Tasks []task.ID
}

// FailTask makes a task throw an exception.
type FailTask struct {
	Epoch  int64
	Task   task.ID
	Reason string
}

// Forget releases what finished tasks of an execution still hold.
type Forget struct {
	Epoch     int64
	Execution int
}

// InUse reports the options that a worker's tasks run with, as it understood
// them.
type InUse struct {
	Execution int
	Options   map[string]any
}

// TaskState reports a transition.
type TaskState struct {
	Task  task.ID
	State task.State
	Error string
	// Corrupt: it failed because the checkpoint that it restored is damaged.
	Corrupt bool
}

// Acknowledge carries a task's part of a checkpoint.
type Acknowledge struct {
	Task       task.ID
	Checkpoint int64
	State      []byte // snapshot.EncodeSubtask
}

// Passed tells that a task has sent a barrier on.
type Passed struct {
	Task       task.ID
	Checkpoint int64
}

// Decline tells that a task cannot take part.
type Decline struct {
	Task       task.ID
	Checkpoint int64
	Reason     string
	Error      string
}

// Ended tells that a task has seen the end of its data.
type Ended struct{ Task task.ID }

// FromReader is an event for an operator coordinator.
type FromReader struct {
	Task    task.ID
	Payload []byte
}

// ReaderGot acknowledges a ToReader.
type ReaderGot struct {
	Seq   uint64
	Error string
}

// Report is what an operator tells when its task finishes.
type Report struct {
	Task     task.ID
	Operator string
	Data     any
}

// kinds is one of each message.
var kinds = []any{
	Hello{}, Welcome{}, Heartbeat{}, Deploy{}, Cancel{}, Trigger{}, Notify{}, ToReader{}, StopSources{}, FailTask{}, Forget{},
	InUse{}, TaskState{}, Acknowledge{}, Passed{}, Decline{}, Ended{}, FromReader{}, ReaderGot{}, Report{},
	Attach{}, Clock{}, Events{}, Leading{}, JobEnded{}, Ask{}, Told{}, Rescale{}, FailSubtask{}, TakeSavepoint{}, EndSources{},
	BatchJob{}, Peers{}, AskInventory{}, Inventory{}, Settle{}, Producers{}, DeployAttempt{}, CancelAttempt{}, ReleasePartitions{}, DropData{}, JobOver{},
	Leftover{}, AttemptState{}, Counts{}, ToAttempt{}, FromAttempt{}, DropPartition{}, WorkerGone{}, Recorded{},
	CancelJob{}, GetReports{}, GetOptions{}, GetLoad{}, BreakStorage{}, Leave{}, Load{}, Reports{}, Options{},
}

func init() {
	for _, m := range kinds {
		gob.Register(m)
	}
}
