package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/storage"
	"benchrun/runtime/timeline"
)

// Roles of the processes of a cluster.
const (
	RoleMaster = "master"
	RoleWorker = "worker"
)

// NodeProtocol is the version of the request on a process's stdin.
const NodeProtocol = 1

// nodeRequest is the first line of a process's stdin. The pipe then stays
// open; its end means that the supervisor is gone.
type nodeRequest struct {
	Protocol   int            `json:"protocol"`
	Name       string         `json:"name"`
	Index      int            `json:"index"`
	Secret     []byte         `json:"secret"`
	Supervisor string         `json:"supervisor"` // address
	Cluster    string         `json:"cluster"`    // id; see submission
	State      string         `json:"state"`      // folder that masters and workers share
	Dir        string         `json:"dir"`        // of a worker
	Workers    int            `json:"workers"`    // that a master may expect
	Origin     *time.Duration `json:"origin,omitempty"`
	Fault      string         `json:"fault,omitempty"` // of storage, in force now
	FaultFor   time.Duration  `json:"fault_for,omitempty"`
}

// Exit statuses of a process.
const (
	nodeOK       = 0
	nodeFailed   = 1
	nodeOrphaned = 3 // its supervisor has died
	nodeDeposed  = 4 // another master leads
	nodeProtocol = 5
)

// flushLimit bounds the last words of a process.
const flushLimit = 2 * time.Second

// Node is a process of a cluster: it does what the request on in asks for and
// returns its exit status. The process is the supervisor's: at the end of in it
// exits at once, whatever it is doing.
func Node(ctx context.Context, role string, in io.Reader, stderr io.Writer) int {
	reader := bufio.NewReader(in)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		fmt.Fprintf(stderr, "%s: no request on stdin; it is started by a run: %v\n", role, err)
		return nodeProtocol
	}
	var r nodeRequest
	if err := json.Unmarshal(line, &r); err != nil {
		fmt.Fprintf(stderr, "%s: the request is no JSON: %v\n", role, err)
		return nodeProtocol
	}
	if r.Protocol != NodeProtocol {
		fmt.Fprintf(stderr, "%s: protocol %d is asked for; this build speaks %d\n", role, r.Protocol, NodeProtocol)
		return nodeProtocol
	}
	go func() { // ends with the process
		io.Copy(io.Discard, reader)
		os.Exit(nodeOrphaned)
	}()
	n, err := attach(ctx, r)
	if err == nil {
		switch role {
		case RoleMaster:
			err = n.runMaster()
		case RoleWorker:
			err = n.runWorker()
		default:
			err = fmt.Errorf("unknown role %q", role)
		}
		n.detach()
	}
	var lost *LostLeadershipError
	switch {
	case err == nil:
		return nodeOK
	case errors.As(err, &lost):
		fmt.Fprintf(stderr, "%s: %v\n", r.Name, err)
		return nodeDeposed
	}
	hint := ""
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		hint = "; a process of a cluster holds a file for each connection and partition that it serves: raise the limit (ulimit -n)"
	}
	fmt.Fprintf(stderr, "%s: %v%s\n", r.Name, err, hint)
	return nodeFailed
}

// node is this process as a part of a cluster.
type node struct {
	nodeRequest
	ctx     context.Context // ends when it is to leave
	leave   context.CancelFunc
	network exchange.Network
	conn    *control.Conn
	log     *timeline.Log
	store   *storage.Faulty
	pump    pump

	mu struct {
		sync.Mutex
		answer func(what any, tell func(control.Told)) bool // false: not understood
		clock  chan time.Duration
	}
}

// attach connects to the supervisor.
func attach(ctx context.Context, r nodeRequest) (*node, error) {
	n := &node{nodeRequest: r, network: control.Secure(exchange.Loopback{}, r.Secret, buildID())}
	n.ctx, n.leave = context.WithCancel(ctx)
	c, err := n.network.Dial(n.ctx, r.Supervisor)
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	ready := make(chan struct{})
	n.mu.clock = make(chan time.Duration, 1)
	n.conn = control.NewConn(c, func() {}, func(m any) {
		<-ready
		n.receive(m)
	}, func(error) {
		<-ready
		n.leave() // its supervisor is gone, or has hung up
	})
	close(ready)
	origin, bound, err := n.origin()
	if err != nil {
		n.conn.Close(false)
		return nil, fmt.Errorf("supervisor's clock: %w", err)
	}
	n.log = timeline.NewAt(origin)
	n.pump.start(n.log, n.conn)
	n.conn.Send(control.Attach{Name: r.Name, Bound: bound})
	return n, nil
}

