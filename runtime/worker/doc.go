// Package worker runs tasks in slots: it deploys them, connects them with those
// of other workers, and tells the master what they do.
//
// A Worker owns its network memory, its data server, one data connection to
// each other worker, the writer of in-flight data, and its tasks. All commands
// come over its control connection and are carried out in order by the
// goroutine that reads it; none of them waits for a task, except that a deploy
// creates the result partitions of all its tasks before the first one starts.
//
// # How a worker dies
//
// Kill is what a process death looks like from outside: sockets are reset,
// nothing queued is sent, tasks stop without a word, memory is dropped. A
// worker that loses its master ends the same way, because it cannot know
// whether its tasks have been started elsewhere. In a process of its own
// another Worker then joins the next master; Config.MinEpoch keeps it from
// joining one whose time is over.
package worker
