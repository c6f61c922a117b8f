package batch

import (
	"fmt"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// never is a time that does not come.
const never = time.Duration(-1)

// phase is where the job stands.
type phase uint8

const (
	phaseCreated phase = iota
	phaseReconciling
	phaseRunning
	phaseCommitting // all tasks have finished
	phaseEnding     // failing or being cancelled
	phaseEnded
)

// Scheduler decides about one job.
type Scheduler struct {
	cfg      Config
	policy   policy
	strategy *scheduling.Strategy
	vertices []*vertex
	byID     map[string]*vertex
	byData   map[string]*edge

	// Of the step in progress.
	now     time.Duration
	effects []Effect

	phase   phase
	status  scheduling.Status
	timerAt time.Duration
	final   scheduling.Status // phaseEnding
	cause   error

	workers    []*worker
	attempts   map[AttemptID]*attempt // live ones
	candidates []*task                // may be consumable
	ready      []*task                // were consumable and wait for slots
	restarts   []*restart
	global     *restart // of the whole job, under way
	setbacks   setback  // of the whole job, since a task finished last
	blamed     map[Worker]blame
	fragile    map[*vertex]bool
	backlog    backlog
	checkAt    time.Duration // for slow tasks
	pipelined  bool          // tasks may need several slots at one time
	shortage   *NoSlotError  // tasks wait for slots that do not exist
	lost       error         // how the last worker went that did

	finishes    uint64 // of tasks
	logged      uint64 // events given to the log
	durable     uint64
	holders     map[Worker]bool // in the last WorkerSet
	dirty       map[*vertex]bool
	consumed    []consumed
	snapshot    time.Duration // when coordinators were last snapshotted
	recovery    *recovery
	withdrawing bool // what masters before have committed is being taken back
	completion  completion
}

// worker is a live worker.
type worker struct {
	id      Worker
	slots   int
	used    int
	blocked time.Duration // gets nothing new before
}

// New makes a scheduler to which nothing has happened. It refuses a job that it
// cannot run.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Mode == "" {
		cfg.Mode = Hardened
	}
	if cfg.Parallelism.DataPerTask < 1 {
		cfg.Parallelism.DataPerTask = 16 << 20
	}
	cfg.Parallelism.Min = max(cfg.Parallelism.Min, 1)
	if cfg.Parallelism.Max < 1 {
		cfg.Parallelism.Max = 128
	}
	if err := check(cfg); err != nil {
		return nil, err
	}
	s := &Scheduler{
		cfg: cfg, strategy: scheduling.NewStrategy(cfg.Restart, cfg.Seed),
		byID: map[string]*vertex{}, byData: map[string]*edge{}, timerAt: never, checkAt: never, snapshot: never,
		attempts: map[AttemptID]*attempt{}, blamed: map[Worker]blame{}, fragile: map[*vertex]bool{}, holders: map[Worker]bool{},
		dirty: map[*vertex]bool{}, completion: newCompletion(), backlog: backlog{since: never},
	}
	s.policy = hardened{s}
	if cfg.Mode == Faithful {
		s.policy = faithful{s}
	}
	for i, v := range cfg.Vertices {
		vx := &vertex{Vertex: v, index: i, ledger: NewLedger(v.ID)}
		s.vertices = append(s.vertices, vx)
		s.byID[v.ID] = vx
	}
	for _, e := range cfg.Edges {
		x := &edge{Edge: e, from: s.byID[e.From], to: s.byID[e.To]}
		x.output = len(x.from.out)
		x.from.out, x.to.in = append(x.from.out, x), append(x.to.in, x)
		s.byData[e.DataSet] = x
		s.pipelined = s.pipelined || e.Pipelined
	}
	return s, nil
}

// Step takes an event at a time, which must not go back, and returns what is to
// be done, in order. The slice is the caller's.
func (s *Scheduler) Step(now time.Duration, e Event) []Effect {
	s.now, s.effects = now, nil
	if s.phase != phaseEnded {
		s.handle(e)
		s.advance()
	}
	s.armTimer()
	return s.effects
}

func (s *Scheduler) emit(e Effect) { s.effects = append(s.effects, e) }

func (s *Scheduler) setStatus(st scheduling.Status, err error) {
	if s.status != st {
		s.status = st
		s.emit(JobStatus{Status: st, Err: err})
	}
}

func (s *Scheduler) note(k timeline.Kind, a AttemptID, set func(*timeline.Event)) {
	e := timeline.Task(k, a.Vertex, a.Subtask, a.Attempt)
	if set != nil {
		set(&e)
	}
	s.emit(Note{e})
}

