// Package plan decides which trials a run consists of and in which order.
//
// The unit is the block: every cell of a workload, in every build, once. The
// order inside a block is shuffled from the seed, so that slow changes of the
// machine meet all cells alike, and the blocks of several workloads take
// turns. The same files, seed and filter give the same plan, on any machine.
//
// A plan also says what can be known before anything is measured: which
// combinations are left out and why, which cells cannot differ, how much the
// job's buffers hold, and about how long the run will take.
package plan
