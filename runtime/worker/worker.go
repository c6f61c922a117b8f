package worker

import (
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/inflight"
	"benchrun/runtime/operator"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// Config is what a worker is started with.
type Config struct {
	Name  string // names files and logs
	Index int    // its place among the workers; see control.Hello
	// MinEpoch is the newest leadership that this worker's process has seen: an
	// older master is refused.
	MinEpoch    int64
	Master      string // control address
	Slots       int
	Memory      int64 // bytes of network memory
	Segment     int   // bytes of a buffer
	Network     task.NetworkConfig
	Checkpoints storage.Store
	Dir         string // for spill files; made and removed by the worker
	OutputDir   string
	Timeline    *timeline.Log
	Origin      time.Time // of the cluster's clock
	Transport   exchange.Network
	Heartbeat   time.Duration
	Tick        time.Duration // how often tasks look at their partly filled buffers
	PerFile     int           // subtasks that share a file of in-flight data
}

// Worker is one worker of a streaming job. It works for one master.
type Worker struct {
	host
	cfg       Config
	recovery  *buffer.Local
	filling   chan struct{}
	writer    *inflight.Writer
	master    *service
	uncharged atomic.Bool

	mu struct {
		sync.Mutex
		index  int
		tasks  map[task.ID]*entry
		addrs  map[int]string
		closed bool
	}
}

type entry struct {
	t         *task.Task
	execution int
	over      bool
}

func init() {
	gob.Register(&operator.SinkReport{})
	gob.Register(&operator.FileReport{})
	gob.Register(&task.SourceReport{})
}

// Start brings a worker up and registers it with the master. It returns when
// the master has answered.
func Start(cfg Config) (*Worker, error) {
	w := &Worker{cfg: cfg, filling: make(chan struct{}, max(1, (goruntime.GOMAXPROCS(0)+1)/2))}
	w.mu.tasks, w.mu.addrs = map[task.ID]*entry{}, map[int]string{}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	if err := w.open(w, cfg.Name, cfg.Memory, cfg.Segment, cfg.Transport, cfg.Timeline); err != nil {
		os.RemoveAll(cfg.Dir)
		return nil, err
	}
	w.writer = inflight.NewWriter(cfg.Name, cfg.PerFile, 2)
	w.master = w.service(cfg.MinEpoch)
	err := w.begin()
	if err != nil {
		w.because(err)
		w.Kill()
		return nil, err
	}
	w.loops.Go(func() { w.ticks(cfg.Tick, w.running) })
	w.loops.Go(func() {
		select {
		case <-w.master.lost:
			if w.Load(false).Tasks > 0 { // else the job may be over
				cfg.Timeline.Add(masterLost(cfg.Name, w.Epoch(), w.master.err))
			}
			w.fail(w.master.err)
		case <-w.ctx.Done():
		}
	})
	return w, nil
}

func (w *Worker) begin() (err error) {
	if w.recovery, err = w.global.NewLocal("recovered data", 0, w.global.Total()/2, 0, nil); err != nil {
		return fmt.Errorf("worker %s: %w", w.cfg.Name, err)
	}
	hello := control.Hello{Index: w.cfg.Index, Slots: w.cfg.Slots, DataAddr: w.server.Addr()}
	if err := w.master.call(w.cfg.Master, hello, w.cfg.Heartbeat, nil); err != nil {
		return err
	}
	return w.master.await(w.cfg.Master, nil)
}

// Epoch is the newest leadership that the worker has seen.
func (w *Worker) Epoch() int64 { return w.fence.newest() }

// Index is the worker's number at the master.
func (w *Worker) Index() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.index
}

func (w *Worker) welcome(_ *service, m control.Welcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.index = m.Worker
}

func (w *Worker) leave(reset bool) {
	w.master.close(reset)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
}

func (w *Worker) stopTasks() {
	entries := w.entries()
	for _, e := range entries {
		e.t.Cancel()
	}
	for _, e := range entries {
		<-e.t.Done()
		e.t.Release()
	}
	w.writer.Close()
}

func (w *Worker) cleanUp() {
	if w.recovery != nil {
		w.recovery.Close()
	}
	os.RemoveAll(w.cfg.Dir)
}

func (w *Worker) entries() []*entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.mu.tasks))
}

// running are the tasks that are not over.
func (w *Worker) running() (tasks []*task.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.mu.tasks {
		if !e.over {
			tasks = append(tasks, e.t)
		}
	}
	return tasks
}

// Load sums over the tasks that are not over.
func (w *Worker) Load(queued bool) (l Load) {
	ending := w.ending.Load()
	for _, e := range w.entries() {
		l.SinkRecords += e.t.Arrived()
		if ending {
			continue
		}
		select {
		case <-e.t.Done():
		default:
			l.Tasks++
			if queued {
				l.QueuedBytes += e.t.QueuedBytes()
			}
		}
		d, total := e.t.Drained()
		l.Drained += d
		l.Restored += total
	}
	return l
}

// client returns the data connection to another worker.
func (w *Worker) client(ctx context.Context, index int) (*exchange.Client, error) {
	w.mu.Lock()
	addr, ok := w.mu.addrs[index]
	closed := w.mu.closed
	w.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case !ok:
		return nil, fmt.Errorf("no address of worker %d", index)
	}
	return w.peers.client(ctx, fmt.Sprint(index), addr)
}
