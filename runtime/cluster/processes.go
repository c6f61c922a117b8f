package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/master"
	"benchrun/runtime/storage"
)

// Executable is what the processes of a cluster run. The role is appended to
// the arguments; it must call Node.
type Executable struct {
	Path string
	Args []string
	Env  []string // nil: this process's
}

// Processes is a cluster whose master and workers are processes of their own.
// This process supervises them: it starts and ends them, gathers their events,
// and asks them what an embedded cluster knows by itself.
type Processes struct {
	cfg      Config
	exe      Executable
	out      io.Writer // their output
	state    string    // folder of the master's state
	sub      *submission
	secret   []byte
	listener net.Listener
	spawner  *spawner
	done     chan struct{}
	work     sync.WaitGroup // accepting, watching, timers
	closing  sync.Once

	mu struct {
		sync.Mutex
		processes map[string]*process // all that were ever started
		workers   []*process          // live, in the order in which they were started
		master    *process            // started last
		leader    *process            // nil: nobody leads
		changed   chan struct{}       // closed and replaced when leader changes
		epoch     int64
		made      [2]int // masters, workers
		draining  bool
		ended     bool
		err       error
		closed    bool
		timers    map[*time.Timer]bool
		sunk, net int64  // of workers that are gone
		past      ledger // of masters of a batch job that are gone
		consumed  map[string]int64
		fault     string
		faultEnd  time.Time
		conns     map[*control.Conn]bool
	}
}

// startLimit bounds how long a process may take until it answers.
const startLimit = 20 * time.Second

