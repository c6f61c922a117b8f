package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/source"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// countedNetwork counts dials.
type countedNetwork struct {
	exchange.Network
	dials int
}

func (c *countedNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c.dials++
	return c.Network.Dial(ctx, addr)
}

// Each step says what happens, and how often a connection has been dialled then.
// Fails if client hands out a connection that has failed, or dials for everybody
// who asks.
func TestPeersAreDialledAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &countedNetwork{Network: &pipes{}}
		var counter exchange.Counter
		l, _ := n.Listen()
		server := exchange.NewServer(l, &counter, func() {})
		p := peers{network: n, counter: &counter, pause: func() {}}
		var last *exchange.Client
		for i, x := range []struct {
			what  string
			do    func()
			fails bool
			fresh bool
			dials int
		}{
			{"first use", func() {}, false, true, 1},
			{"second use", func() {}, false, false, 1},
			{"the connection breaks, nobody is there", func() { server.Close(true) }, true, false, 2},
			{"still nobody", func() {}, true, false, 3},
			{"somebody is there again", func() { // at the same address
				l := &pipeListener{name: l.Addr().String(), conns: make(chan net.Conn), closed: make(chan struct{})}
				n.Network.(*pipes).listeners[l.name] = l
				server = exchange.NewServer(l, &counter, func() {})
			}, false, true, 4},
			{"use of the new one", func() {}, false, false, 4},
			{"the new one breaks alone", func() { last.Close(true) }, false, true, 5},
		} {
			x.do()
			synctest.Wait()
			c, err := p.client(t.Context(), "3", l.Addr().String())
			if (err != nil) != x.fails || n.dials != x.dials || !x.fails && (c != last) != x.fresh {
				t.Errorf("step %d, %s: error %v, %d dials, another connection: %v", i, x.what, err, n.dials, c != last)
			}
			if c != nil {
				last = c
			}
		}
		p.close(false)
		p.close(true)
		if _, err := p.client(t.Context(), "3", l.Addr().String()); !errors.Is(err, errClosed) || n.dials != 5 {
			t.Errorf("closed, %d dials: %v", n.dials, err)
		}
		server.Close(false)
	}) // of all these connections no goroutine is left, or the bubble does not end
}

// deaf is a network whose dials do not hear of the end of their context.
type deaf struct{ exchange.Network }

func (d deaf) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return d.Network.Dial(context.WithoutCancel(ctx), addr)
}

// What is being dialled while the worker ends is broken off; a connection that
// comes nevertheless is closed. Fails if close does not end the dials' context,
// or does not wait for who dials.
func TestPeersCloseWhatIsBeingDialled(t *testing.T) {
	for _, comes := range []bool{false, true} {
		t.Run(fmt.Sprint("comes=", comes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &pipes{}
				l, _ := n.Listen()
				var counter exchange.Counter
				p := peers{network: n, counter: &counter, pause: func() {}}
				if comes {
					p.network = deaf{n}
				}
				type result struct {
					c   *exchange.Client
					err error
				}
				got := make(chan result)
				go func() {
					c, err := p.client(context.Background(), "1", l.Addr().String())
					got <- result{c, err}
				}()
				synctest.Wait() // nobody accepts
				closed := make(chan struct{})
				go func() {
					p.close(false)
					close(closed)
				}()
				synctest.Wait()
				if comes {
					far, err := l.Accept()
					if err != nil {
						t.Fatal(err)
					}
					defer far.Close()
				}
				x := <-got
				<-closed
				if comes && (x.err != nil || x.c.Err() == nil) {
					t.Errorf("the connection is open, or has failed: %v", x.err)
				}
				if !comes && !errors.Is(x.err, errClosed) {
					t.Errorf("broken off: %v", x.err)
				}
			})
		})
	}
}

