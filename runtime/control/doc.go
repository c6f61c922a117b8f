// Package control is how master and workers talk: typed messages over one
// connection a worker, in order in both directions.
//
// Messages are values of the types in message.go, encoded by gob behind a
// version byte each side sends first. Order is what protocols above rely on:
// a trigger and an operator event that the master sends to one task arrive in
// the order in which they were sent (the gateways of package source assume it).
//
// Send never blocks: messages wait in a queue, which is bounded by what one
// execution of a job can have outstanding, and one goroutine writes them.
// Every message of a master carries the epoch of its leadership; a worker
// refuses an older one than it has seen.
package control
