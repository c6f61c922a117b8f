package master

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// Config is what a master is started with.
type Config struct {
	Graph       *graph.Graph // at the desired parallelism
	Values      options.Values
	Checkpoints storage.Store
	Timeline    *timeline.Log
	Origin      time.Time // of the cluster's clock
	Transport   exchange.Network
	Epoch       int64
	// Leads tells whether this master still leads; it is asked before a
	// checkpoint is completed. nil: there can be no other.
	Leads   func() error
	FirstID int64 // of its first checkpoint; <= 0: 1
	Seed    uint64
	Keep    bool // completed checkpoints stay when the job ends
}

// Master runs one job.
type Master struct {
	cfg       Config
	listener  net.Listener
	loopDone  chan struct{}
	restoring atomic.Bool   // in-flight data are to be restored and not all tasks are RUNNING
	done      chan struct{} // closed when the job has ended
	work      sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc

	mail struct {
		sync.Mutex
		events []func()
		wake   chan struct{}
		closed bool
	}
	outcome struct {
		sync.Mutex
		err     error
		options map[string]any // as the workers reported them
	}

	// Everything below belongs to the loop.
	graph        *graph.Graph // as deployed
	scheduler    *scheduling.Scheduler
	coord        *checkpoint.Coordinator
	workers      map[scheduling.Worker]*workerConn
	joined       map[int]bool // indices of workers, used once
	tasks        map[task.ID]*execution
	live         map[string][]*execution // newest attempt by vertex and subtask
	started      time.Duration
	draining     bool
	ended        bool
	token        string
	nextToken    uint64
	replies      map[uint64]func(path string, err error)
	restores     map[uint64]*preparing
	prepared     map[int]*prepared
	settled      map[int64][]task.ID // by checkpoint: tasks that had finished
	sources      *sources
	results      results
	timers       [2]*time.Timer // of the scheduler and of the coordinator
	origin       *Origin
	waiting      *waiting // the job has yet to be submitted
	deployedOnce bool
	restored     int64              // checkpoint that the newest execution began from
	sizes        map[int64][2]int64 // of checkpoints being finalized: in flight, state
	options      map[string]any     // as the tasks run with
	queue        []func()           // events that follow from effects
	stepping     bool
}

// execution is one attempt of a subtask, as the master sees it.
type execution struct {
	id     task.ID
	worker *workerConn
	state  task.State
}

// New starts a master that listens for workers. Submit starts the job.
func New(cfg Config) (*Master, error) {
	sources, err := newSources(cfg.Graph)
	if err != nil {
		return nil, err
	}
	l, err := cfg.Transport.Listen()
	if err != nil {
		return nil, fmt.Errorf("master: %w", err)
	}
	m := &Master{
		cfg: cfg, listener: l, loopDone: make(chan struct{}), done: make(chan struct{}), graph: cfg.Graph,
		workers: map[scheduling.Worker]*workerConn{}, joined: map[int]bool{}, tasks: map[task.ID]*execution{}, live: map[string][]*execution{},
		replies: map[uint64]func(string, error){}, restores: map[uint64]*preparing{}, prepared: map[int]*prepared{},
		sizes: map[int64][2]int64{}, settled: map[int64][]task.ID{}, token: snapshot.SavepointToken(), options: cfg.Values.Map(),
	}
	m.sources = sources
	m.results.reports = map[task.ID][]control.Report{}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.mail.wake = make(chan struct{}, 1)
	m.scheduler = scheduling.New(schedulerConfig(cfg))
	m.coord = checkpoint.New(coordinatorConfig(cfg))
	for i := range m.timers {
		m.timers[i] = time.AfterFunc(time.Hour, func() { m.timerFired(i) })
		m.timers[i].Stop()
	}
	go m.loop()
	m.work.Go(m.accept)
	m.work.Go(m.watchHeartbeats)
	return m, nil
}