// Who wants no more of a worker that does not answer is let go at once; the dial
// goes on for the others. Fails if client waits for the dial alone, or if the end
// of one who waits ends the dial (dial with ctx).
func TestWaitForAPeerCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &countedNetwork{Network: &pipes{}}
		l, _ := n.Listen()
		var counter exchange.Counter
		p := peers{network: n, counter: &counter, pause: func() {}}
		gone := errors.New("the attempt was cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		errs, got := make(chan error, 1), make(chan *exchange.Client, 1)
		go func() {
			_, err := p.client(ctx, "1", l.Addr().String())
			errs <- err
		}()
		synctest.Wait()
		go func() {
			c, err := p.client(t.Context(), "1", l.Addr().String())
			if err != nil {
				t.Error(err)
			}
			got <- c
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-errs; !errors.Is(err, gone) || time.Since(begin) > 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if c := <-got; c == nil || n.dials != 1 {
			t.Errorf("connection %v after %d dials", c, n.dials)
		}
		far.Close()
		p.close(false)
	})
}

// A master that is stopped while a worker calls it is left as soon as another one
// leads. Fails if call does not look who leads while it dials.
func TestCallEndsWhenAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &pipes{}
		l, _ := n.Listen() // nobody accepts
		r := &recorder{}
		if err := r.open(r, "w", 1<<20, 1<<10, n, timeline.New()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		newer := func() bool { return time.Since(begin) >= time.Second }
		err := r.service(1).call(l.Addr().String(), control.Hello{}, time.Second, newer)
		if d := time.Since(begin); !errors.Is(err, errOtherLeads) || d > time.Second+leaderCheck {
			t.Errorf("after %v: %v", d, err)
		}
		r.Stop()
	})
}

// recorder is a kind of worker that does nothing.
type recorder struct {
	host
	order []string
}

func (r *recorder) note(what string) {
	r.peers.mu.Lock()
	defer r.peers.mu.Unlock()
	if r.peers.mu.closed {
		what += ", sockets are gone"
	}
	r.order = append(r.order, what)
}

func (r *recorder) welcome(*service, control.Welcome)  { r.note("welcome") }
func (r *recorder) carryOut(*service, control.Command) { r.note("command") }
func (r *recorder) leave(bool)                         { r.note("leave") }
func (r *recorder) stopTasks()                         { r.note("stop") }
func (r *recorder) cleanUp()                           { r.note("clean up") }

// A worker that dies breaks its sockets before its tasks stop, one that ends in
// order afterwards. Fails if end does not look at reset, or cleans up while loops
// run.
func TestOrderOfTheEnd(t *testing.T) {
	for _, x := range []struct {
		name string
		end  func(*recorder)
		want string
	}{
		{"stop", func(r *recorder) { r.Stop() }, "leave; stop; loop, sockets are gone; clean up, sockets are gone"},
		{"kill", func(r *recorder) { r.Kill() }, "leave; stop, sockets are gone; loop, sockets are gone; clean up, sockets are gone"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{}
				if err := r.open(r, "w", 1<<20, 1<<10, &pipes{}, timeline.New()); err != nil {
					t.Fatal(err)
				}
				r.loops.Go(func() {
					<-r.ctx.Done()
					time.Sleep(time.Second) // of the bubble
					r.note("loop")
				})
				x.end(r)
				r.Stop()
				r.Kill()
				<-r.Gone()
				if got := strings.Join(r.order, "; "); got != x.want {
					t.Errorf("%s\nnot %s", got, x.want)
				}
				r.because(errors.New("first"))
				r.because(errors.New("second"))
				if r.Cause() == nil || r.Cause().Error() != "first" {
					t.Errorf("cause %v", r.Cause())
				}
			})
		})
	}
}