// StartProcesses brings up master and workers as processes and submits the
// job. What they print goes to out.
func StartProcesses(ctx context.Context, cfg Config, exe Executable, out io.Writer) (*Processes, error) {
	g, err := chained(cfg.Job, cfg.Values, cfg.Batch)
	if err == nil && cfg.Batch {
		err = errors.Join(recoverable(g, cfg.Values), writable(g, cfg))
	}
	if err != nil {
		return nil, err
	}
	if _, err := originOf(cfg.Values); err != nil {
		return nil, err
	}
	if strings.HasPrefix(cfg.Storage, "mem://") {
		return nil, fmt.Errorf("%w: storage %s is the memory of one process; write a file:// URL, or leave cluster.storage empty", ErrConfig, cfg.Storage)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	c := &Processes{
		cfg: cfg, exe: exe, out: &serialWriter{w: out}, state: filepath.Join(dir, "master"), secret: control.NewSecret(), done: make(chan struct{}),
	}
	c.mu.processes, c.mu.timers, c.mu.conns = map[string]*process{}, map[*time.Timer]bool{}, map[*control.Conn]bool{}
	c.mu.changed = make(chan struct{})
	if cfg.Storage == "" {
		cfg.Storage = filepath.Join(dir, "checkpoints")
	}
	if _, err := storage.Open(cfg.Storage); err != nil {
		return nil, fmt.Errorf("checkpoint storage: %w", err)
	}
	c.sub = &submission{
		Format: submissionFormat, ID: rand.Text(), Job: cfg.Job, Options: cfg.Values.Map(), Slots: cfg.Slots, NetworkMemory: cfg.NetworkMemory,
		BufferSize: cfg.BufferSize, Network: cfg.Network, Storage: cfg.Storage, OutputDir: dir, Seed: cfg.Seed, Keep: cfg.Keep, Delays: cfg.Delays,
		Batch: cfg.Batch, FromScratch: cfg.FromScratch,
	}
	if err := os.MkdirAll(c.state, 0o755); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := (resultFile{c.state}).forget(); err != nil {
		return nil, err
	}
	if err := c.sub.write(c.state); err != nil {
		return nil, err
	}
	if c.listener, err = control.Secure(exchange.Loopback{}, c.secret, buildID()).Listen(); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	c.spawner = newSpawner()
	c.work.Go(c.accept)
	if err := c.bringUp(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// bringUp starts all processes side by side and waits until they answer.
func (c *Processes) bringUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the cluster was not up within %v", startLimit))
	defer cancel()
	started := make([]*process, 0, c.cfg.Workers+1)
	m, err := c.startMaster()
	if err != nil {
		return err
	}
	started = append(started, m)
	for range c.cfg.Workers {
		w, err := c.startWorker("")
		if err != nil {
			return err
		}
		started = append(started, w)
	}
	for _, p := range started {
		select {
		case <-p.attached:
		case <-p.exited:
			return p.why()
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer: %w", p.name, context.Cause(ctx))
		}
	}
	_, err = c.awaitLeader(ctx)
	return err
}

func (c *Processes) request(name string, index int) nodeRequest {
	r := nodeRequest{
		Protocol: NodeProtocol, Name: name, Index: index, Secret: c.secret, Supervisor: c.listener.Addr().String(), Cluster: c.sub.ID, State: c.state,
	}
	if at, ok := originOnSystemClock(c.cfg.Timeline); ok {
		r.Origin = &at
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := time.Until(c.mu.faultEnd); left > 0 {
		r.Fault, r.FaultFor = c.mu.fault, left
	}
	r.Workers = len(c.mu.workers)
	return r
}

func (c *Processes) startMaster() (*process, error) {
	c.mu.Lock()
	n := c.mu.made[0]
	c.mu.made[0]++
	c.mu.Unlock()
	p := newProcess(RoleMaster, fmt.Sprintf("master-%d", n), n)
	r := c.request(p.name, n)
	if n == 0 {
		r.Workers = c.cfg.Workers
	}
	return p, c.start(p, r)
}

// startWorker starts one, on the folder of one that is gone if that is named.
func (c *Processes) startWorker(dir string) (*process, error) {
	c.mu.Lock()
	n := c.mu.made[1]
	c.mu.made[1]++
	c.mu.Unlock()
	p := newProcess(RoleWorker, fmt.Sprintf("worker-%d", n), n)
	if p.dir = dir; dir == "" {
		p.dir = filepath.Join(c.cfg.Dir, p.name)
	}
	r := c.request(p.name, n)
	r.Dir = p.dir
	return p, c.start(p, r)
}

func newProcess(role, name string, index int) *process {
	p := &process{role: role, name: name, index: index, attached: make(chan struct{}), exited: make(chan struct{})}
	p.mu.asks = map[uint64]chan control.Told{}
	return p
}

var errClusterClosed = errors.New("the cluster is closed")

func (c *Processes) start(p *process, r nodeRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock() // Close must see all that were started
	if c.mu.closed {
		return errClusterClosed
	}
	if err := p.start(c.spawner, c.exe, r, c.out); err != nil {
		if p.cmd != nil && p.cmd.Process != nil {
			p.kill()
		}
		return err
	}
	c.mu.processes[p.name] = p
	if p.role == RoleMaster {
		c.mu.master = p
	} else {
		c.mu.workers = append(c.mu.workers, p)
	}
	c.work.Go(func() { c.watch(p) })
	return nil
}

// watch notices the end of a process.
func (c *Processes) watch(p *process) {
	<-p.exited
	p.lost()
	p.mu.Lock()
	expected := p.mu.expected
	p.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeWorker(p)
	if c.cfg.Batch && p.role == RoleWorker && c.mu.leader != nil {
		c.mu.leader.say(control.WorkerGone{Index: p.index})
	}
	if c.mu.leader == p {
		c.setLeader(nil)
	}
	if expected || c.mu.closed {
		return
	}
	c.say("%v", p.why())
	if p.role == RoleMaster && c.mu.master == p {
		c.end(p.why())
	}
}

// removeWorker, setLeader and end need the lock.

func (c *Processes) removeWorker(p *process) {
	for i, w := range c.mu.workers {
		if w == p {
			c.mu.workers = append(c.mu.workers[:i:i], c.mu.workers[i+1:]...)
			l := p.lastLoad()
			c.mu.sunk += l.SinkRecords
			c.mu.net += l.NetBytes
			return
		}
	}
}

func (c *Processes) setLeader(p *process) {
	c.mu.leader = p
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

func (c *Processes) end(err error) {
	if !c.mu.ended {
		c.mu.ended, c.mu.err = true, err
		close(c.done)
	}
}

func (c *Processes) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.attach(conn)
	}
}

// attach serves a connection that has proven to be of this cluster.
func (c *Processes) attach(raw net.Conn) {
	var p *process // of this connection's reader
	var x *control.Conn
	ready := make(chan struct{})
	x = control.NewConn(raw, func() {}, func(m any) {
		<-ready
		if a, ok := m.(control.Attach); ok && p == nil {
			p = c.bind(a, x)
		} else if q, ok := m.(control.Clock); ok {
			q.At = c.cfg.Timeline.Now()
			x.Send(q)
		} else if p != nil {
			c.message(p, m)
		}
	}, func(error) {
		<-ready
		if p != nil {
			p.lost()
		}
	})
	c.mu.Lock()
	closed := c.mu.closed
	c.mu.conns[x] = true
	c.mu.Unlock()
	close(ready)
	if closed {
		x.Close(false)
	}
}

func (c *Processes) bind(a control.Attach, x *control.Conn) *process {
	c.mu.Lock()
	p := c.mu.processes[a.Name]
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.conn != nil {
		return nil
	}
	p.mu.conn = x
	c.say("%s is process %d, its clock is off by at most %v", p.name, p.cmd.Process.Pid, a.Bound)
	close(p.attached)
	return p
}

func (c *Processes) message(p *process, m any) {
	switch m := m.(type) {
	case control.Events:
		c.cfg.Timeline.Merge(m.Events, m.Dropped)
	case control.Told:
		p.told(m)
	case control.Leading:
		c.mu.Lock()
		if m.Epoch > c.mu.epoch {
			c.mu.epoch = m.Epoch
			c.setLeader(p)
			if c.mu.draining {
				p.say(control.EndSources{})
			}
			c.tellDead(p)
		}
		c.mu.Unlock()
	case control.JobEnded:
		c.mu.Lock()
		if m.JobLog && m.Epoch > c.mu.epoch {
			c.end(&JobLogError{errors.New(m.Error)})
		} else if m.Epoch == c.mu.epoch {
			var err error
			if m.Error == master.ErrCanceled.Error() {
				err = master.ErrCanceled
			} else if m.Error != "" {
				err = errors.New(m.Error)
			}
			c.end(err)
		}
		c.mu.Unlock()
	}
}

// awaitLeader waits for a process that leads.
func (c *Processes) awaitLeader(ctx context.Context) (*process, error) {
	for {
		c.mu.Lock()
		p, changed, closed := c.mu.leader, c.mu.changed, c.mu.closed
		c.mu.Unlock()
		switch {
		case closed:
			return nil, errClusterClosed
		case p != nil:
			return p, nil
		}
		select {
		case <-changed:
		case <-c.done:
			if err := c.Err(); err != nil {
				return nil, err
			}
			return nil, errors.New("the job has ended")
		case <-ctx.Done():
			return nil, fmt.Errorf("no master leads: %w", context.Cause(ctx))
		}
	}
}

// askLeader asks whoever leads now, or next.
func (c *Processes) askLeader(ctx context.Context, what any) (control.Told, error) {
	p, err := c.awaitLeader(ctx)
	if err != nil {
		return control.Told{}, err
	}
	return p.ask(ctx, what)
}

// Done implements Running.
func (c *Processes) Done() <-chan struct{} { return c.done }

// Err implements Running.
func (c *Processes) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// closeLimit bounds how long a process may take to leave in order.
const closeLimit = 3 * time.Second

// Close implements Running: it ends all processes and waits for them.
func (c *Processes) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.mu.closed = true
		for t := range c.mu.timers {
			if t.Stop() {
				c.work.Done()
			}
		}
		var workers, masters []*process
		for _, p := range c.mu.processes {
			if p.role == RoleMaster {
				masters = append(masters, p)
			} else {
				workers = append(workers, p)
			}
		}
		c.setLeader(nil)
		c.mu.Unlock()
		for _, group := range [][]*process{workers, masters} {
			var wg sync.WaitGroup
			for _, p := range group {
				wg.Go(func() { c.dismiss(p) })
			}
			wg.Wait()
		}
		c.listener.Close()
		c.mu.Lock()
		conns := c.mu.conns
		c.mu.conns = map[*control.Conn]bool{}
		c.mu.Unlock()
		for x := range conns {
			x.Close(false)
		}
		c.spawner.close()
		c.work.Wait()
		if c.cfg.Batch {
			for _, p := range workers { // of those that were killed
				os.RemoveAll(p.dir)
			}
		}
	})
	return nil
}

