// Package timeline is the ordered record of what happened in one trial and the
// only source of metrics.
//
// A Log has one origin on the monotonic clock. Every event is stamped while
// the log's lock is held, so the order of the slice is the order of the
// stamps. Writers call Add from any goroutine; readers take a Cursor and wait
// on it, nobody polls. Events are values: once added they never change.
//
// Where a cluster has several processes each has a Log with the same origin,
// and one of them gathers the events of all (Merge). It holds them in the order
// in which they came; metrics are computed over Sorted.
//
// The log is bounded (Limit); what comes after the limit is counted as dropped
// and makes the trial's metrics invalid, never silently incomplete.
package timeline
