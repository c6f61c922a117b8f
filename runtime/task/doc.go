// Package task runs one subtask: it reads its inputs, drives the chain of
// operators, takes part in checkpoints, restores, and ends.
//
// # One goroutine
//
// A Task has one goroutine that owns its operators, their state, its
// deserializers and its barrier handler. Others post mail: closures that the
// loop runs between two records. The loop looks for mail and for priority
// events after every record, so a barrier that overtakes waits for one record
// at most, and does nothing but look while its outputs are full.
//
// # Life
//
//	CREATED -> INITIALIZING -> RUNNING -> FINISHED
//	    any of them -> CANCELED | FAILED
//
// INITIALIZING restores output that is to be sent again, operator state, and
// in-flight input. Without checkpoints during recovery it lasts until that
// input has been processed, and checkpoints are declined; with them it ends as
// soon as channels are connected, and the recovered data are processed, and
// belong to checkpoints, while RUNNING.
//
// # A checkpoint here
//
// barriers decides when; snapshots does it: tell the operators, send the
// barrier on, collect what it overtook, copy the state, and write everything
// in the background. The acknowledgement goes out when all of it is durable.
//
// # Batch jobs
//
// With Deployment.Batch all edges are blocking (batch.go): outputs are writers of
// package shuffle, inputs are readers of finished partitions behind the same
// gates. There are no barriers and no checkpoints; the task ends with its
// input, and its partitions become readable before it is FINISHED. Finished and
// Consumed tell what it has left and read. Keyed state covers all key groups,
// because what a task reads is a range of subpartitions.
//
// # Ends
//
// After the last record operators flush, and the task waits for one more
// checkpoint to complete, to which two-phase commits are tied, before it
// finishes. A cancelled task stops at once; what it had queued is dropped.
package task
