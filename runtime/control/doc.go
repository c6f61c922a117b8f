// Package control is how the processes of a cluster talk: typed messages over
// TCP connections on the loopback interface, in order in both directions.
//
//	worker  -> master       Hello … (message.go): deployments, checkpoints, states
//	                       of batch jobs: BatchJob … (batch.go): attempts, inventories
//	process -> supervisor   Attach … (supervision.go): events, counters, requests
//	worker  -> worker       result partitions; package exchange owns that protocol
//
// Messages are values of these types, encoded by gob behind a version byte that
// each side sends first. Order is what protocols above rely on: a trigger and
// an operator event that the master sends to one task arrive in the order in
// which they were sent (the gateways of package source assume it).
//
// Send never blocks: messages wait in a queue, which is bounded by what one
// execution of a job can have outstanding, and one goroutine writes them.
// Every message of a master carries the epoch of its leadership; a worker
// refuses an older one than it has seen.
//
// # Who a worker is
//
// A master names a worker when it joins (Welcome), by the index of Hello if that is
// free. So a name belongs to one connection: who is taken for dead and joins again
// gets another. What lasts is the worker's folder, and with it the names that
// masters gave to whoever worked on it; the inventory says them (Formerly), and what
// a job log has at one of them is looked for in that folder.
//
// # Reports of batch jobs
//
// What operators of a batch job report lies in files (reports.go):
//
//	OUTPUT/reports/RUN/.VERTEX~SUBTASK~eEPOCHaATTEMPT    gob of []Report, vertex in hex
//
// A finished attempt writes one; the master takes the dot away when the attempt
// is committed, and removes the rest when the job is over.
//
// # Strangers
//
// Secure puts a handshake before every connection of a network, also before
// those that carry data: both sides prove by HMAC-SHA256 over fresh numbers of
// both that they know the cluster's secret, compared in constant time, and tell
// their build. The proofs are for the address that was called, so nobody in between
// can pass them on. Who fails is refused with a *HandshakeError before a byte of
// the protocols above is read. The secret is made for one cluster and does not
// travel over the network.
package control
