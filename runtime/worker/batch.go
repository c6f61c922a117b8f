package worker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/shuffle"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// BatchConfig is what a worker of a batch job is started with.
type BatchConfig struct {
	Name      string // names files and logs
	Index     int    // its place among the workers; see control.Hello
	Slots     int
	Memory    int64 // bytes of network memory; half of it is for what tasks write
	Segment   int
	Read      int64 // bytes for reading partitions, beside Memory
	Network   task.NetworkConfig
	Dir       string // partitions and spill; what is finished in it outlives the worker
	OutputDir string
	Timeline  *timeline.Log
	Origin    time.Time
	Transport exchange.Network
	Heartbeat time.Duration
	Tick      time.Duration
	Retention time.Duration // without a master, before all is given up
	// Recovery keeps partitions when the master is lost; with Adoption tasks go on,
	// too.
	Recovery, Adoption bool

	Leader Leader
	// Newer tells whether a master of a later epoch leads; it is asked now and then.
	Newer func(epoch int64) bool
}

// Batch is a worker of a batch job. It outlives masters: it joins one after the
// other and tells each what it has.
//
// Partitions belong to the store, which no master's death touches. A task that
// has finished while nobody could be told is remembered with its result until
// a master has settled the inventory.
type Batch struct {
	host
	cfg     BatchConfig
	store   *shuffle.Store
	self    *identity
	charged atomic.Bool // never set: the cost of a batch job is charged to its end
	// abandoning has an element while all is given up: a master that comes just then
	// must not be told of what is about to go.
	abandoning chan struct{}

	mu struct {
		sync.Mutex
		name     batch.Worker // at the newest master
		conn     *control.Conn
		job      *batchJob
		attempts map[joblog.AttemptID]*attempt // that have not ended
		done     map[joblog.AttemptID]*doneAttempt
		others   others
		patience *time.Timer // while there is no master
		sunk     int64       // sink records of attempts that have ended
		closed   bool
	}
}

