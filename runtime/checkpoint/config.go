package checkpoint

import (
	"math"
	"time"
)

// Retention says what becomes of completed checkpoints when the job ends.
type Retention uint8

// Retentions, as execution.checkpointing.externalized-checkpoint-retention
// spells them.
const (
	NoExternalized       Retention = iota // NO_EXTERNALIZED_CHECKPOINTS: deleted
	DeleteOnCancellation                  // DELETE_ON_CANCELLATION: kept if the job failed
	RetainOnCancellation                  // RETAIN_ON_CANCELLATION: kept unless the job finished
)

// Status is how a job ended.
type Status uint8

// The ends of a job. Suspended is not final: the job goes on elsewhere.
const (
	Finished Status = iota
	Canceled
	Failed
	Suspended
)

func (s Status) String() string {
	return [...]string{"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}[s]
}

// discards tells whether a completed checkpoint is deleted when the job ends. A
// suspended job goes on elsewhere, from there.
func (r Retention) discards(s Status) bool {
	if s == Suspended {
		return false
	}
	switch r {
	case DeleteOnCancellation:
		return s != Failed
	case RetainOnCancellation:
		return s == Finished
	}
	return true
}

// Unlimited is the value of TolerableFailures that never fails the job.
const Unlimited = math.MaxInt32

// Config holds the options of a job's checkpoints.
type Config struct {
	Interval time.Duration // between periodic checkpoints; 0: none
	Timeout  time.Duration // of a checkpoint; 0: 10 minutes
	MinPause time.Duration // from a completion to the next periodic one
	// BacklogInterval replaces Interval while a source reports backlog, if
	// HasBacklogInterval; 0: no periodic ones then.
	BacklogInterval    time.Duration
	HasBacklogInterval bool

	MaxConcurrent     int // <= 0: 1
	TolerableFailures int // Unlimited: never fail the job
	Retained          int // completed checkpoints to keep; <= 0: 1
	Retention         Retention

	Unaligned      bool
	AlignedTimeout time.Duration // with Unaligned: begin aligned, and switch after this time

	FirstID int64 // of the first checkpoint; <= 0: 1
}

const (
	defaultTimeout = 10 * time.Minute
	maxMinPause    = 365 * 24 * time.Hour
	maxQueued      = 1000
	maxEnded       = 16 // ids of which late messages are recognised
	// finalRetry is when a failed final checkpoint is asked for again.
	finalRetry = 50 * time.Millisecond
	// A deletion is tried this often, the first retry coming after the delay,
	// each further one after twice the one before.
	discardTries = 5
	discardDelay = 500 * time.Millisecond
)

func (c Config) sanitized() Config {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	c.MinPause = min(max(c.MinPause, 0), maxMinPause)
	if c.Interval > 0 {
		c.Interval = max(c.Interval, c.MinPause)
	}
	if c.MaxConcurrent <= 0 || c.Unaligned {
		// Unaligned checkpoints cannot overlap.
		c.MaxConcurrent = 1
	}
	if c.BacklogInterval > 0 {
		c.BacklogInterval = max(c.BacklogInterval, c.Interval)
	}
	c.TolerableFailures = max(c.TolerableFailures, 0)
	c.Retained = max(c.Retained, 1)
	c.FirstID = max(c.FirstID, 1)
	return c
}
