package worker

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
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

// Worker is one worker.
type Worker struct {
	cfg      Config
	global   *buffer.Global
	recovery *buffer.Local
	filling  chan struct{}
	server   *exchange.Server
	writer   *inflight.Writer
	counter  exchange.Counter
	freezer  freezer
	conn     *control.Conn
	ready    chan struct{} // closed at Welcome
	gone     chan struct{} // closed when the worker has ended

	uncharged atomic.Bool
	killed    atomic.Bool
	ending    atomic.Bool
	loops     sync.WaitGroup
	quit      chan struct{}

	mu struct {
		sync.Mutex
		epoch   int64
		index   int
		tasks   map[task.ID]*entry
		clients map[int]*peer
		addrs   map[int]string
		closed  bool
		cause   error // why it ended
	}
}

// peer is the data connection to another worker.
type peer struct {
	dialled chan struct{} // closed when client or err is there
	client  *exchange.Client
	err     error
}

// ErrStaleMaster means that a master's leadership is older than one that the
// worker has seen.
var ErrStaleMaster = errors.New("the master's leadership is over")

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
	w := &Worker{cfg: cfg, ready: make(chan struct{}), gone: make(chan struct{}), quit: make(chan struct{}),
		filling: make(chan struct{}, max(1, (goruntime.GOMAXPROCS(0)+1)/2)),
	}
	w.mu.tasks, w.mu.clients, w.mu.addrs = map[task.ID]*entry{}, map[int]*peer{}, map[int]string{}
	w.freezer.init()
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	w.global = buffer.NewGlobal(cfg.Segment, int(cfg.Memory/int64(cfg.Segment)))
	var err error
	if w.recovery, err = w.global.NewLocal("recovered data", 0, w.global.Total()/2, 0, nil); err != nil {
		return nil, err
	}
	l, err := cfg.Transport.Listen()
	if err != nil {
		os.RemoveAll(cfg.Dir)
		return nil, fmt.Errorf("worker %s: %w", cfg.Name, err)
	}
	w.server = exchange.NewServer(l, &w.counter, w.freezer.pause)
	w.writer = inflight.NewWriter(cfg.Name, cfg.PerFile, 2)
	conn, err := cfg.Transport.Dial(cfg.Master)
	if err != nil {
		w.shutdown(false)
		return nil, fmt.Errorf("worker %s: master: %w", cfg.Name, err)
	}
	attached := make(chan struct{}) // the master may hang up before NewConn returns
	w.conn = control.NewConn(conn, w.freezer.pause, func(m any) {
		<-attached
		w.receive(m)
	}, func(err error) {
		<-attached
		if w.Load(false).Tasks > 0 { // else the job may be over
			cfg.Timeline.Add(masterLost(cfg.Name, w.Epoch(), err))
		}
		w.because(err)
		go w.end(true)
	})
	w.conn.Send(control.Hello{Index: cfg.Index, Slots: cfg.Slots, DataAddr: w.server.Addr()})
	w.loops.Go(w.heartbeats)
	w.loops.Go(w.ticks)
	close(attached)
	silence := time.NewTimer(control.HandshakeTimeout)
	defer silence.Stop()
	select {
	case <-w.ready:
		return w, nil
	case <-silence.C:
		w.Kill()
		return nil, fmt.Errorf("worker %s: the master at %s did not answer within %v", cfg.Name, cfg.Master, control.HandshakeTimeout)
	case <-w.gone:
		return nil, fmt.Errorf("worker %s: the master did not let it in: %w", cfg.Name, w.Cause())
	}
}

// masterLost says that a worker has noticed the loss of the master of an epoch.
func masterLost(worker string, epoch int64, why error) timeline.Event {
	e := timeline.Of(timeline.MasterLost)
	e.Detail, e.Reason = fmt.Sprintf("%s epoch=%d", worker, epoch), why.Error()
	return e
}

// because remembers the first reason for the end.
func (w *Worker) because(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.cause == nil {
		w.mu.cause = err
	}
}

// Cause tells why the worker has ended by itself, or nil.
func (w *Worker) Cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.cause
}

// Epoch is the newest leadership that the worker has seen.
func (w *Worker) Epoch() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.epoch
}

// Index is the worker's number at the master.
func (w *Worker) Index() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.index
}

// Gone is closed when the worker has ended and released everything.
func (w *Worker) Gone() <-chan struct{} { return w.gone }

// Kill ends the worker as if its process had died, and waits.
func (w *Worker) Kill() {
	w.killed.Store(true)
	w.end(true)
	<-w.gone
}

// Stop ends the worker in order, and waits.
func (w *Worker) Stop() {
	w.end(false)
	<-w.gone
}

