// Package target is the system under test as the harness sees it: one
// interface, implemented once for each kind of cluster in a package below.
//
// A Target starts a Job. From then on everything that happens is in the job's
// timeline; the harness derives conditions and metrics from it and calls the
// methods of Job only to disturb, to finish or to stop the job. A target
// reports the options that its running tasks really use.
//
// # Batch jobs
//
// The timeline of a batch job has, besides the states of job and tasks,
//
//	task-state FAILED     reason
//	task-state FINISHED   records: consumed, of a source those emitted; bytes: written to partitions
//	task-state RUNNING    once more, with the detail "adopted", when a new master goes on with a running task;
//	                      of one that has finished by then only the end is told
//	job-state SUBMITTED   the first master has the job: the origin of makespan and progress. Who writes it is not
//	                      killed with that master, whose other events may be lost
//	job-state SUSPENDED   a worker has lost its master while the job was not over, or the supervisor has seen
//	                      the master end; detail: which worker, or "supervisor", and the epoch, if the master
//	                      led; reason
//	master-elected        detail: the epoch of the new master, bare or after "epoch "
//	job-state RECONCILING from the end of the replay until the partitions that workers hold are known
//	event-replayed        once, after the replay: records is the number of events, bytes the size of the log;
//	                      a reason says why it was of no use and all began anew
//	job-state UNPROTECTED what finishes is not durable from here on, and it is tried again: reason; detail: what
//	                      failed, "events", "result" or "output"; "end": the job ends without its log;
//	                      "backlog": tasks are deployed although their ends wait for the log
//	job-state PROTECTED   it is again, with all that had finished; detail
//	job-state UNCOMMITTED a round of commits has failed: reason; detail: how many are committed and how many not
//	partition-kept        vertex and subtask whose finished output the new master found, or that
//	                      came back to one who had given it up (partition-lost before it);
//	                      reason "too-late": it was intact, and its task runs again all the same
//	partition-lost        vertex and subtask whose finished output is gone and is made again; reason
//
// A task that had finished and runs again counts as re-executed; without a
// partition-lost of its own that was avoidable. Finish of a batch job waits for
// its end; Output.Batch then has the figures that no event carries.
package target
