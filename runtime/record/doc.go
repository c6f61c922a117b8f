// Package record defines what flows through a job: records, watermarks and
// watermark statuses inside data buffers, and events between buffers; and how
// keys map to key groups and key groups to subtasks.
//
// # Framing
//
// Elements are laid out back to back in a channel's byte stream, little
// endian. The stream is cut into buffers anywhere, so an element may span
// buffers.
//
//	0        4     5       6        8      12    20       28     36      44
//	| length | tag | flags | source | copy | key | number | time | value | data ...
//
// length counts the bytes after itself. Only records (tag 0) have this form; a
// watermark (tag 1) carries the time after the tag, a status (tag 2) one byte:
// 1 active, 0 idle. Lengths are bounded by MaxElement; a longer one means that
// the stream is corrupt.
//
// # Key groups
//
// A key belongs to group murmur(hash(key)) mod maxParallelism, where hash
// folds the 64 bits as Java does, and subtask i of p owns the groups from
// ceil(i*M/p) to ((i+1)*M-1)/p. Both are Flink's rules, so a job keeps its
// distribution on either runtime.
package record