// Freeze stops everything that the worker does for a time, as SIGSTOP would.
func (w *Worker) Freeze(d time.Duration) { w.freezer.freeze(d) }

// NetBytes is how many bytes have passed the worker's data connections, each
// counted where it was sent.
func (w *Worker) NetBytes() int64 { return w.counter.Sent.Load() }

// Memory tells how the network memory is used.
func (w *Worker) Memory() buffer.Stats { return w.global.Stats() }

func (w *Worker) end(reset bool) {
	if w.ending.Swap(true) {
		return
	}
	w.killed.Store(true) // nothing is reported from here
	w.freezer.thaw()
	close(w.quit)
	w.conn.Close(reset)
	w.shutdown(reset)
	close(w.gone)
}

// shutdown releases everything but the control connection.
func (w *Worker) shutdown(reset bool) {
	w.mu.Lock()
	w.mu.closed = true
	entries := make([]*entry, 0, len(w.mu.tasks))
	for _, e := range w.mu.tasks {
		entries = append(entries, e)
	}
	peers := w.mu.clients
	w.mu.clients = nil
	w.mu.Unlock()
	hangUp := func() {
		for _, p := range peers {
			if <-p.dialled; p.client != nil {
				p.client.Close(reset)
			}
		}
	}
	if reset {
		// The sockets break before anything else happens.
		w.server.Close(true)
		hangUp()
	}
	for _, e := range entries {
		e.t.Cancel()
	}
	for _, e := range entries {
		<-e.t.Done()
		e.t.Release()
	}
	w.writer.Close()
	if !reset {
		w.server.Close(false)
		hangUp()
	}
	w.loops.Wait()
	w.recovery.Close()
	os.RemoveAll(w.cfg.Dir)
}

func (w *Worker) heartbeats() {
	t := time.NewTicker(w.cfg.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.freezer.pause()
			w.conn.Send(control.Heartbeat{})
		case <-w.quit:
			return
		}
	}
}

// ticks wakes tasks for what is due by time: a few wake-ups a second each.
func (w *Worker) ticks() {
	t := time.NewTicker(w.cfg.Tick)
	defer t.Stop()
	th := newThroughput(w.cfg.Timeline)
	for {
		select {
		case <-t.C:
			w.freezer.pause()
			w.mu.Lock()
			tasks := make([]*task.Task, 0, len(w.mu.tasks))
			for _, e := range w.mu.tasks {
				if !e.over {
					tasks = append(tasks, e.t)
				}
			}
			w.mu.Unlock()
			for _, x := range tasks {
				x.Tick()
			}
			th.sample(tasks)
		case <-w.quit:
			return
		}
	}
}

// Load is a look at counters that no event carries.
type Load struct {
	Tasks       int
	SinkRecords int64
	QueuedBytes int64
	Drained     int64 // restored in-flight bytes that were processed
	Restored    int64
}

// Load sums over the tasks that are not over. A worker that is ending runs none
// any more, however long they take to stop.
func (w *Worker) Load(queued bool) (l Load) {
	ending := w.ending.Load()
	w.mu.Lock()
	entries := make([]*entry, 0, len(w.mu.tasks))
	for _, e := range w.mu.tasks {
		entries = append(entries, e)
	}
	w.mu.Unlock()
	for _, e := range entries {
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

var errClosed = errors.New("worker is shutting down")

// client returns the data connection to another worker, made on first use. Who
// dials does so outside of the lock: a peer that is frozen lets it wait.
func (w *Worker) client(index int) (*exchange.Client, error) {
	w.mu.Lock()
	if w.mu.closed {
		w.mu.Unlock()
		return nil, errClosed
	}
	old := w.mu.clients[index]
	if old != nil && old.usable() {
		w.mu.Unlock()
		<-old.dialled
		return old.client, old.err
	}
	addr, ok := w.mu.addrs[index]
	if !ok {
		w.mu.Unlock()
		return nil, fmt.Errorf("no address of worker %d", index)
	}
	if old != nil && old.client != nil {
		w.loops.Go(func() { old.client.Close(false) }) // it has failed; its goroutines are ending
	}
	p := &peer{dialled: make(chan struct{})}
	w.mu.clients[index] = p
	w.mu.Unlock()
	conn, err := w.cfg.Transport.Dial(addr)
	if err != nil {
		p.err = fmt.Errorf("worker %d: %w", index, err)
	} else {
		p.client = exchange.NewClient(w.counter.Count(conn), fmt.Sprint(index), w.freezer.pause)
	}
	close(p.dialled)
	return p.client, p.err
}

// usable tells whether a connection is there or on its way.
func (p *peer) usable() bool {
	select {
	case <-p.dialled:
		return p.err == nil && p.client.Err() == nil
	default:
		return true
	}
}
