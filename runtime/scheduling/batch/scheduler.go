package batch

import (
	"fmt"
	"slices"
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
	fragile    map[*vertex]bool
	pressure   bool
	checkAt    time.Duration // for slow tasks

	logged    uint64 // events given to the log
	durable   uint64
	holders   map[Worker]bool // in the last WorkerSet
	dirty     map[*vertex]bool
	consumed  []consumed
	snapshot  time.Duration // when coordinators were last snapshotted
	recovery  *recovery
	commits   map[AttemptID]bool // phaseCommitting: not confirmed yet
	asked     bool               // phaseCommitting: commits have been asked for
	commitAt  time.Duration
	finishing bool // JobFinished was logged
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
		byID: map[string]*vertex{}, byData: map[string]*edge{}, timerAt: never, checkAt: never, commitAt: never, snapshot: never,
		attempts: map[AttemptID]*attempt{}, fragile: map[*vertex]bool{}, holders: map[Worker]bool{},
		dirty: map[*vertex]bool{}, commits: map[AttemptID]bool{},
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
			s.begin(e.HasLog)
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
		s.pressure = e.On
	case OutputCommitted:
		s.outputCommitted(e)
	case GlobalFailure:
		if e.Fatal {
			s.end(scheduling.StatusFailed, e.Err)
		} else {
			s.restartAll(e.Err)
		}
	case CancelJob:
		if !s.asked { // what is being committed is done
			s.end(scheduling.StatusCanceled, nil)
		}
	case Suspend:
		s.emit(CloseLog{})
		s.terminal(scheduling.StatusSuspended, e.Err)
	case TimerFired:
		s.timerAt = never
	}
}

