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
// # Watermarks
//
// A watermark w in the stream of old channel u->d says that no record before w
// follows in that stream, and that the records that u makes after its barrier
// are not before w either. What the new channel brings when its restored data
// are used up is made by a new subtask. While that one continues the old one
// with its number, the minimum over the virtual channels of a channel says the
// same of the channel, whatever became of the consumer's parallelism.
//
// Otherwise (GateAssignment.Redealt) it does not: old u may have been far ahead,
// and the new subtask of that number may go on with a split of one that was
// behind. This is so when the producer was rescaled, when subtasks of it had
// finished, and when one of the two is true of a vertex from which it gets its
// input pointwise. An input that comes from all subtasks of a vertex is no such
// case: the watermark of each consumer was at most the smallest of all producers
// anyway, so nothing that any of them makes later is before it.
// What does hold is the minimum over all virtual channels of the gate, for every
// channel of it: whoever makes a later record goes on from some old u, and is not
// behind that one's last watermark. So watermarks are held back, and the
// minimum counts for all channels at the end (Demux.HeldBack). They do not go
// into a Recovered queue either: from a checkpoint taken meanwhile they would
// come back as those of the channel, in front of live records behind them.
//
// A status does not outlive its sender: a new one is active until it says that
// it is idle, and would not say that it is active. Restored ones are dropped.
//
// # Ownership
//
// Demux and Labelled belong to one goroutine. Recovered has one producer and
// one consumer and a lock that is a leaf. The spill file has no name: it is
// removed when it is made, and gone when closed or when the process dies.
package inflight
