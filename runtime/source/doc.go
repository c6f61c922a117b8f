// Package source reads the input of a job: splits, the readers that read them
// in the source tasks, and the coordinator in the master that hands them out.
//
// # Readers
//
// A Reader belongs to its task's goroutine. It reads any number of splits in
// turn and puts their positions into the task's checkpointed state. Which
// records a split has does not depend on the parallelism.
//
// # Coordinator
//
// A Coordinator is a state machine beside the master's event loop; its
// Enumerator decides which reader gets which split. Three mechanisms together
// keep every split in exactly one place through failures:
//
//   - Gateways, one a subtask, order the coordinator's events against barriers:
//     what was produced before its snapshot arrives before the barrier, what was
//     produced later arrives after it. They reopen when the subtask has passed
//     the barrier, not when the trigger was sent, and also when the checkpoint
//     is aborted.
//   - A snapshot is given out only when everything produced before it has
//     arrived. An event that was lost fails it and the task.
//   - A tracker knows which splits a reader was given since which checkpoint,
//     so that they go back to the enumerator when only this reader restarts.
//
// # Batch jobs
//
// A reader of a batch job has no checkpointed state: a subtask that is reset
// begins its splits anew. So BatchSnapshot, with the id BatchCheckpoint, holds
// the enumerator and who has which splits, and leaves the tracker as it is. A new
// master resets a coordinator with the splits that its tasks are known to hold;
// whatever an older snapshot says, every other split is then unassigned.
//
// # Format of a coordinator's state
//
//	version (2) · version of the enumerator (2) · length (4) · enumerator
//	enumerator: number of splits (varint), each: number (4), id, data
//
// Integers are little-endian; id and data have a varint length in front.
package source
