package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"benchrun/runtime/control"
)

// process is a process of the cluster, as its supervisor sees it.
type process struct {
	role, name string
	index      int
	dir        string // of a worker
	cmd        *exec.Cmd
	stdin      io.WriteCloser
	last       *lastWords
	attached   chan struct{} // closed when conn is there
	exited     chan struct{} // closed when it has been reaped
	exit       error         // after exited

	mu struct {
		sync.Mutex
		conn     *control.Conn
		seq      uint64
		asks     map[uint64]chan control.Told
		gone     bool // its connection has ended
		frozen   bool
		expected bool         // its end is wanted
		epoch    int64        // in which it leads; 0: it never did
		heir     bool         // another one takes its folder over
		load     control.Load // as told last
		read     *int64       // bytes, before its end
		written  *int64
	}
}

var errProcessGone = errors.New("the process has ended")

// ask sends a request and waits for the answer.
func (p *process) ask(ctx context.Context, what any) (control.Told, error) {
	p.mu.Lock()
	if p.mu.conn == nil || p.mu.gone {
		p.mu.Unlock()
		return control.Told{}, fmt.Errorf("%s: %w", p.name, errProcessGone)
	}
	p.mu.seq++
	seq, got := p.mu.seq, make(chan control.Told, 1)
	p.mu.asks[seq] = got
	p.mu.conn.Send(control.Ask{Seq: seq, What: what})
	p.mu.Unlock()
	select {
	case t, ok := <-got:
		if !ok {
			return t, fmt.Errorf("%s: %w", p.name, errProcessGone)
		}
		if t.Error != "" {
			return t, errors.New(t.Error)
		}
		return t, nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.mu.asks, seq)
		p.mu.Unlock()
		return control.Told{}, context.Cause(ctx)
	}
}

// say sends a request whose answer does not matter.
func (p *process) say(what any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.conn != nil {
		p.mu.conn.Send(control.Ask{What: what})
	}
}

func (p *process) told(t control.Told) {
	p.mu.Lock()
	got := p.mu.asks[t.Seq]
	delete(p.mu.asks, t.Seq)
	p.mu.Unlock()
	if got != nil {
		got <- t
	}
}

// lost ends all that waits for the process.
func (p *process) lost() {
	p.mu.Lock()
	p.mu.gone = true
	asks := p.mu.asks
	p.mu.asks = map[uint64]chan control.Told{}
	p.mu.Unlock()
	for _, got := range asks {
		close(got)
	}
}

// live tells whether it can be asked.
func (p *process) live() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.conn != nil && !p.mu.gone && !p.mu.frozen
}

// leads notes that it is the leader of an epoch.
func (p *process) leads(epoch int64) {
	p.mu.Lock()
	p.mu.epoch = epoch
	p.mu.Unlock()
}

func (p *process) remember(l control.Load) {
	p.mu.Lock()
	p.mu.load = l
	p.mu.Unlock()
}

func (p *process) lastLoad() control.Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.load
}

// account notes what only a living process can tell.
func (p *process) account() {
	r, w := diskBytes(p.cmd.Process.Pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r != nil && w != nil {
		p.mu.read, p.mu.written = r, w
	}
}

// over tells whether it has ended, or must have.
func (p *process) over() bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.expected
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	p.account()
	p.mu.Lock()
	p.mu.expected = true
	p.mu.Unlock()
	select {
	case <-p.exited: // its number may be another's by now
	default:
		killGroup(p.cmd)
	}
}

// bequeath says whether another process will take its folder over.
func (p *process) bequeath(heir bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.heir = heir
}

// freeze stops it, or lets it go on.
func (p *process) freeze(on bool) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.frozen = on
	if on {
		return stopGroup(p.cmd)
	}
	return resumeGroup(p.cmd)
}

// end waits until it has ended by itself, and kills it if it does not.
func (p *process) end(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.exited:
	case <-t.C:
		p.kill()
		<-p.exited
	}
}

// why words the end of a process that nobody wanted.
func (p *process) why() error {
	status := "exit status 0"
	if p.exit != nil {
		status = p.exit.Error()
	}
	if words := p.last.String(); words != "" {
		return fmt.Errorf("the process %s ended by itself: %s: %s", p.name, status, words)
	}
	return fmt.Errorf("the process %s ended by itself: %s", p.name, status)
}

// lastWords passes a process's output on and keeps its end.
type lastWords struct {
	out io.Writer

	mu   sync.Mutex
	tail []byte
}

const tailSize = 2 << 10

func (w *lastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.tail = append(w.tail, b...)
	if n := len(w.tail); n > tailSize {
		w.tail = append(w.tail[:0], w.tail[n-tailSize:]...)
	}
	w.mu.Unlock()
	return w.out.Write(b)
}

// String is the line that says most: the first of a panic, else the last.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := ""
	for line := range bytes.Lines(w.tail) {
		s := strings.TrimSpace(string(line))
		if strings.HasPrefix(s, "panic:") || strings.HasPrefix(s, "fatal error:") {
			return s
		}
		if s != "" {
			last = s
		}
	}
	return last
}

// spawner starts processes from one thread that lives until close: the
// kernel's death signal is tied to the thread that starts a process.
type spawner struct {
	jobs chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for fn := range s.jobs {
			fn()
		}
	}()
	return s
}

func (s *spawner) do(fn func() error) error {
	result := make(chan error, 1)
	s.jobs <- func() { result <- fn() }
	return <-result
}

func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}

// start runs an executable with a request.
func (p *process) start(s *spawner, e Executable, r nodeRequest, out io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.last = &lastWords{out: out}
	p.cmd = exec.Command(e.Path, append(e.Args, p.role)...)
	p.cmd.Env, p.cmd.Stderr, p.cmd.Stdout = e.Env, p.last, p.last
	p.cmd.WaitDelay = time.Second
	isolate(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := s.do(p.cmd.Start); err != nil {
		return fmt.Errorf("start %s: %s could not be started: %w", p.name, e.Path, err)
	}
	go func() {
		p.exit = p.cmd.Wait()
		close(p.exited)
	}()
	if _, err := p.stdin.Write(append(b, '\n')); err != nil {
		<-p.exited // it has died at once
		return p.why()
	}
	return nil
}