// What a master says before its welcome, and what an older one says, is not
// carried out. Fails if receive does not ask whether it was taken, or the fence.
func TestService(t *testing.T) {
	for _, x := range []struct {
		name     string
		epoch    int64 // under which the leader was found
		messages []any
		want     string
		stale    bool
	}{
		{"in order", 3, []any{control.Welcome{Epoch: 3}, control.Peers{Epoch: 3}, control.Peers{Epoch: 3}}, "welcome command command", false},
		{"too early", 3, []any{control.Peers{Epoch: 3}, control.Welcome{Epoch: 3}}, "welcome", false},
		{"no welcome", 3, []any{control.Peers{Epoch: 3}}, "", false},
		{"older commands", 3, []any{control.Welcome{Epoch: 3}, control.Peers{Epoch: 2}, control.Peers{Epoch: 4}, control.Peers{Epoch: 3}}, "welcome command", false},
		{"an older master", 3, []any{control.Welcome{Epoch: 2}, control.Peers{Epoch: 3}}, "", true},
		{"welcome twice", 3, []any{control.Welcome{Epoch: 3}, control.Welcome{Epoch: 3}}, "welcome", false},
		{"a newer one", 3, []any{control.Welcome{Epoch: 4}, control.Peers{Epoch: 3}}, "welcome", false},
		{"not a command", 3, []any{control.Welcome{Epoch: 3}, control.Heartbeat{}}, "welcome", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := &recorder{}
			r.kind = r
			s := r.service(x.epoch)
			for _, m := range x.messages {
				s.receive(m)
			}
			if got := strings.Join(r.order, " "); got != x.want || errors.Is(s.err, ErrStaleMaster) != x.stale {
				t.Errorf("%q, %v; want %q", got, s.err, x.want)
			}
		})
	}
}

// Outcomes of attempts to join, and after which epochs a master is looked for.
// Fails if a master that let the worker go is not left behind (or, with again,
// is), or if refusals are not counted by master, or over the whole of its time.
func TestFollow(t *testing.T) {
	refused := &control.HandshakeError{Refusal: control.BadSecret}
	type outcome struct {
		epoch  int64
		served bool
		err    error
	}
	for _, x := range []struct {
		name     string
		again    bool
		outcomes []outcome
		after    []int64
		err      error
	}{
		{"each master once", false, []outcome{{1, true, nil}, {4, true, nil}}, []int64{0, 1, 4}, nil},
		{"the same one again", true, []outcome{{1, true, nil}, {1, true, nil}, {4, true, nil}}, []int64{0, 0, 0, 3}, nil},
		{"one that cannot be reached", false, []outcome{{1, true, nil}, {2, false, net.ErrClosed}, {2, true, nil}}, []int64{0, 1, 1, 2}, nil},
		{"one that dies in the handshake", false, []outcome{{1, false, refused}, {1, false, refused}, {2, false, refused}, {2, false, refused}, {2, true, nil}}, []int64{0, 0, 0, 0, 0, 2}, nil},
		{"one that hangs up now and then", true, []outcome{{1, false, refused}, {1, false, refused}, {1, true, nil}, {1, false, refused}, {1, false, refused}, {4, true, nil}}, []int64{0, 0, 0, 0, 0, 0, 3}, nil},
		{"one that refuses", false, []outcome{{1, false, refused}, {1, false, refused}, {1, false, refused}}, []int64{0, 0, 0}, refused},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var asked []int64
				var next outcome
				find := func(_ context.Context, after int64) (string, int64, error) {
					asked = append(asked, after)
					if len(asked) > len(x.outcomes) {
						cancel()
						return "", 0, ctx.Err()
					}
					next = x.outcomes[len(asked)-1]
					return "there", next.epoch, nil
				}
				err := Follow(ctx, find, x.again, func(string, int64) (bool, error) { return next.served, next.err })
				if !errors.Is(err, x.err) || (err == nil) != (x.err == nil) || !slices.Equal(asked, x.after) {
					t.Errorf("%v, looked for masters after %v, not %v", err, asked, x.after)
				}
				cancel()
			})
		})
	}
}

