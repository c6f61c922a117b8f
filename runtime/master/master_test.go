package master

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a network with one listener.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipe() *pipe                          { return &pipe{make(chan net.Conn), make(chan struct{})} }
func (p *pipe) Listen() (net.Listener, error) { return p, nil }
func (p *pipe) Addr() net.Addr                { return &net.UnixAddr{Name: "pipe"} }
func (p *pipe) Close() error                  { close(p.closed); return nil }
func (p *pipe) Dial(ctx context.Context, addr string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// newMaster starts one for a small job, with heartbeats that must come every
// 50 ms.
func newMaster(t *testing.T, store storage.Store, change func(*Config)) (*Master, *pipe, *timeline.Log) {
	t.Helper()
	g, err := graph.Build(graph.Job{
		Nodes: []graph.Node{{ID: "a", Operator: "sequence", Params: []byte(`{}`), Parallelism: 1, Source: true}, {ID: "b", Operator: "discard", Parallelism: 1}},
		Links: []graph.Link{{From: "a", To: "b", Partitioner: graph.Rebalance}},
	}, graph.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v, errs := options.Parse(map[string]any{options.HeartbeatInterval.Key(): "10ms", options.HeartbeatTimeout.Key(): "50ms"})
	if errs != nil {
		t.Fatal(errs)
	}
	log, network := timeline.New(), newPipe()
	cfg := Config{Graph: g, Values: v, Checkpoints: store, Timeline: log, Origin: log.Origin(), Transport: network, Epoch: 1}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, network, log
}

// fakeWorker is the other end of a connection.
type fakeWorker struct {
	*control.Conn
	got chan any
}

func joinAs(t *testing.T, p *pipe, h control.Hello) *fakeWorker {
	t.Helper()
	c, err := p.Dial(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	w := &fakeWorker{got: make(chan any, 1000)}
	w.Conn = control.NewConn(c, func() {}, func(m any) { w.got <- m }, func(error) {})
	w.Send(h)
	return w
}

func lost(log *timeline.Log) (reasons []string) {
	for _, e := range log.Events() {
		if e.Kind == timeline.WorkerLost {
			reasons = append(reasons, e.Detail+": "+e.Reason)
		}
	}
	return reasons
}

// A master whose loop is busy for longer than the time-out loses no worker that
// sends its heartbeats; one that sends none is lost.
// Fails if heard is stamped in the loop.
func TestBusyMasterLosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, network, log := newMaster(t, storage.OpenMemory(t.Name()), nil)
		defer storage.DropMemory(t.Name())
		w := joinAs(t, network, control.Hello{Slots: 1})
		stop := make(chan struct{})
		go func() {
			beat := time.NewTicker(10 * time.Millisecond)
			defer beat.Stop()
			for {
				select {
				case <-beat.C:
					w.Send(control.Heartbeat{})
				case <-stop:
					return
				}
			}
		}()
		time.Sleep(20 * time.Millisecond)
		for range 5 {
			m.loop.post(func() { time.Sleep(333 * time.Millisecond) })
			time.Sleep(400 * time.Millisecond)
		}
		if l := lost(log); len(l) > 0 {
			t.Errorf("lost: %q", l)
		}
		close(stop)
		time.Sleep(200 * time.Millisecond)
		if l := lost(log); len(l) != 1 || !strings.Contains(l[0], "worker-0: no heartbeat for") {
			t.Errorf("lost: %q", l)
		}
		m.Close()
		w.Close(false)
	})
}

// Workers get the index that they ask for, once; who says hello twice is one
// worker; nobody is scheduled before all have come, and then by index.
func TestWorkersGetTheirIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, network, _ := newMaster(t, storage.OpenMemory(t.Name()), func(c *Config) { c.Epoch = 3 })
		defer storage.DropMemory(t.Name())
		m.Begin(Start{Workers: 3, Limit: time.Hour})
		var all []*fakeWorker
		for _, x := range []struct{ asks, gets int }{{1, 1}, {1, 0}} {
			w := joinAs(t, network, control.Hello{Index: x.asks, Slots: 1})
			w.Send(control.Hello{Index: 5, Slots: 9})
			all = append(all, w)
			synctest.Wait()
			if got, ok := (<-w.got).(control.Welcome); !ok || got != (control.Welcome{Epoch: 3, Worker: x.gets}) {
				t.Errorf("asked for %d: %+v", x.asks, got)
			}
			if len(w.got) > 0 {
				t.Errorf("and got %T", <-w.got) // fails if the job does not wait for the third
			}
			w.Send(control.Heartbeat{})
		}
		w := joinAs(t, network, control.Hello{Index: -7, Slots: 1})
		all = append(all, w)
		synctest.Wait()
		if got, _ := (<-w.got).(control.Welcome); got.Worker != 2 {
			t.Errorf("got %+v", got)
		}
		d, ok := (<-all[1].got).(control.Deploy) // slot 0 is on the worker of index 0
		if !ok || d.Epoch != 3 || len(d.Tasks) != 2 || d.Tasks[0].ID.Attempt != 2*control.AttemptsPerEpoch {
			t.Errorf("%+v", d)
		}
		m.Close()
		for _, w := range all {
			w.Close(false)
		}
	})
}

