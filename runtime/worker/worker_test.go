package worker

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a network inside a bubble.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

type pipeListener struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners == nil {
		p.listeners = map[string]*pipeListener{}
	}
	l := &pipeListener{name: string(rune('a' + len(p.listeners))), conns: make(chan net.Conn), closed: make(chan struct{})}
	p.listeners[l.name] = l
	return l, nil
}

func (p *pipes) Dial(ctx context.Context, addr string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[addr]
	p.mu.Unlock()
	if l == nil {
		return nil, errors.New("nobody listens")
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, errors.New("nobody listens any more")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return l }
func (*pipeListener) Network() string  { return "pipe" }
func (l *pipeListener) String() string { return l.name }

// master is the other side of one worker's control connection.
type master struct {
	*control.Conn
	mu   sync.Mutex
	got  []any
	lost bool
}

func (m *master) messages() (list []any) {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	list, m.got = m.got, nil
	return list
}

// declines are the checkpoints that were declined.
func (m *master) declines() (ids []int64) {
	for _, x := range m.messages() {
		if d, ok := x.(control.Decline); ok {
			ids = append(ids, d.Checkpoint)
		}
	}
	return ids
}

// start brings up a worker under a master that welcomes it, unless greet says
// something else.
func start(t *testing.T, greet func(c net.Conn) *master) (*Worker, *master, Config, error) {
	t.Helper()
	return startWith(t, greet, nil)
}

func startWith(t *testing.T, greet func(c net.Conn) *master, change func(*Config)) (*Worker, *master, Config, error) {
	t.Helper()
	network := &pipes{}
	l, _ := network.Listen()
	masters := make(chan *master, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			masters <- nil
			return
		}
		masters <- greet(c)
	}()
	cfg := Config{
		Name: "w", Master: l.Addr().String(), Slots: 2, Memory: 1 << 20, Segment: 1 << 10, Checkpoints: storage.OpenMemory(t.Name()),
		Dir: filepath.Join(t.TempDir(), "w"), Timeline: timeline.New(), Origin: time.Now(), Transport: network,
		Heartbeat: 100 * time.Millisecond, Tick: 10 * time.Millisecond, PerFile: 5,
	}
	if change != nil {
		change(&cfg)
	}
	w, err := Start(cfg)
	l.Close()
	return w, <-masters, cfg, err
}

func welcome(epoch int64) func(net.Conn) *master { return welcomeAs(epoch, 4) }

func welcomeAs(epoch int64, index int) func(net.Conn) *master {
	return func(c net.Conn) *master {
		m := &master{}
		m.Conn = control.NewConn(c, func() {}, func(x any) {
			m.mu.Lock()
			m.got = append(m.got, x)
			m.mu.Unlock()
		}, func(error) {
			m.mu.Lock()
			m.lost = true
			m.mu.Unlock()
		})
		m.Send(control.Welcome{Epoch: epoch, Worker: index})
		return m
	}
}

var ghost = task.ID{Vertex: "ghost"}

func trigger(epoch, id int64) control.Trigger {
	return control.Trigger{Epoch: epoch, Event: record.Event{Kind: record.Barrier, Checkpoint: id}, Tasks: []task.ID{ghost}}
}

func TestStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m, cfg, err := start(t, welcome(1))
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := m.messages()[0].(control.Hello); !ok || h.Slots != 2 || h.DataAddr != w.server.Addr() || w.Index() != 4 {
			t.Errorf("hello %+v, index %d", h, w.Index())
		}
		time.Sleep(time.Second) // of the bubble
		beats := 0
		for _, x := range m.messages() {
			if _, ok := x.(control.Heartbeat); ok {
				beats++
			}
		}
		if beats < 9 {
			t.Errorf("%d heartbeats in a second, want 10", beats)
		}
		w.Stop()
		w.Stop()
		<-w.Gone()
		if _, err := os.Stat(cfg.Dir); !os.IsNotExist(err) {
			t.Error("the worker's folder is still there")
		}
		if s := w.Memory(); s.Used != 0 || s.Pools != 0 {
			t.Errorf("memory is not back: %+v", s)
		}
		m.Close(false)
	})
}