// alone is a job of one vertex.
func alone(t *testing.T, batch bool) graph.Graph {
	t.Helper()
	params, _ := json.Marshal(source.Params{Splits: 1, Keys: 1, RecordSize: 128, Records: 1})
	g, err := graph.Build(graph.Job{Name: "job", Nodes: []graph.Node{
		{ID: "numbers", Operator: source.Sequence, Params: params, Parallelism: 1, MaxParallelism: 128, Source: true},
		{ID: "out", Operator: "discard", Params: []byte("{}"), Parallelism: 1, MaxParallelism: 128},
	}, Links: []graph.Link{{From: "numbers", To: "out", Partitioner: graph.Forward}}}, graph.Config{Chaining: true, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return *g
}

// startBatch brings up a worker of a batch job on a folder, under a master that
// welcomes it with an index.
func startBatch(t *testing.T, dir string, index int) (*Batch, *master) {
	t.Helper()
	const epoch = 1
	n := &pipes{}
	l, _ := n.Listen()
	masters := make(chan *master, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			masters <- welcomeAs(epoch, index)(c)
		}
	}()
	found := false
	w, err := StartBatch(BatchConfig{
		Name: "w", Index: index, Slots: 1, Memory: 1 << 20, Segment: 1 << 10, Dir: dir, OutputDir: t.TempDir(), Timeline: timeline.New(),
		Origin: time.Now(), Transport: n, Heartbeat: time.Second, Tick: time.Second, Retention: time.Minute,
		Leader: func(ctx context.Context, _ int64) (string, int64, error) {
			if found {
				<-ctx.Done()
				return "", 0, ctx.Err()
			}
			found = true
			return l.Addr().String(), epoch, nil
		},
		Newer: func(int64) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	m := <-masters
	l.Close()
	synctest.Wait()
	return w, m
}

// A worker that is ending runs no task any more, however long its tasks take to
// stop: who looks for a busy worker must not get it. Fails if Load does not look
// whether the worker is ending.
func TestEndingWorkerRunsNothing(t *testing.T) {
	for _, x := range []struct {
		name  string
		start func(t *testing.T) (load func() Load, end func(), m *master)
	}{
		{"streaming", func(t *testing.T) (func() Load, func(), *master) {
			w, m, _, err := start(t, welcome(1))
			if err != nil {
				t.Fatal(err)
			}
			id := task.ID{Vertex: "numbers"}
			m.Send(control.Deploy{Epoch: 1, Graph: alone(t, false), Placement: [][]int{{4}}, Tasks: []control.TaskSpec{{ID: id}}})
			return func() Load { return w.Load(true) }, w.Stop, m
		}},
		{"batch", func(t *testing.T) (func() Load, func(), *master) {
			w, m := startBatch(t, filepath.Join(t.TempDir(), "w"), 0)
			m.Send(control.BatchJob{Epoch: 1, Job: "job", Graph: alone(t, true)})
			m.Send(control.DeployAttempt{Epoch: 1, Attempt: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "numbers"}, Epoch: 1}, Parallelism: 1})
			return w.Load, w.Stop, m
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer storage.DropMemory(t.Name())
				let := make(chan struct{})
				defer task.FailRestore.Arm(func(int, string) error {
					<-let
					return nil
				})()
				load, end, m := x.start(t)
				synctest.Wait()
				if l := load(); l.Tasks != 1 {
					t.Errorf("%d tasks run: %v", l.Tasks, fmt.Sprintf("%+v", m.messages()))
				}
				ended := false
				go func() {
					end()
					ended = true
				}()
				synctest.Wait()
				if l := load(); l.Tasks != 0 || ended {
					t.Errorf("ended: %v, %d tasks run at a worker that is ending", ended, l.Tasks)
				}
				close(let)
				synctest.Wait()
				if !ended {
					t.Error("it does not end")
				}
				m.Close(false)
			})
		})
	}
}
