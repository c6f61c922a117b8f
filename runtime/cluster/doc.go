// Package cluster is the only door to the runtime: it brings up a master and
// workers, submits a job, and offers what can be done to them. Running is that
// offer; there are two kinds of clusters behind it, on the same code below.
//
// In an embedded Cluster all of them live in this process, and yet they talk
// as if they did not: commands over control connections, data between workers
// over sockets. What a killed worker knew is lost.
//
// In a cluster of Processes each is a process of its own, and this one
// supervises them: it starts and ends them, gathers their events and asks for
// their counters. It owns the timeline and is never killed.
//
// # Who talks to whom
//
//	             supervisor (the trial's process)
//	stdin: request    |            ^  one connection a process, to the
//	and its end       |            |  supervisor: events, counters; asks
//	             +----+-------+----+-------+
//	             v            v            v
//	          master       worker 0 <-> worker 1     result partitions
//	             ^            |            |
//	             +------------+------------+         control connections
//	          state folder: leader.lock, epoch, leader.json, job.json, result.json (batch)
//
// All connections are TCP on 127.0.0.1 behind the handshake of control.Secure,
// with a secret that is made for the cluster and travels on stdin alone.
//
// # Start
//
// The supervisor checks the job, writes it to job.json, listens, and starts
// master and workers side by side: the same executable with the role as its
// last argument, which calls Node. Each reads one nodeRequest, connects and
// says Attach. The master takes the lock of the state folder, then the next
// epoch, reads the job, listens, publishes its address in leader.json and says
// Leading. Workers look at that file until somebody leads. When all have joined
// the master submits the job; so each gets its part, in the order of indices.
//
// # Loss of a worker
//
// kill -9 breaks its connections; the master and the other workers see that at
// once. A stopped one is lost when its heartbeats stay away. One that comes
// back to a master that has lost it finds the door shut, and waits for
// another master.
//
// The folder of a dead worker belongs to the one that was announced as its
// replacement. Where none was, the cluster takes it away as soon as the process is
// known to have ended, not before: a worker that is only silent still writes
// there. So nothing lies on a disk that nobody can read or clean, and no new
// master counts on it.
//
// A worker process that ends without having been told to ends the job, with its last
// words, as a master does: whatever is measured under such a fault is not what was
// to be measured.
//
// # Change of master
//
// The leader's death frees the lock. Whoever gets it counts the epoch up,
// takes job.json (with the parallelism of the last accepted rescale), lists
// the complete checkpoints in storage, and begins to count its own above every
// id that was ever begun. Workers whose connection broke drop all tasks and
// wait for a leader of a newer epoch; those still connected to a master that
// says nothing look for one, too. The newest complete checkpoint is restored.
// What tasks reported that had finished before is in its metadata.
//
// Two never both act: every command carries the epoch and a worker refuses an
// older one than it has seen; a master looks whether it still leads before it
// publishes, before it changes the submission and before it completes a
// checkpoint, and every leadershipCheck; when it does not, it ends.
//
// job.json, result.json, leader.json and epoch are sealed (sealed.go): kind, version,
// checksum and, of the first two, the id of the submission. What is not as a
// master wrote it is refused with file and offset (StateError), and ends the job:
// nobody else knows what was there.
//
// # Batch jobs
//
// A batch job (Config.Batch) has a log in the state folder, job-events/, from which
// the next master goes on; workers keep their partitions and, in hardened mode,
// their tasks when a master dies. Batch is the embedded kind: its master can be
// killed, too, because what it knew is taken from the log and the workers alone. A
// worker that replaces one which died tells what is in its folder. BatchFigures
// sums over all masters; those of one are read at the instant of its death.
//
//	DIR/master/job-events/      log of the job; gone when it is over
//	DIR/worker-N/shuffle/       finished partitions; gone when the job is over
//	DIR/worker-N/spill/         of running tasks
//	DIR/reports/ID/             what sinks and sources reported; ID: of the submission
//
// # The end
//
// Leave asks a process to stop in order. None outlives its supervisor: the
// kernel kills it (Linux, also when it is stopped), and the end of its stdin
// ends it everywhere.
//
// # Clocks
//
// Stamps are on the supervisor's clock. On Linux all processes read one
// monotonic clock, and only its reading at the timeline's origin is handed on.
// Elsewhere a process asks for the time and notes how far it may be off
// (Attach.Bound, in the log). Events of several processes arrive in their own
// order each; timeline.Log.Sorted joins them.
package cluster
