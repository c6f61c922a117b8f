package targettest

import (
	"context"
	"errors"
	"sync"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// Target plays jobs. Its zero value restores no in-flight data and proves ten
// records right.
type Target struct {
	Options   map[string]any    // reported instead of the workload's; nil values: not reported
	Startup   error             // of Start
	Output    *target.Output    // of Finish
	Mute      bool              // no restart follows a fault
	Drain     time.Duration     // from RUNNING to drained
	Bytes     int64             // in flight in each checkpoint
	Path      string            // of recovery
	OnFault   func(j *Job) bool // true: nothing more happens by itself
	SlowClose time.Duration     // how long Close takes
	Batch     Batch             // how batch jobs are played

	mu     sync.Mutex
	faults []target.Fault
}

// Faults lists what was injected so far.
func (f *Target) Faults() []target.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]target.Fault(nil), f.faults...)
}

func (f *Target) Name() string    { return "embedded" }
func (f *Target) Version() string { return "fake" }

func (f *Target) Start(ctx context.Context, r target.Request, log *timeline.Log) (target.Job, error) {
	if f.Startup != nil {
		return nil, f.Startup
	}
	j := &Job{f: f, w: r.Workload, log: log, done: make(chan struct{}), strikes: make(chan target.Fault), par: map[string]int{}, share: 1}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	for _, v := range r.Workload.Vertices {
		j.par[v.ID] = v.Parallelism
	}
	for _, d := range r.Delays {
		j.delay += d
	}
	if batch(r.Workload) {
		j.spawn(func() { j.playBatch(f.Batch) })
		return j, nil
	}
	j.spawn(func() { j.execution(0, false) })
	return j, nil
}

// Job is a job that Target plays.
type Job struct {
	f      *Target
	w      *spec.Workload
	log    *timeline.Log
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{}
	once   sync.Once
	delay  time.Duration // planted in each restore
	// strikes hands faults to the player of a batch job.
	strikes chan target.Fault

	mu      sync.Mutex
	err     error
	par     map[string]int
	attempt int
	newest  int64 // complete checkpoint
	share   float64
	sunk    int64
	stop    context.CancelFunc // of the current execution

	progress float64 // of a batch job
}

func (j *Job) spawn(f func()) {
	j.wg.Add(1)
	go func() {
		defer j.wg.Done()
		f()
	}()
}

// pause waits on the clock; false: the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// execution plays one execution of the job from deployment on.
func (j *Job) execution(delay time.Duration, restore bool) {
	j.mu.Lock()
	ctx, stop := context.WithCancel(j.ctx)
	if j.stop != nil {
		j.stop()
	}
	j.stop = stop
	attempt := j.attempt
	j.attempt++
	newest := j.newest
	par := map[string]int{}
	for k, v := range j.par {
		par[k] = v
	}
	j.mu.Unlock()
	if !pause(ctx, delay) {
		return
	}
	tasks := func(state string) {
		for _, v := range j.w.Vertices {
			for i := range par[v.ID] {
				e := timeline.Task(timeline.TaskState, v.ID, i, attempt)
				e.State = state
				j.log.Add(e)
			}
		}
	}
	if restore {
		if !pause(ctx, j.delay) {
			return
		}
		tasks("CANCELED")
		e := timeline.Of(timeline.RestoreAssigned)
		e.Checkpoint, e.Bytes = newest, j.f.Bytes
		j.log.Add(e)
		if j.f.Bytes > 0 {
			j.setShare(0)
		}
	}
	tasks("DEPLOYING")
	tasks("INITIALIZING")
	if !pause(ctx, 10*time.Millisecond) {
		return
	}
	if restore && j.f.Bytes > 0 {
		e := timeline.Task(timeline.RestoreRead, "out", 0, attempt)
		e.Bytes, e.Detail = 2*j.f.Bytes, j.f.Path
		j.log.Add(e)
	}
	tasks("RUNNING")
	if restore {
		j.log.Add(timeline.Task(timeline.FirstOutput, "out", 0, attempt))
	}
	if restore && j.f.Bytes > 0 {
		j.spawn(func() {
			if !pause(ctx, j.f.Drain/2) {
				return
			}
			j.setShare(0.5)
			if !pause(ctx, j.f.Drain/2) {
				return
			}
			j.log.Add(timeline.Task(timeline.RestoreDrained, "out", 0, attempt))
			j.setShare(1)
		})
	}
	for id := newest + 1; ; id++ {
		e := timeline.Of(timeline.CheckpointTriggered)
		e.Checkpoint = id
		j.log.Add(e)
		if !pause(ctx, 20*time.Millisecond) {
			return
		}
		for _, v := range j.w.Vertices {
			for i := range par[v.ID] {
				e := timeline.Task(timeline.CheckpointAcknowledged, v.ID, i, attempt)
				e.Checkpoint = id
				j.log.Add(e)
			}
		}
		e.Kind, e.Bytes = timeline.CheckpointCompleted, j.f.Bytes
		j.mu.Lock()
		j.newest = id
		j.sunk += 100
		j.mu.Unlock()
		j.log.Add(e)
		e = timeline.Of(timeline.Throughput)
		e.Vertex, e.Records = "numbers", 1000
		e.Lag = 10 * time.Millisecond
		j.log.Add(e)
		if !pause(ctx, 980*time.Millisecond) {
			return
		}
	}
}