// Commands of a master that another one has followed are not carried out.
func TestOlderMasterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m, _, err := start(t, welcome(5))
		if err != nil {
			t.Fatal(err)
		}
		for i, epoch := range []int64{4, 5, 6, 5, 6} {
			m.Send(trigger(epoch, int64(i)))
		}
		if got := m.declines(); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 4 {
			t.Errorf("triggers %v were answered, want 1, 2 and 4", got)
		}
		for _, x := range []any{
			control.Deploy{Epoch: 5, Tasks: []control.TaskSpec{{ID: ghost}}}, control.Cancel{Epoch: 5, Tasks: []task.ID{ghost}}, control.Notify{Epoch: 5, Tasks: []task.ID{ghost}},
			control.ToReader{Epoch: 5, Task: ghost}, control.StopSources{Epoch: 5}, control.FailTask{Epoch: 5, Task: ghost}, control.Forget{Epoch: 5},
		} {
			m.Send(x)
		}
		for _, x := range m.messages() {
			if _, beat := x.(control.Heartbeat); !beat {
				t.Errorf("an old master is answered with %+v", x)
			}
		}
		if w.uncharged.Load() {
			t.Error("an old master stopped the sources")
		}
		m.Send(control.ToReader{Epoch: 6, Seq: 3, Task: ghost})
		if got := m.messages(); len(got) != 1 || got[0].(control.ReaderGot).Seq != 3 || got[0].(control.ReaderGot).Error == "" {
			t.Errorf("an event for a task that is not there is answered with %+v", got)
		}
		w.Stop()
		m.Close(false)
	})
}

// A worker that cannot get in says so, and leaves nothing behind.
func TestMasterThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, cfg, err := start(t, func(c net.Conn) *master {
			c.Close()
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "did not let it in") {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(cfg.Dir); !os.IsNotExist(err) {
			t.Error("the worker's folder is still there")
		}
		cfg.Master = "nowhere"
		if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "nobody listens") {
			t.Errorf("error %v", err)
		}
	})
}

// A killed worker has not a word for anybody, whatever its tasks still do.
func TestKilledWorkerSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m, cfg, err := start(t, welcome(1))
		if err != nil {
			t.Fatal(err)
		}
		m.messages()
		w.Kill()
		before := len(cfg.Timeline.Events())
		w.State(ghost, task.Failed, errors.New("x"))
		w.Acknowledge(ghost, 1, &snapshot.SubtaskState{})
		w.Passed(ghost, 1)
		w.Decline(ghost, 1, "x", nil)
		w.Ended(ghost)
		w.OperatorEvent(ghost, nil)
		w.Report(ghost, "x", nil)
		if got := m.messages(); len(got) != 0 {
			t.Errorf("the dead worker says %+v", got)
		}
		if n := len(cfg.Timeline.Events()) - before; n != 0 {
			t.Errorf("the dead worker wrote %d events", n)
		}
		m.mu.Lock()
		if !m.lost {
			t.Error("the master does not notice")
		}
		m.mu.Unlock()
		if _, err := w.client(t.Context(), 0); !errors.Is(err, errClosed) {
			t.Errorf("the dead worker connects to others: %v", err)
		}
		m.Close(false)
	})
}

// A frozen worker neither says nor does anything until it thaws; then it goes
// on where it was.
func TestFrozenWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m, _, err := start(t, welcome(1))
		if err != nil {
			t.Fatal(err)
		}
		m.messages()
		w.Freeze(time.Second)
		m.Send(trigger(1, 7))
		time.Sleep(900 * time.Millisecond)
		if got := m.messages(); len(got) != 0 {
			t.Errorf("a frozen worker says %+v", got)
		}
		w.Freeze(time.Second) // again, and longer
		time.Sleep(900 * time.Millisecond)
		if got := m.messages(); len(got) != 0 {
			t.Errorf("a worker that was frozen again says %+v", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := m.declines(); len(got) != 1 || got[0] != 7 {
			t.Errorf("thawed, it declined %v, want 7", got)
		}
		w.Freeze(time.Hour)
		w.Stop() // does not wait for that
		m.Close(false)
	})
}

// The connection to another worker is made once, and again when it has broken.
func TestDataConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m, cfg, err := start(t, welcome(1))
		if err != nil {
			t.Fatal(err)
		}
		l, _ := cfg.Transport.Listen()
		var counter exchange.Counter
		peer := exchange.NewServer(l, &counter, func() {})
		if _, err := w.client(t.Context(), 9); err == nil || !strings.Contains(err.Error(), "no address of worker 9") {
			t.Errorf("unknown worker: %v", err)
		}
		w.mu.addrs[9] = peer.Addr()
		a, err := w.client(t.Context(), 9)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := w.client(t.Context(), 9); a != b || err != nil {
			t.Errorf("a second connection was made: %v", err)
		}
		peer.Close(true)
		synctest.Wait()
		if a.Err() == nil {
			t.Error("nobody noticed that the connection broke")
		}
		if _, err := w.client(t.Context(), 9); err == nil {
			t.Error("connected to a server that is gone")
		}
		l, _ = cfg.Transport.Listen()
		peer = exchange.NewServer(l, &counter, func() {})
		w.mu.addrs[9] = peer.Addr()
		if b, err := w.client(t.Context(), 9); err != nil || a == b {
			t.Errorf("no new connection: %v", err)
		}
		w.Stop()
		peer.Close(false)
		m.Close(false)
	})
}
