// Package master carries out what packages checkpoint and scheduling decide.
//
// A Master is one event loop. Messages of workers, answers of background work,
// timers and requests are events; the loop hands each to the state machine
// that it concerns and carries out the effects that come back. Nothing in the
// loop blocks: what touches storage runs in a goroutine of its own and comes
// back as an event.
//
// The loop owns all state of the package. Public methods post an event and, if
// they have an answer, wait for it outside of the loop.
//
//	takeover.go     starting a job, also one that another master has run before
//	workers.go      connections, heartbeats, loss
//	deploy.go       effects of the scheduler
//	restore.go      choosing, checking and assigning the checkpoint to restore
//	checkpoints.go  effects of the checkpoint coordinator
//	sources.go      split enumerators and their events
//	results.go      what operators reported at the end
package master
