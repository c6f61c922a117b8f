// Package storage holds durable streams: named byte sequences that survive the
// loss of the process once they are committed.
//
// A name is a slash path inside the store ("chk-7/subtask-3"); it never leaves
// the store's root. A stream is written once, from start to end, by one
// Writer. Nothing is visible under its name before Commit has returned nil,
// and what Commit has made visible never changes; Put is the only call that
// replaces a stream, and it does so in one step.
//
// # Durability
//
// Three things have to reach the disk in this order: the bytes of a file, the
// entry of the file in its folder, the entry of the folder in its parents.
//
//	Writer.Commit   bytes durable, entry visible but not yet durable
//	SyncDir(folder) entries of the folder and of all folders above it durable
//	Put             bytes and entry durable, folders above the first one too
//	PutIfAbsent     like Put, and of several callers exactly one wins
//	Delete          visible at once, durable with the next SyncDir
//
// A group of files therefore is written as: Create/Write/Commit for each, one
// SyncDir for all, then a Put of the file whose presence declares the group
// complete.
//
// # Drivers
//
// A directory (file:///dir or a plain path), process memory (mem://name, with
// CrashClone: what a machine would find after losing power), and Faulty, a
// wrapper that fails, delays, fills or tears on command.
//
// The package knows nothing of what is in the streams. Checksums belong to
// those who define the bytes.
package storage
