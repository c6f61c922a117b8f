package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/shuffle"
	"benchrun/runtime/worker"
)

// Batch is a running embedded cluster with a batch job. Its master can be killed:
// what the next one knows is in the job's log and at the workers.
type Batch struct {
	cfg     Config
	graph   *graph.Graph
	seat    seat
	done    chan struct{}
	closing sync.Once
	unplant func()
	work    sync.WaitGroup

	mu struct {
		sync.Mutex
		m       *master.Batch // nil: between two masters
		past    ledger
		workers []*embeddedWorker
		made    int
		coming  map[int]bool // workers that are being started
		epoch   int64
		ended   bool
		err     error
		closed  bool
		timers  map[*time.Timer]bool
		started time.Duration
		sunk    int64
		net     int64
		// Of a master that is gone.
		options  map[string]any
		consumed map[string]int64
	}
}

// embeddedWorker is a worker with the folder that outlives it.
type embeddedWorker struct {
	*worker.Batch
	index int
	dir   string
}

// StartBatch brings up master and workers and submits the job.
func StartBatch(cfg Config) (*Batch, error) {
	if cfg.Transport == nil {
		cfg.Transport = control.Secure(exchange.Loopback{}, control.NewSecret(), buildID())
	}
	g, err := chained(cfg.Job, cfg.Values, true)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(recoverable(g, cfg.Values), writable(g, cfg)); err != nil {
		return nil, err
	}
	c := &Batch{cfg: cfg, graph: g, done: make(chan struct{})}
	c.seat.changed = make(chan struct{})
	c.mu.timers, c.mu.coming = map[*time.Timer]bool{}, map[int]bool{}
	c.mu.started = cfg.Timeline.Now()
	if err := (resultFile{c.state()}).forget(); err != nil {
		return nil, err
	}
	if c.unplant, err = plant(cfg.Delays); err != nil {
		return nil, err
	}
	if err := c.startMaster(); err != nil {
		c.unplant()
		return nil, err
	}
	for range cfg.Workers {
		if err := c.addWorker(""); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// recoverable refuses a job that recovery is asked for and cannot keep anything
// of.
func recoverable(g *graph.Graph, v options.Values) error {
	if !options.BatchJobRecovery.Get(v) {
		return nil
	}
	var errs []error
	for _, p := range master.Unrecoverable(g, v) {
		if !p.Partial {
			errs = append(errs, fmt.Errorf("%w: %s is on, but %w", ErrConfig, options.BatchJobRecovery.Key(), p))
		}
	}
	return errors.Join(errs...)
}

// writable refuses a cluster in which no task could write its partitions.
func writable(g *graph.Graph, cfg Config) error {
	need, hint := shuffle.MinMemory(cfg.BufferSize), ""
	if o := options.ShuffleMinBuffers; o.IsSet(cfg.Values) {
		need = max(need, o.Get(cfg.Values)*cfg.BufferSize)
		hint = ", or lower " + o.Key()
	}
	var errs []error
	for i := range g.Vertices {
		v := &g.Vertices[i]
		n := len(v.Outputs)
		if n == 0 || worker.WriterMemory(cfg.NetworkMemory, cfg.Slots, n) >= need {
			continue
		}
		errs = append(errs, fmt.Errorf("%w: too little network memory: a task of %q needs %d buffers of %s for each partition that it writes; raise cluster.network-memory to at least %s%s",
			ErrConfig, v.ID, need/cfg.BufferSize, options.FormatSize(int64(cfg.BufferSize)), options.FormatSize(2*int64(cfg.Slots*n)*int64(need)), hint))
	}
	return errors.Join(errs...)
}

// jobEvents is the folder of the job's log in the state folder of masters.
const jobEvents = "job-events"

// batchMaster makes the master of an epoch for a state folder.
func batchMaster(cfg master.BatchConfig, state string) (*master.Batch, error) {
	dir, err := joblog.OpenDir(filepath.Join(state, jobEvents))
	if err != nil {
		return nil, err
	}
	cfg.Log, cfg.Result = dir, resultFile{state}
	cfg.Job = cfg.Graph.Name
	if cfg.Job == "" {
		cfg.Job = "job"
	}
	m, err := master.NewBatch(cfg)
	if master.Unreadable(err) {
		return nil, &JobLogError{err}
	}
	return m, err
}

// state is the folder of what masters leave to one another.
func (c *Batch) state() string { return filepath.Join(c.cfg.Dir, "master") }

// JobLogError: a new master of a batch job cannot read the log that those before
// it have written. Config.FromScratch makes it begin anew.
type JobLogError struct {
	Err error // the place, and what is wrong with it
}

func (e *JobLogError) Error() string { return e.Err.Error() }
func (e *JobLogError) Unwrap() error { return e.Err }

func (c *Batch) startMaster() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return errClusterClosed
	}
	c.mu.epoch++
	e := elected(fmt.Sprintf("epoch %d", c.mu.epoch))
	c.cfg.Timeline.Add(e)
	m, err := batchMaster(master.BatchConfig{
		Graph: c.graph, Values: c.cfg.Values, Timeline: c.cfg.Timeline, Origin: c.cfg.Timeline.Origin(), Transport: c.cfg.Transport,
		Epoch: c.mu.epoch, OutputDir: c.cfg.Dir, Seed: c.cfg.Seed, FromScratch: c.cfg.FromScratch,
	}, c.state())
	if err != nil {
		return err
	}
	expected := len(c.mu.workers)
	if c.mu.epoch == 1 {
		expected = c.cfg.Workers
	}
	c.mu.m = m
	c.seat.take(c.mu.epoch, m.Addr())
	m.Begin(c.mu.started, expected, options.HeartbeatTimeout.Get(c.cfg.Values))
	for i := range c.mu.made { // whom it need not wait for
		if !slices.ContainsFunc(c.mu.workers, func(w *embeddedWorker) bool { return w.index == i }) && !c.mu.coming[i] && c.mu.epoch > 1 {
			m.WorkerGone(i)
		}
	}
	c.work.Go(func() {
		select {
		case <-m.Done():
		case <-m.Closed():
			return
		}
		c.mu.Lock()
		if c.mu.m == m {
			c.end(m.Err())
		}
		c.mu.Unlock()
	})
	return nil
}

