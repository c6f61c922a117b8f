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
// a prefix of what was appended. What each event comes after, and how often it
// may be there:
//
//	EpochStarted          once a master, before all else that it appends
//	JobVertexInitialized  of a vertex: again only after an EpochStarted or a
//	                      cleared log; after those of all vertices it reads
//	VertexFinished        of a task: after its vertex is initialised, once until
//	                      the task is reset or void
//	VerticesReset         of tasks that had finished or run; any number
//	CoordinatorSnapshot   any number; the newest of an operator counts
//	WorkerSet             any number; the newest counts
//	JobFinished           once; nothing follows
//
// A reader takes a repeated event for the newest of its kind, so what a master
// says again after a failed write changes nothing. The master appends an event
// before it acts on it, and where acting cannot be undone (commits of sinks, the
// job's result) it waits until the event is durable. The log itself is the last
// but one to go: how a job ended is kept outside it, and was written before.
//
// No event and no file has a time in it, and no time decides: masters are ordered
// by epochs, records by numbers. A clock that jumps changes when something is
// flushed, nothing else.
//
// # Backlog
//
// Append never waits, so the queue is bounded by its user: above
// Config.MaxBacklog the store reports pressure, and the master deploys nothing
// more until it is over. What running tasks still report is bounded by their
// number. A disk that hangs in a call is pressure, too: Append counts, and another
// goroutine than the writer's tells.
//
// # Format of the hardened store
//
// Files log.N, N counting up; each incarnation begins a file of its own. A file
// is a row of records:
//
//	0  magic "BRJL"   8  epoch (8)      32 length of the payload (4)
//	4  version (1)    16 sequence (8)   36 CRC32C of bytes 0..35 and payload (4)
//	5  type (1)       24 synced (8)     40 payload
//	6  zero (2)
//
// Integers are little-endian; payloads are rows of varints and of strings with
// their lengths (codec.go). The first record of a file is a header: job (Identity:
// jobs of one name differ in their ids), and whether the file stands for all before it. Sequences have no gap within a
// file; the next file says by the sequence of its header where the one before
// ends: what follows that point there was written by a master that had lost its
// leadership, or failed to become durable and is repeated, and is void.
//
// Each record says up to which sequence everything was on the disk when it was
// written; the header of a compacted file, up to which its own records are.
//
// The end of the last file may be torn: it is cut off at the first record that
// is not good, unless the header, or a good record behind, says that what was
// there had been synced. A file without a good header is removed, if it holds no
// record (a machine that dies in the first write of a file, and keeps its end but not
// its first page, is refused, too). Damage anywhere else, and an event that this program cannot decode, is
// refused with its place (DamagedError), as are logs of another job
// (ForeignError), version (VersionError) or of a newer master (StaleError). What
// was cut off, bytes and place, is told (Torn). Damage in what was written since
// the last sync but one cannot be told from a torn end and is cut off.
//
// A new master appends an EpochStarted that lists the finished tasks it kept;
// every task finished before that is void. Snapshots of coordinators are
// records of their own, so a reset of a task does not take one away.
//
// Compaction writes the live events into a temporary file, syncs it, gives it
// its name by a hard link (a name that is taken wins), syncs the folder and
// deletes older files, newest last.
//
// # Fault points
//
// Both stores work on a folder that passes a fault point before and after each
// create, append, flush, sync, close, truncate, rename and delete (points.go).
// Tests crash at each passing of each, and let each fail once.
//
// # Weaknesses of the faithful store
//
// They come out of its own reading and writing (H numbers are those of the
// hazards in CONTRIBUTING.md): large records are not flushed by time (H7), a gap
// ends the reading and collides with the writing (H8), an event that cannot be
// decoded fails the whole replay (H10), snapshots that never come hold up all
// that follow (H11), nothing is fenced. H9, a list of shuffle snapshots that
// cannot grow, has no counterpart: what partitions there are is known from the
// workers alone, so no shuffle state is in the log.
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
