package cluster

import (
	"context"
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
	*outcome
	cfg      Config
	exe      Executable
	out      io.Writer // their output
	state    string    // folder of the master's state
	sub      *submission
	secret   []byte
	listener net.Listener
	spawner  *spawner
	seat     seat[*process]
	workers  roster[*process]
	folders  folders // of a batch job
	later    afterwards
	work     sync.WaitGroup // accepting, watching
	closing  sync.Once

	mu struct {
		sync.Mutex                     // held while seat and roster change, too
		processes  map[string]*process // all that were ever started
		master     *process            // started last
		masters    int                 // made
		submitted  bool                // the timeline has it
		draining   bool
		closed     bool
		past       ledger // of masters of a batch job that are gone
		consumed   map[string]int64
		fault      string
		faultEnd   time.Time
		conns      map[*control.Conn]bool
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
		cfg: cfg, exe: exe, out: &serialWriter{w: out}, state: filepath.Join(dir, "master"), secret: control.NewSecret(), outcome: newOutcome(),
	}
	c.mu.processes, c.mu.conns = map[string]*process{}, map[*control.Conn]bool{}
	if cfg.Storage == "" {
		cfg.Storage = filepath.Join(dir, "checkpoints")
	}
	if _, err := storage.Open(cfg.Storage); err != nil {
		return nil, fmt.Errorf("checkpoint storage: %w", err)
	}
	c.sub = &submission{
		ID: cfg.submission(), Job: cfg.Job, Options: cfg.Values.Map(), Slots: cfg.Slots, NetworkMemory: cfg.NetworkMemory,
		BufferSize: cfg.BufferSize, Network: cfg.Network, Storage: cfg.Storage, OutputDir: dir, Seed: cfg.Seed, Keep: cfg.Keep, Delays: cfg.Delays,
		Batch: cfg.Batch, FromScratch: cfg.FromScratch,
	}
	if err := os.MkdirAll(c.state, 0o700); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := (resultFile{c.state, c.sub.ID}).forget(); err != nil {
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
	_, err = c.seat.awaitFor(ctx, c.outcome)
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
	r.Workers = len(c.workers.all())
	return r
}

func (c *Processes) startMaster() (*process, error) {
	c.mu.Lock()
	n := c.mu.masters
	c.mu.masters++
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
	n := c.workers.next()
	p := newProcess(RoleWorker, workerName(n), n)
	if p.dir = dir; dir == "" {
		p.dir = filepath.Join(c.cfg.Dir, p.name)
	}
	c.folders.give(n, p.dir, dir != "")
	r := c.request(p.name, n)
	r.Dir = p.dir
	err := c.start(p, r)
	if err != nil {
		c.folders.drop(p.dir)
	}
	return p, err
}

func newProcess(role, name string, index int) *process {
	p := &process{role: role, name: name, index: index, attached: make(chan struct{}), exited: make(chan struct{})}
	p.mu.asks = map[uint64]chan control.Told{}
	return p
}

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
		c.workers.join(p)
	}
	c.work.Go(func() { c.watch(p) })
	return nil
}