// dismiss ends a process in order if it can.
func (c *Processes) dismiss(p *process) {
	p.mu.Lock()
	p.mu.expected = true
	frozen, attached := p.mu.frozen, p.mu.conn != nil
	p.mu.Unlock()
	p.account()
	switch {
	case frozen || !attached:
		p.kill()
	default:
		p.say(control.Leave{})
	}
	p.end(closeLimit)
	p.stdin.Close()
	p.mu.Lock()
	conn := p.mu.conn
	p.mu.Unlock()
	if conn != nil {
		conn.Drain(closeLimit)
	}
}

// Usage implements Running.
func (c *Processes) Usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	var u Usage
	var read, written int64
	known := true
	for _, p := range c.mu.processes {
		select {
		case <-p.exited:
		default:
			continue
		}
		u.Processes++
		if s := p.cmd.ProcessState; s != nil {
			u.CPU += s.UserTime() + s.SystemTime()
			u.MaxRSS += peakMemory(s)
		}
		p.mu.Lock()
		if known = known && p.mu.read != nil; known {
			read += *p.mu.read
			written += *p.mu.written
		}
		p.mu.Unlock()
	}
	if known && u.Processes > 0 {
		u.ReadBytes, u.WrittenBytes = &read, &written
	}
	return u
}

// serialWriter lets several processes write whole pieces.
type serialWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *serialWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}
