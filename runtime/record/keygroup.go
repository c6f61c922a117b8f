package record

import "math/bits"

// MaxParallelismBound is the largest legal maximum parallelism.
const MaxParallelismBound = 1 << 15

// Murmur is Flink's 32-bit finalised Murmur3 of one int with seed 0, made
// non-negative.
func Murmur(code int32) int32 {
	h := uint32(code) * 0xcc9e2d51
	h = bits.RotateLeft32(h, 15) * 0x1b873593
	h = bits.RotateLeft32(h, 13)
	h = h*5 + 0xe6546b64
	h ^= 4
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	switch v := int32(h); {
	case v >= 0:
		return v
	case v != -1<<31:
		return -v
	default:
		return 0
	}
}

// HashKey folds a key to the 32 bits that Murmur takes.
func HashKey(key uint64) int32 { return int32(key ^ key>>32) }

// KeyGroup is the group of a key, in [0, maxParallelism).
func KeyGroup(key uint64, maxParallelism int) int {
	return int(uint32(Murmur(HashKey(key))) % uint32(maxParallelism))
}

// KeyGroupRange is the inclusive range of groups that a subtask owns.
func KeyGroupRange(maxParallelism, parallelism, subtask int) (first, last int) {
	first = (subtask*maxParallelism + parallelism - 1) / parallelism
	last = ((subtask+1)*maxParallelism - 1) / parallelism
	return first, last
}

// GroupOwner is the subtask that owns a key group.
func GroupOwner(maxParallelism, parallelism, group int) int {
	return group * parallelism / maxParallelism
}

// DefaultMaxParallelism is what a vertex gets that names none: the next power
// of two of 1.5 times the parallelism, within 128 and 32768.
func DefaultMaxParallelism(parallelism int) int {
	n := parallelism + parallelism/2
	m := 128
	for m < n && m < MaxParallelismBound {
		m <<= 1
	}
	return m
}

// Mix is the finaliser of splitmix64: a bijection that spreads numbers.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
