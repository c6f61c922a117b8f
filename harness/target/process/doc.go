// Package process runs trials on a cluster whose master and workers are
// processes of their own: children of the trial's process, which run the same
// executable and are killed, stopped and started as real ones.
//
// What a fault, a step or an output means is the embedded target's code; this
// package only starts another kind of cluster. Master and worker processes are
// the hidden commands "master" and "worker", which call Main; how they find
// and trust each other is package cluster's (see its doc.go).
//
// The trial's process supervises and measures and is never killed: all stamps
// are on its clock. A process ends with it, whatever ends it.
package process
