package master

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/timeline"
)

// BatchConfig is what the master of a batch job is started with.
type BatchConfig struct {
	Graph     *graph.Graph
	Values    options.Values
	Job       string // names the job in its log and in the names of partitions
	Timeline  *timeline.Log
	Origin    time.Time // of the cluster's clock
	Transport exchange.Network
	Epoch     int64
	Log       joblog.Folder
	Result    Result // of the job, for masters to come
	OutputDir string // where finished attempts leave what is to be committed
	Seed      uint64
	// FromScratch wipes a log that cannot be read. Without it such a log is an
	// error with its place.
	FromScratch bool
}

// Result keeps how a job has ended, outside its log. It is written before
// anything of the job is cleaned up, and is the last to go.
type Result interface {
	// Read returns nil while the job has not ended.
	Read() (*joblog.JobFinished, error)
	Write(joblog.JobFinished) error
}

// Batch runs one batch job: it is the event loop that carries out what
// scheduling/batch decides. The loop owns all state but what is said otherwise.
type Batch struct {
	cfg      BatchConfig
	listener net.Listener
	loopDone chan struct{}
	done     chan struct{} // closed when the job has ended here
	reported chan struct{} // closed when a worker has reported its options
	work     sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mail struct {
		sync.Mutex
		events []func()
		wake   chan struct{}
		closed bool
	}
	shared struct {
		sync.Mutex
		err      error
		options  map[string]any
		store    joblog.Store
		past     control.BatchFigures // of stores that are closed
		counts   map[joblog.AttemptID]int64
		finished map[string]map[int]int64 // records of finished tasks by vertex, subtask
		leftover int64
		ended    bool
		conns    map[*control.Conn]bool // nil: the master is shutting down
	}

	scheduler  *batch.Scheduler
	log        *journal
	result     *joblog.JobFinished // the job was over before this master
	workers    map[batch.Worker]*batchWorker
	joined     map[int]bool
	attempts   map[joblog.AttemptID]batch.Worker // that were deployed or adopted, and have not ended
	before     map[attemptKey]uint64             // epochs of attempts of masters before, as workers report them
	goneOn     map[attemptKey]bool               // of them: those that count under this master
	sources    map[string]*batchSource
	results    map[attemptKey]*batch.Result // of attempts that are about to be noted as FINISHED
	partitions map[joblog.TaskID]map[batch.PartitionID]batch.Worker
	commits    []joblog.AttemptID // to be carried out, one after the other
	committing bool
	started    time.Duration
	dead       map[batch.Worker]bool // of those that a log may know: they will not come
	replayed   bool
	early      []func()                           // inventories that came before the replay
	unrecorded []recorded                         // finished attempts that the log does not have yet, in order
	winners    map[joblog.TaskID]joblog.AttemptID // that had finished, as the log says
	waiting    int                                // workers that the first schedule waits for
	announced  bool                               // Begin was called
	begun      bool                               // the scheduler has started
	asked      map[batch.Worker]bool              // for their inventories, by the scheduler
	cut        map[string]bool                    // vertices that are complete, as the log was told
	timer      *time.Timer
	limit      *time.Timer
	ending     *batchEnd
	queue      []func()
	stepping   bool
}

// batchWorker is a worker as the master of a batch job knows it.
type batchWorker struct {
	workerConn
	name batch.Worker
}