func (n *node) origin() (origin time.Time, bound time.Duration, err error) {
	if n.Origin != nil {
		if at, ok := originFromSystemClock(*n.Origin); ok {
			return at, 0, nil
		}
	}
	var seq uint64
	return estimateOrigin(func() (time.Duration, error) {
		seq++
		n.conn.Send(control.Clock{Seq: seq})
		select {
		case at := <-n.mu.clock:
			return at, nil
		case <-n.ctx.Done():
			return 0, errors.New("the supervisor hung up")
		}
	})
}

// openStorage opens the checkpoint storage, with the fault that is in force.
func (n *node) openStorage(url string) error {
	store, err := storage.Open(url)
	if err != nil {
		return fmt.Errorf("checkpoint storage: %w", err)
	}
	n.store = storage.NewFaulty(store)
	if n.Fault != "" {
		return n.breakStorage(control.BreakStorage{Kind: n.Fault, For: n.FaultFor})
	}
	return nil
}

func (n *node) breakStorage(x control.BreakStorage) error {
	k, err := storage.ParseFaultKind(x.Kind)
	if err == nil {
		n.store.Set(k, x.For)
	}
	return err
}

// answers says who answers requests from now on.
func (n *node) answers(fn func(what any, tell func(control.Told)) bool) {
	n.mu.Lock()
	n.mu.answer = fn
	n.mu.Unlock()
}

func (n *node) receive(m any) {
	switch m := m.(type) {
	case control.Clock:
		select {
		case n.mu.clock <- m.At:
		default:
		}
	case control.Ask:
		n.asked(m)
	}
}

func (n *node) asked(m control.Ask) {
	tell := func(t control.Told) {
		t.Seq = m.Seq
		n.pump.flush() // what happened before the answer is known before it
		n.conn.Send(t)
	}
	switch x := m.What.(type) {
	case control.Leave:
		n.leave()
		return
	case control.BreakStorage:
		tell(control.Told{At: none, Error: text(n.breakStorage(x))})
		return
	}
	n.mu.Lock()
	answer := n.mu.answer
	n.mu.Unlock()
	if answer == nil || !answer(m.What, tell) {
		tell(control.Told{At: none, Error: fmt.Sprintf("%s cannot answer %T", n.Name, m.What)})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// detach says the last words.
func (n *node) detach() {
	n.pump.stop()
	n.conn.Flush(flushLimit)
	n.conn.Close(false)
	n.leave()
}

// pump sends the events of this process's log to the supervisor, in order.
type pump struct {
	log    *timeline.Log
	conn   *control.Conn
	cancel context.CancelFunc
	done   chan struct{}

	mu            sync.Mutex
	sent, dropped int
}

func (p *pump) start(log *timeline.Log, conn *control.Conn) {
	p.log, p.conn, p.done = log, conn, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		for {
			p.mu.Lock()
			sent := p.sent
			p.mu.Unlock()
			if _, err := log.Wait(ctx, sent); err != nil {
				return
			}
			p.flush()
		}
	}()
}

// flush sends what has happened so far.
func (p *pump) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	events, dropped := p.log.From(p.sent), p.log.Dropped()
	if len(events) == 0 && dropped == p.dropped {
		return
	}
	p.conn.Send(control.Events{Events: events, Dropped: dropped - p.dropped})
	p.sent, p.dropped = p.sent+len(events), dropped
}

func (p *pump) stop() {
	p.cancel()
	<-p.done
	p.flush()
}

// leader is a worker.Leader.
func (n *node) leader(ctx context.Context, after int64) (addr string, epoch int64, err error) {
	l, err := awaitLeader(ctx, n.State, after)
	return l.Addr, l.Epoch, err
}

// runWorker works for whoever leads until it has to leave.
func (n *node) runWorker() error {
	sub, values, err := readSubmission(n.State, n.Cluster)
	if err != nil {
		return err
	}
	if _, err := plant(sub.Delays); err != nil {
		return err
	}
	if sub.Batch {
		return n.runBatchWorker(sub, values)
	}
	return n.runStreamingWorker(sub, values)
}