// end needs the lock.
func (c *Batch) end(err error) {
	if !c.mu.ended {
		c.mu.ended, c.mu.err = true, err
		close(c.done)
	}
}

// addWorker starts one, on the folder of one that is gone if that is named.
func (c *Batch) addWorker(dir string) error {
	c.mu.Lock()
	n := c.mu.made
	c.mu.made++
	c.mu.coming[n] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.mu.coming, n)
		c.mu.Unlock()
	}()
	name := fmt.Sprintf("worker-%d", n)
	if dir == "" {
		dir = filepath.Join(c.cfg.Dir, name)
	}
	cfg := batchWorkerConfig(c.cfg.Values)
	cfg.Name, cfg.Index, cfg.Dir, cfg.OutputDir, cfg.Slots = name, n, dir, c.cfg.Dir, c.cfg.Slots
	cfg.Memory, cfg.Segment, cfg.Network = c.cfg.NetworkMemory, c.cfg.BufferSize, c.cfg.Network
	cfg.Timeline, cfg.Origin, cfg.Transport = c.cfg.Timeline, c.cfg.Timeline.Origin(), c.cfg.Transport
	cfg.Leader, cfg.Newer = c.seat.await, c.seat.newer
	w, err := worker.StartBatch(cfg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		w.Stop()
		return nil
	}
	c.mu.workers = append(c.mu.workers, &embeddedWorker{w, n, dir})
	c.mu.Unlock()
	return nil
}

// batchWorkerConfig is what the options say of the workers of a batch job.
func batchWorkerConfig(v options.Values) worker.BatchConfig {
	recovery := options.BatchJobRecovery.Get(v)
	return worker.BatchConfig{
		Heartbeat: options.HeartbeatInterval.Get(v), Tick: tick(v), Retention: options.WorkerRegistrationTimeout.Get(v),
		Read:     options.ShuffleReadMemory.Get(v),
		Recovery: recovery, Adoption: recovery && options.BatchRecoveryMode.Get(v) == string(batch.Hardened),
	}
}

// master is the one that leads, or nil.
func (c *Batch) master() *master.Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.m
}

// await waits for a master.
func (c *Batch) await(ctx context.Context) (*master.Batch, error) {
	for {
		c.seat.mu.Lock()
		changed := c.seat.changed
		c.seat.mu.Unlock()
		if m := c.master(); m != nil {
			return m, nil
		}
		select {
		case <-changed:
		case <-c.done:
			return nil, errors.Join(errors.New("the job has ended"), c.Err())
		case <-ctx.Done():
			return nil, fmt.Errorf("no master leads: %w", context.Cause(ctx))
		}
	}
}

// KillMaster implements Running: the master is gone at once, with all that was
// not in its log, and another one begins after a time.
func (c *Batch) KillMaster(downFor time.Duration, struck func()) error {
	c.mu.Lock()
	m := c.mu.m
	if m == nil || c.mu.ended {
		c.mu.Unlock()
		return errors.New("kill-jobmanager: there is no master to kill")
	}
	c.mu.m = nil
	c.seat.leave()
	c.mu.past.died(m.Figures())
	c.mu.options, c.mu.consumed = m.Options(), m.Consumed()
	c.mu.Unlock()
	struck()
	m.Kill()
	c.later(downFor, func() {
		if err := c.startMaster(); err != nil {
			c.mu.Lock()
			c.end(fmt.Errorf("no master after kill-jobmanager: %w", err))
			c.mu.Unlock()
		}
	})
	return nil
}

// later does something after a time, unless the cluster is closed before.
func (c *Batch) later(d time.Duration, fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	c.work.Add(1)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		defer c.work.Done()
		c.mu.Lock()
		delete(c.mu.timers, t)
		closed := c.mu.closed
		c.mu.Unlock()
		if !closed {
			fn()
		}
	})
	c.mu.timers[t] = true
}

