package source

import (
	"encoding/json"
	"fmt"
	"time"

	"benchrun/runtime/operator"
)

// Progress is what a reader could do in one call of Next.
type Progress int

// Answers of Next.
const (
	// More: it goes on at once.
	More Progress = iota
	// Wait: nothing is due before the time that Next returned.
	Wait
	// Idle: it has no split and may get one.
	Idle
	// End: it will never have anything again.
	End
)

// Reader reads splits. It belongs to its task's goroutine.
type Reader interface {
	// AddSplits hands over splits, fresh ones of the enumerator or restored
	// ones as Snapshot wrote them.
	AddSplits(splits [][]byte) error
	// NoMoreSplits tells that the enumerator has no more for this reader.
	NoMoreSplits()

	// Next emits records until n are out or more answers false.
	Next(out operator.Output, n int, more func() bool) (Progress, time.Time, error)
	// Watermark is the largest time up to which nothing will come any more.
	Watermark() int64
	// Splits are the unfinished and finished splits with their positions.
	Splits() [][]byte
	// Stop ends unbounded splits where they stand.
	Stop()
	// Emitted is the number of records since the reader was made.
	Emitted() int64
	// Lag is how late a rated reader is; ok is false without a rate.
	Lag(now time.Time) (lag time.Duration, ok bool)
}

// Params are the parameters of all sources; each reads its own.
type Params struct {
	Source     uint16   `json:",omitempty"` // identity of the vertex
	Rate       float64  `json:",omitempty"` // records per second of the whole vertex; 0: no limit
	Records    uint64   `json:",omitempty"` // of the whole vertex; 0: unbounded
	RecordSize int      `json:",omitempty"` // serialised bytes
	Keys       uint64   `json:",omitempty"`
	Skew       float64  `json:",omitempty"`
	Splits     int      `json:",omitempty"`
	Files      []string `json:",omitempty"`
	Loop       bool     `json:",omitempty"`
}

// SplitsState is the list state that holds the splits of a source's reader.
const SplitsState = "splits"

// Kinds of sources.
const (
	Sequence = "sequence"
	Lines    = "lines"
)

// ParseParams reads parameters from JSON.
func ParseParams(raw json.RawMessage) (Params, error) {
	var p Params
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &p); err != nil {
			return p, fmt.Errorf("parameters of a source: %w", err)
		}
	}
	return p, nil
}

// NewReader makes a reader. start is when the job first started: rated records
// are due relative to it.
func NewReader(kind string, raw json.RawMessage, start time.Time) (Reader, error) {
	p, err := ParseParams(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Sequence:
		return newSequence(p, start)
	case Lines:
		return newLines(p), nil
	default:
		return nil, fmt.Errorf("no source %q; there are %s and %s", kind, Lines, Sequence)
	}
}

// AllSplits lists the fresh splits of a source.
func AllSplits(kind string, raw json.RawMessage) ([][]byte, error) {
	p, err := ParseParams(raw)
	if err != nil {
		return nil, err
	}
	if kind == Lines {
		return lineSplits(p), nil
	}
	return sequenceSplits(p), nil
}
