// Package embedded runs trials on a cluster inside the trial's own process.
//
// It translates: a workload into a cluster and a job, a fault into what the
// cluster can do to itself, and what sinks and sources report at the end into
// a verdict by the independent model of package expect.
package embedded
