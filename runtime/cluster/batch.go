package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/master"
	"benchrun/runtime/options"
	"benchrun/runtime/shuffle"
	"benchrun/runtime/timeline"
	"benchrun/runtime/worker"
)

// Batch is a running embedded cluster with a batch job. Its master can be killed:
// what the next one knows is in the job's log and at the workers.
type Batch struct {
	*outcome
	cfg     Config
	graph   *graph.Graph
	run     string // what no other job is called
	seat    seat[*master.Batch]
	workers crew[batchWorker]
	folders folders
	later   afterwards
	masters sync.WaitGroup // watching them
	started time.Duration
	closing sync.Once
	unplant func()

	mu struct {
		sync.Mutex // held while the seat changes, too
		past       ledger
		epoch      int64
		// Of a master that is gone.
		options  map[string]any
		consumed map[string]int64
	}
}

// batchWorker is a worker of a Batch, with the folder that outlives it.
type batchWorker struct {
	*worker.Batch
	index int
	dir   string
}

func (w batchWorker) load(bool) control.Load { return counters(w.Load(), w.NetBytes()) }

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
	c := &Batch{outcome: newOutcome(), cfg: cfg, graph: g, run: cfg.submission(), started: cfg.Timeline.Now()}
	if err := (resultFile{c.state(), c.run}).forget(); err != nil {
		return nil, err
	}
	if c.unplant, err = plant(cfg.Delays); err != nil {
		return nil, err
	}
	cfg.Timeline.Merge([]timeline.Event{submitted(c.started)}, 0)
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

// MemoryNeed is what a batch job needs more network memory for than there is.
type MemoryNeed struct {
	Vertex        string // whose tasks need most
	Buffers       int    // for each partition that a task of it writes
	BufferSize    int
	NetworkMemory int64 // that each worker has to have
	ByOption      bool  // options.ShuffleMinBuffers asks for so many buffers
}

func (n *MemoryNeed) Error() string {
	return fmt.Sprintf("too little network memory: a task of %q needs %d buffers of %s for each partition that it writes, so a worker needs at least %s",
		n.Vertex, n.Buffers, options.FormatSize(int64(n.BufferSize)), options.FormatSize(n.NetworkMemory))
}

// Hint names the keys that would help.
func (n *MemoryNeed) Hint() string {
	hint := fmt.Sprintf("raise cluster.network-memory to at least %q, or lower cluster.buffer-size or cluster.slots-per-worker", options.FormatSize(n.NetworkMemory))
	if n.ByOption {
		hint += " or " + options.ShuffleMinBuffers.Key()
	}
	return hint
}

// CheckMemory finds out, before a batch job starts, whether its tasks could write
// what they make; nil: they could.
func CheckMemory(j graph.Job, cfg Config) (*MemoryNeed, error) {
	g, err := chained(j, cfg.Values, true)
	if err != nil {
		return nil, err
	}
	return memoryNeed(g, cfg), nil
}

// writable refuses a cluster in which no task could write its partitions.
func writable(g *graph.Graph, cfg Config) error {
	if n := memoryNeed(g, cfg); n != nil {
		return fmt.Errorf("%w: %w; %s", ErrConfig, n, n.Hint())
	}
	return nil
}

func memoryNeed(g *graph.Graph, cfg Config) (most *MemoryNeed) {
	need, byOption := shuffle.MinMemory(cfg.BufferSize), false
	if o := options.ShuffleMinBuffers; o.IsSet(cfg.Values) && o.Get(cfg.Values)*cfg.BufferSize > need {
		need, byOption = o.Get(cfg.Values)*cfg.BufferSize, true
	}
	for i := range g.Vertices {
		v := &g.Vertices[i]
		n := len(v.Outputs)
		if n == 0 || worker.WriterMemory(cfg.NetworkMemory, cfg.Slots, n) >= need {
			continue
		}
		if memory := 2 * int64(cfg.Slots*n) * int64(need); most == nil || memory > most.NetworkMemory {
			most = &MemoryNeed{v.ID, need / cfg.BufferSize, cfg.BufferSize, memory, byOption}
		}
	}
	return most
}

