// Package exchange moves buffers from producing to consuming subtasks.
//
// # Parts
//
// A producing subtask owns a Partition for each outgoing edge, with one
// Subpartition for each consuming subtask. A consuming subtask owns a Gate for
// each incoming edge, with one channel for each producing subtask. A channel
// is local when both ends are on one worker: it takes buffers straight out of
// the subpartition. Else it is remote: the producer's Server sends over the
// one connection between the two workers, the consumer's Client receives.
//
// A channel can also read a Source: something finished that is handed out at the
// consumer's pace, such as a file of a blocking exchange. The server asks the
// Opener of a key's prefix for it; a gate gets its own with AddSource and may
// connect its channels in turn. To the wire and to the task both are alike.
//
// # Errors
//
// A PartitionLostError says that what a channel reads is gone: its producer has to run
// again. A TransferError says that the connection broke: the data may be all
// right, and the consumer alone fails.
//
// # Credits
//
// A remote channel has room for its exclusive buffers, always, and for
// floating ones of its gate, while it holds them. It announces each free place
// as one credit. The server sends a data buffer only against a credit and
// tells the backlog with each; with none left and a backlog, it sends the
// backlog alone. Events need no credit: the one thing that must pass through a
// jam is a barrier.
//
// A sender that is blocked returns its credit: places that it cannot use must
// not be missing where the one is that it waits for.
//
// # Priority and blocking
//
// A priority event goes to the head of a subpartition's queue and is handed
// out even while the subpartition is blocked. A subpartition blocks itself
// after it handed out an event that Blocks, until the consumer resumes it.
//
// # Ownership and locks
//
// Partition writers belong to the task's goroutine. Queues have their own
// lock; notifications are made after unlocking. The order of locks is channel,
// gate, pool; everything else is a leaf.
// Everything that waits ends with the task's stop channel or with Close.
//
// # Wire format
//
// Both directions carry frames, little endian.
//
//	consumer to producer: type(1) check(3) channel(4) n(4)   n = credit, or length of key
//	    request: + credit(4) subpartition(4) key(n) crc32c(4)   credit: n   resume   cancel
//	producer to consumer: type(1) check(3) channel(4) backlog(4) length(4) crc32c(4) payload
//	    data   event (record.EventSize bytes)   backlog, return (no payload)   error, lost (message)
//
// check is the low three bytes of the CRC32C of the other bytes up to the
// payload, taken with check as zero. Any single flipped bit ends the connection.
package exchange
