// Package joblog is the log from which a new master continues a batch job: what
// was decided about the job and what has finished.
//
// # Purpose and owners
//
// A Store takes events (Append), writes them on one goroutine of its own, and
// hands them out again to a later incarnation (Replay). Append encodes nothing
// and waits for nothing; the event and everything in it belong to the store
// from then on. One caller appends; Stats may be asked from anywhere.
//
// There are two stores behind the interface:
//
//	Hardened  framed, checksummed, fenced by epoch, compacted; a failing disk is
//	          reported and retried
//	Faithful  as Flink's FileSystemJobEventStore does it, with its weaknesses:
//	          no checksum, no sync, one error switches it off for good
//
// # Order
//
// Events come back in the order in which they were appended; what comes back is
// a prefix of what was appended. A task is finished only after its vertex was
// initialised; a reset names only tasks that were finished or running; nothing
// follows JobFinished. The master appends an event before it acts on it, and
// where acting cannot be undone (commits of sinks, the job's result) it waits
// until the event is durable.
//
// # Backlog
//
// Append never waits, so the queue is bounded by its user: above
// Config.MaxBacklog the store reports pressure, and the master deploys nothing
// more until it is over. What running tasks still report is bounded by their
// number.
//
// # Format of the hardened store
//
// Files log.N, N counting up; each incarnation begins a file of its own. A file
// is a row of records:
//
//	0  magic "BRJL"   8  epoch (8)      24 length of the payload (4)
//	4  version (1)    16 sequence (8)   28 CRC32C of bytes 0..27 and payload (4)
//	5  type (1)       32 payload
//	6  zero (2)
//
// Integers are little-endian; payloads are rows of varints and of strings with
// their lengths (codec.go). The first record of a file is a header: job, and
// whether the file stands for all before it. Sequences have no gap within a
// file; the next file says by the sequence of its header where the one before
// ends: what follows that point there was written by a master that had lost its
// leadership, or failed to become durable and is repeated, and is void.
//
// The end of the last file may be torn: it is cut off at the first record that
// is not good, and a file without a good header is removed. Damage anywhere
// else is refused with its place (DamagedError), as are logs of another job
// (ForeignError), version (VersionError) or of a newer master (StaleError).
//
// A new master appends an EpochStarted that lists the finished tasks it kept;
// every task finished before that is void. Snapshots of coordinators are
// records of their own, so a reset of a task does not take one away.
//
// Compaction writes the live events into a temporary file, syncs it, gives it
// its name by a hard link (a name that is taken wins), syncs the folder and
// deletes older files, newest last.
//
// # Durability
//
// The sync policy says when a record counts as durable: with none, when the
// operating system has it (it survives the process, not the machine); with
// interval, after the sync that follows a flush by time; with vertex, also when
// a vertex is complete, and only then is the disk asked; with always, after the
// batch of events it came with. JobFinished and EpochStarted are synced at once
// under every policy.
package joblog
