// Package buffer owns the memory of the network stack: segments of one fixed
// size from a bounded global pool, shared out by local pools.
//
// # Guarantee
//
// A Local has a minimum and a maximum. The global pool never hands a segment
// to a pool above its minimum while that segment is needed to let another pool
// reach its own, so the minimum of every pool is there at any time and nobody
// has to be told to give back. Above the minimum, segments go to whoever asks
// first; pools that got none are told when there is something again. A request
// within the minimum is never refused: while segments of closed pools are still
// out (a snapshot being written), the total may be exceeded by as many.
//
// # Ownership
//
// A segment has a reference count and, at any time, one owner who may write.
// Handing a Buffer over passes one reference, also when the call fails. The
// last Release gives the segment to its Recycler, by default the pool it came
// from; recycling never blocks and calls nobody back under a lock.
//
// Memory is allocated when first needed and kept by the global pool.
package buffer
