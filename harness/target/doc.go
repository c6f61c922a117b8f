// Package target is the system under test as the harness sees it: one
// interface, implemented once for each kind of cluster in a package below.
//
// A Target starts a Job. From then on everything that happens is in the job's
// timeline; the harness derives conditions and metrics from it and calls the
// methods of Job only to disturb, to finish or to stop the job. A target
// reports the options that its running tasks really use.
package target