// NewBatch starts a master that listens for workers. Begin starts the job.
func NewBatch(cfg BatchConfig) (*Batch, error) {
	m := &Batch{
		cfg: cfg, loopDone: make(chan struct{}), done: make(chan struct{}), reported: make(chan struct{}), workers: map[batch.Worker]*batchWorker{}, joined: map[int]bool{},
		attempts: map[joblog.AttemptID]batch.Worker{}, before: map[attemptKey]uint64{}, goneOn: map[attemptKey]bool{}, cut: map[string]bool{}, asked: map[batch.Worker]bool{}, dead: map[batch.Worker]bool{}, winners: map[joblog.TaskID]joblog.AttemptID{}, sources: map[string]*batchSource{},
		results: map[attemptKey]*batch.Result{}, partitions: map[joblog.TaskID]map[batch.PartitionID]batch.Worker{},
	}
	m.shared.conns = map[*control.Conn]bool{}
	m.shared.counts, m.shared.finished = map[joblog.AttemptID]int64{}, map[string]map[int]int64{}
	m.mail.wake = make(chan struct{}, 1)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if err := m.newSources(); err != nil {
		return nil, err
	}
	var err error
	if m.scheduler, err = batch.New(batchConfig(cfg)); err != nil {
		return nil, err
	}
	if m.result, err = cfg.Result.Read(); err != nil {
		return nil, err
	}
	if m.log, err = openJournal(m); err != nil {
		return nil, err
	}
	if m.listener, err = cfg.Transport.Listen(); err != nil {
		m.log.close(false, func(error) {})
		m.work.Wait()
		return nil, fmt.Errorf("master: %w", err)
	}
	m.timer = time.AfterFunc(time.Hour, func() { m.schedule(batch.TimerFired{}) })
	m.timer.Stop()
	m.limit = time.AfterFunc(time.Hour, func() { m.post(m.start) })
	m.limit.Stop()
	go m.loop()
	m.work.Go(m.accept)
	m.work.Go(m.watchHeartbeats)
	return m, nil
}

// Addr is where workers connect.
func (m *Batch) Addr() string { return m.listener.Addr().String() }

// Done is closed when the job has ended.
func (m *Batch) Done() <-chan struct{} { return m.done }

// Closed is closed when the master has ended, the job perhaps not.
func (m *Batch) Closed() <-chan struct{} { return m.loopDone }

// Err tells why the job ended, after Done; nil if it finished.
func (m *Batch) Err() error {
	m.shared.Lock()
	defer m.shared.Unlock()
	return m.shared.err
}

// Begin starts the job, or goes on with it. It first ran at started, and is not
// scheduled before so many workers are there, or the limit has passed; a master
// that takes a job over by its log knows itself whom to wait for.
func (m *Batch) Begin(started time.Duration, workers int, limit time.Duration) {
	m.post(func() {
		m.announced, m.started = true, started
		m.waiting = workers
		m.limit.Reset(limit)
		for _, w := range m.workers {
			m.introduce(w)
		}
		// A job that is over has workers that may not know.
		if m.log.hasEvents() && m.result == nil || len(m.workers) >= workers {
			m.start()
		}
	})
}

func (m *Batch) start() {
	if m.begun {
		return
	}
	m.begun = true
	m.limit.Stop()
	m.step(batch.Start{HasLog: m.log.hasEvents(), Result: m.result})
	if m.cfg.Epoch > 1 {
		for _, w := range m.workers {
			m.sweepWorker(w)
		}
	}
}

func (m *Batch) now() time.Duration { return time.Since(m.cfg.Origin) }

