package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
	"benchrun/runtime/worker"
)

// Config describes a cluster and the job that it runs.
type Config struct {
	Job           graph.Job
	Values        options.Values
	Workers       int
	Slots         int   // of each worker
	NetworkMemory int64 // bytes of each worker
	BufferSize    int   // bytes
	Network       task.NetworkConfig
	Storage       string // URL of checkpoint storage; empty: Dir/checkpoints
	Dir           string // everything that the cluster writes is below it
	Timeline      *timeline.Log
	Transport     exchange.Network // nil: loopback, with a secret of its own
	Seed          uint64
	Keep          bool // the last checkpoints stay when the job ends
	Batch         bool // run it as a batch job; see StartBatch
	FromScratch   bool // batch: begin anew where the log of an earlier run cannot be read
	// Delays slow fault points of this process down, by their names: a
	// slow-down that a trial of the measuring plants on purpose.
	Delays map[string]time.Duration
}

// Cluster is a running embedded cluster.
type Cluster struct {
	cfg     Config
	store   *storage.Faulty
	m       *master.Master
	closing sync.Once
	unplant func() // takes the planted delays away

	mu struct {
		sync.Mutex
		workers []*worker.Worker // live ones, in the order in which they joined
		made    int
		closed  bool
		timers  []*time.Timer
		sunk    int64 // sink records of tasks that are gone
		net     int64 // bytes of workers that are gone
	}
	replacing sync.WaitGroup
}

// ErrConfig marks a job or configuration that cannot run, as opposed to one
// that failed.
var ErrConfig = errors.New("invalid configuration")

// Start brings up master and workers and submits the job.
func Start(cfg Config) (*Cluster, error) {
	if cfg.Transport == nil {
		cfg.Transport = control.Secure(exchange.Loopback{}, control.NewSecret(), buildID())
	}
	g, err := buildGraph(cfg.Job, cfg.Values)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg}
	url := cfg.Storage
	if url == "" {
		url = filepath.Join(cfg.Dir, "checkpoints")
	}
	store, err := storage.Open(url)
	if err != nil {
		return nil, fmt.Errorf("checkpoint storage: %w", err)
	}
	c.store = storage.NewFaulty(store)
	origin, err := originOf(cfg.Values)
	if err != nil {
		return nil, err
	}
	if c.m, err = master.New(master.Config{
		Graph: g, Values: cfg.Values, Checkpoints: c.store, Timeline: cfg.Timeline, Origin: cfg.Timeline.Origin(),
		Transport: cfg.Transport, Epoch: 1, Seed: cfg.Seed, Keep: cfg.Keep,
	}); err != nil {
		return nil, err
	}
	if c.unplant, err = plant(cfg.Delays); err != nil {
		c.m.Close()
		return nil, err
	}
	for range cfg.Workers {
		if err := c.addWorker(); err != nil {
			c.Close()
			return nil, err
		}
	}
	c.m.Submit(origin)
	return c, nil
}

func (c *Cluster) addWorker() error {
	c.mu.Lock()
	n := c.mu.made
	c.mu.made++
	c.mu.Unlock()
	w, err := worker.Start(worker.Config{
		Name: fmt.Sprintf("worker-%d", n), Index: n, Master: c.m.Addr(), Slots: c.cfg.Slots,
		Memory: c.cfg.NetworkMemory, Segment: c.cfg.BufferSize, Network: c.cfg.Network, Checkpoints: c.store,
		Dir: filepath.Join(c.cfg.Dir, fmt.Sprintf("worker-%d", n)), OutputDir: c.cfg.Dir,
		Timeline: c.cfg.Timeline, Origin: c.cfg.Timeline.Origin(), Transport: c.cfg.Transport,
		Heartbeat: options.HeartbeatInterval.Get(c.cfg.Values), Tick: tick(c.cfg.Values),
		PerFile: options.MaxSubtasksPerChannelStateFile.Get(c.cfg.Values),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		w.Stop()
		return nil
	}
	c.mu.workers = append(c.mu.workers, w)
	c.mu.Unlock()
	return nil
}

// tick is how often tasks look at what is due by time.
func tick(v options.Values) time.Duration {
	return max(time.Millisecond, min(options.BufferTimeout.Get(v), options.WatermarkInterval.Get(v), 100*time.Millisecond))
}

// Master gives access to the job.
func (c *Cluster) Master() *master.Master { return c.m }

// Workers are the live workers.
func (c *Cluster) Workers() []*worker.Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*worker.Worker(nil), c.mu.workers...)
}

