package source

import "fmt"

// Event is something that a Coordinator is told.
type Event interface{ event() }

type (
	// SubtaskReady: an attempt is there and can be sent to.
	SubtaskReady struct{ Subtask, Attempt int }

	// SubtaskFailed: an attempt has ended otherwise than by finishing. Nothing
	// that was sent to it counts.
	SubtaskFailed struct{ Subtask, Attempt int }

	// SubtaskReset: the next attempt of the subtask begins from this
	// checkpoint (0: from none), while the others go on. It comes after
	// SubtaskFailed and before SubtaskReady.
	SubtaskReset struct {
		Subtask    int
		Checkpoint int64
	}

	// FromReader: a reader has sent an event.
	FromReader struct {
		Subtask, Attempt int
		Event            ReaderEvent
	}

	// Delivered answers Send. An error means that the attempt may not have got
	// it, although it is not known to have failed.
	Delivered struct {
		Subtask int
		Seq     uint64
		Err     error
	}

	// BeginCheckpoint: take a snapshot. It is answered with SnapshotDone or
	// SnapshotFailed, unless the checkpoint is aborted before.
	BeginCheckpoint struct{ ID int64 }

	// PassedBarrier: the subtask has taken its snapshot for the checkpoint.
	PassedBarrier struct {
		Subtask int
		ID      int64
	}

	// CheckpointCompleted: it is durable.
	CheckpointCompleted struct{ ID int64 }

	// CheckpointAborted: it never will be.
	CheckpointAborted struct{ ID int64 }

	// Reset: the whole job begins from this checkpoint, whose bytes for this
	// coordinator are State; nil if there is no checkpoint or it has none.
	Reset struct {
		Checkpoint  int64
		State       []byte
		Parallelism int
		// Held, with BatchCheckpoint, are the splits that subtasks have finished or
		// go on with, and that nobody else may get; nil: State knows.
		Held map[int][]string
	}
)

func (SubtaskReady) event()        {}
func (SubtaskFailed) event()       {}
func (SubtaskReset) event()        {}
func (FromReader) event()          {}
func (Delivered) event()           {}
func (BeginCheckpoint) event()     {}
func (PassedBarrier) event()       {}
func (CheckpointCompleted) event() {}
func (CheckpointAborted) event()   {}
func (Reset) event()               {}

// Effect is something that a Coordinator wants done.
type Effect interface{ effect() }

type (
	// Send: deliver an event to an attempt of a subtask. Answer with Delivered.
	Send struct {
		Subtask, Attempt int
		Seq              uint64
		Event            CoordinatorEvent
	}

	// SnapshotDone: these are the bytes, and all that was sent before has
	// arrived.
	SnapshotDone struct {
		ID   int64
		Data []byte
	}

	// SnapshotFailed: there are none; the checkpoint must be aborted.
	SnapshotFailed struct {
		ID  int64
		Err error
	}

	// FailTask: the attempt and the coordinator no longer agree.
	FailTask struct {
		Subtask, Attempt int
		Err              error
	}

	// FailJob: the coordinator cannot go on.
	FailJob struct{ Err error }
)

func (Send) effect()           {}
func (SnapshotDone) effect()   {}
func (SnapshotFailed) effect() {}
func (FailTask) effect()       {}
func (FailJob) effect()        {}

func (s Send) String() string {
	return fmt.Sprintf("event %d to subtask %d, attempt %d", s.Seq, s.Subtask, s.Attempt)
}
