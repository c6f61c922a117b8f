package master

import (
	"context"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
)

// Batch runs one batch job: it is the event loop that carries out what
// scheduling/batch decides. The loop owns all state but what is said otherwise.
type Batch struct {
	*outcome
	cfg    BatchConfig
	loop   *loop
	work   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	shared struct {
		sync.Mutex
		store    joblog.Store
		past     control.BatchFigures // of stores that are closed
		counts   map[joblog.AttemptID]int64
		finished map[string]map[int]int64 // records of finished tasks by vertex, subtask
		leftover int64
		heard    []int // whose leftovers these are
	}

	workers    *registry
	scheduler  *batch.Scheduler
	log        *journal
	result     *joblog.JobFinished // the job was over before this master
	sources    map[string]*batchSource
	started    time.Duration
	waiting    int // workers that the first schedule waits for
	patience   time.Duration
	announced  bool   // Begin was called
	begun      bool   // the scheduler has started
	afterJoin  func() // what waits for those workers although it has; nil: nothing
	limit      *time.Timer
	scheduleAt *time.Timer
	ending     batchEnd
	endLimit   *time.Timer

	attempts   map[joblog.AttemptID]batch.Worker // that were deployed or adopted, and have not ended
	results    map[attemptKey]*batch.Result      // of attempts that are about to be noted as FINISHED
	partitions map[joblog.TaskID]map[batch.PartitionID]batch.Worker
	told       map[batch.Worker]producerLists
	commits    commitRounds
	unrecorded []recorded // finished attempts that the log does not have yet, in order

	// Of a master that takes a job over.
	replayed bool
	asked    map[batch.Worker]bool // for their inventories, by the scheduler
	silent   map[batch.Worker]bool // asked for them, and not answered yet
	dead     map[batch.Worker]bool // of those that a log may know: they will not come
	before   map[attemptKey]uint64 // epochs of attempts of masters before, as workers report them
	goneOn   map[attemptKey]bool   // of them: those that count under this master
	faithful bool                  // nothing goes on without its master
}

// NewBatch starts a master that listens for workers. Begin starts the job.
func NewBatch(cfg BatchConfig) (*Batch, error) {
	m := &Batch{
		outcome:    newOutcome(),
		cfg:        cfg,
		faithful:   options.BatchRecoveryMode.Get(cfg.Values) == string(batch.Faithful),
		sources:    map[string]*batchSource{},
		attempts:   map[joblog.AttemptID]batch.Worker{},
		results:    map[attemptKey]*batch.Result{},
		partitions: map[joblog.TaskID]map[batch.PartitionID]batch.Worker{},
		told:       map[batch.Worker]producerLists{},
		asked:      map[batch.Worker]bool{},
		silent:     map[batch.Worker]bool{},
		dead:       map[batch.Worker]bool{},
		before:     map[attemptKey]uint64{},
		goneOn:     map[attemptKey]bool{},
	}
	m.shared.counts, m.shared.finished = map[joblog.AttemptID]int64{}, map[string]map[int]int64{}
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
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.loop = newLoop()
	if m.log, err = openJournal(m); err != nil {
		m.cancel()
		m.loop.close()
		return nil, err
	}
	m.workers, err = newRegistry(registryConfig{
		loop: m.loop, members: m, transport: cfg.Transport, timeline: cfg.Timeline, now: m.now,
		epoch: cfg.Epoch, silence: options.HeartbeatTimeout.Get(cfg.Values),
	})
	if err != nil {
		m.cancel()
		m.loop.close()
		m.log.close(false, func(error) {})
		return nil, err
	}
	m.scheduleAt = m.loop.timer(func() { m.step(batch.TimerFired{}) })
	m.limit = m.loop.timer(m.joined)
	m.endLimit = m.loop.timer(m.leaveUnclean)
	m.workers.start()
	return m, nil
}

// Addr is where workers connect.
func (m *Batch) Addr() string { return m.workers.addr() }

// Closed is closed when the master has ended, the job perhaps not.
func (m *Batch) Closed() <-chan struct{} { return m.loop.done }

// Begin starts the job, or goes on with it. It first ran at started, and is not
// scheduled before so many workers are there, or the limit has passed; a master
// that takes a job over waits as long for those that its log had no time to name.
func (m *Batch) Begin(started time.Duration, workers int, limit time.Duration) {
	m.loop.post(func() {
		m.announced, m.started = true, started
		m.waiting, m.patience = workers, limit
		m.limit.Reset(limit)
		for _, w := range m.workers.inOrder() {
			m.introduce(w)
		}
		// A job that is over has workers that may not know.
		if m.log.hasEvents() && m.result == nil || len(m.workers.joined) >= workers {
			m.start()
		}
	})
}

// joined: the workers are there that are waited for, or it was long enough.
func (m *Batch) joined() {
	m.start()
	if then := m.afterJoin; then != nil {
		m.afterJoin = nil
		m.limit.Stop()
		then()
	}
}

// uponJoin does something when the workers are there, or the limit has passed.
func (m *Batch) uponJoin(then func()) {
	if len(m.workers.joined) >= m.waiting {
		then()
		return
	}
	m.afterJoin = then
	m.limit.Reset(m.patience)
}

func (m *Batch) start() {
	if m.begun {
		return
	}
	m.begun = true
	m.limit.Stop()
	m.step(batch.Start{HasLog: m.log.hasEvents(), Result: m.result, Workers: m.waiting, Patience: m.patience})
	if m.cfg.Epoch > 1 {
		for _, w := range m.workers.inOrder() {
			m.sweepWorker(w)
		}
	}
}

func (m *Batch) now() time.Duration { return time.Since(m.cfg.Origin) }

// schedule gives an event to the scheduler. Safe from any goroutine; from within
// the loop use step.
func (m *Batch) schedule(e batch.Event) { m.loop.post(func() { m.step(e) }) }

// step gives an event to the scheduler once the effects of the one before have
// been carried out.
func (m *Batch) step(e batch.Event) {
	m.loop.enqueue(func() {
		for _, x := range m.scheduler.Step(m.now(), e) {
			m.carryOut(x)
		}
		if len(m.attempts) == 0 {
			m.log.hurry() // nothing else is left to wait for
		}
	})
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
	m.loop.close()
	m.scheduleAt.Stop()
	m.limit.Stop()
	m.endLimit.Stop()
	m.workers.close(reset)
	m.log.close(false, func(error) {})
	m.work.Wait()
	m.log.closeOpened()
}
