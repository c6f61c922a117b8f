// Package inflight owns the in-flight data of unaligned checkpoints: it
// captures them, writes them to files, maps them to another parallelism, reads
// them back, filters them, and drains them.
//
// # The stream of a channel
//
// For an edge, S[u][d] is the byte stream from old upstream subtask u to old
// downstream subtask d between the last record that d had processed and the
// barrier that u sent. The downstream stores its part I[d][u]: what is left of
// the buffer being read, the queued buffers, what came until the barrier. The
// upstream stores the rest O[u][d]. I followed by O starts and ends at element
// boundaries; the seam between them may lie inside an element.
//
// # Files
//
//	0       4         8
//	| magic | version | chunk | chunk | ...
//
// A chunk is the bytes of one captured piece; its place and CRC32C stand in
// the metadata as an Extent. Several subtasks share a file.
//
// # Restoring
//
// Assignment says what a new subtask gets of the old ones. On the paths
// upstream and downstream a Labelled reader hands out pieces of old channels
// and a Demux in the task cuts them into elements, drops the ones that belong
// to another subtask and merges watermarks. On the path during, a goroutine of
// its own does the same and fills a Recovered queue with whole elements of this
// subtask only: in network memory while there is some to spare, in a file
// beyond that. A checkpoint taken meanwhile holds what the queue still has and
// what is still to be read, so it waits for filtering but never for processing.
//
// # Ownership
//
// Demux and Labelled belong to one goroutine. Recovered has one producer and
// one consumer and a lock that is a leaf. The spill file has no name: it is
// removed when it is made, and gone when closed or when the process dies.
package inflight
