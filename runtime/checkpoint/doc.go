// Package checkpoint decides when checkpoints and savepoints are taken, when
// they are complete, when they have failed and what becomes of their files.
//
// Coordinator is a state machine: Step takes the time and an event and returns
// effects in the order in which they are to be carried out. It starts no
// goroutine, reads no clock and touches no file; whoever owns it (the master's
// event loop) does that and reports back with events. Step is not safe for
// concurrent use and must not be called from within the carrying out of an
// effect; events that follow from an effect are queued. An effect that fails
// must not keep the ones after it from being carried out.
//
// # Life of a checkpoint
//
//	request ──► queue ──► planning ──► located ──► coordinators ──► running ──► finalizing ──► completed
//	              │          │            │             │              │            │
//	              └──────────┴────────────┴── failed ───┴──────────────┴────────────┘
//
//	queue         waits for its turn: queue.go
//	planning      ComputePlan is out; no id yet; a rejected plan uses none up
//	located       has its id and its time-out; InitLocation is out
//	coordinators  SnapshotCoordinators is out; gateways of operator events close
//	running       TriggerTasks is out; acknowledgements come in
//	finalizing    all have acknowledged; Finalize is out, which nothing aborts
//
// From planning to the TriggerTasks effect a checkpoint holds the trigger: only
// one does at a time. Whatever ends it, also by abort or by a late answer,
// releases the trigger and looks at the queue again. Answers name the
// checkpoint that they are for; answers to one that has ended are dropped, and
// what they made is discarded.
//
// # Restore
//
// A checkpoint whose finalization is in progress may or may not become the
// newest one. A restore that took the one before it could undo work (abort of
// pre-committed transactions) that the newer one relies on. RestoreRequest is
// therefore answered only when no finalization is in progress.
//
// # Deviations from Apache Flink 2.3, on purpose
//
// A periodic request that finds another one queued is merged into it, so a
// slow checkpoint is not followed by a burst. A second acknowledgement for a
// completed checkpoint does not discard state. Deletions that fail are tried
// again with a growing delay and reported each time.
package checkpoint