// jobEvents is the folder of the job's log in the state folder of masters.
const jobEvents = "job-events"

// batchMaster makes the master of an epoch for a state folder.
func batchMaster(cfg master.BatchConfig, state string) (*master.Batch, error) {
	dir, err := joblog.OpenDir(filepath.Join(state, jobEvents))
	if err != nil {
		return nil, err
	}
	cfg.Log, cfg.Result = dir, resultFile{state, cfg.Run}
	name := cfg.Graph.Name
	if name == "" {
		name = "job"
	}
	cfg.Job = joblog.Identity(name, cfg.Run)
	m, err := master.NewBatch(cfg)
	if master.Unreadable(err) {
		return nil, &JobLogError{err}
	}
	return m, err
}

// state is the folder of what masters leave to one another.
func (c *Batch) state() string { return filepath.Join(c.cfg.Dir, "master") }

func (c *Batch) startMaster() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.epoch++
	epoch := c.mu.epoch
	c.cfg.Timeline.Add(elected(fmt.Sprintf("epoch %d", c.mu.epoch)))
	m, err := batchMaster(master.BatchConfig{
		Graph: c.graph, Values: c.cfg.Values, Timeline: c.cfg.Timeline, Origin: c.cfg.Timeline.Origin(), Transport: c.cfg.Transport,
		Epoch: epoch, OutputDir: c.cfg.Dir, Run: c.run, Leads: func() error { return c.leads(epoch) }, Seed: c.cfg.Seed, FromScratch: c.cfg.FromScratch,
	}, c.state())
	if err != nil {
		return err
	}
	expected := len(c.workers.all())
	if c.mu.epoch == 1 {
		expected = c.cfg.Workers
	}
	c.seat.take(c.mu.epoch, m)
	m.Begin(c.started, expected, options.HeartbeatTimeout.Get(c.cfg.Values))
	c.tellForgone()
	c.masters.Go(func() {
		select {
		case <-m.Done():
		case <-m.Closed():
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.leader() == m { // not killed
			c.end(m.Err())
		}
	})
	return nil
}

// leads tells whether the master of an epoch still does.
func (c *Batch) leads(epoch int64) error {
	switch m, newest := c.seat.now(); {
	case newest != epoch:
		return &LostLeadershipError{epoch, fmt.Sprintf("epoch %d has begun", newest)}
	case m == nil:
		return &LostLeadershipError{epoch, "the master was killed"}
	}
	return nil
}

// addWorker starts one, on the folder of one that is gone if that is named.
func (c *Batch) addWorker(dir string) error {
	n := c.workers.next()
	cfg := c.cfg.place(n, dir).batch()
	c.folders.give(n, cfg.Dir, dir != "")
	cfg.Leader = func(ctx context.Context, after int64) (string, int64, error) {
		m, epoch, err := c.seat.await(ctx, after)
		if err != nil {
			return "", 0, err
		}
		return m.Addr(), epoch, nil
	}
	cfg.Newer = func(epoch int64) bool {
		m, newest := c.seat.now()
		return m != nil && newest > epoch
	}
	w, err := worker.StartBatch(cfg)
	if err != nil {
		c.folders.drop(cfg.Dir)
		return err
	}
	c.workers.join(batchWorker{w, n, cfg.Dir})
	return nil
}

// tellForgone tells the master, if there is one, whom it need not wait for.
func (c *Batch) tellForgone() {
	if m := c.leader(); m != nil {
		for _, i := range c.folders.forgone() {
			m.WorkerGone(i)
		}
	}
}

// leader is the master that leads, or nil.
func (c *Batch) leader() *master.Batch {
	m, _ := c.seat.now()
	return m
}

