package cluster

import (
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"context"
)

// What tests outside of the package need to see and to do.

func (c *Processes) StateFolder() string { return c.state }
func (c *Processes) Supervisor() string  { return c.listener.Addr().String() }

func (c *Processes) AddMaster() error {
	_, err := c.startMaster()
	return err
}

func (c *Processes) Leader() *process {
	p, _ := c.seat.now()
	return p
}

func (c *Processes) Pids() (pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.mu.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

func (p *process) Freeze(on bool) error    { return p.freeze(on) }
func (p *process) Exited() <-chan struct{} { return p.exited }
func (p *process) ExitCode() int           { return p.cmd.ProcessState.ExitCode() }

// RunStranger starts a worker that has another secret, or a request that was
// changed otherwise, and returns its end.
func (c *Processes) RunStranger(secret []byte, protocol int, cluster string) (status int, words string, err error) {
	p := newProcess(RoleWorker, "worker-stranger", 77)
	r := c.request(p.name, p.index)
	r.Dir = c.state + "/stranger"
	if secret != nil {
		r.Secret = secret
	}
	if protocol != 0 {
		r.Protocol = protocol
	}
	if cluster != "" {
		r.Cluster = cluster
	}
	if err := p.start(c.spawner, c.exe, r, c.out); err != nil {
		return 0, "", err
	}
	<-p.exited
	return p.cmd.ProcessState.ExitCode(), p.last.String(), nil
}

// NextID has the submissions to come get an id that is known before.
func NextID(t interface{ Cleanup(func()) }, id string) {
	before := newID
	newID = func() string { return id }
	t.Cleanup(func() { newID = before })
}

// Secret is the cluster's.
func (c *Processes) Secret() []byte { return c.secret }

// AttachAs connects to the supervisor with the right secret and an arbitrary
// name.
func (c *Processes) AttachAs(name string) (*control.Conn, error) {
	conn, err := control.Secure(exchange.Loopback{}, c.secret, buildID()).Dial(context.Background(), c.Supervisor())
	if err != nil {
		return nil, err
	}
	x := control.NewConn(conn, func() {}, func(any) {}, func(error) {})
	x.Send(control.Attach{Name: name})
	return x, nil
}
