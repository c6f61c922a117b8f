// Package cluster is the only door to the runtime: it brings up a master and
// workers, submits a job, and offers what can be done to them.
//
// In an embedded cluster all of them live in this process, and yet they talk
// as if they did not: commands over control connections, data between workers
// over sockets. What a killed worker knew is lost.
package cluster
