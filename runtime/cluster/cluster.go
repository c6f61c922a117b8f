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
	Submission    string // id of the job, which no other has, without a dot or hyphen; empty: one is made
	Keep          bool   // the last checkpoints stay when the job ends
	Batch         bool   // run it as a batch job; see StartBatch
	FromScratch   bool   // batch: begin anew where the log of an earlier run cannot be read
	// Delays slow fault points of this process down, by their names: a
	// slow-down that a trial of the measuring plants on purpose.
	Delays map[string]time.Duration
}

// Cluster is a running embedded cluster.
type Cluster struct {
	cfg     Config
	store   *storage.Faulty
	m       *master.Master
	workers crew[streamingWorker]
	later   afterwards
	closing sync.Once
	unplant func() // takes the planted delays away
}

// streamingWorker is a worker of a Cluster.
type streamingWorker struct{ *worker.Worker }

func (w streamingWorker) load(queued bool) control.Load {
	return counters(w.Load(queued), w.NetBytes())
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
	cfg := c.cfg.place(c.workers.next(), "").streaming(c.store)
	cfg.Master = c.m.Addr()
	w, err := worker.Start(cfg)
	if err != nil {
		return err
	}
	c.workers.join(streamingWorker{w})
	return nil
}

// Master gives access to the job.
func (c *Cluster) Master() *master.Master { return c.m }

// Workers are the live workers.
func (c *Cluster) Workers() (live []*worker.Worker) {
	for _, w := range c.workers.all() {
		live = append(live, w.Worker)
	}
	return live
}

// KillWorker ends the i-th live worker that runs a task as if its process had
// died. struck is called at that instant. A new one comes after a time, unless
// that is negative.
func (c *Cluster) KillWorker(i int, replaceAfter time.Duration, struck func()) error {
	if _, err := c.workers.kill(i, struck); err != nil {
		return err
	}
	if replaceAfter >= 0 {
		c.later.do(replaceAfter, func() { c.addWorker() })
	}
	return nil
}

// FreezeWorker stops everything that a worker does for a time.
func (c *Cluster) FreezeWorker(i int, d time.Duration, struck func()) error {
	return c.workers.freeze(i, d, struck)
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
	s := c.workers.status()
	s.Restoring = c.m.Restoring()
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
		c.later.close()
		c.workers.stop()
		c.m.Close()
		c.unplant()
	})
	return nil
}
