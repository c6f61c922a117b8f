// Package trial runs trials: one cell in one block, in a process of its own.
//
// The parent (Runner) starts the build's executable with the argument "trial"
// in a process group of its own, and the child (Child) executes the scenario
// against a target and reports back. Both halves of the package speak a
// versioned protocol of JSON lines:
//
//	stdin   one Request; then the pipe stays open, and its end means "stop"
//	stdout  Messages: hello, then events and phases as they come, then one trial
//	stderr  the log of the trial
//
// The child dies with its parent: the kernel kills it (Linux), and the end of
// stdin stops it everywhere. The parent kills the whole group when a trial's
// time is over, and in any case when the child has ended, so that nothing
// stays behind.
//
// Inside the child the scenario is carried out by one goroutine (execution),
// which waits for events of the timeline and looks at counters that no event
// carries. All metrics are computed afterwards from the timeline alone (see
// Measure, and measureBatch for batch jobs, which keeps a ledger of useful work).
// Each fault has a window of its own, from its t0 to the next fault's, and its metrics
// come from events in there that are about it. A metric that was not reached in there,
// or of which nobody can tell that, is absent; a reason for it that is none of the trial's
// failings stands in the trial (result.Trial.Absent). A batch job that finishes after a
// fault satisfies the waits for it to run and to get on.
//
// Campaign runs the trials of a plan one after the other and makes each
// durable as it ends.
package trial
