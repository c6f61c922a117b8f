// Package catalog turns a workload into a job of the runtime: it knows which
// operator of the library a word of the workload file means and how its
// parameters are passed on.
//
// A vertex's position in the workload is the source id of the records that it
// makes, so that package expect, which shares no code with the runtime, can
// tell them apart the same way.
//
// It also checks what takes a job to see: CheckRecovery tells, at its place in the
// file, of a vertex that recovery of batch jobs could not keep, and CheckMemory of
// network memory that is too little for what a task of a batch job writes.
package catalog
