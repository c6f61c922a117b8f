package cluster

import (
	"context"
	"fmt"
	"time"
)

// What a batch job has no use for.

var errStreaming = fmt.Errorf("it is for streaming jobs: %w", ErrUnsupported)

// Rescale implements Running.
func (c *Batch) Rescale(context.Context, map[string]int, func(time.Duration)) error {
	return errStreaming
}

// Savepoint implements Running.
func (c *Batch) Savepoint(context.Context, bool) (string, error) {
	return "", errStreaming
}

// FailStorage implements Running.
func (c *Batch) FailStorage(string, time.Duration) error {
	return errStreaming
}

// StopSources implements Running: the sources of a batch job end by themselves.
func (c *Batch) StopSources(context.Context) error { return nil }
