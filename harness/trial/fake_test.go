package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// fakeTarget is a target that plays a job: it writes the events that a real
// one would write, on the clock of the test.
type fakeTarget struct {
	mu      sync.Mutex
	options map[string]any // over those of the workload
	startup error
	output  *target.Output
	mute    bool                  // no restart ever comes
	drain   time.Duration         // from RUNNING to drained
	bytes   int64                 // in flight in each checkpoint
	path    string                // of recovery
	faults  []target.Fault        // that were injected
	onFault func(j *fakeJob) bool // true: nothing more happens by itself
	hang    bool                  // Close takes too long
}

func (f *fakeTarget) Name() string    { return "embedded" }
func (f *fakeTarget) Version() string { return "fake" }

func (f *fakeTarget) Start(ctx context.Context, r target.Request, log *timeline.Log) (target.Job, error) {
	if f.startup != nil {
		return nil, f.startup
	}
	j := &fakeJob{f: f, w: r.Workload, log: log, done: make(chan struct{}), par: map[string]int{}, share: 1}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	for _, v := range r.Workload.Vertices {
		j.par[v.ID] = v.Parallelism
	}
	j.spawn(func() { j.execution(0, false) })
	return j, nil
}

type fakeJob struct {
	f      *fakeTarget
	w      *spec.Workload
	log    *timeline.Log
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{}
	once   sync.Once

	mu      sync.Mutex
	err     error
	par     map[string]int
	attempt int
	newest  int64 // complete checkpoint
	share   float64
	sunk    int64
	stop    context.CancelFunc // of the current execution
}

func (j *fakeJob) spawn(f func()) {
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
func (j *fakeJob) execution(delay time.Duration, restore bool) {
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
		tasks("CANCELED")
		e := timeline.Of(timeline.RestoreAssigned)
		e.Checkpoint, e.Bytes = newest, j.f.bytes
		j.log.Add(e)
		if j.f.bytes > 0 {
			j.setShare(0)
		}
	}
	tasks("DEPLOYING")
	tasks("INITIALIZING")
	if !pause(ctx, 10*time.Millisecond) {
		return
	}
	if restore && j.f.bytes > 0 {
		e := timeline.Task(timeline.RestoreRead, "out", 0, attempt)
		e.Bytes, e.Detail = 2*j.f.bytes, j.f.path
		j.log.Add(e)
	}
	tasks("RUNNING")
	if restore {
		j.log.Add(timeline.Task(timeline.FirstOutput, "out", 0, attempt))
	}
	if restore && j.f.bytes > 0 {
		j.spawn(func() {
			if !pause(ctx, j.f.drain/2) {
				return
			}
			j.setShare(0.5)
			if !pause(ctx, j.f.drain/2) {
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
		e.Kind, e.Bytes = timeline.CheckpointCompleted, j.f.bytes
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

func (j *fakeJob) setShare(s float64) {
	j.mu.Lock()
	j.share = s
	j.mu.Unlock()
}

func (j *fakeJob) Options() map[string]any {
	m := j.w.Options.Effective()
	for k, v := range j.f.options {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	return m
}

func (j *fakeJob) Inject(ctx context.Context, f target.Fault) (time.Duration, error) {
	j.f.mu.Lock()
	j.f.faults = append(j.f.faults, f)
	j.f.mu.Unlock()
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
	case j.f.onFault != nil && j.f.onFault(j):
	case j.f.mute:
	default:
		j.spawn(func() { j.execution(5*time.Millisecond, true) })
	}
	return t0, nil
}

func (j *fakeJob) Savepoint(ctx context.Context, stop bool) (string, error) {
	if !pause(ctx, 30*time.Millisecond) {
		return "", ctx.Err()
	}
	if stop {
		j.end(nil)
	}
	return "sp", nil
}

func (j *fakeJob) Finish(ctx context.Context) (*target.Output, error) {
	if !pause(ctx, 50*time.Millisecond) {
		return nil, context.Cause(ctx)
	}
	j.end(nil)
	if j.f.output != nil {
		return j.f.output, nil
	}
	return &target.Output{Proved: true, Received: 10, Expected: 10, Digest: "d", ExpectedDigest: "d"}, nil
}

func (j *fakeJob) Cancel(context.Context) error { j.end(errors.New("canceled")); return nil }

func (j *fakeJob) end(err error) {
	j.once.Do(func() {
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
		close(j.done)
	})
	j.cancel()
}

func (j *fakeJob) Status() target.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return target.Status{SinkRecords: j.sunk, WorkersWithTasks: 2, InFlightBytes: 3 << 20, RestoredShare: j.share, NetBytes: 77}
}

func (j *fakeJob) Done() <-chan struct{} { return j.done }
func (j *fakeJob) Err() error            { j.mu.Lock(); defer j.mu.Unlock(); return j.err }
func (j *fakeJob) Close() error {
	if j.f.hang {
		pause(context.Background(), 2*closeTimeout)
	}
	j.end(errors.New("closed"))
	j.wg.Wait()
	return nil
}

const fakeHead = `schema = 1
name = "fake"
[run]
trial-timeout = "5m"
[options]
"execution.checkpointing.interval" = "1 s"
"execution.checkpointing.unaligned.enabled" = true
[workload]
parallelism = 2
[[workload.vertex]]
id = "numbers"
operator = "sequence"
params = { rate = "100/s" }
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "out"
partitioner = "rebalance"
`

func fakeWorkload(steps string, sets ...string) (*spec.Workload, error) {
	f, err := spec.Parse("fake.toml", "/dir", []byte(fakeHead+steps), sets)
	if err != nil {
		return nil, fmt.Errorf("test workload: %w", err)
	}
	return f.Resolve("default")
}
