// Package state holds what operators remember: keyed state by key group,
// event-time timers, and list state.
//
// # Keyed state
//
// A Backend belongs to one operator of one subtask and covers the key groups
// First to Last of it. A Table is a named state in it whose values have one
// width; a VarTable has values of any length. Both map (key, namespace) to a
// value; which group a key belongs to is for the caller to say, and it must
// always say the same. Handles to tables are asked for once, by name, when the
// operator opens; the hot path then is one probe of a small hash index and no
// allocation.
//
// A group of a Table is a dense array of entries, values in chunks beside it,
// and a hash index from (key, namespace) to the entry's number:
//
//	slots    [ . 3 . 1 . . 2 . ]   entry number + 1, 0 = free, linear probing
//	entries  [ k0,n0 | k1,n1 | k2,n2 ]
//	chunks   [ v0 v1 … ] [ v1024 … ]   copied on write, one by one
//
// Everything here belongs to the goroutine of the subtask. The one exception
// is a Snapshot: taking it costs O(groups), and it may be written by another
// goroutine while the owner goes on. Until it is released, the owner copies a
// chunk before it first writes to it.
//
// # Format of a snapshot
//
// One block a key group, back to back, in order of groups; a group without
// state has no bytes. Integers are little-endian.
//
//	+-------+---------+-------+--------+- - - - - - - - -+--------+
//	| magic | version | group | length | parts           | CRC32C |
//	| 2     | 2       | 4     | 8      | length bytes    | 4      |
//	+-------+---------+-------+--------+- - - - - - - - -+--------+
//
//	part: kind (1), name length (2), name, then
//	  1 fixed:  width (4), count (4), count × (key 8, namespace 8), count × value
//	  2 var:    count (4), count × (key 8, namespace 8, length 4, value)
//	  3 timers: count (4), count × (time 8, key 8, namespace 8)
//
// The checksum covers the block from its magic on.
//
// # List state
//
// Named lists of byte items, which a rescale deals out anew: see Redistribute.
package state
