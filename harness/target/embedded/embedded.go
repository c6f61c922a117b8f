package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/cluster"
	"benchrun/runtime/control"
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
	cfg, err := Config(r, log)
	if err != nil {
		return nil, err
	}
	inputs, err := LookAtInputs(r.Workload)
	if err != nil {
		return nil, err
	}
	var c cluster.Running
	if cfg.Batch {
		c, err = cluster.StartBatch(cfg)
	} else {
		c, err = cluster.Start(cfg)
	}
	if err != nil {
		return nil, err
	}
	return Play(r.Workload, c, log, inputs), nil
}

// Config describes the cluster that a request asks for, of whatever processes
// it is made.
func Config(r target.Request, log *timeline.Log) (cluster.Config, error) {
	w := r.Workload
	lj, err := catalog.Job(w)
	if err != nil {
		return cluster.Config{}, err
	}
	return cluster.Config{
		Job: lj, Values: w.Options, Workers: w.Cluster.Workers, Slots: w.Cluster.SlotsPerWorker,
		NetworkMemory: w.Cluster.NetworkMemory, BufferSize: int(w.Cluster.BufferSize),
		Network: task.NetworkConfig{
			Exclusive: w.Cluster.BuffersPerChannel, Floating: w.Cluster.FloatingBuffersPerGate,
			MaxPerSub: w.Cluster.MaxBuffersPerChannel, Overdraft: w.Cluster.OverdraftBuffersPerGate,
		},
		Batch: w.Mode == spec.Batch, Submission: r.Submission, Storage: w.Cluster.Storage, Dir: r.Dir, Timeline: log, Seed: r.Seed, Keep: r.Keep, FromScratch: r.FromScratch, Delays: r.Delays,
	}, nil
}

// Play makes the harness's job of a running cluster, of whatever processes it
// is made.
func Play(w *spec.Workload, c cluster.Running, log *timeline.Log, in *Inputs) target.Job {
	return &job{w: w, c: c, log: log, inputs: in}
}

// job is one job on its own cluster.
type job struct {
	w      *spec.Workload
	c      cluster.Running
	log    *timeline.Log
	inputs *Inputs
}

var _ target.Job = (*job)(nil)

func (j *job) Options() map[string]any { return j.c.Options() }
func (j *job) Done() <-chan struct{}   { return j.c.Done() }
func (j *job) Close() error            { return j.c.Close() }

// Err implements target.Job. What a person can do about it, it says.
func (j *job) Err() error {
	err := j.c.Err()
	if err == nil {
		return nil
	}
	if changed := j.inputs.changed(); changed != nil {
		return fmt.Errorf("%w; %w", err, changed)
	}
	if _, unread := errors.AsType[*cluster.JobLogError](err); unread {
		return fmt.Errorf("%w; with --from-scratch the new master wipes the log and begins the job anew", err)
	}
	if _, unread := errors.AsType[*cluster.StateError](err); unread {
		return fmt.Errorf("%w; nothing else knows what the file said, and --from-scratch, which wipes the log of a job alone, cannot help: run the trial again (--resume RUN --retry-failed)", err)
	}
	return err
}

// Usage implements target.Accountant.
func (j *job) Usage() target.Usage {
	u := j.c.Usage()
	return target.Usage{Processes: u.Processes, CPU: u.CPU, MaxRSS: u.MaxRSS, ReadBytes: u.ReadBytes, WrittenBytes: u.WrittenBytes}
}

