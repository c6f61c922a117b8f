package cluster

import (
	"io"
	"os"
	"sync"
	"time"

	"benchrun/runtime/control"
)

// The end of a cluster of processes, and what it has used.

// closeLimit bounds how long a process may take to leave in order.
const closeLimit = 3 * time.Second

// Close implements Running: it ends all processes and waits for them.
func (c *Processes) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.mu.closed = true
		var workers, masters []*process
		for _, p := range c.mu.processes {
			if p.role == RoleMaster {
				masters = append(masters, p)
			} else {
				workers = append(workers, p)
			}
		}
		c.mu.Unlock()
		c.seat.close()
		c.later.close()
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
		for _, p := range workers { // also where another one was to take it over
			os.RemoveAll(p.dir)
		}
		dropUnfinished(c.state) // of a master that was ended before it could lead
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