// busy finds the i-th live worker that runs a task.
func (c *Cluster) busy(i int) (*worker.Worker, error) {
	var busy []*worker.Worker
	for _, w := range c.Workers() {
		if w.Load(false).Tasks > 0 {
			busy = append(busy, w)
		}
	}
	if len(busy) == 0 {
		busy = c.Workers() // between two executions: any of them may be the one
	}
	if i < 0 || i >= len(busy) {
		return nil, fmt.Errorf("there is no worker %d: %d live workers run a task of the job", i, len(busy))
	}
	return busy[i], nil
}

// KillWorker ends the i-th live worker that runs a task as if its process had
// died. struck is called at that instant. A new one comes after a time, unless
// that is negative.
func (c *Cluster) KillWorker(i int, replaceAfter time.Duration, struck func()) error {
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
	c.mu.sunk += w.Load(false).SinkRecords
	c.mu.net += w.NetBytes()
	if replaceAfter >= 0 && !c.mu.closed {
		c.replacing.Add(1)
		t := time.AfterFunc(replaceAfter, func() {
			defer c.replacing.Done()
			c.addWorker()
		})
		c.mu.timers = append(c.mu.timers, t)
	}
	c.mu.Unlock()
	return nil
}

// FreezeWorker stops everything that a worker does for a time.
func (c *Cluster) FreezeWorker(i int, d time.Duration, struck func()) error {
	w, err := c.busy(i)
	if err != nil {
		return fmt.Errorf("freeze-worker: %w", err)
	}
	struck()
	w.Freeze(d)
	return nil
}

// FailStorage makes checkpoint storage misbehave for a time.
func (c *Cluster) FailStorage(kind string, d time.Duration) error {
	k, err := storage.ParseFaultKind(kind)
	if err != nil {
		return err
	}
	c.store.Set(k, d)
	return nil
}

// Status is a look at counters that no event carries.
type Status struct {
	SinkRecords      int64
	QueuedBytes      int64
	WorkersWithTasks int
	Restored         int64 // in-flight bytes that running tasks had to restore
	Drained          int64 // of those, processed
	NetBytes         int64
	Restoring        bool // an execution that has in-flight data to restore is coming up
	// Consumed are the records that the tasks of a batch job have read, sources
	// those that they have made, by vertex. Work that is lost does not count.
	Consumed map[string]int64
}

// Status sums over the workers.
func (c *Cluster) Status() Status {
	c.mu.Lock()
	s := Status{SinkRecords: c.mu.sunk, NetBytes: c.mu.net, Restoring: c.m.Restoring()}
	c.mu.Unlock()
	for _, w := range c.Workers() {
		l := w.Load(true)
		s.SinkRecords += l.SinkRecords
		s.QueuedBytes += l.QueuedBytes
		s.Restored += l.Restored
		s.Drained += l.Drained
		s.NetBytes += w.NetBytes()
		if l.Tasks > 0 {
			s.WorkersWithTasks++
		}
	}
	return s
}

// Reports are what operators reported at the end of a finished job.
func (c *Cluster) Reports(ctx context.Context) ([]control.Report, error) {
	r := c.m.Reports(ctx)
	if r == nil && ctx.Err() != nil {
		return nil, fmt.Errorf("no reports of the operators: %w", context.Cause(ctx))
	}
	return r, nil
}

// Close stops everything and waits until it is gone.
func (c *Cluster) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.mu.closed = true
		for _, t := range c.mu.timers {
			if t.Stop() {
				c.replacing.Done()
			}
		}
		workers := c.mu.workers
		c.mu.workers = nil
		c.mu.Unlock()
		c.replacing.Wait()
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(w.Stop)
		}
		wg.Wait()
		c.m.Close()
		c.unplant()
	})
	return nil
}