// Addr is where workers connect.
func (m *Master) Addr() string { return m.listener.Addr().String() }

// Done is closed when the job has ended.
func (m *Master) Done() <-chan struct{} { return m.done }

// Err tells why the job ended, after Done; nil if it finished.
func (m *Master) Err() error {
	m.outcome.Lock()
	defer m.outcome.Unlock()
	return m.outcome.err
}

func (m *Master) now() time.Duration { return time.Since(m.cfg.Origin) }

// post hands something to the loop. Safe from any goroutine.
func (m *Master) post(fn func()) {
	m.mail.Lock()
	if !m.mail.closed {
		m.mail.events = append(m.mail.events, fn)
	}
	m.mail.Unlock()
	select {
	case m.mail.wake <- struct{}{}:
	default:
	}
}

// background runs what may block; the loop goes on.
func (m *Master) background(fn func()) { m.work.Go(fn) }

func (m *Master) loop() {
	defer close(m.loopDone)
	for {
		m.mail.Lock()
		events := m.mail.events
		m.mail.events = nil
		closed := m.mail.closed
		m.mail.Unlock()
		if closed {
			return
		}
		if len(events) == 0 {
			<-m.mail.wake
			continue
		}
		for _, fn := range events {
			fn()
		}
	}
}

// schedule and checkpoint give an event to one of the state machines. Effects
// may call them: the events that follow are taken when all effects of the
// current one have been carried out.
func (m *Master) schedule(e scheduling.Event) {
	m.enqueue(func() {
		for _, x := range m.scheduler.Step(m.now(), e) {
			m.scheduled(x)
		}
	})
}

func (m *Master) checkpoint(e checkpoint.Event) {
	m.enqueue(func() {
		for _, x := range m.coord.Step(m.now(), e) {
			m.checkpointed(x)
		}
	})
}

func (m *Master) enqueue(fn func()) {
	m.queue = append(m.queue, fn)
	if m.stepping {
		return
	}
	m.stepping = true
	for len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		next()
	}
	m.stepping = false
}

func (m *Master) setTimer(i int, at time.Duration) { m.timers[i].Reset(max(0, at-m.now())) }

func (m *Master) timerFired(i int) {
	m.post(func() {
		if i == 0 {
			m.schedule(scheduling.TimerFired{})
		} else {
			m.checkpoint(checkpoint.TimerFired{})
		}
	})
}

// Submit starts the job with the workers that are there. restore is a
// checkpoint to begin from, or nil.
func (m *Master) Submit(restore *Origin) { m.Begin(Start{Origin: restore}) }

