package joblog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store is the log of one job in the hands of one master.
type Store interface {
	// HasEvents tells whether there is something to replay.
	HasEvents() bool
	// Replay hands out what earlier masters appended, in order, and stops at the
	// first error of fn. It is called at most once, before the first Append.
	Replay(fn func(Event) error) error
	// Append takes an event and numbers it, from 1. It does not wait.
	Append(Entry) uint64
	// Sync waits until everything appended so far is durable.
	Sync(context.Context) error
	Stats() Stats
	// Close writes what is queued and ends the writer. With clear nothing of the
	// log is left.
	Close(clear bool) error
}

// Entry is an event with what the store has to know of it.
type Entry struct {
	Event Event
	// Cut: with this event a vertex is complete.
	Cut bool
	// Snapshots: the snapshots of a VertexFinished come later. Only the faithful
	// store waits for them, with all that comes behind.
	Snapshots *Pending
}

// Pending are snapshots of coordinators that are being taken.
type Pending struct {
	done chan struct{}
	data []Snapshot
	err  error
}

// NewPending returns snapshots that are to be completed once.
func NewPending() *Pending { return &Pending{done: make(chan struct{})} }

// Complete hands the snapshots over, or tells why there are none.
func (p *Pending) Complete(data []Snapshot, err error) {
	p.data, p.err = data, err
	close(p.done)
}

// SyncPolicy says when the disk is asked to make the log durable.
type SyncPolicy string

// The sync policies, as job-event.store.sync-policy spells them.
const (
	SyncNone     SyncPolicy = "none"
	SyncInterval SyncPolicy = "interval"
	SyncVertex   SyncPolicy = "vertex"
	SyncAlways   SyncPolicy = "always"
)

// Config describes a store. What is 0 gets its default.
type Config struct {
	Job   string // Identity of the job: a log of another one is refused
	Epoch uint64 // of this master; above those of all before

	BufferSize    int           // 1 MiB
	FlushInterval time.Duration // 1 s
	Policy        SyncPolicy    // hardened; default interval
	CompactBytes  int64         // hardened: written since the last compaction before the next; 16 MiB
	MaxBacklog    int           // events in the queue before there is pressure; 65536

	// These are called by the writer (Pressure: by a goroutine beside it), in order,
	// without a lock; they must neither call the store nor wait. Any may be nil.
	Durable  func(number uint64)                // all events up to this one are durable
	Pressure func(on bool)                      // the backlog is above its bound, or no longer
	Trouble  func(since time.Time, cause error) // the job is unprotected; with a nil cause: no longer
}

func (c Config) withDefaults() (Config, error) {
	if c.BufferSize <= 0 {
		c.BufferSize = 1 << 20
	}
	if c.FlushInterval <= 0 {
		c.FlushInterval = time.Second
	}
	if c.CompactBytes <= 0 {
		c.CompactBytes = 16 << 20
	}
	if c.MaxBacklog <= 0 {
		c.MaxBacklog = 1 << 16
	}
	switch c.Policy {
	case "":
		c.Policy = SyncInterval
	case SyncNone, SyncInterval, SyncVertex, SyncAlways:
	default:
		return c, fmt.Errorf("job log: unknown sync policy %q", c.Policy)
	}
	return c, nil
}

// Stats is what a store cost and where it stands.
type Stats struct {
	Events      uint64 // appended
	Durable     uint64 // of them, as the policy defines it
	Bytes       int64  // written to files
	Flushes     int64
	Syncs       int64
	Compactions int64
	Errors      int64 // of writing, flushing, syncing, compacting
	Retries     int64 // new files after an error

	HookTime time.Duration // in Append, all calls
	HookMax  time.Duration
	// HookCounts[i] are calls below 1 µs << i, the last one all above.
	HookCounts [16]int64
	WriterBusy time.Duration // wall time in which the writer did not wait for work
	WriterCPU  time.Duration // of the writer's thread; 0 where the system does not tell

	Backlog  int // events that are queued or wait for a working disk
	Pressure bool
	// GapTasks finished tasks are not durable yet, the oldest since GapSince.
	GapTasks int
	GapSince time.Time
	// UnprotectedSince is when the disk began to fail; zero while it works.
	UnprotectedSince time.Time
	Cause            error
}

// HookQuantile bounds the time of a share q of all Append calls from above.
func (s Stats) HookQuantile(q float64) time.Duration {
	var total, sum int64
	for _, n := range s.HookCounts {
		total += n
	}
	for i, n := range s.HookCounts {
		if sum += n; total > 0 && float64(sum) >= q*float64(total) {
			if i == len(s.HookCounts)-1 {
				return s.HookMax
			}
			return min(time.Microsecond<<i, s.HookMax)
		}
	}
	return s.HookMax
}

// DamagedError: a record that must be good is not, or says what this program
// does not understand.
type DamagedError struct {
	File   string
	Offset int64
	Record uint64 // its number, counted from 1; 0: it is the file's header
	Err    error
}

func (e *DamagedError) Error() string {
	what := "header"
	if e.Record > 0 {
		what = fmt.Sprintf("record %d", e.Record)
	}
	return fmt.Sprintf("job log is damaged at %s:%d (%s): %v", e.File, e.Offset, what, e.Err)
}

// Unwrap gives the reason.
func (e *DamagedError) Unwrap() error { return e.Err }

// Identity names one submission of a job: jobs of one name differ in the id, which
// no other submission has. It has no dot.
func Identity(name, id string) string { return name + "." + id }

// ForeignError: the log belongs to another job, or to another submission of a job
// of the same name.
type ForeignError struct{ File, Job, Want string }

func (e *ForeignError) Error() string {
	have, want := strings.LastIndexByte(e.Job, '.'), strings.LastIndexByte(e.Want, '.')
	if have > 0 && want > 0 && e.Job[:have] == e.Want[:want] {
		return fmt.Sprintf("job log %s belongs to another submission of job %q (%s, not %s)", e.File, e.Job[:have], e.Job[have+1:], e.Want[want+1:])
	}
	return fmt.Sprintf("job log %s belongs to job %q, not to %q", e.File, e.Job, e.Want)
}

// VersionError: the log was written by another version of the program.
type VersionError struct {
	File      string
	Have, Max int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("job log %s has format version %d, this program reads %d", e.File, e.Have, e.Max)
}

// StaleError: a newer master has taken over.
type StaleError struct {
	File       string
	Epoch, Own uint64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("job log %s was written in epoch %d, this master has epoch %d", e.File, e.Epoch, e.Own)
}

// errOvertaken: an older master has begun a file since the log was read.
var errOvertaken = errors.New("the log was written to while it was read")

// errClosed: the store was closed before something became durable.
var errClosed = errors.New("job log is closed")
