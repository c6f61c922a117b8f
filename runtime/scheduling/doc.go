// Package scheduling decides at which parallelism a streaming job runs, where
// its tasks run, and what happens when one of them fails or the resources or
// the wishes change.
//
// Scheduler is a state machine: Step takes the time and an event and returns
// effects in the order in which they are to be carried out. It starts no
// goroutine, reads no clock and touches no file. Step is not safe for
// concurrent use and must not be called from within the carrying out of an
// effect.
//
// # States
//
//	Created ─► WaitingForResources ─► CreatingExecutionGraph ─► Executing ─► Finished
//	                ▲    ▲   slots vanished  │                   │  ▲  │
//	                │    └───────────────────┘                   │  │  └► StopWithSavepoint
//	                └──────────────── Restarting ◄───────────────┘  │       (and back)
//	                                      └── parallelism still there: CreatingExecutionGraph
//
//	any ─► Canceling ─► Finished      any ─► Failing ─► Finished      any: Suspend ─► Finished
//
// A rescale cancels everything, builds the graph anew and restores the newest
// completed checkpoint; there is none in place. What a restart needs is
// computed when the last task has been cancelled, not when it was decided on.
//
// CreatingExecutionGraph begins with the Prepare effect: find and load the
// checkpoint, assign its state to the new subtasks. Its answer, Prepared,
// brings the Deploy effect.
//
// # When to change a running job
//
// In WaitingForResources and Executing a transition manager decides:
//
//	Cooldown     remember that something changed, act later
//	Idling       wait for a change
//	Stabilizing  go at once if the desired resources are there, else wait
//	Stabilized   wait for a trigger, then go if the resources suffice, else Idling
//	Transitioning
//
// Triggers are a completed checkpoint, a number of failed ones in a row, and a
// delay. With all times 0, the defaults of our own clusters, a change acts at
// once.
//
// # Slots
//
// The vertices of a job share slots: subtask i of every vertex runs in slot i,
// so a job needs as many slots as its widest vertex has subtasks. Slots are
// taken from the live workers in turn, in the order in which they joined.
//
// # Failover
//
// A failed task restarts its pipelined region if regions are enabled and there
// is more than one, everything else the whole job. The loss of a worker always
// restarts the whole job, because the placement changes. While tasks are being
// cancelled, failures of others count as part of the same failure.
package scheduling