// StartBatch brings a worker up. It joins a master in the background.
func StartBatch(cfg BatchConfig) (*Batch, error) {
	w := &Batch{cfg: cfg, abandoning: make(chan struct{}, 1)}
	w.mu.attempts, w.mu.done = map[joblog.AttemptID]*attempt{}, map[joblog.AttemptID]*doneAttempt{}
	w.mu.others = others{}
	if err := os.RemoveAll(w.spill()); err != nil { // of a process that died
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	if err := os.MkdirAll(w.spill(), 0o700); err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	store, adopted, err := shuffle.Open(shuffle.Config{Dir: filepath.Join(cfg.Dir, "shuffle"), SegmentSize: cfg.Segment, ReadMemory: int(cfg.Read)})
	if err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	for _, d := range adopted.Damaged {
		e := timeline.Of(timeline.PartitionLost)
		e.Detail, e.Subtask, e.Reason = d.ID.Dataset, d.ID.Index, d.Err.Error()
		cfg.Timeline.Add(e)
	}
	w.store = store
	if w.self, err = openIdentity(cfg.Dir, cfg.Name); err != nil {
		w.trouble(err)
	}
	if err := w.open(w, cfg.Name, cfg.Memory, cfg.Segment, cfg.Transport, cfg.Timeline); err != nil {
		store.Close()
		return nil, err
	}
	w.server.Serve(shuffle.KeyPrefix, store.Source)
	w.loops.Go(func() { w.ticks(cfg.Tick, w.running) })
	w.loops.Go(func() {
		if err := Follow(w.ctx, cfg.Leader, true, w.join); w.ctx.Err() == nil {
			w.fail(err)
		}
	})
	return w, nil
}

func (w *Batch) spill() string { return filepath.Join(w.cfg.Dir, "spill") }

// Stop ends the worker in order, and waits. Its folder is removed; after Kill
// its partitions stay where they are.
func (w *Batch) Stop() {
	w.host.Stop()
	os.RemoveAll(w.cfg.Dir)
}

// Load sums over the attempts that have not ended.
func (w *Batch) Load() (l Load) {
	ending := w.ending.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	l.SinkRecords = w.mu.sunk
	for _, a := range w.mu.attempts {
		if !ending {
			l.Tasks++
		}
		if a.t != nil {
			l.SinkRecords += a.t.Arrived()
		}
	}
	return l
}

func (w *Batch) leave(reset bool) {
	w.mu.Lock()
	w.mu.closed = true
	conn := w.mu.conn
	if w.mu.patience != nil {
		w.mu.patience.Stop()
	}
	w.mu.Unlock()
	if conn != nil {
		conn.Close(reset)
	}
}

// stopTasks implements kind: it stops all attempts and waits for their ends.
func (w *Batch) stopTasks() {
	w.mu.Lock()
	attempts := slices.Collect(maps.Values(w.mu.attempts))
	w.mu.Unlock()
	for _, a := range attempts {
		a.cancel()
	}
	for _, a := range attempts {
		<-a.over
	}
}

func (w *Batch) cleanUp() {
	w.abandoning <- struct{}{} // who began before the end finishes; who comes later sees it
	<-w.abandoning
	w.store.Close()
	os.RemoveAll(w.spill())
}

// join works for a master until it is lost or a newer one leads, and says why it
// does no more; nil: the job is over.
func (w *Batch) join(addr string, epoch int64) (served bool, err error) {
	s := w.service(epoch)
	defer func() {
		w.mu.Lock()
		if w.mu.conn == s.conn {
			w.mu.conn = nil
		}
		w.mu.Unlock()
		s.close(true)
		if served && w.ctx.Err() == nil {
			w.orphaned(epoch, err)
		}
	}()
	hello := control.Hello{Index: w.cfg.Index, Slots: w.cfg.Slots, DataAddr: w.server.Addr(), Identity: w.self.id}
	newer := func() bool { return w.cfg.Newer(epoch) }
	// The log may name the worker from the hello on: whoever has its folder after it
	// must know that, or a new master waits for somebody who will never come.
	w.noteName(workerID(w.cfg.Index))
	if err := s.call(addr, hello, w.cfg.Heartbeat, newer); err != nil {
		return false, err
	}
	if err := s.await(addr, newer); err != nil {
		return false, err
	}
	check := time.NewTicker(leaderCheck)
	defer check.Stop()
	for {
		select {
		case <-s.lost:
			if s.done {
				return true, nil
			}
			return true, s.err
		case <-w.ctx.Done():
			return true, nil
		case <-check.C:
			if newer() {
				return true, errOtherLeads
			}
		}
	}
}

func (w *Batch) welcome(s *service, m control.Welcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.name = workerID(m.Worker)
	w.mu.conn = s.conn
	if w.mu.patience != nil {
		w.mu.patience.Stop()
		w.mu.patience = nil
	}
}

// workerID is what masters call a worker of an index.
func workerID(index int) batch.Worker { return batch.Worker(fmt.Sprintf("worker-%d", index)) }

// noteName has the worker's folder say by which name masters know it.
func (w *Batch) noteName(name batch.Worker) {
	w.abandoning <- struct{}{}
	defer func() { <-w.abandoning }()
	if err := w.self.add(name); err != nil {
		w.trouble(err)
	}
}

// orphaned: the master is lost, or done. What is kept is kept for a time.
func (w *Batch) orphaned(epoch int64, why error) {
	if why != nil {
		w.cfg.Timeline.Add(masterLost(w.cfg.Name, epoch, why))
	}
	if !w.cfg.Adoption {
		w.stopTasks()
	}
	if !w.cfg.Recovery {
		w.giveUp()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.closed {
		w.mu.patience = time.AfterFunc(w.cfg.Retention, func() {
			w.abandoning <- struct{}{}
			defer func() { <-w.abandoning }()
			w.mu.Lock()
			alone := w.mu.conn == nil && !w.mu.closed
			w.mu.Unlock()
			if alone {
				w.stopTasks()
				w.giveUp()
			}
		})
	}
}

// giveUp deletes everything of the job.
func (w *Batch) giveUp() {
	w.mu.Lock()
	job := w.mu.job
	clear(w.mu.done)
	w.mu.Unlock()
	if job == nil {
		return
	}
	if err := errors.Join(w.store.ReleaseJob(job.id), w.self.forget()); err != nil {
		w.trouble(err)
	}
}

// trouble is noted where nobody waits for an answer.
func (w *Batch) trouble(err error) {
	e := timeline.Of(timeline.PartitionLost)
	e.Detail, e.Reason = w.cfg.Name, err.Error()
	w.cfg.Timeline.Add(e)
}

// running are the tasks of attempts that have not ended. The master is told how
// far they are.
func (w *Batch) running() (tasks []*task.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var counts []control.AttemptCount
	for id, a := range w.mu.attempts {
		if a.t != nil {
			tasks = append(tasks, a.t)
			counts = append(counts, control.AttemptCount{Attempt: id, Consumed: a.t.Consumed()})
		}
	}
	if w.mu.conn != nil && len(counts) > 0 {
		w.mu.conn.Send(control.Counts{Attempts: counts})
	}
	return tasks
}