func (c *Batch) live() []*embeddedWorker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*embeddedWorker(nil), c.mu.workers...)
}

// busy finds the i-th live worker that runs a task.
func (c *Batch) busy(i int) (*embeddedWorker, error) {
	var busy []*embeddedWorker
	for _, w := range c.live() {
		if w.Load().Tasks > 0 {
			busy = append(busy, w)
		}
	}
	if len(busy) == 0 {
		busy = c.live()
	}
	if i < 0 || i >= len(busy) {
		return nil, fmt.Errorf("there is no worker %d: %d live workers run a task of the job", i, len(busy))
	}
	return busy[i], nil
}

// KillWorker implements Running. One that replaces it finds its folder.
func (c *Batch) KillWorker(i int, replaceAfter time.Duration, struck func()) error {
	w, err := c.busy(i)
	if err != nil {
		return fmt.Errorf("kill-worker: %w", err)
	}
	struck()
	w.Kill()
	c.mu.Lock()
	for k, x := range c.mu.workers {
		if x == w {
			c.mu.workers = append(c.mu.workers[:k:k], c.mu.workers[k+1:]...)
			break
		}
	}
	if c.mu.m != nil {
		c.mu.m.WorkerGone(w.index)
	}
	c.mu.sunk += w.Load().SinkRecords
	c.mu.net += w.NetBytes()
	c.mu.Unlock()
	if replaceAfter >= 0 {
		c.later(replaceAfter, func() {
			if err := c.addWorker(w.dir); err != nil {
				c.mu.Lock()
				c.end(fmt.Errorf("no worker after kill-worker: %w", err))
				c.mu.Unlock()
			}
		})
	}
	return nil
}

// FreezeWorker implements Running.
func (c *Batch) FreezeWorker(i int, d time.Duration, struck func()) error {
	w, err := c.busy(i)
	if err != nil {
		return fmt.Errorf("freeze-worker: %w", err)
	}
	struck()
	w.Freeze(d)
	return nil
}

// FailTask implements Running.
func (c *Batch) FailTask(ctx context.Context, vertex string, subtask int, reason string, struck func(time.Duration)) error {
	m, err := c.await(ctx)
	if err != nil {
		return err
	}
	return m.FailTask(ctx, vertex, subtask, reason, func() { struck(none) })
}

// DropPartition implements Running.
func (c *Batch) DropPartition(ctx context.Context, vertex string, subtask int, struck func(time.Duration)) error {
	m, err := c.await(ctx)
	if err != nil {
		return err
	}
	return m.DropPartition(ctx, vertex, subtask, func() { struck(none) })
}

// Cancel implements Running.
func (c *Batch) Cancel(ctx context.Context) error {
	m, err := c.await(ctx)
	if err != nil {
		return err
	}
	m.Cancel()
	return nil
}

// Options implements Running.
func (c *Batch) Options() map[string]any {
	c.mu.Lock()
	m, before := c.mu.m, c.mu.options
	c.mu.Unlock()
	if m == nil || before != nil && m.Options() == nil {
		return before // all masters have the same
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return m.AwaitOptions(ctx)
}

// Status implements Running.
func (c *Batch) Status() Status {
	c.mu.Lock()
	s := Status{SinkRecords: c.mu.sunk, NetBytes: c.mu.net}
	m := c.mu.m
	c.mu.Unlock()
	for _, w := range c.live() {
		l := w.Load()
		s.SinkRecords += l.SinkRecords
		s.NetBytes += w.NetBytes()
		if l.Tasks > 0 {
			s.WorkersWithTasks++
		}
	}
	if m == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.Consumed = c.mu.consumed // where the job was
		return s
	}
	s.Consumed = m.Consumed()
	return s
}

// Reports implements Running.
func (c *Batch) Reports(context.Context) ([]control.Report, error) {
	return control.ReadReports(c.cfg.Dir)
}

// Batch implements Running.
func (c *Batch) Batch(context.Context) (*BatchFigures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.mu.past
	if c.mu.m != nil {
		l.now(c.mu.m.Figures())
	}
	return l.figures(c.cfg.Timeline), nil
}

// Done implements Running.
func (c *Batch) Done() <-chan struct{} { return c.done }

// Err implements Running.
func (c *Batch) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// Usage implements Running.
func (c *Batch) Usage() Usage { return Usage{} }

// Close implements Running. The workers' folders go, and the state of masters.
func (c *Batch) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.mu.closed = true
		for t := range c.mu.timers {
			if t.Stop() {
				c.work.Done()
			}
		}
		workers, m := c.mu.workers, c.mu.m
		c.mu.workers = nil
		made := c.mu.made
		c.mu.Unlock()
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(w.Stop)
		}
		wg.Wait()
		if m != nil {
			m.Close()
		}
		c.work.Wait()
		for i := range made {
			os.RemoveAll(filepath.Join(c.cfg.Dir, fmt.Sprintf("worker-%d", i)))
		}
		c.unplant()
	})
	return nil
}