// KillMaster implements Running: the master is gone at once, with all that was
// not in its log, and another one begins after a time.
func (c *Batch) KillMaster(downFor time.Duration, struck func()) error {
	c.mu.Lock()
	m, epoch := c.seat.now()
	if m == nil || c.over() {
		c.mu.Unlock()
		return errors.New("there is no master to kill")
	}
	c.seat.leave(m)
	c.mu.past.died(m.Figures())
	c.mu.options, c.mu.consumed = m.Options(), m.Consumed()
	c.mu.Unlock()
	struck()
	m.Kill()
	c.cfg.Timeline.Add(masterEnded(epoch, "the master was killed"))
	c.later.do(downFor, func() {
		if err := c.startMaster(); err != nil {
			c.end(fmt.Errorf("no master after kill-jobmanager: %w", err))
		}
	})
	return nil
}

// KillWorker implements Running. One that replaces it finds its folder; if none
// is to come, that goes with it.
func (c *Batch) KillWorker(i int, replaceAfter time.Duration, struck func()) error {
	w, err := c.workers.kill(i, struck)
	if err != nil {
		return err
	}
	if replaceAfter >= 0 {
		c.folders.keep(w.dir)
	}
	c.folders.drop(w.dir)
	c.tellForgone()
	if replaceAfter < 0 {
		if err := os.RemoveAll(w.dir); err != nil {
			return fmt.Errorf("the folder of worker-%d, which nobody takes over: %w", w.index, err)
		}
		return nil
	}
	c.later.do(replaceAfter, func() {
		if err := c.addWorker(w.dir); err != nil {
			c.end(fmt.Errorf("no worker after kill-worker: %w", err))
		}
	})
	return nil
}

// FreezeWorker implements Running.
func (c *Batch) FreezeWorker(i int, d time.Duration, struck func()) error {
	return c.workers.freeze(i, d, struck)
}

// FailTask implements Running.
func (c *Batch) FailTask(ctx context.Context, vertex string, subtask int, reason string, struck func(time.Duration)) error {
	m, err := c.seat.awaitFor(ctx, c.outcome)
	if err != nil {
		return err
	}
	return m.FailTask(ctx, vertex, subtask, reason, func() { struck(none) })
}

// DropPartition implements Running.
func (c *Batch) DropPartition(ctx context.Context, vertex string, subtask int, struck func(time.Duration)) error {
	m, err := c.seat.awaitFor(ctx, c.outcome)
	if err != nil {
		return err
	}
	return m.DropPartition(ctx, vertex, subtask, func() { struck(none) })
}

// Cancel implements Running.
func (c *Batch) Cancel(ctx context.Context) error {
	m, err := c.seat.awaitFor(ctx, c.outcome)
	if err != nil {
		return err
	}
	m.Cancel()
	return nil
}

// Options implements Running.
func (c *Batch) Options() map[string]any {
	c.mu.Lock()
	m, before := c.leader(), c.mu.options
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
	s := c.workers.status()
	c.mu.Lock()
	m := c.leader()
	s.Consumed = c.mu.consumed // where the job was, while nobody leads
	c.mu.Unlock()
	if m != nil {
		s.Consumed = m.Consumed()
	}
	return s
}

// Reports implements Running.
func (c *Batch) Reports(context.Context) ([]control.Report, error) {
	return control.ReadReports(control.ReportsOf(c.cfg.Dir, c.run))
}

// Batch implements Running.
func (c *Batch) Batch(context.Context) (*BatchFigures, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.mu.past
	if m := c.leader(); m != nil {
		l.now(m.Figures())
	}
	return l.figures(&c.folders), nil
}

// Usage implements Running.
func (c *Batch) Usage() Usage { return Usage{} }

// Close implements Running. The workers' folders go, and the state of masters.
func (c *Batch) Close() error {
	c.closing.Do(func() {
		c.later.close()
		c.workers.stop()
		if m := c.leader(); m != nil {
			m.Close()
		}
		c.masters.Wait()
		for i := range c.workers.size() {
			os.RemoveAll(filepath.Join(c.cfg.Dir, workerName(i)))
		}
		c.unplant()
	})
	return nil
}