// post hands something to the loop. Safe from any goroutine.
func (m *Batch) post(fn func()) {
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

func (m *Batch) loop() {
	defer close(m.loopDone)
	for {
		m.mail.Lock()
		events, closed := m.mail.events, m.mail.closed
		m.mail.events = nil
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

// schedule gives an event to the scheduler. Safe from any goroutine; from within
// the loop use step.
func (m *Batch) schedule(e batch.Event) { m.post(func() { m.step(e) }) }

// step gives an event to the scheduler once the effects of the one before have
// been carried out.
func (m *Batch) step(e batch.Event) {
	m.enqueue(func() {
		for _, x := range m.scheduler.Step(m.now(), e) {
			m.carryOut(x)
		}
	})
}

func (m *Batch) enqueue(fn func()) {
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

// WorkerGone tells that a worker's process has ended. A master that takes a job
// over must not wait for one that it never meets.
func (m *Batch) WorkerGone(index int) {
	m.post(func() {
		name := workerName(index)
		if m.workers[name] != nil || m.dead[name] {
			return // its connection tells
		}
		m.dead[name] = true
		if m.replayed {
			m.step(batch.WorkerLost{ID: name, Err: errProcessEnded})
		}
	})
}

var errProcessEnded = errors.New("its process has ended")

// Cancel ends the job.
func (m *Batch) Cancel() { m.schedule(batch.CancelJob{}) }

// ask runs something in the loop and waits for its answer.
func (m *Batch) ask(ctx context.Context, fn func() error) error {
	got := make(chan error, 1)
	m.post(func() { got <- fn() })
	select {
	case err := <-got:
		return err
	case <-m.loopDone:
		return errors.New("the master has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// FailTask makes the running attempts of a subtask throw.
func (m *Batch) FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error {
	return m.ask(ctx, func() error {
		var found []joblog.AttemptID
		for id := range m.attempts {
			if m.vertexID(vertex) == id.Vertex && id.Subtask == subtask {
				found = append(found, id)
			}
		}
		if len(found) == 0 {
			return fmt.Errorf("fail-task: subtask %d of vertex %q does not run", subtask, vertex)
		}
		accepted()
		for _, id := range found {
			m.send(m.attempts[id], control.CancelAttempt{Epoch: m.cfg.Epoch, Attempt: id, Failure: reason})
		}
		return nil
	})
}

// DropPartition deletes what a finished subtask has left on its worker's disk,
// as a failing disk would: nobody is told.
func (m *Batch) DropPartition(ctx context.Context, vertex string, subtask int, accepted func()) error {
	return m.ask(ctx, func() error {
		parts := m.partitions[joblog.TaskID{Vertex: m.vertexID(vertex), Subtask: subtask}]
		if len(parts) == 0 {
			return fmt.Errorf("drop-partition: subtask %d of vertex %q holds no finished partition now", subtask, vertex)
		}
		accepted()
		for id, w := range parts {
			m.send(w, control.DropData{Epoch: m.cfg.Epoch, Partition: id})
		}
		return nil
	})
}

// vertexID is the vertex that an operator is chained in.
func (m *Batch) vertexID(operator string) string {
	if i := m.cfg.Graph.Vertex(operator); i >= 0 {
		return m.cfg.Graph.Vertices[i].ID
	}
	return operator
}

// AwaitOptions is Options once a worker has reported some.
func (m *Batch) AwaitOptions(ctx context.Context) map[string]any {
	select {
	case <-m.reported:
	case <-m.loopDone:
	case <-ctx.Done():
	}
	return m.Options()
}

// Options are the values that the tasks run with, as the workers reported them.
func (m *Batch) Options() map[string]any {
	m.shared.Lock()
	defer m.shared.Unlock()
	return maps.Clone(m.shared.options)
}

// Consumed are the records that tasks have read so far, and that count: those of
// finished tasks and of those that run, by vertex.
func (m *Batch) Consumed() map[string]int64 {
	m.shared.Lock()
	defer m.shared.Unlock()
	out := map[string]int64{}
	for v, tasks := range m.shared.finished {
		for _, n := range tasks {
			out[v] += n
		}
	}
	best := map[joblog.TaskID]int64{} // of several attempts the one that is ahead
	for id, n := range m.shared.counts {
		if _, finished := m.shared.finished[id.Vertex][id.Subtask]; !finished {
			best[id.TaskID] = max(best[id.TaskID], n)
		}
	}
	for id, n := range best {
		out[id.Vertex] += n
	}
	return out
}

// Figures are what recording has cost so far, and where it stands.
func (m *Batch) Figures() control.BatchFigures {
	m.shared.Lock()
	defer m.shared.Unlock()
	f := m.shared.past
	if m.shared.store != nil {
		f = addStats(f, m.shared.store.Stats())
	}
	f.Leftover, f.Ended = m.shared.leftover, m.shared.ended
	return f
}

// Reports are what the operators of a finished job reported.
func (m *Batch) Reports(context.Context) ([]control.Report, error) {
	return control.ReadReports(m.cfg.OutputDir)
}

// Kill ends the master as if its process had died: nothing more is written, and
// its connections break.
func (m *Batch) Kill() {
	m.log.kill()
	m.shut(true)
}

// Close stops the master and waits until everything of it is gone.
func (m *Batch) Close() { m.shut(false) }

func (m *Batch) shut(reset bool) {
	m.cancel()
	m.listener.Close()
	m.mail.Lock()
	m.mail.closed = true
	m.mail.Unlock()
	select {
	case m.mail.wake <- struct{}{}:
	default:
	}
	<-m.loopDone
	m.timer.Stop()
	m.limit.Stop()
	if m.ending != nil {
		m.ending.limit.Stop()
	}
	m.shared.Lock()
	conns := m.shared.conns // also of those that have not said hello
	m.shared.conns = nil
	m.shared.Unlock()
	for c := range conns {
		c.Close(reset)
	}
	m.log.close(false, func(error) {})
	m.work.Wait()
}
