// Package worker runs tasks in slots: it deploys them, connects them with those
// of other workers, and tells the master what they do.
//
// # What every worker has
//
// There are two kinds, Worker for streaming jobs and Batch for batch jobs. Both
// are a host: network memory, a data server, a data connection to each other
// worker (peers), the loop that wakes tasks, and one order in which all of it ends.
// Both serve a master over a service: hello, welcome, heartbeats, and commands,
// which are carried out in order by the goroutine that reads them; those of an older
// leadership than the newest seen are dropped (fence). Follow joins one master after
// the other. What a kind does by itself is the interface kind.
//
// No wait for another process outlives its reason: a dial to a peer goes on for all
// who want it, within the handshake's time-out, and who is cancelled leaves it; a
// dial to a master ends when another one leads.
//
// A Worker also owns the writer of in-flight data. No command waits for a task,
// except that a deploy creates the result partitions of all its tasks before the
// first one starts.
//
// # How a worker dies
//
// Kill is what a process death looks like from outside: sockets are reset before
// anything else happens, nothing queued is sent, tasks stop without a word, memory
// is dropped. Stop ends tasks first and sockets then. From the beginning of either no
// task counts as running. A Worker that loses its master ends as if it were killed,
// because it cannot know whether its tasks have been started elsewhere. In a process
// of its own another Worker then joins the next master; Config.MinEpoch keeps it
// from joining one whose time is over.
//
// # Workers of batch jobs
//
// A Batch outlives masters. It owns a shuffle.Store on its folder, whose finished
// partitions outlive the worker itself, and serves one master after the other.
// What an attempt is and tells is in batch_attempt.go.
//
//	master lost    with recovery partitions stay; in hardened mode tasks go on, and
//	               one that ends keeps its result (Batch.mu.done). After the
//	               retention without any master all is given up. Without recovery
//	               it is given up at once.
//	               Where the master that was lost still leads, it has taken the worker
//	               for dead: the worker joins it again, under another name.
//	master joined  it asks for the inventory: finished partitions, running attempts
//	               with the splits they have, results that nobody may know. What
//	               happens to an attempt is told after the inventory, never before
//	               (both are sent under the lock). Settle answers with lists; the
//	               end of an adopted attempt that ended in between is told again,
//	               and an adopted source registers again.
//	job over       when no task runs any more the bytes of all files in the folder are
//	               counted, but those of the identity, and told; then what is the
//	               job's is deleted.
//
// A finished attempt is remembered until the log has its end (control.Recorded); one
// that was cancelled is not, however fast it was. The inventory names the attempts
// whose output an attempt reads: a new master lets it go on only if these are the
// ones that count.
//
// Reports of finished attempts are files (control.WriteReports) before the attempt
// is FINISHED.
package worker
