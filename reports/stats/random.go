package stats

import "math/rand/v2"

// newRand is a generator that gives the same numbers for the same seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }
