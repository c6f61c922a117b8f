// Package shuffle is the blocking exchange: a producing subtask writes its whole
// output into files of its worker, and consumers read them after it has ended,
// as often as they need to.
//
// # States of a result partition
//
//	writing   a Writer has it. On disk are two files with temporary names.
//	finished  Finish has returned. The files have their names, and the partition
//	          survives the death of the process; a Store that is opened on the
//	          same folder adopts it.
//	released  Release, ReleaseJob or DropOldest has removed the files.
//
// A partition is named by job, data set (the edge), index of the producing
// subtask, its attempt, and the epoch of the master that had it made. No two
// attempts ever share a file, and a file is never changed once it is finished.
//
// Who deletes: the Writer its temporary files, when it is aborted; Open what
// a process left that died while writing or deleting, and what is damaged;
// everything else only a caller of Release, ReleaseJob or DropOldest. The store
// decides nothing by itself. To those who are reading it, a partition that is
// released is lost.
//
// # Layout
//
//	DIR/job/epoch/dataset~index~attempt.data, .index     names are escaped
//
// The data file holds regions. A region is what was in memory when memory was
// full; within it the bytes of one subpartition are adjacent, in the order of
// their number, so a range of subpartitions is one piece of each region. A
// region holds whole records in the framing of package record.
//
// All numbers are little endian, all checksums CRC32C.
//
//	both     magic(8) version(2) codec(1) 0(1) epoch(8) index(4) attempt(4) subpartitions(4)
//	         block(4) length of names(4) names, job 0 dataset   crc(4) = identity
//	data     regions, each a sequence of blocks
//	         length(8) of the file before this   identity(4) crc(4) magic(8)
//	block    stored(4) raw(4, top bit: compressed) crc(4) stored bytes
//	index    for each region, for each subpartition:
//	         offset(8) bytes(4) records(4) crc(4) check(4)
//	         for each subpartition: raw bytes(8) records(8)
//	         regions(4) 0(4) watermark(8) length of the data file(8) crc(4) magic(8)
//
// The crc of a block covers its head, its bytes, its offset and the identity, so
// a block of another place or file is no block. The crc of an index entry covers
// the heads of its blocks; check covers the entry, its place and the identity. The
// crc of the index covers everything before it, and is the checksum of the
// partition.
//
// Order of durability: data written, index written, data synced and renamed, index
// synced and renamed, folder synced; nothing is synced if the policy is not to: then
// a partition survives its process, but not its machine. The index under its name
// is what makes a partition finished. Deletion goes the other way round.
//
// # Watermarks
//
// Records of a blocking partition are not in the order in which they were
// written, so the marks between them mean nothing. The last one is kept, and
// is handed out behind all records; EndOfData and EndOfPartition follow.
//
// # Compression
//
// A block is compressed by itself, and kept as it is if that saves less than an eighth;
// then the next 1, 3, 7, 15 are not tried. The default of its option is Flink's, LZ4.
// It costs CPU and gains disk. Records of 100 bytes on two cores, medians of five
// interleaved runs of BenchmarkShuffle, write and read, no compression, LZ4 and zstd:
//
//	pattern, local    769  501  374 MB/s   1 : 4.0 : 5.2
//	pattern, socket   502  383  300 MB/s
//	words, local      739  309  140 MB/s   1 : 2.3 : 3.1
//
// LZ4 blocks are written by lz4Table, whose table is smaller than that of the library
// that reads them: 1.1 to 1.4 times as fast for words and noise, as fast for the
// pattern, at the same ratio.
//
// # Memory and files
//
// A Writer has at most WriterConfig.Memory bytes for records and output, plus
// some 80 bytes a subpartition, what its codec works with, and two open files. All readers of a store
// share Config.ReadMemory, of which an active one has Config.ReadAhead segments;
// one that finds nothing left waits for its turn. That ends, because every consumer of a blocking exchange can go on whatever
// other consumers do. Readers share one open file a partition, Config.MaxOpen in
// all: the one unused longest is closed.
//
// # Errors
//
// Whatever keeps a partition from being read (missing, damaged, of another
// epoch, unknown to its holder) is exchange.ErrPartitionLost, also for remote
// consumers; Lost gives the partition. A shortage of this process (open files,
// memory) is not: the partition is all right. What goes wrong on the way is
// exchange.TransferError.
//
// # Goroutines and locks
//
// A Writer belongs to one goroutine. Config.Threads goroutines of the store do
// all reading, nearest piece first in the order of the disk, and end with
// Close. Order of locks: store, reader; the others are leaves. Consumers are
// notified under none of them.
package shuffle
