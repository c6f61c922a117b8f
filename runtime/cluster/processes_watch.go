package cluster

import (
	"context"
	"errors"
	"net"
	"os"

	"benchrun/runtime/control"
	"benchrun/runtime/master"
	"benchrun/runtime/timeline"
)

// What processes say, and that they end.

// watch notices the end of a process.
func (c *Processes) watch(p *process) {
	<-p.exited
	p.lost()
	p.mu.Lock()
	expected, heir, epoch := p.mu.expected, p.mu.heir, p.mu.epoch
	p.mu.Unlock()
	if p.role == RoleWorker && !heir {
		if err := os.RemoveAll(p.dir); err != nil {
			c.say("the folder of %s, which nobody takes over: %v", p.name, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers.leave(p, p.lastLoad())
	c.seat.leave(p)
	if p.role == RoleWorker {
		c.folders.drop(p.dir)
		c.tellForgone()
	}
	if p.role == RoleMaster && !c.mu.closed && !c.over() {
		c.cfg.Timeline.Add(masterEnded(epoch, "the process "+p.name+" has ended"))
	}
	if expected || c.mu.closed {
		return
	}
	c.say("%v", p.why())
	if p.role == RoleWorker || c.mu.master == p {
		// The job might well get over the loss of a worker, but what is measured then
		// is a fault that nobody asked for.
		c.end(p.why())
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
		p.leads(m.Epoch)
		if c.cfg.Batch && !c.mu.submitted { // here, for the events of a master may die with it
			c.mu.submitted = true
			c.cfg.Timeline.Merge([]timeline.Event{submitted(m.Started)}, 0)
		}
		if c.seat.take(m.Epoch, p) {
			if c.mu.draining {
				p.say(control.EndSources{})
			}
			c.tellForgone()
		}
		c.mu.Unlock()
	case control.JobEnded:
		_, newest := c.seat.now()
		if unread := m.Epoch > newest; unread && m.JobLog {
			c.end(&JobLogError{errors.New(m.Error)})
		} else if m.State && (unread || m.Epoch == 0) {
			c.end(&StateError{Err: errors.New(m.Error)})
		}
		if m.Epoch != newest {
			return
		}
		var err error
		if m.Error == master.ErrCanceled.Error() {
			err = master.ErrCanceled
		} else if m.Error != "" {
			err = errors.New(m.Error)
		}
		c.end(err)
	}
}

// askLeader asks whoever leads now, or next.
func (c *Processes) askLeader(ctx context.Context, what any) (control.Told, error) {
	p, err := c.seat.awaitFor(ctx, c.outcome)
	if err != nil {
		return control.Told{}, err
	}
	return p.ask(ctx, what)
}
