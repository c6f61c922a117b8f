package cluster_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"benchrun/runtime/cluster"
	"benchrun/runtime/failpoint"
)

// stopVariable tells a process of a cluster where to stop, and whom to ask what
// comes then: "ADDRESS point=n point=n".
const stopVariable = "CLUSTER_TEST_STOP"

// stopWhereTold arms the fault points of this process that a test has named. At
// the n-th passing of one the process says so, and waits there until it is let go
// or dies.
func stopWhereTold(where string) error {
	at := strings.Fields(where)
	if len(at) == 0 {
		return nil
	}
	for _, w := range at[1:] {
		name, n, _ := strings.Cut(w, "=")
		nth, err := strconv.Atoi(n)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", stopVariable, w, err)
		}
		p, err := failpoint.Lookup(name)
		if err != nil {
			return fmt.Errorf("%s: %w", stopVariable, err)
		}
		p.Arm(func(hit int, _ string) error {
			if hit != nth {
				return nil
			}
			c, err := net.Dial("tcp", at[0])
			if err != nil {
				return nil // the test is over
			}
			defer c.Close()
			fmt.Fprint(c, name)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c) // until the test lets go
			return nil
		})
	}
	return nil
}

// stops are the places at which the processes of a cluster stop. A nil one has
// none.
type stops struct {
	l     net.Listener
	where string
	work  sync.WaitGroup
}

// stopAt calls fn, one after the other, when a process stops at a point; when fn
// returns, the process goes on, if it lives. The points are given as "point=n".
func stopAt(t *testing.T, fn func(point string), points ...string) *stops {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stops{l: l, where: strings.Join(append([]string{l.Addr().String()}, points...), " ")}
	var one sync.Mutex
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.work.Go(func() {
				defer c.Close()
				point, err := io.ReadAll(c)
				if err != nil || len(point) == 0 {
					return // it died meanwhile
				}
				one.Lock()
				defer one.Unlock()
				fn(string(point))
			})
		}
	})
	t.Cleanup(s.close)
	return s
}

// close waits until nobody stops any more.
func (s *stops) close() {
	s.l.Close()
	s.work.Wait()
}

func (s *stops) nodes() cluster.Executable {
	if s == nil {
		return nodes
	}
	return cluster.Executable{Path: nodes.Path, Args: nodes.Args, Env: append(append([]string(nil), nodes.Env...), stopVariable+"="+s.where)}
}
