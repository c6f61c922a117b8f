package master

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// worker is a worker as its master knows it. All but the connection and the two
// fields after it belong to the loop.
type worker struct {
	conn  *control.Conn
	heard atomic.Int64  // when the last message came, on the cluster's clock
	mail  chan struct{} // holds a token for each of its messages in the mailbox

	id    scheduling.Worker // empty: it has yet to say hello
	index int
	came  int    // the index that it asked for
	addr  string // where it serves partitions
	self  string // its identity, of batch jobs
	slots int
	lost  bool
}

// members is told, in the loop, what becomes of workers.
type members interface {
	workerJoined(w *worker)
	workerMessage(w *worker, m any)  // of one that has joined and is not lost
	workerLost(w *worker, err error) // err: how, without its name
}

// registry is who works for a master: it listens, gives each worker that says
// hello its index, and loses those whose connection ends or that are silent.
type registry struct {
	registryConfig
	listener net.Listener
	closing  chan struct{}
	work     sync.WaitGroup

	open struct {
		sync.Mutex
		workers map[*worker]bool // whose connection is open, also before they say hello; nil: closing
	}

	// Of the loop.
	joined map[scheduling.Worker]*worker // and not lost
	taken  map[int]bool                  // indices, used once because results and addresses go by them
	shut   bool                          // nobody joins any more
}

// registryConfig is what a registry is made for.
type registryConfig struct {
	loop      *loop
	members   members
	transport exchange.Network
	timeline  *timeline.Log
	now       func() time.Duration // on the cluster's clock
	epoch     int64
	silence   time.Duration // that a worker may be silent for
}

// mailLimit is how many messages of one worker may wait in the mailbox. Above, its
// connection is not read, and the worker keeps them.
const mailLimit = 4096

// newRegistry opens the port that workers connect to; start lets them in.
func newRegistry(c registryConfig) (*registry, error) {
	l, err := c.transport.Listen()
	if err != nil {
		return nil, fmt.Errorf("master: listen for workers: %w", err)
	}
	r := &registry{
		registryConfig: c, listener: l, closing: make(chan struct{}),
		joined: map[scheduling.Worker]*worker{}, taken: map[int]bool{},
	}
	r.open.workers = map[*worker]bool{}
	return r, nil
}

func (r *registry) start() {
	r.work.Go(r.accept)
	r.work.Go(r.watchSilence)
}

func (r *registry) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.welcome(c)
	}
}

// welcome starts the connection of a worker that has yet to say hello.
func (r *registry) welcome(c net.Conn) {
	w := &worker{mail: make(chan struct{}, mailLimit)}
	w.heard.Store(int64(r.now()))
	ready := make(chan struct{})
	w.conn = control.NewConn(c, func() {}, func(msg any) {
		// Stamped here and not in the loop: a master that is behind with its work
		// must not take its workers for silent.
		w.heard.Store(int64(r.now()))
		<-ready
		select {
		case w.mail <- struct{}{}:
		case <-r.loop.done:
			return
		}
		r.loop.post(func() {
			<-w.mail
			r.message(w, msg)
		})
	}, func(err error) {
		<-ready
		r.open.Lock()
		delete(r.open.workers, w)
		r.open.Unlock()
		r.loop.post(func() { r.lose(w, err) })
	})
	r.open.Lock()
	late := r.open.workers == nil
	if !late {
		r.open.workers[w] = true
	}
	r.open.Unlock()
	close(ready)
	if late {
		w.conn.Close(true)
	}
}

func (r *registry) message(w *worker, msg any) {
	h, hello := msg.(control.Hello)
	switch {
	case w.lost:
		// What a lost worker still says does not count.
	case hello && w.id == "" && !r.shut:
		r.join(w, h)
	case !hello && w.id != "":
		r.members.workerMessage(w, msg)
	}
}

// join gives a worker the index that it asks for if that is free, else the
// lowest one that is.
func (r *registry) join(w *worker, h control.Hello) {
	w.index, w.came = h.Index, h.Index
	if r.taken[w.index] || w.index < 0 {
		for w.index = 0; r.taken[w.index]; w.index++ {
		}
	}
	r.taken[w.index] = true
	w.id, w.addr, w.self, w.slots = workerID(w.index), h.DataAddr, h.Identity, h.Slots
	r.joined[w.id] = w
	w.conn.Send(control.Welcome{Epoch: r.epoch, Worker: w.index})
	r.members.workerJoined(w)
}

func workerID(index int) scheduling.Worker {
	return scheduling.Worker(fmt.Sprintf("worker-%d", index))
}

// lose handles the end of a connection, or silence.
func (r *registry) lose(w *worker, err error) {
	if w.lost {
		return
	}
	w.lost = true
	r.work.Go(func() { w.conn.Close(true) }) // a worker that comes back finds the door shut
	if w.id == "" {
		return
	}
	delete(r.joined, w.id)
	e := timeline.Of(timeline.WorkerLost)
	e.Detail, e.Reason = string(w.id), err.Error()
	r.timeline.Add(e)
	r.members.workerLost(w, err)
}

// watchSilence loses workers that have been silent for too long, also those that
// never say hello.
func (r *registry) watchSilence() {
	t := time.NewTicker(max(r.silence/10, time.Millisecond))
	defer t.Stop()
	looked := make(chan struct{}, 1)
	for {
		select {
		case <-t.C:
		case <-r.closing:
			return
		}
		r.loop.post(func() {
			r.loseSilent()
			looked <- struct{}{}
		})
		select { // one look at a time waits in the mailbox
		case <-looked:
		case <-r.closing:
			return
		}
	}
}

func (r *registry) loseSilent() {
	r.open.Lock()
	open := slices.Collect(maps.Keys(r.open.workers))
	r.open.Unlock()
	slices.SortFunc(open, func(a, b *worker) int { return cmp.Compare(a.index, b.index) })
	for _, w := range open {
		silent := r.now() - time.Duration(w.heard.Load())
		if silent > r.silence && len(w.mail) == 0 {
			r.lose(w, fmt.Errorf("no heartbeat for %v (%s is %v)", silent.Round(time.Millisecond), options.HeartbeatTimeout.Key(), r.silence))
		}
	}
}

// inOrder are the workers that have joined, by index.
func (r *registry) inOrder() []*worker {
	return slices.SortedFunc(maps.Values(r.joined), func(a, b *worker) int { return cmp.Compare(a.index, b.index) })
}

// send does nothing for a worker that is gone: its loss is an event of its own.
func (r *registry) send(id scheduling.Worker, msg any) {
	if w := r.joined[id]; w != nil {
		w.conn.Send(msg)
	}
}

// close hangs up, with reset as the death of the process would, and waits until
// nothing of the registry is left. The loop must have ended.
func (r *registry) close(reset bool) {
	r.open.Lock()
	open := r.open.workers
	first := open != nil
	r.open.workers = nil
	r.open.Unlock()
	if first {
		close(r.closing)
		r.listener.Close()
	}
	for w := range open {
		w.conn.Close(reset)
	}
	r.work.Wait()
}

func (r *registry) addr() string { return r.listener.Addr().String() }

func textError(s string) error {
	if s == "" {
		return nil
	}
	return errors.New(s)
}
