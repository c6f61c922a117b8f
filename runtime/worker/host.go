package worker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// host is what a worker of either kind has: network memory, a data server and
// connections to others, the loop that wakes tasks, and one way to end.
type host struct {
	name     string
	kind     kind
	timeline *timeline.Log
	global   *buffer.Global
	server   *exchange.Server
	network  exchange.Network
	peers    peers
	counter  exchange.Counter
	freezer  freezer
	fence    fence
	ctx      context.Context // over when the worker begins to end
	cancel   context.CancelFunc
	gone     chan struct{} // closed when it has ended
	loops    sync.WaitGroup
	killed   atomic.Bool // nothing is reported any more
	ending   atomic.Bool
	cause    struct {
		sync.Mutex
		err error
	}
}

// kind is what the kinds of workers do differently.
type kind interface {
	// welcome takes the master's answer to hello, the first one.
	welcome(s *service, m control.Welcome)
	// carryOut does what the master wants. It must not wait for a task.
	carryOut(s *service, m control.Command)

	// leave breaks the control connection; from here no task comes.
	leave(reset bool)
	// stopTasks ends all tasks, and waits.
	stopTasks()
	// cleanUp removes what tasks have used.
	cleanUp()
}

// open makes network memory and data server.
func (h *host) open(k kind, name string, memory int64, segment int, network exchange.Network, log *timeline.Log) error {
	h.kind, h.name, h.network, h.timeline = k, name, network, log
	h.gone = make(chan struct{})
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.freezer.init()
	h.global = buffer.NewGlobal(segment, int(memory/int64(segment)))
	h.peers = peers{network: network, counter: &h.counter, pause: h.freezer.pause}
	l, err := network.Listen()
	if err != nil {
		h.cancel()
		return fmt.Errorf("worker %s: %w", name, err)
	}
	h.server = exchange.NewServer(l, &h.counter, h.freezer.pause)
	return nil
}

// because remembers the first reason for the end.
func (h *host) because(err error) {
	h.cause.Lock()
	defer h.cause.Unlock()
	if h.cause.err == nil {
		h.cause.err = err
	}
}

// Cause tells why the worker has ended by itself, or nil.
func (h *host) Cause() error {
	h.cause.Lock()
	defer h.cause.Unlock()
	return h.cause.err
}

// Gone is closed when the worker has ended and released everything.
func (h *host) Gone() <-chan struct{} { return h.gone }

// Kill ends the worker as if its process had died, and waits.
func (h *host) Kill() {
	h.killed.Store(true)
	h.end(true)
	<-h.gone
}

// Stop ends the worker in order, and waits.
func (h *host) Stop() {
	h.end(false)
	<-h.gone
}

// Freeze stops everything that the worker does for a time, as SIGSTOP would.
func (h *host) Freeze(d time.Duration) { h.freezer.freeze(d) }

// NetBytes is how many bytes have passed the worker's data connections, each
// counted where it was sent.
func (h *host) NetBytes() int64 { return h.counter.Sent.Load() }

// Memory tells how the network memory is used.
func (h *host) Memory() buffer.Stats { return h.global.Stats() }

// end ends the worker once. A death breaks the sockets before anything else
// happens; an end in order does so when the tasks have ended.
func (h *host) end(reset bool) {
	if h.ending.Swap(true) {
		return
	}
	h.killed.Store(true)
	h.freezer.thaw()
	h.cancel()
	h.kind.leave(reset)
	hangUp := func() {
		h.server.Close(reset)
		h.peers.close(reset)
	}
	if reset {
		hangUp()
	}
	h.kind.stopTasks()
	if !reset {
		hangUp()
	}
	h.loops.Wait()
	h.kind.cleanUp()
	close(h.gone)
}

// fail ends the worker for a reason, without waiting for it.
func (h *host) fail(err error) {
	h.because(err)
	go h.end(true)
}

// ticks wakes tasks for what is due by time: a few wake-ups a second each.
func (h *host) ticks(every time.Duration, running func() []*task.Task) {
	t := time.NewTicker(every)
	defer t.Stop()
	th := newThroughput(h.timeline)
	for {
		select {
		case <-t.C:
			h.freezer.pause()
			tasks := running()
			for _, x := range tasks {
				x.Tick()
			}
			th.sample(tasks)
		case <-h.ctx.Done():
			return
		}
	}
}

// Load is a look at counters that no event carries.
type Load struct {
	Tasks       int // none at a worker that is ending, however long they take to stop
	SinkRecords int64
	QueuedBytes int64
	Drained     int64 // restored in-flight bytes that were processed
	Restored    int64
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
