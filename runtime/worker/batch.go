package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/buffer"
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
	// Leader finds the master of a later epoch than one that is over. It waits
	// until there is one.
	Leader func(ctx context.Context, after int64) (addr string, epoch int64, err error)
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
	cfg     BatchConfig
	store   *shuffle.Store
	global  *buffer.Global
	server  *exchange.Server
	counter exchange.Counter
	freezer freezer
	ctx     context.Context
	cancel  context.CancelFunc
	gone    chan struct{}
	loops   sync.WaitGroup
	killed  atomic.Bool
	ending  atomic.Bool
	charged atomic.Bool // never set: the cost of a batch job is charged to its end

	mu struct {
		sync.Mutex
		epoch    int64
		name     batch.Worker // at the newest master
		conn     *control.Conn
		job      *batchJob
		attempts map[joblog.AttemptID]*attempt // that have not ended
		done     map[joblog.AttemptID]*doneAttempt
		clients  map[string]*peer // by address
		addrs    map[batch.Worker]string
		patience *time.Timer // while there is no master
		sunk     int64       // sink records of attempts that have ended
		closed   bool
		cause    error
	}
}

// StartBatch brings a worker up. It joins a master in the background.
func StartBatch(cfg BatchConfig) (*Batch, error) {
	w := &Batch{cfg: cfg, gone: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.mu.attempts, w.mu.done = map[joblog.AttemptID]*attempt{}, map[joblog.AttemptID]*doneAttempt{}
	w.mu.clients, w.mu.addrs = map[string]*peer{}, map[batch.Worker]string{}
	w.freezer.init()
	if err := os.RemoveAll(w.spill()); err != nil { // of a process that died
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	if err := os.MkdirAll(w.spill(), 0o755); err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	w.global = buffer.NewGlobal(cfg.Segment, int(cfg.Memory/int64(cfg.Segment)))
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
	l, err := cfg.Transport.Listen()
	if err != nil {
		store.Close()
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	w.server = exchange.NewServer(l, &w.counter, w.freezer.pause)
	w.server.Serve(shuffle.KeyPrefix, store.Source)
	w.loops.Go(w.ticks)
	w.loops.Go(func() {
		err := w.serve()
		if w.ctx.Err() == nil {
			w.because(err)
			go w.end(true)
		}
	})
	return w, nil
}

func (w *Batch) spill() string { return filepath.Join(w.cfg.Dir, "spill") }

func (w *Batch) because(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.cause == nil {
		w.mu.cause = err
	}
}

// Cause tells why the worker has ended by itself, or nil.
func (w *Batch) Cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.cause
}

// Gone is closed when the worker has ended.
func (w *Batch) Gone() <-chan struct{} { return w.gone }

// Kill ends the worker as if its process had died, and waits. Its partitions
// stay where they are.
func (w *Batch) Kill() {
	w.killed.Store(true)
	w.end(true)
	<-w.gone
}

// Stop ends the worker in order, and waits. Its folder is removed.
func (w *Batch) Stop() {
	w.end(false)
	<-w.gone
	os.RemoveAll(w.cfg.Dir)
}

// Freeze stops everything that the worker does for a time.
func (w *Batch) Freeze(d time.Duration) { w.freezer.freeze(d) }

// NetBytes is how many bytes have passed the worker's data connections.
func (w *Batch) NetBytes() int64 { return w.counter.Sent.Load() }

// Memory tells how the network memory is used.
func (w *Batch) Memory() buffer.Stats { return w.global.Stats() }

// Load is a look at counters that no event carries.
func (w *Batch) Load() (l Load) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.SinkRecords = w.mu.sunk
	for _, a := range w.mu.attempts {
		l.Tasks++
		if a.t != nil {
			l.SinkRecords += a.t.Arrived()
		}
	}
	return l
}

func (w *Batch) end(reset bool) {
	if w.ending.Swap(true) {
		return
	}
	w.killed.Store(true) // nothing is reported from here
	w.freezer.thaw()
	w.cancel()
	w.mu.Lock()
	w.mu.closed = true
	attempts := make([]*attempt, 0, len(w.mu.attempts))
	for _, a := range w.mu.attempts {
		attempts = append(attempts, a)
	}
	peers, conn := w.mu.clients, w.mu.conn
	w.mu.clients = nil
	if w.mu.patience != nil {
		w.mu.patience.Stop()
	}
	w.mu.Unlock()
	if conn != nil {
		conn.Close(reset)
	}
	if reset {
		w.server.Close(true)
	}
	for _, p := range peers {
		if <-p.dialled; p.client != nil {
			p.client.Close(reset)
		}
	}
	for _, a := range attempts {
		a.cancel()
	}
	for _, a := range attempts {
		<-a.over
	}
	if !reset {
		w.server.Close(false)
	}
	w.loops.Wait()
	w.store.Close()
	os.RemoveAll(w.spill())
	close(w.gone)
}

// serve joins one master after the other.
func (w *Batch) serve() error {
	after := int64(0)
	var refusals Refusals
	for {
		addr, epoch, err := w.cfg.Leader(w.ctx, after)
		if err != nil {
			return err
		}
		served, err := w.join(addr, epoch)
		switch {
		case w.ctx.Err() != nil:
			return nil
		case refusals.Final(epoch, err):
			return err
		case served:
			// If it still leads it has taken us for dead, and we begin anew there.
			after = epoch - 1
			w.orphaned(epoch, err)
		default:
			// It may be dying: perhaps another one leads soon.
			select {
			case <-time.After(20 * time.Millisecond):
			case <-w.ctx.Done():
				return nil
			}
		}
	}
}

// join works for a master until it is lost or a newer one leads, and says why it
// does no more; nil: the job is over. served is false if it could not be reached.
func (w *Batch) join(addr string, epoch int64) (served bool, err error) {
	raw, err := w.cfg.Transport.Dial(addr)
	if err != nil {
		return false, fmt.Errorf("worker %s: master: %w", w.cfg.Name, err)
	}
	s := &service{w: w, epoch: epoch, welcome: make(chan struct{}), lost: make(chan struct{})}
	var broken error
	attached := make(chan struct{})
	s.conn = control.NewConn(raw, w.freezer.pause, func(m any) {
		<-attached
		s.receive(m)
	}, func(err error) {
		<-attached
		broken = err
		close(s.lost)
	})
	close(attached)
	defer func() {
		w.mu.Lock()
		if w.mu.conn == s.conn {
			w.mu.conn = nil
		}
		w.mu.Unlock()
		s.conn.Close(true)
	}()
	s.conn.Send(control.Hello{Index: w.cfg.Index, Slots: w.cfg.Slots, DataAddr: w.server.Addr()})
	silence := time.NewTimer(control.HandshakeTimeout)
	defer silence.Stop()
	newer := time.NewTicker(leaderCheck)
	defer newer.Stop()
	for welcome := false; !welcome; {
		select {
		case <-s.welcome:
			welcome = true
		case <-s.lost:
			return false, fmt.Errorf("worker %s: the master hung up", w.cfg.Name)
		case <-silence.C:
			return false, fmt.Errorf("worker %s: the master at %s did not answer within %v", w.cfg.Name, addr, control.HandshakeTimeout)
		case <-newer.C:
			if w.cfg.Newer(epoch) {
				return false, fmt.Errorf("worker %s: %w", w.cfg.Name, errOtherLeads)
			}
		case <-w.ctx.Done():
			return false, nil
		}
	}
	beat := time.NewTicker(w.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-s.lost:
			if s.over {
				return true, nil
			}
			return true, broken
		case <-w.ctx.Done():
			return true, nil
		case <-beat.C:
			w.freezer.pause()
			s.conn.Send(control.Heartbeat{})
		case <-newer.C:
			if w.cfg.Newer(epoch) {
				return true, errOtherLeads
			}
		}
	}
}