// begin starts the job, or takes it over.
func (s *Scheduler) begin(hasLog bool) {
	s.emit(JobStatus{Status: s.status})
	s.emit(Note{masterElected(s.cfg.Epoch)})
	switch {
	case hasLog && s.cfg.Recovery:
		s.phase = phaseReconciling
		s.recovery = newRecovery()
		for _, w := range s.workers {
			s.emit(AskInventory{Worker: w.id})
		}
		s.emit(ReplayLog{})
		return
	case hasLog:
		s.policy.unused()
	case s.cfg.Recovery:
		s.policy.takeover(nil)
	}
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

// initializeAll settles the parallelism of all vertices for which that can be
// done.
func (s *Scheduler) initializeAll() {
	for _, v := range s.vertices {
		if v.parallelism > 0 || !v.initializable() {
			continue
		}
		switch {
		case v.Parallelism > 0:
			s.initialize(v, v.Parallelism, nil)
		case len(v.in) == 0:
			if !v.inferring {
				v.inferring = true
				s.emit(InferParallelism{Vertex: v.ID})
			}
		default:
			n, spans := s.cfg.Parallelism.decide(v)
			s.initialize(v, n, spans)
		}
	}
}

func (s *Scheduler) initialize(v *vertex, parallelism int, spans []span) {
	v.initialize(s.cfg.Parallelism, parallelism, spans, nil)
	s.candidates = append(s.candidates, v.tasks...)
	if s.recording() {
		e := joblog.JobVertexInitialized{Vertex: v.ID, Parallelism: parallelism}
		for _, in := range v.in {
			e.Inputs = append(e.Inputs, joblog.InputInfo{DataSet: in.DataSet, Subtasks: in.ranges})
		}
		s.log(Log{Event: e})
	}
}

// sourceParallelism settles a source, unless that has been done meanwhile: the
// answer can be older than a failover.
func (s *Scheduler) sourceParallelism(e SourceParallelism) {
	v := s.byID[e.Vertex]
	if v == nil || !v.inferring || v.parallelism > 0 || s.phase != phaseRunning {
		return
	}
	n := e.Parallelism
	if n <= 0 {
		n = s.cfg.Parallelism.SourceDefault
	}
	if n <= 0 {
		n = v.high(s.cfg.Parallelism)
	}
	s.initialize(v, min(n, v.high(s.cfg.Parallelism)), nil)
	s.initializeAll()
}

// advance does what has become possible.
func (s *Scheduler) advance() {
	if s.phase == phaseReconciling {
		s.advanceRecovery()
	}
	if s.phase == phaseRunning || s.phase == phaseCommitting {
		s.advanceReleases()
		s.advanceRestarts()
		s.speculate()
		s.schedule()
		s.complete()
	}
	if s.phase == phaseEnding && len(s.attempts) == 0 {
		s.closeDown()
	}
}

// schedule deploys what is consumable while there are slots.
func (s *Scheduler) schedule() {
	if s.phase != phaseRunning {
		return
	}
	s.queueUp()
	if s.pressure || len(s.ready) == 0 {
		return
	}
	free := 0
	for _, w := range s.workers {
		free += w.free(s.now)
	}
	i := 0
	var kept []*task
	for ; i < len(s.ready) && free > 0; i++ {
		t := s.ready[i]
		if t.state != created || t.restart != nil {
			t.queued = false
			continue
		}
		group := t.group()
		ok := true
		for _, m := range group {
			ok = ok && m.state == created && m.restart == nil && m.consumable()
		}
		switch {
		case !ok:
			// It comes back when its inputs, or the others of its region, do.
			t.queued = false
		case len(group) > free:
			kept = append(kept, t)
		default:
			for _, m := range group {
				m.state = running
			}
			// Producers in front of consumers, which have to know where they are.
			for _, m := range group {
				s.deploy(m, s.freest(""), false)
				m.queued = false
			}
			free -= len(group)
		}
	}
	s.ready = s.ready[i:]
	if len(kept) > 0 {
		s.ready = append(kept, s.ready...)
	}
}

// queueUp puts what has become consumable among the tasks that wait for slots,
// which are in order: early vertices first.
func (s *Scheduler) queueUp() {
	const few = 16
	fresh := s.candidates[:0]
	for _, t := range s.candidates {
		if !t.queued && t.state == created && t.restart == nil && t.consumable() {
			t.queued = true
			fresh = append(fresh, t)
		}
	}
	if len(fresh) > few {
		s.ready = append(s.ready, fresh...)
		slices.SortFunc(s.ready, byPlace)
	} else {
		for _, t := range fresh {
			i, _ := slices.BinarySearchFunc(s.ready, t, byPlace)
			s.ready = slices.Insert(s.ready, i, t)
		}
	}
	clear(s.candidates)
	s.candidates = s.candidates[:0]
}

// complete ends the job when everything has finished.
func (s *Scheduler) complete() {
	if s.phase == phaseRunning {
		for _, v := range s.vertices {
			if v.parallelism == 0 || v.finished < v.parallelism {
				return
			}
		}
		if len(s.restarts) > 0 || len(s.attempts) > 0 {
			return
		}
		s.phase = phaseCommitting
		s.policy.committing()
	}
	if s.phase != phaseCommitting {
		return
	}
	if s.recording() && s.policy.waits() && s.durable < s.logged {
		return
	}
	if !s.asked {
		s.asked = true
		s.commitAll()
	}
	if len(s.commits) > 0 {
		if s.commitAt != never && s.now >= s.commitAt {
			s.commitAt = never
			s.commitAll()
		}
		return
	}
	if !s.finishing {
		s.finishing = true
		if s.recording() {
			s.policy.finished(joblog.JobFinished{Status: scheduling.StatusFinished.String()})
		}
		if s.recording() && s.policy.waits() && s.durable < s.logged {
			return
		}
	}
	s.final = scheduling.StatusFinished
	s.closeDown()
}

// commitAll asks for all commits that are not confirmed.
func (s *Scheduler) commitAll() {
	for _, v := range s.vertices {
		for _, t := range v.tasks {
			if s.commits[t.winner.Attempt] {
				s.emit(CommitOutput{Attempt: t.winner.Attempt})
			}
		}
	}
}

func (s *Scheduler) outputCommitted(e OutputCommitted) {
	switch {
	case !s.commits[e.Attempt]:
	case e.Err == nil:
		delete(s.commits, e.Attempt)
	default:
		err := fmt.Errorf("commit the output of %s: %w", e.Attempt, e.Err)
		delay, refused := s.strategy.Failed(s.now)
		if refused != "" {
			s.end(scheduling.StatusFailed, fmt.Errorf("%w (no other try: %s)", err, refused))
			return
		}
		s.commitAt = s.now + delay
	}
}

// end cancels what runs; the job is over when it has ended.
func (s *Scheduler) end(st scheduling.Status, err error) {
	if s.phase == phaseEnding {
		return
	}
	s.phase, s.final, s.cause = phaseEnding, st, err
	s.restarts, s.global = nil, nil
	if st == scheduling.StatusCanceled {
		s.setStatus(scheduling.StatusCancelling, err)
	} else {
		s.setStatus(scheduling.StatusFailing, err)
	}
	for _, a := range s.sortedAttempts() {
		s.cancel(a)
	}
}

// closeDown is the end of a job of which nothing runs.
func (s *Scheduler) closeDown() {
	if s.final != scheduling.StatusFinished && s.recording() {
		e := joblog.JobFinished{Status: s.final.String()}
		if s.cause != nil {
			e.Error = s.cause.Error()
		}
		s.policy.finished(e)
	}
	s.releaseAll()
	if s.cfg.Recovery {
		s.emit(CloseLog{Clear: true})
	}
	s.terminal(s.final, s.cause)
}

func (s *Scheduler) terminal(st scheduling.Status, err error) {
	s.phase = phaseEnded
	s.setStatus(st, err)
	s.emit(Terminal{Status: st, Err: err})
}

// splits keeps the ledger of a source; a split in two places fails the job.
func (s *Scheduler) splits(e Event) {
	var err error
	switch e := e.(type) {
	case SplitsDiscovered:
		if v := s.byID[e.Vertex]; v != nil {
			v.ledger.Discover(e.Splits)
		}
	case SplitsAssigned:
		if v := s.byID[e.Task.Vertex]; v != nil {
			err = v.ledger.Assign(e.Task.Subtask, e.Splits)
		}
	case SplitsReturned:
		if v := s.byID[e.Task.Vertex]; v != nil {
			v.ledger.Return(e.Task.Subtask, e.Splits...)
		}
	}
	if err != nil {
		s.end(scheduling.StatusFailed, err)
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
	case phaseRunning:
		for _, r := range s.restarts {
			if r.at > s.now {
				earlier(r.at)
			}
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
		earlier(s.commitAt)
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
