// Package operator defines what an operator is to the task that runs it, and
// holds the operator library.
//
// An operator belongs to its task's goroutine: every method is called there,
// one at a time. Records are passed by pointer and are valid during the call
// only; an operator that keeps one copies what it needs. It emits through
// Context.Out at any time between Open and Close.
//
// State that survives lives in Context.Keyed and Context.Lists, which the task
// restores before Open and snapshots at a barrier. What an operator keeps
// elsewhere it writes there in Prepare.
//
// # Batch jobs
//
// An operator of a batch job (Context.Batch) sees no checkpoint: Finish comes at
// the end of all input. Most operators work as they do in streaming. A count
// emits one record a key in Finish; sort emits everything there, sorted in
// files without a name as far as its memory does not reach.
//
// What is bounded: a sort holds records of Context.Memory bytes, or 16 MiB where
// nobody says (the heap may reserve up to twice that while it grows); the rest is on
// disk. Join, count and window sum keep the state of their partition on the heap,
// as in streaming, and no option limits it: a job bounds it by its parallelism.
//
// A file sink leaves a hidden file that carries the run of the job and the name of
// its attempt (AttemptName), so that several jobs may write to one folder. It and
// its entry in the folder are durable when the attempt ends. The master makes it
// visible for the attempt that counts (CommitFiles, then SyncFiles once for many),
// undoes that if the job begins anew (WithdrawFiles), and removes at the end what
// no attempt that counts has left (DropFiles).
//
// # Final values
//
// A sink proves per key the largest Value that it saw. Values never decrease
// per key (numbers that are summed are not negative), so the largest is the
// final one, whatever order rescales and shuffles deliver in.
package operator
