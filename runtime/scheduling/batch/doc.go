// Package batch decides how a batch job runs: how wide its vertices become, what
// is deployed when, what runs again after a failure, and what a new master keeps
// of the work of the one before.
//
// Scheduler is a state machine: Step takes the time and an event and returns
// effects in the order in which they are to be carried out. It starts no
// goroutine, reads no clock and touches no file. Step is not safe for concurrent
// use and must not be called from within the carrying out of an effect.
//
// # Identities
//
// A task is a vertex and a subtask; an attempt adds its number and the epoch of
// the master that deployed it, so attempts of two masters never have the same
// name; a partition is a data set and the attempt that wrote it. A finished task
// keeps the name of the attempt that finished it, through any number of masters:
// it is what its partitions are found by.
//
// # Life of a job
//
//	Start ─► running ─► all tasks finished ─► commits ─► JobFinished ─► Terminal
//	Start{HasLog} ─► reconciling: Replayed, Inventory... ─► running
//
// A vertex is initialized when its producers are, or, if its parallelism is to
// be decided, when they have finished: contiguous ranges of subpartitions with
// about DataPerTask bytes each. A task is deployed when all of its input is there
// and a slot is free; tasks that pipelines connect are deployed together. While one
// waits that all slots of all workers are too few for, be it at the beginning, after
// a loss or after a takeover, the job is RESTARTING, with a NoSlotError as its
// reason; after SlotTimeout, which each master counts anew, it has FAILED with that.
//
// # Failures
//
// A failed task restarts with its region, with producers of input that is not
// there any more, and with all consumers of these. Finished consumers are no exception,
// in hardened mode neither: splits that are given back go to whoever asks first, and
// rebalance and running values follow the order of arrival, so a second run need not
// give each reader what the first gave it. What is lost and needed by nobody restarts
// nothing, and is looked at again only if somebody who read it has to run again.
//
// FailurePartitionLost takes the partition away, so its producer runs again;
// FailureTransfer does not. The loss of a worker counts as one failure of all it ran
// and held, together with what those who read from it were told by their broken
// connections shortly before. A task that is to run again belongs to one restart;
// nothing is deployed that reads what is to be written anew. Where the restart strategy
// sets no delay, what fails again without having finished in between waits longer and
// longer (restartPause). What has been consumed is released, in hardened mode only when
// the log has the consumer's end: else a crash would run the producers again.
//
// What is lost may come back, with a worker that was frozen or with one that has the
// folder of a dead one. A hardened master takes it back while nobody has begun to do
// without it (returned.go): a restart that waits loses what is no reason for it any more;
// a task that was reset, but not deployed, is finished again if what it has read counts
// and no split of it was given back. A worker that joins gets nothing before it has
// answered. What is too late is told and released.
//
// A job of which nothing runs any more, and nothing can, has FAILED with a
// StalledError: a faithful master may find no more in the log (H1), and would hang.
//
// # The end
//
// Commits go out in rounds, all that are open at one go. A round that fails is one
// failure: it is noted with its cause, and tried again after the restart
// strategy's delay, at least commitPause and growing, until it succeeds, the
// strategy refuses, or none has succeeded for commitLimit. Then the job has FAILED,
// with a CommitError that says what is visible and what not; so it does at once
// when a proof is missing, and when it is cancelled meanwhile.
//
// A job that begins anew under a later master (no log, or one that is of no use)
// first takes back what the masters before have committed: nobody was told that the
// job was over. Nothing is deployed before. In hardened mode a later master does the
// same before it commits, with all that does not count for it: so the end need not
// wait for ever for a log that cannot be written. After logLimit the job goes on to
// its end and says in the timeline that it was unprotected.
//
// # What the integrator feeds
//
//	Start            once, after opening the log: HasLog = Store.HasEvents; with
//	                 recovery off, whether the folder holds a log at all. Workers and
//	                 Patience: whom to wait for that a young log does not name
//	WorkerJoined     with its slots; before any other news of it
//	WorkerLost       also for a worker that the log's WorkerSet names and that is
//	                 known to be dead, unless another one will have its folder:
//	                 the new master waits for both, at most WorkerTimeout
//	TaskChanged      of any attempt, with the worker that reports it, also of
//	                 attempts that are not known here: they are cancelled or their
//	                 partitions released. FINISHED carries, for every blocking
//	                 output, the bytes of all its subpartitions, and for a source
//	                 the ids of all splits that it has read; one that its subtask was
//	                 given and that is not among them makes the end a failure
//	PartitionsGone   when a worker misses one that it should have
//	LogDurable, LogPressure   from Store.Config.Durable and .Pressure
//	SplitsDiscovered, SplitsAssigned, SplitsReturned   optional: the scheduler then
//	                 fails the job if a split is ever in two places (Ledger)
//	TimerFired       at the time of the last SetTimer
//
// All events carry facts of this epoch; what an older master was told is not
// passed on, except TaskChanged and Inventory, which name their attempts.
//
// # How effects are carried out
//
//	Log                  Store.Append, in order, with Cut. The scheduler counts them
//	                     from 1, as the store does. If Wait is set begin a snapshot
//	                     (id -1) of each operator in Snapshots now, append with a
//	                     joblog.Pending and complete it when all are there, be it
//	                     with none
//	ReplayLog            Store.Replay off the event loop; answer with Replayed
//	ClearLog             close the store, joblog.Wipe, open it again. Only before the
//	                     first Log
//	CloseLog             Store.Close(Clear)
//	RecordResult         write it where the next master looks first (Start.Result);
//	                     what follows waits until it is durable
//	AskInventory         ask the worker for all partitions of the job, all attempts
//	                     that run, with the splits they were given, and all that
//	                     finished and could not be reported; answer with Inventory
//	SettleInventory      pass it on. The worker does nothing else with what it holds
//	SnapshotCoordinator  snapshot with id -1: splits that were assigned stay in the
//	                     tracker's uncheckpointed part. Answer with SnapshotTaken
//	RestoreCoordinator   make the enumerator from State (nil: anew). If Held is not
//	                     nil then the splits in it belong to these subtasks, and
//	                     every other split is unassigned, whatever State says. "No
//	                     more splits" is told to every attempt anew
//	ResetSubtasks        SubtaskFailed, then SubtaskReset to -1 for each
//	Deploy               start it. Slots are counted here: a worker that lost its
//	                     connection and came back may still run old attempts beside
//	                     it until these have been cancelled. A second, speculative
//	                     attempt of a source is given the splits of its subtask
//	Cancel, Release      tell the worker; a worker that is gone needs no telling
//	CommitOutput         make the attempts' files visible, durably; doing it twice
//	                     changes nothing. Answer with OutputCommitted
//	WithdrawOutput       take back, durably, what attempts of earlier epochs have
//	                     left, committed or not, but of those to keep; behind
//	                     ClearLog. Answer with OutputWithdrawn
//	Terminal             tell all workers that the job is over: they drop what they
//	                     still have of it
//
// Messages carry the epoch; workers refuse older ones, and coordinators serve
// only attempts that their master knows.
//
// # Modes
//
// A policy is what differs: what is logged when, what a log comes to, how long to
// wait for workers and what becomes of what they report.
//
//	             faithful                          hardened
//	snapshots    part of a finished event          events of their own
//	finished     counts if a snapshot follows      counts, with the splits it names
//	takeover     nothing is logged                 EpochStarted lists what was kept
//	wait         all expected partitions           all workers that the log names or
//	                                               that are said to live, or those
//	                                               that have their folders; not dead
//	leftovers    stay                              keep and release lists
//	running      is lost                           goes on (adopted)
//	widening     not after a takeover              as at any time
//	commits      when a task finishes              when all have, and the log has it
//	anew         what was committed stays          is taken back first
//	fallback     a failure of the job              a restart that costs none
//
// Recoverable names, before a job starts, the vertices that cannot be kept or
// only as a whole, and why.
package batch