// Inject implements target.Job.
func (j *job) Inject(ctx context.Context, f target.Fault) (t0 time.Duration, err error) {
	struckAt := func(at time.Duration) {
		e := timeline.Of(timeline.Fault)
		e.Detail, e.State = f.Step, f.Kind
		if at < 0 {
			t0 = j.log.Add(e)
			return
		}
		e.T, t0 = at, at // another process acted
		j.log.Merge([]timeline.Event{e}, 0)
	}
	struck := func() { struckAt(timeline.None) }
	switch f.Kind {
	case "rescale":
		err = j.c.Rescale(ctx, f.Parallelism, struckAt)
	case "fail-task":
		err = j.c.FailTask(ctx, f.Vertex, f.Subtask, "failed on request of step "+f.Step, struckAt)
	case "kill-worker":
		err = j.c.KillWorker(f.Worker, f.ReplaceAfter, struck)
	case "freeze-worker":
		err = j.c.FreezeWorker(f.Worker, f.For, struck)
	case "kill-jobmanager":
		err = j.c.KillMaster(f.DownFor, struck)
	case "drop-partition":
		err = j.c.DropPartition(ctx, f.Vertex, f.Subtask, struckAt)
	case "fail-storage":
		struck()
		err = j.c.FailStorage(f.StorageKind, f.For)
	default:
		err = target.ErrUnsupported
	}
	return t0, unsupported(err)
}

// refusal is a cluster's: it says in its own words what this target cannot do.
type refusal struct{ error }

func (refusal) Is(err error) bool { return err == target.ErrUnsupported }
func (r refusal) Unwrap() error   { return r.error }

// unsupported lets the harness know a refusal of the cluster.
func unsupported(err error) error {
	if errors.Is(err, cluster.ErrUnsupported) {
		return refusal{err}
	}
	return err
}

// Savepoint implements target.Job.
func (j *job) Savepoint(ctx context.Context, stop bool) (string, error) {
	path, err := j.c.Savepoint(ctx, stop)
	return path, unsupported(err)
}

// Cancel implements target.Job.
func (j *job) Cancel(ctx context.Context) error {
	if err := j.c.Cancel(ctx); err != nil {
		return err
	}
	select {
	case <-j.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Finish implements target.Job.
func (j *job) Finish(ctx context.Context) (*target.Output, error) {
	if err := j.c.StopSources(ctx); err != nil {
		return nil, err
	}
	select {
	case <-j.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := j.Err(); err != nil {
		return nil, fmt.Errorf("the job ended before it had finished: %w", err)
	}
	reports, err := j.c.Reports(ctx)
	if err != nil {
		return nil, err
	}
	out, err := j.verify(reports)
	if err != nil {
		return nil, err
	}
	out.Batch, err = j.figures(ctx)
	return out, err
}

// verify proves the output from inputs that stayed what they were, also while the
// model read them once more.
func (j *job) verify(reports []control.Report) (*target.Output, error) {
	if err := j.inputs.changed(); err != nil {
		return nil, err
	}
	out, err := verify(j.w, reports)
	if err == nil && j.w.Mode == spec.Batch {
		out.Wrong, err = verifyBatch(j.w, reports, j.inputs.expected)
	}
	if changed := j.inputs.changed(); changed != nil {
		return nil, changed
	}
	return out, err
}

func (j *job) figures(ctx context.Context) (*target.BatchFigures, error) {
	f, err := j.c.Batch(ctx)
	if err != nil || f == nil {
		return nil, err
	}
	return &target.BatchFigures{
		HookTime: f.HookTime, WriterCPU: f.WriterCPU, EventLogBytes: f.LogBytes, Flushes: f.Flushes,
		LeftoverBytes: f.Leftover, Unheard: f.Unheard,
	}, nil
}

// Status implements target.Job.
func (j *job) Status() target.Status {
	s := j.c.Status()
	share := 1.0
	if s.Restoring {
		share = 0 // as long as no task knows of its share
	}
	if s.Restored > 0 {
		share = min(1, float64(s.Drained)/float64(s.Restored))
	}
	progress := 0.0
	if j.inputs.expected != nil {
		progress = target.Progress(s.Consumed, j.inputs.expected)
	}
	return target.Status{
		Progress: progress, SinkRecords: s.SinkRecords, WorkersWithTasks: s.WorkersWithTasks, InFlightBytes: s.QueuedBytes, RestoredShare: share, NetBytes: s.NetBytes,
	}
}