// The third worker never comes: the job begins without it.
func TestJobDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, network, _ := newMaster(t, storage.OpenMemory(t.Name()), nil)
		defer storage.DropMemory(t.Name())
		m.Begin(Start{Workers: 2, Limit: 30 * time.Millisecond})
		w := joinAs(t, network, control.Hello{Slots: 1})
		time.Sleep(29 * time.Millisecond)
		if n := len(w.got); n != 1 {
			t.Errorf("%d messages before the limit", n)
		}
		time.Sleep(5 * time.Millisecond)
		if n := len(w.got); n != 2 {
			t.Errorf("%d messages after the limit", n)
		}
		m.Close()
		w.Close(false)
	})
}

// What a store holds for the next master: complete checkpoints in order, those
// that nobody will complete, and the first id that nobody has begun.
func TestInventory(t *testing.T) {
	s := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	if x, err := Inventory(s); err != nil || x.NextID != 1 || len(x.Completed)+len(x.Broken) > 0 {
		t.Fatalf("empty: %+v, %v", x, err)
	}
	for _, name := range []string{"chk-10/_metadata", "chk-10/state", "chk-9/_metadata", "chk-12/state", "savepoint-11-abc/_metadata", "savepoint-20-xyz/state", "other/_metadata", "chk-x/_metadata"} {
		if err := s.Put(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Inventory(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Completed) != 2 || x.Completed[0].ID != 9 || x.Completed[1].Folder != "chk-10" {
		t.Errorf("complete: %+v", x.Completed)
	}
	if len(x.Broken) != 1 || x.Broken[0] != "chk-12" {
		t.Errorf("broken: %q", x.Broken)
	}
	if x.NextID != 21 { // fails if savepoints or broken checkpoints do not count
		t.Errorf("the next id is %d", x.NextID)
	}
}

// A master that leads no more completes no checkpoint. Fails if finalize does
// not ask.
func TestCheckpointOfADeposedMasterIsNotCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storage.OpenMemory(t.Name())
		defer storage.DropMemory(t.Name())
		deposed := false
		m, _, _ := newMaster(t, s, func(c *Config) {
			c.Leads = func() error {
				if deposed {
					return net.ErrClosed
				}
				return nil
			}
		})
		for i, want := range []bool{true, false} {
			id := int64(i + 1)
			deposed = !want
			m.loop.post(func() { m.finalize(checkpoint.Finalize{ID: id, Folder: snapshot.Folder(id)}) })
			synctest.Wait()
			if _, err := snapshot.Load(s, snapshot.Folder(id)); (err == nil) != want {
				t.Errorf("checkpoint %d of a master that leads (%t): %v", id, want, err)
			}
		}
		m.Close()
	})
}

// Results of finished tasks survive the way through a checkpoint, once.
func TestResultsThroughACheckpoint(t *testing.T) {
	id := task.ID{Vertex: "b", Subtask: 0, Attempt: 4}
	report := control.Report{Task: id, Operator: "b", Data: "done"}
	old := &Master{results: results{reports: map[task.ID][]control.Report{id: {report}}}, settled: map[int64][]task.ID{}}
	b, err := old.encodeResults([]task.ID{id, {Vertex: "without a report"}})
	if err != nil {
		t.Fatal(err)
	}
	next := &Master{settled: map[int64][]task.ID{}}
	for range 2 {
		if err := next.adoptResults(7, b); err != nil {
			t.Fatal(err)
		}
	}
	if len(next.results.settled) != 1 || next.results.settled[0] != report || len(next.settled[7]) != 1 || next.settled[7][0] != id {
		t.Errorf("%+v, %+v", next.results.settled, next.settled)
	}
	if err := (&Master{settled: map[int64][]task.ID{}}).adoptResults(7, b[:len(b)/2]); err == nil {
		t.Error("half of the results were read")
	}
	if err := (&Master{settled: map[int64][]task.ID{}}).adoptResults(7, nil); err != nil {
		t.Error(err)
	}
}
