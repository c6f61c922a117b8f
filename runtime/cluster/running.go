package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
)

// Running is a cluster with its one job, whatever processes it is made of.
// Methods that disturb it call struck at the instant at which they act; at is
// that instant on the clock of the cluster's timeline where another process
// acted, else None.
type Running interface {
	Rescale(ctx context.Context, parallelism map[string]int, struck func(at time.Duration)) error
	FailTask(ctx context.Context, vertex string, subtask int, reason string, struck func(at time.Duration)) error
	KillWorker(i int, replaceAfter time.Duration, struck func()) error
	FreezeWorker(i int, d time.Duration, struck func()) error
	KillMaster(downFor time.Duration, struck func()) error
	FailStorage(kind string, d time.Duration) error
	// DropPartition makes the finished output of a batch task disappear.
	DropPartition(ctx context.Context, vertex string, subtask int, struck func(at time.Duration)) error

	Savepoint(ctx context.Context, stop bool) (path string, err error)
	StopSources(ctx context.Context) error
	Cancel(ctx context.Context) error

	// Options are those that the tasks run with, as their workers report them.
	Options() map[string]any
	Status() Status
	// Usage is what processes other than this one have used. It is complete
	// after Close.
	Usage() Usage
	Reports(ctx context.Context) ([]control.Report, error)
	// Batch is the account of a batch job, complete after Done; nil for others.
	Batch(ctx context.Context) (*BatchFigures, error)
	Done() <-chan struct{}
	Err() error
	Close() error
}

var (
	_ Running = (*Cluster)(nil)
	_ Running = (*Processes)(nil)
	_ Running = (*Batch)(nil)
)

// ErrUnsupported marks what a kind of cluster cannot do.
var ErrUnsupported = errors.New("this kind of cluster cannot do that")

// Usage sums over processes. A nil number is not known.
type Usage struct {
	Processes    int
	CPU          time.Duration
	MaxRSS       int64
	ReadBytes    *int64
	WrittenBytes *int64
}

// Rescale implements Running.
func (c *Cluster) Rescale(ctx context.Context, parallelism map[string]int, struck func(time.Duration)) error {
	return c.m.Rescale(ctx, parallelism, func() { struck(none) })
}

// none is a stamp that nobody took.
const none = time.Duration(-1)

// FailTask implements Running.
func (c *Cluster) FailTask(ctx context.Context, vertex string, subtask int, reason string, struck func(time.Duration)) error {
	return c.m.FailTask(ctx, vertex, subtask, reason, func() { struck(none) })
}

// KillMaster is for clusters whose master is a process.
func (c *Cluster) KillMaster(time.Duration, func()) error {
	return fmt.Errorf("%w: its master lives in the process that measures; use target \"process\"", ErrUnsupported)
}

// DropPartition is for batch jobs.
func (c *Cluster) DropPartition(context.Context, string, int, func(time.Duration)) error {
	return fmt.Errorf("a streaming job has no finished partitions: %w", ErrUnsupported)
}

// Batch implements Running.
func (c *Cluster) Batch(context.Context) (*BatchFigures, error) { return nil, nil }

// Savepoint implements Running.
func (c *Cluster) Savepoint(ctx context.Context, stop bool) (string, error) {
	return c.m.Savepoint(ctx, stop)
}

// StopSources implements Running.
func (c *Cluster) StopSources(context.Context) error {
	c.m.StopSources()
	return nil
}

// Cancel implements Running.
func (c *Cluster) Cancel(context.Context) error {
	c.m.Cancel()
	return nil
}

// Options implements Running.
func (c *Cluster) Options() map[string]any { return c.m.Options() }

// Done implements Running.
func (c *Cluster) Done() <-chan struct{} { return c.m.Done() }

// Err implements Running.
func (c *Cluster) Err() error { return c.m.Err() }

// Usage implements Running: an embedded cluster has no process of its own.
func (c *Cluster) Usage() Usage { return Usage{} }

// buildGraph makes the graph that a configuration describes.
func buildGraph(job graph.Job, v options.Values) (*graph.Graph, error) {
	return chained(job, v, false)
}

func chained(job graph.Job, v options.Values, batch bool) (*graph.Graph, error) {
	g, err := graph.Build(job, graph.Config{Chaining: options.OperatorChaining.Get(v), ForcedUnaligned: options.UnalignedForced.Get(v), Batch: batch})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return g, nil
}

// originOf finds the checkpoint that the options say to begin from, or nil.
func originOf(v options.Values) (*master.Origin, error) {
	path := options.RecoveryPath.Get(v)
	if path == "" {
		return nil, nil
	}
	store, folder, err := snapshot.Locate(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, options.RecoveryPath.Key(), err)
	}
	meta, err := snapshot.Load(store, folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, options.RecoveryPath.Key(), err)
	}
	return &master.Origin{Store: store, Folder: folder, Meta: meta, Claimed: options.ClaimMode.Get(v) == "CLAIM"}, nil
}
