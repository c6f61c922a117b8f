// Package master carries out what packages checkpoint and scheduling decide.
//
// A master is one event loop. Messages of workers, answers of background work,
// timers and requests are events; the loop hands each to the state machine
// that it concerns and carries out the effects that come back. Nothing in the
// loop blocks: what touches storage runs in a goroutine of its own and comes
// back as an event.
//
// The loop owns all state of the package. Public methods post an event and, if
// they have an answer, wait for it outside of the loop. Two masters are built of
// the same parts:
//
//	loop.go      events in the order in which they come; steps that do not nest
//	registry.go  connections of workers, indices, heartbeats, loss
//	outcome.go   what everybody may ask at any time: how the job ended, options in use
//
// The mailbox of a loop is bounded by who posts: a worker by mailLimit messages,
// above which its connection is not read; background work by one answer each;
// timers and the watch over heartbeats by one event each; the job log by one event
// a flush; requests by callers that wait. What follows from an event (enqueue) is
// carried out before the next one is taken.
//
// When a master closes, its loop ends first; then all connections are closed, also
// of those that have not said hello, and background work is waited for.
//
// # Streaming jobs
//
// Master runs a streaming job:
//
//	master.go       life; the way of events to the state machines
//	config.go       the job as the state machines know it
//	requests.go     what others may ask for
//	takeover.go     starting a job, also one that another master has run before
//	workers.go      messages of workers, states of tasks
//	deploy.go       effects of the scheduler
//	restore.go      choosing, checking and assigning the checkpoint to restore
//	checkpoints.go  effects of the checkpoint coordinator
//	sources.go      split enumerators and their events
//	results.go      what operators reported at the end
//
// # Batch jobs
//
// Batch runs a batch job: it is the loop around scheduling/batch and joblog.
//
//	batch.go           life
//	batch_config.go    the job as the scheduler knows it
//	batch_requests.go  what others may ask for, and counters
//	batch_effects.go   effects of the scheduler
//	batch_deploy.go    attempts on their way to workers, and what those know already
//	batch_end.go       the end of the job
//	batch_output.go    commits; what is taken back; what must not be left behind
//	batch_journal.go   the job's log; what touches the disk is done beside the loop
//	batch_sources.go   split enumerators: several attempts of a subtask get the same
//	                   splits in the same order
//	batch_workers.go   messages of workers, inventories, states of attempts
//
// An event is in the log before it counts: the scheduler's Log effects come
// before those that follow from them, and what cannot be undone (commits, the
// job's result, release of consumed partitions) waits for LogDurable. A master
// asks every worker that joins later, or that the master before it may have
// left at work without a log, for its inventory, too: what nobody knows of has
// to go.
//
// What a master does to output it does only while it leads and is not killed: that
// is asked before each commit. A master of a later epoch removes the reports of
// earlier attempts, also of those that never counted, so one that goes on all the
// same finds nothing to commit; what it cleans up is of its epoch or before. Reports
// and files are durable before the log refers to them; commits are synced once a
// round, before it is confirmed.
//
// An attempt of a master before goes on only if what it reads is, by the log, what
// counts (hardened.adoptable in scheduling/batch): it may be one that was to be cancelled, or of a worker
// that was taken for dead, whose input has been made anew since. So inventories
// wait for the replay. Workers that have died are told by whoever supervises them
// (WorkerGone); else a takeover would wait for them.
//
// The job has ended when its log is closed and all workers have told what they
// had left; Kill ends a master as its process's death would: its log gets no
// further byte.
package master
