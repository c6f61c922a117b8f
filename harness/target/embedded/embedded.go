package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/cluster"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
	"benchrun/workloads/catalog"
	"benchrun/workloads/spec"
)

// New returns the target.
func New() target.Target { return embedded{} }

type embedded struct{}

func (embedded) Name() string    { return "embedded" }
func (embedded) Version() string { return "embedded runtime 1" }

// Start implements target.Target.
func (embedded) Start(_ context.Context, r target.Request, log *timeline.Log) (target.Job, error) {
	w := r.Workload
	lj, err := catalog.Job(w)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(cluster.Config{
		Job: lj, Values: w.Options, Workers: w.Cluster.Workers, Slots: w.Cluster.SlotsPerWorker,
		NetworkMemory: w.Cluster.NetworkMemory, BufferSize: int(w.Cluster.BufferSize),
		Network: task.NetworkConfig{
			Exclusive: w.Cluster.BuffersPerChannel, Floating: w.Cluster.FloatingBuffersPerGate,
			MaxPerSub: w.Cluster.MaxBuffersPerChannel, Overdraft: w.Cluster.OverdraftBuffersPerGate,
		},
		Storage: w.Cluster.Storage, Dir: r.Dir, Timeline: log, Seed: r.Seed, Keep: r.Keep, Delays: r.Delays,
	})
	if err != nil {
		return nil, err
	}
	return &job{w: w, c: c, log: log}, nil
}

// job is one job on its own cluster.
type job struct {
	w   *spec.Workload
	c   *cluster.Cluster
	log *timeline.Log
}

var _ target.Job = (*job)(nil)

func (j *job) Options() map[string]any { return j.c.Master().Options() }
func (j *job) Done() <-chan struct{}   { return j.c.Master().Done() }
func (j *job) Err() error              { return j.c.Master().Err() }
func (j *job) Close() error            { return j.c.Close() }

// Inject implements target.Job.
func (j *job) Inject(ctx context.Context, f target.Fault) (t0 time.Duration, err error) {
	struck := func() {
		e := timeline.Of(timeline.Fault)
		e.Detail, e.State = f.Step, f.Kind
		t0 = j.log.Add(e)
	}
	m := j.c.Master()
	switch f.Kind {
	case "rescale":
		err = m.Rescale(ctx, f.Parallelism, struck)
	case "fail-task":
		err = m.FailTask(ctx, f.Vertex, f.Subtask, "failed on request of step "+f.Step, struck)
	case "kill-worker":
		err = j.c.KillWorker(f.Worker, f.ReplaceAfter, struck)
	case "freeze-worker":
		err = j.c.FreezeWorker(f.Worker, f.For, struck)
	case "fail-storage":
		struck()
		err = j.c.FailStorage(f.StorageKind, f.For)
	default:
		err = fmt.Errorf("fault %s: %w", f.Kind, target.ErrUnsupported)
	}
	return t0, err
}

// Savepoint implements target.Job.
func (j *job) Savepoint(ctx context.Context, stop bool) (string, error) {
	return j.c.Master().Savepoint(ctx, stop)
}

// Cancel implements target.Job.
func (j *job) Cancel(ctx context.Context) error {
	j.c.Master().Cancel()
	select {
	case <-j.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Finish implements target.Job.
func (j *job) Finish(ctx context.Context) (*target.Output, error) {
	j.c.Master().StopSources()
	select {
	case <-j.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := j.Err(); err != nil {
		return nil, fmt.Errorf("the job ended before it had finished: %w", err)
	}
	reports := j.c.Reports(ctx)
	if reports == nil && ctx.Err() != nil {
		return nil, errors.Join(errors.New("no reports of the operators"), context.Cause(ctx))
	}
	return verify(j.w, reports)
}

// Status implements target.Job.
func (j *job) Status() target.Status {
	s := j.c.Status()
	share := 1.0
	if j.c.Master().Restoring() {
		share = 0 // as long as no task knows of its share
	}
	if s.Restored > 0 {
		share = min(1, float64(s.Drained)/float64(s.Restored))
	}
	return target.Status{
		SinkRecords: s.SinkRecords, WorkersWithTasks: s.WorkersWithTasks, InFlightBytes: s.QueuedBytes, RestoredShare: share, NetBytes: s.NetBytes,
	}
}