func (s *Scheduler) handle(e Event) {
	switch e := e.(type) {
	case Start:
		if s.phase == phaseCreated {
			s.begin(e)
		}
	case Replayed:
		s.replayed(e)
	case WorkerJoined:
		s.workerJoined(e)
	case WorkerLost:
		s.workerLost(e)
	case Inventory:
		s.inventory(e)
	case TaskChanged:
		s.taskChanged(e)
	case PartitionsGone:
		s.partitionsGone(e)
	case SourceParallelism:
		s.sourceParallelism(e)
	case SplitsDiscovered, SplitsAssigned, SplitsReturned:
		s.splits(e)
	case SnapshotTaken:
		if e.Err == nil && s.recording() {
			s.log(Log{Event: joblog.CoordinatorSnapshot{Snapshot: joblog.Snapshot{Operator: e.Operator, Data: e.Data}}})
		}
	case LogDurable:
		s.durable = max(s.durable, e.Number)
	case LogPressure:
		s.logPressure(e.On)
	case OutputCommitted:
		s.outputCommitted(e)
	case OutputWithdrawn:
		s.outputWithdrawn(e)
	case GlobalFailure:
		if e.Fatal {
			s.end(scheduling.StatusFailed, e.Err)
		} else {
			s.restartAll(e.Err)
		}
	case CancelJob:
		s.cancelJob()
	case Suspend:
		s.emit(CloseLog{})
		s.terminal(scheduling.StatusSuspended, e.Err)
	case TimerFired:
		s.timerAt = never
	}
}

// begin starts the job, or takes it over.
func (s *Scheduler) begin(e Start) {
	s.emit(JobStatus{Status: s.status})
	s.emit(Note{masterElected(s.cfg.Epoch)})
	switch {
	case e.Result != nil:
		s.ended(e.Result)
		return
	case e.HasLog && s.cfg.Recovery:
		s.phase = phaseReconciling
		if s.cfg.Mode == Faithful {
			e.Workers = 0 // it waits for partitions, whoever has them
		}
		s.recovery = newRecovery(e.Workers, s.now+e.Patience)
		for _, w := range s.workers {
			s.emit(AskInventory{Worker: w.id})
		}
		s.emit(ReplayLog{})
		return
	case e.HasLog:
		s.policy.unused()
	case s.cfg.Recovery:
		s.policy.takeover(nil)
	}
	s.policy.anew()
	s.run()
	s.initializeAll()
}

func masterElected(epoch uint64) timeline.Event {
	e := timeline.Of(timeline.MasterElected)
	e.Detail = fmt.Sprintf("epoch %d", epoch)
	return e
}

func (s *Scheduler) run() {
	s.phase = phaseRunning
	s.setStatus(scheduling.StatusRunning, nil)
	if c := s.cfg.Speculation; c != nil {
		s.checkAt = s.now + c.CheckInterval
	}
}

// recording tells whether events go to the log. During recovery none do.
func (s *Scheduler) recording() bool {
	return s.cfg.Recovery && s.phase != phaseReconciling && s.phase != phaseCreated
}

func (s *Scheduler) log(l Log) {
	s.logged++
	s.emit(l)
}

// advance does what has become possible.
func (s *Scheduler) advance() {
	if s.phase == phaseReconciling {
		s.advanceRecovery()
	}
	if (s.phase == phaseRunning || s.phase == phaseCommitting) && !s.withdrawing {
		s.advanceReleases()
		s.advanceRestarts()
		s.awaitSlots()
		s.speculate()
		s.schedule()
		s.complete()
		s.standstill()
	}
	if s.phase == phaseEnding && len(s.attempts) == 0 {
		s.closeDown()
	}
}

// armTimer asks for the next time at which something is due.
func (s *Scheduler) armTimer() {
	at := never
	earlier := func(t time.Duration) {
		if t != never && (at == never || t < at) {
			at = t
		}
	}
	switch s.phase {
	case phaseReconciling:
		earlier(s.recovery.deadline)
		if s.recovery.unnamed(s.now) {
			earlier(s.recovery.patience)
		}
	case phaseRunning:
		for _, r := range s.restarts {
			if r.at > s.now {
				earlier(r.at)
			}
		}
		earlier(s.slotsDue())
		if len(s.ready) > 0 {
			earlier(s.backlog.due())
		}
		if len(s.ready) > 0 {
			for _, w := range s.workers {
				if w.blocked > s.now {
					earlier(w.blocked)
				}
			}
		}
		if len(s.attempts) > 0 {
			earlier(s.checkAt)
		}
	case phaseCommitting:
		earlier(s.completion.due())
	}
	if at == s.timerAt {
		return
	}
	s.timerAt = at
	if at == never {
		s.emit(StopTimer{})
	} else {
		s.emit(SetTimer{At: at})
	}
}