func (j *Job) setShare(s float64) {
	j.mu.Lock()
	j.share = s
	j.mu.Unlock()
}

func (j *Job) Options() map[string]any {
	m := j.w.Options.Effective()
	for k, v := range j.f.Options {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	return m
}

func (j *Job) Inject(ctx context.Context, f target.Fault) (time.Duration, error) {
	j.f.mu.Lock()
	j.f.faults = append(j.f.faults, f)
	j.f.mu.Unlock()
	if batch(j.w) {
		return j.injectBatch(ctx, f)
	}
	j.mu.Lock()
	for v, p := range f.Parallelism {
		j.par[v] = p
	}
	if j.stop != nil {
		j.stop()
	}
	j.mu.Unlock()
	e := timeline.Of(timeline.Fault)
	e.Detail = f.Step
	t0 := j.log.Add(e)
	switch {
	case j.f.OnFault != nil && j.f.OnFault(j):
	case j.f.Mute:
	default:
		j.spawn(func() { j.execution(5*time.Millisecond, true) })
	}
	return t0, nil
}

func (j *Job) Savepoint(ctx context.Context, stop bool) (string, error) {
	if !pause(ctx, 30*time.Millisecond) {
		return "", ctx.Err()
	}
	if stop {
		j.End(nil)
	}
	return "sp", nil
}

func (j *Job) Finish(ctx context.Context) (*target.Output, error) {
	if batch(j.w) {
		return j.finishBatch(ctx)
	}
	if !pause(ctx, 50*time.Millisecond) {
		return nil, context.Cause(ctx)
	}
	j.End(nil)
	if j.f.Output != nil {
		return j.f.Output, nil
	}
	return &target.Output{Proved: true, Received: 10, Expected: 10, Digest: "d", ExpectedDigest: "d"}, nil
}

func (j *Job) Cancel(context.Context) error { j.End(errors.New("canceled")); return nil }

// Tell adds what the job says to its timeline.
func (j *Job) Tell(e timeline.Event) { j.log.Add(e) }

func (j *Job) End(err error) {
	j.once.Do(func() {
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
		close(j.done)
	})
	j.cancel()
}

func (j *Job) Status() target.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return target.Status{SinkRecords: j.sunk, WorkersWithTasks: 2, InFlightBytes: 3 << 20, RestoredShare: j.share, NetBytes: 77, Progress: j.progress}
}

func (j *Job) Done() <-chan struct{} { return j.done }
func (j *Job) Err() error            { j.mu.Lock(); defer j.mu.Unlock(); return j.err }
func (j *Job) Close() error {
	if j.f.SlowClose > 0 {
		pause(context.Background(), j.f.SlowClose)
	}
	j.End(errors.New("closed"))
	j.wg.Wait()
	return nil
}