// ask posts a request and waits for its answer.
func (m *Master) ask(ctx context.Context, fn func(token uint64)) (path string, err error) {
	type answer struct {
		path string
		err  error
	}
	got := make(chan answer, 1)
	m.post(func() {
		m.nextToken++
		m.replies[m.nextToken] = func(path string, err error) { got <- answer{path, err} }
		fn(m.nextToken)
	})
	select {
	case a := <-got:
		return a.path, a.err
	case <-m.done:
		select {
		case a := <-got:
			return a.path, a.err
		default:
			return "", errors.Join(errors.New("the job has ended"), m.Err())
		}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (m *Master) reply(token uint64, path string, err error) {
	if fn := m.replies[token]; fn != nil {
		delete(m.replies, token)
		fn(path, err)
	}
}

// Rescale asks for other parallelisms, by vertex; it returns when the request
// is accepted, not when the job runs with them. accepted is called in the loop
// at the instant before the scheduler acts.
func (m *Master) Rescale(ctx context.Context, parallelism map[string]int, accepted func()) error {
	_, err := m.ask(ctx, func(token uint64) {
		wanted := map[string]int{}
		for id, p := range parallelism {
			i := m.graph.Vertex(id)
			if i < 0 {
				m.reply(token, "", fmt.Errorf("rescale: no vertex %q", id))
				return
			}
			wanted[m.graph.Vertices[i].ID] = p
		}
		if _, err := m.cfg.Graph.Scale(wanted); err != nil {
			m.reply(token, "", err)
			return
		}
		accepted()
		m.schedule(scheduling.Rescale{Token: token, Parallelism: wanted})
	})
	return err
}

// FailTask makes the current attempt of a subtask throw.
func (m *Master) FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error {
	_, err := m.ask(ctx, func(token uint64) {
		i := m.graph.Vertex(vertex)
		if i < 0 || subtask >= len(m.live[m.graph.Vertices[i].ID]) {
			m.reply(token, "", fmt.Errorf("fail-task: no subtask %d of vertex %q", subtask, vertex))
			return
		}
		e := m.live[m.graph.Vertices[i].ID][subtask]
		accepted()
		if e.worker != nil {
			e.worker.conn.Send(control.FailTask{Epoch: m.cfg.Epoch, Task: e.id, Reason: reason})
		}
		m.reply(token, "", nil)
	})
	return err
}

// Savepoint takes one and returns its folder's path in the store. With stop
// the job ends after it.
func (m *Master) Savepoint(ctx context.Context, stop bool) (string, error) {
	return m.ask(ctx, func(token uint64) {
		if stop {
			m.schedule(scheduling.StopRequest{Token: token})
			return
		}
		m.checkpoint(checkpoint.TriggerRequest{Token: token, Savepoint: true})
	})
}

// StopSources lets unbounded sources end; the job then finishes by itself.
func (m *Master) StopSources() {
	m.post(func() {
		m.draining = true
		m.eachWorker(nil, func(w *workerConn, ids []task.ID) {
			w.conn.Send(control.StopSources{Epoch: m.cfg.Epoch, Tasks: ids})
		})
	})
}

// Cancel ends the job.
func (m *Master) Cancel() { m.post(func() { m.schedule(scheduling.CancelJob{}) }) }

// Options are the values that the tasks run with, as the workers reported them.
// Where workers disagree the value says so, which no option can equal.
func (m *Master) Options() map[string]any {
	m.outcome.Lock()
	defer m.outcome.Unlock()
	return maps.Clone(m.outcome.options)
}

// inUse notes what a worker reported.
func (m *Master) inUse(options map[string]any) {
	m.outcome.Lock()
	defer m.outcome.Unlock()
	if m.outcome.options == nil {
		m.outcome.options = maps.Clone(options)
		return
	}
	for k, v := range options {
		if old, ok := m.outcome.options[k]; ok && old != v {
			v = fmt.Sprintf("%v on one worker, %v on another", old, v)
		}
		m.outcome.options[k] = v
	}
}

// Restoring tells whether an execution that has in-flight data to restore is
// coming up.
func (m *Master) Restoring() bool { return m.restoring.Load() }

// Parallelism is the parallelism of each vertex as deployed now.
func (m *Master) Parallelism(ctx context.Context) map[string]int {
	got := make(chan map[string]int, 1)
	m.post(func() {
		out := map[string]int{}
		for i := range m.graph.Vertices {
			out[m.graph.Vertices[i].ID] = m.graph.Vertices[i].Parallelism
		}
		got <- out
	})
	select {
	case out := <-got:
		return out
	case <-ctx.Done():
		return nil
	case <-m.loopDone:
		return nil
	}
}

// Close stops the master and waits until everything of it is gone. Workers see
// their connection end.
func (m *Master) Close() {
	m.cancel()
	m.listener.Close()
	conns := make(chan []*workerConn, 1)
	m.post(func() {
		var all []*workerConn
		for _, w := range m.workers {
			all = append(all, w)
		}
		conns <- all
	})
	select {
	case all := <-conns:
		for _, w := range all {
			w.conn.Close(false)
		}
	case <-m.loopDone:
	}
	m.mail.Lock()
	m.mail.closed = true
	m.mail.Unlock()
	select {
	case m.mail.wake <- struct{}{}:
	default:
	}
	<-m.loopDone
	for _, t := range m.timers {
		t.Stop()
	}
	if m.waiting != nil {
		m.waiting.timer.Stop()
	}
	m.work.Wait()
}

func (m *Master) jobEvent(state string, err error) {
	e := timeline.Of(timeline.JobState)
	e.State = state
	if err != nil {
		e.Reason = err.Error()
	}
	m.cfg.Timeline.Add(e)
}

// attemptsPerEpoch keeps the attempts of a master above those of the one
// before, which nobody can ask how many there were.
const attemptsPerEpoch = 1000

func schedulerConfig(cfg Config) scheduling.Config {
	v := cfg.Values
	c := scheduling.Config{
		RegionFailover: options.FailoverStrategy.Get(v) == "region", ResourceWait: options.SubmissionResourceTimeout.Get(v),
		SubmissionStabilization: options.SubmissionStabilization.Get(v), Cooldown: options.SchedulerCooldown.Get(v),
		Stabilization: options.SchedulerStabilization.Get(v), MaxDelay: options.RescaleMaxDelay.Get(v),
		MaxCheckpointFailures: int(options.RescaleMaxCheckpointFailures.Get(v)), Seed: cfg.Seed,
		FirstAttempt: int(max(cfg.Epoch-1, 0)) * attemptsPerEpoch,
		Restart:      restartConfig(v),
	}
	g := cfg.Graph
	for i := range g.Vertices {
		x := &g.Vertices[i]
		c.Vertices = append(c.Vertices, scheduling.Vertex{ID: x.ID, Parallelism: x.Parallelism, MaxParallelism: x.MaxParallelism})
	}
	for _, r := range g.Regions() {
		var ids []string
		for _, i := range r {
			ids = append(ids, g.Vertices[i].ID)
		}
		c.Regions = append(c.Regions, ids)
	}
	return c
}

func restartConfig(v options.Values) scheduling.RestartConfig {
	c := scheduling.RestartConfig{Type: scheduling.RestartType(options.RestartType.Get(v))}
	switch c.Type {
	case scheduling.FixedDelay:
		c.Attempts, c.Delay = options.RestartFixedAttempts.Get(v), options.RestartFixedDelay.Get(v)
	case scheduling.FailureRate:
		c.Attempts, c.Delay = options.RestartFailureRateMax.Get(v), options.RestartFailureRateDelay.Get(v)
		c.Interval = options.RestartFailureRateInterval.Get(v)
	case scheduling.ExponentialDelay:
		c.Attempts, c.Initial, c.Max = options.RestartExpAttempts.Get(v), options.RestartExpInitial.Get(v), options.RestartExpMax.Get(v)
		c.Multiplier, c.ResetThreshold, c.Jitter = options.RestartExpMultiplier.Get(v), options.RestartExpReset.Get(v), options.RestartExpJitter.Get(v)
	}
	return c
}

func coordinatorConfig(cfg Config) checkpoint.Config {
	v := cfg.Values
	c := checkpoint.Config{
		FirstID:  cfg.FirstID,
		Interval: options.CheckpointInterval.Get(v), Timeout: options.CheckpointTimeout.Get(v), MinPause: options.CheckpointMinPause.Get(v),
		MaxConcurrent: int(options.MaxConcurrentCheckpoints.Get(v)), TolerableFailures: int(options.TolerableFailedCheckpoints.Get(v)),
		Retained: int(options.NumRetained.Get(v)), Unaligned: options.UnalignedEnabled.Get(v), AlignedTimeout: options.AlignedTimeout.Get(v),
	}
	switch options.ExternalizedRetention.Get(v) {
	case "DELETE_ON_CANCELLATION":
		c.Retention = checkpoint.DeleteOnCancellation
	case "RETAIN_ON_CANCELLATION":
		c.Retention = checkpoint.RetainOnCancellation
	}
	return c
}