var errOtherLeads = errors.New("another master leads")

// leaderCheck is how often a worker looks whether its master still leads.
const leaderCheck = 50 * time.Millisecond

// orphaned: the master is lost, or done. What is kept is kept for a time.
func (w *Batch) orphaned(epoch int64, why error) {
	if why != nil {
		w.cfg.Timeline.Add(masterLost(w.cfg.Name, epoch, why))
	}
	if !w.cfg.Adoption {
		w.cancelAll()
	}
	if !w.cfg.Recovery {
		w.giveUp()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.closed {
		w.mu.patience = time.AfterFunc(w.cfg.Retention, func() {
			w.mu.Lock()
			alone := w.mu.conn == nil && !w.mu.closed
			w.mu.Unlock()
			if alone {
				w.cancelAll()
				w.giveUp()
			}
		})
	}
}

// cancelAll stops all attempts and waits for their ends.
func (w *Batch) cancelAll() {
	w.mu.Lock()
	attempts := make([]*attempt, 0, len(w.mu.attempts))
	for _, a := range w.mu.attempts {
		attempts = append(attempts, a)
	}
	w.mu.Unlock()
	for _, a := range attempts {
		a.cancel()
	}
	for _, a := range attempts {
		<-a.over
	}
}

// giveUp deletes everything of the job.
func (w *Batch) giveUp() {
	w.mu.Lock()
	job := w.mu.job
	clear(w.mu.done)
	w.mu.Unlock()
	if job != nil {
		if err := w.store.ReleaseJob(job.id); err != nil {
			w.trouble(err)
		}
	}
}

// trouble is noted where nobody waits for an answer.
func (w *Batch) trouble(err error) {
	e := timeline.Of(timeline.PartitionLost)
	e.Detail, e.Reason = w.cfg.Name, err.Error()
	w.cfg.Timeline.Add(e)
}

// ticks wakes tasks for what is due by time and tells the master how far they
// are.
func (w *Batch) ticks() {
	t := time.NewTicker(w.cfg.Tick)
	defer t.Stop()
	th := newThroughput(w.cfg.Timeline)
	for {
		select {
		case <-t.C:
		case <-w.ctx.Done():
			return
		}
		w.freezer.pause()
		w.mu.Lock()
		conn := w.mu.conn
		var tasks []*task.Task
		var counts []control.AttemptCount
		for id, a := range w.mu.attempts {
			if a.t != nil {
				tasks = append(tasks, a.t)
				counts = append(counts, control.AttemptCount{Attempt: id, Consumed: a.t.Consumed()})
			}
		}
		w.mu.Unlock()
		for _, x := range tasks {
			x.Tick()
		}
		th.sample(tasks)
		if conn != nil && len(counts) > 0 {
			conn.Send(control.Counts{Attempts: counts})
		}
	}
}

// client returns the data connection to another worker, made on first use.
func (w *Batch) client(name batch.Worker) (*exchange.Client, error) {
	w.mu.Lock()
	addr, ok := w.mu.addrs[name]
	if !ok || w.mu.closed {
		w.mu.Unlock()
		return nil, &exchange.TransferError{Worker: string(name), Err: fmt.Errorf("no address of %s", name)}
	}
	old := w.mu.clients[addr]
	if old != nil && old.usable() {
		w.mu.Unlock()
		<-old.dialled
		return old.client, old.err
	}
	if old != nil && old.client != nil {
		w.loops.Go(func() { old.client.Close(false) })
	}
	p := &peer{dialled: make(chan struct{})}
	w.mu.clients[addr] = p
	w.mu.Unlock()
	conn, err := w.cfg.Transport.Dial(addr)
	if err != nil {
		p.err = &exchange.TransferError{Worker: string(name), Err: fmt.Errorf("%s: %w", name, err)}
	} else {
		p.client = exchange.NewClient(w.counter.Count(conn), string(name), w.freezer.pause)
	}
	close(p.dialled)
	return p.client, p.err
}
