// Package snapshot defines what a checkpoint or savepoint is on disk: its
// metadata, the handles that point into its data files, the folders, and the
// order in which all this becomes durable.
//
// # Folders
//
//	chk-<id>                  a checkpoint
//	savepoint-<id>-<random>   a savepoint
//	    _metadata             present = complete
//	    <data files>          named by those who write them
//
// A folder without _metadata is a checkpoint that never completed and may be
// deleted by whoever knows that nobody writes to it any more.
//
// # Order
//
// Writers commit data files first. Write then syncs the folder, puts the
// metadata and syncs the folder and its parents; only when it has returned nil
// is the checkpoint complete. If it returns an error for which
// IsUnknownOutcome holds, the metadata may have become visible, and the files
// must be kept.
//
// # Metadata file
//
//	+-------+---------+-------+------ body ------+---------+
//	| magic | version | flags | see encode.go    | CRC32C  |
//	| 4     | 2       | 2     |                  | 4       |
//	+-------+---------+-------+------------------+---------+
//
// Fixed integers are little-endian; counts, sizes and indices are unsigned
// varints; strings and byte strings are a varint length and the bytes. The
// checksum covers everything before it. The state of one subtask, as it
// travels in an acknowledgement, has the same frame with another magic.
//
// It names the kind of each operator beside its id, so that another operator
// under the same id is refused, the epoch of the master that completed it, and
// what tasks reported that had finished before: a later master has no other
// source for it.
//
// # Data files of operator state
//
// StateWriter writes an eight-byte header (magic, version) and then sections
// back to back. A Handle names one section: file, offset, length, CRC32C.
// Small states are kept inline in the metadata instead. Files of in-flight
// data have their own format, which package inflight owns; here they are
// extents of a file with a checksum each.
package snapshot
