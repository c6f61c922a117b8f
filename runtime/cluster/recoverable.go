package cluster

import (
	"errors"
	"fmt"

	"benchrun/runtime/graph"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
)

// Unrecoverable is a vertex of a batch job of which job recovery cannot keep what
// has finished.
type Unrecoverable struct {
	Vertex, Reason string
	Partial        bool // what has finished is kept as a whole or not at all
}

// CheckRecovery finds out, before a job starts, what of it could not be recovered.
// It reports nothing for a job that is not to be recovered. It looks at the shape
// alone: files that sources read need not be there.
func CheckRecovery(j graph.Job, v options.Values) ([]Unrecoverable, error) {
	g, err := chained(j, v, true)
	if err != nil {
		return nil, err
	}
	return checkRecovery(g, v), nil
}

func checkRecovery(g *graph.Graph, v options.Values) []Unrecoverable {
	if !options.BatchJobRecovery.Get(v) {
		return nil
	}
	var out []Unrecoverable
	for _, p := range master.Unrecoverable(g, v) {
		out = append(out, Unrecoverable{p.Vertex, p.Reason, p.Partial})
	}
	return out
}

// recoverable refuses a job that recovery is asked for and cannot keep anything
// of.
func recoverable(g *graph.Graph, v options.Values) error {
	var errs []error
	for _, p := range checkRecovery(g, v) {
		if !p.Partial {
			errs = append(errs, fmt.Errorf("%w: %s is on, but of vertex %q nothing can be recovered: %s", ErrConfig, options.BatchJobRecovery.Key(), p.Vertex, p.Reason))
		}
	}
	return errors.Join(errs...)
}

// JobLogError: a new master of a batch job cannot read the log that those before
// it have written. Config.FromScratch makes it begin anew.
type JobLogError struct {
	Err error // the place, and what is wrong with it
}

func (e *JobLogError) Error() string { return e.Err.Error() }
func (e *JobLogError) Unwrap() error { return e.Err }
