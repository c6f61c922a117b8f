package master

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/task"
)

// Master runs one job.
type Master struct {
	*outcome
	cfg       Config
	loop      *loop
	restoring atomic.Bool // in-flight data are to be restored and not all tasks are RUNNING
	work      sync.WaitGroup
	ctx       context.Context
	cancel    context.CancelFunc

	// Everything below belongs to the loop.
	workers      *registry
	graph        *graph.Graph // as deployed
	scheduler    *scheduling.Scheduler
	coord        *checkpoint.Coordinator
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
	origin       *Origin
	waiting      *waiting    // the job has yet to be submitted
	submitLimit  *time.Timer // of that
	scheduleAt   *time.Timer // of the scheduler
	checkpointAt *time.Timer // of the coordinator
	deployedOnce bool
	restored     int64              // checkpoint that the newest execution began from
	sizes        map[int64][2]int64 // of checkpoints being finalized: in flight, state
	options      map[string]any     // as the tasks run with
}

// execution is one attempt of a subtask, as the master sees it.
type execution struct {
	id     task.ID
	worker *worker
	state  task.State
}

// New starts a master that listens for workers. Begin starts the job.
func New(cfg Config) (*Master, error) {
	sources, err := newSources(cfg.Graph)
	if err != nil {
		return nil, err
	}
	m := &Master{
		outcome:   newOutcome(),
		cfg:       cfg,
		graph:     cfg.Graph,
		options:   cfg.Values.Map(),
		token:     snapshot.SavepointToken(),
		scheduler: scheduling.New(schedulerConfig(cfg)),
		coord:     checkpoint.New(coordinatorConfig(cfg)),
		sources:   sources,
		results:   results{reports: map[task.ID][]control.Report{}},
		tasks:     map[task.ID]*execution{},
		live:      map[string][]*execution{},
		replies:   map[uint64]func(string, error){},
		restores:  map[uint64]*preparing{},
		prepared:  map[int]*prepared{},
		settled:   map[int64][]task.ID{},
		sizes:     map[int64][2]int64{},
	}
	m.loop = newLoop()
	m.workers, err = newRegistry(registryConfig{
		loop: m.loop, members: m, transport: cfg.Transport, timeline: cfg.Timeline, now: m.now,
		epoch: cfg.Epoch, silence: options.HeartbeatTimeout.Get(cfg.Values),
	})
	if err != nil {
		m.loop.close()
		return nil, err
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.submitLimit = m.loop.timer(m.workersComplete)
	m.scheduleAt = m.loop.timer(func() { m.schedule(scheduling.TimerFired{}) })
	m.checkpointAt = m.loop.timer(func() { m.checkpoint(checkpoint.TimerFired{}) })
	m.workers.start()
	return m, nil
}

// Addr is where workers connect.
func (m *Master) Addr() string { return m.workers.addr() }

func (m *Master) now() time.Duration { return time.Since(m.cfg.Origin) }

// background runs what may block; the loop goes on.
func (m *Master) background(fn func()) { m.work.Go(fn) }

// schedule and checkpoint give an event to one of the state machines. Effects
// may call them: the events that follow are taken when all effects of the
// current one have been carried out.
func (m *Master) schedule(e scheduling.Event) {
	m.loop.enqueue(func() {
		for _, x := range m.scheduler.Step(m.now(), e) {
			m.scheduled(x)
		}
	})
}

func (m *Master) checkpoint(e checkpoint.Event) {
	m.loop.enqueue(func() {
		for _, x := range m.coord.Step(m.now(), e) {
			m.checkpointed(x)
		}
	})
}

// at sets a timer to an instant on the cluster's clock.
func (m *Master) at(t *time.Timer, at time.Duration) { t.Reset(max(0, at-m.now())) }

// Submit starts the job with the workers that are there. restore is a
// checkpoint to begin from, or nil.
func (m *Master) Submit(restore *Origin) { m.Begin(Start{Origin: restore}) }

// Close stops the master and waits until everything of it is gone. Workers see
// their connection end.
func (m *Master) Close() {
	m.cancel()
	m.loop.close()
	for _, t := range []*time.Timer{m.submitLimit, m.scheduleAt, m.checkpointAt} {
		t.Stop()
	}
	m.workers.close(false)
	m.work.Wait()
}
