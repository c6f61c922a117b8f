package scheduling

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// never is a time that does not come.
const never = time.Duration(-1)

// Scheduler decides about one job.
type Scheduler struct {
	cfg      Config
	vertices []string // in topological order
	strategy strategy

	// Of the step in progress.
	now     time.Duration
	effects []Effect

	state   State
	status  Status
	timerAt time.Duration

	workers        []worker // live, in the order in which they joined
	desired, lower map[string]int
	requirementsID int

	// Of the running execution.
	runs          map[string]*run // by vertex
	parallelism   map[string]int
	slots         []Worker
	checkpointing bool // all tasks are RUNNING or FINISHED

	execution int // of the last Prepare
	attempts  map[string]int
	prep      *preparation // of the whole job
	regions   []region
	tm        manager
	waitUntil time.Duration // for resources

	restartAt time.Duration  // Restarting: not before
	decided   map[string]int // Restarting: the parallelism of a rescale, or nil
	cause     error          // Failing

	stop       *stopping
	savepoint  string // path of the one that stopped the job
	exceptions []Exception
	rescales   []RescaleRecord
	rescaleID  int
}

// run is the current attempt of a vertex.
type run struct {
	attempt int
	workers []Worker
	states  []TaskState
}

// preparation is a Prepare that is not answered yet.
type preparation struct {
	execution   int
	parallelism map[string]int
	slots       []Worker
}

// stopping is a stop-with-savepoint in progress.
type stopping struct {
	token uint64
	path  string // once the savepoint is good
}

// New makes a scheduler to which nothing has happened.
func New(cfg Config) *Scheduler {
	if cfg.MaxExceptions <= 0 {
		cfg.MaxExceptions = 16
	}
	if cfg.MaxRescales <= 0 {
		cfg.MaxRescales = 16
	}
	s := &Scheduler{
		cfg:      cfg,
		strategy: newStrategy(cfg.Restart, cfg.Seed),
		timerAt:  never, waitUntil: never, restartAt: never,
		desired: map[string]int{}, lower: map[string]int{}, attempts: map[string]int{},
		runs: map[string]*run{}, parallelism: map[string]int{},
	}
	s.tm.until = never
	for _, v := range cfg.Vertices {
		s.vertices = append(s.vertices, v.ID)
		s.desired[v.ID] = max(v.Parallelism, 1)
		s.lower[v.ID] = max(v.Lower, 1)
		s.attempts[v.ID] = cfg.FirstAttempt - 1
	}
	regions := cfg.Regions
	if len(regions) == 0 {
		regions = [][]string{s.vertices}
	}
	for _, vs := range regions {
		s.regions = append(s.regions, region{vertices: vs, at: never})
	}
	return s
}

// Step takes an event at a time, which must not go back, and returns what is
// to be done, in order. The slice is the caller's.
func (s *Scheduler) Step(now time.Duration, e Event) []Effect {
	s.now = now
	s.effects = nil
	if s.state != Finished {
		s.handle(e)
		s.advance()
	} else if r, ok := e.(Rescale); ok {
		s.reply(r.Token, "", errEnded)
	} else if r, ok := e.(StopRequest); ok {
		s.reply(r.Token, "", errEnded)
	}
	s.armTimer()
	return s.effects
}

var errEnded = errors.New("the job has ended")

func (s *Scheduler) emit(e Effect) { s.effects = append(s.effects, e) }

func (s *Scheduler) reply(token uint64, path string, err error) {
	if token != 0 {
		s.emit(Reply{Token: token, Path: path, Err: err})
	}
}

func (s *Scheduler) handle(e Event) {
	switch e := e.(type) {
	case Submit:
		if s.state == Created {
			s.emit(JobStatus{Status: StatusCreated})
			s.beginRescale(InitialSchedule, "")
			s.waitForResources()
		}
	case WorkerAdded:
		s.addWorker(e)
	case WorkerLost:
		s.loseWorker(e)
	case Prepared:
		s.prepared(e)
	case TaskChanged:
		s.taskChanged(e)
	case Rescale:
		s.rescale(e)
	case GlobalFailure:
		s.fail(failure{err: e.Err, fatal: e.Fatal, global: true})
	case CheckpointCompleted:
		s.checkpointDone(false)
	case CheckpointFailed:
		if !e.PreFlight { // one that did not begin says nothing about the job
			s.checkpointDone(true)
		}
	case StopRequest:
		s.requestStop(e)
	case SavepointDone:
		s.savepointDone(e)
	case CancelJob:
		s.cancel()
	case Suspend:
		s.suspend(e.Err)
	case TimerFired:
		s.timerAt = never
		s.tick()
	default:
		panic(fmt.Sprintf("scheduling: unknown event %T", e))
	}
}

// advance goes on as long as the state allows.
func (s *Scheduler) advance() {
	for {
		before, phase := s.state, s.tm.phase
		switch s.state {
		case WaitingForResources:
			if s.tm.phase == transitioning {
				s.prepare(s.fit())
			} else if s.waitUntil != never && s.waitUntil <= s.now {
				s.endRescale(ExceptionOccurred, s.noResources())
				s.terminate(StatusFailed, s.noResources())
			}
		case Executing, StopWithSavepoint:
			s.advanceRegions()
			if s.allFinished() {
				s.finish()
			} else if s.state == Executing && s.tm.phase == transitioning {
				s.transition()
			}
		case Restarting:
			if s.allTerminal(s.vertices) && s.restartAt <= s.now {
				s.afterRestart()
			}
		case Canceling:
			if s.allTerminal(s.vertices) {
				s.terminate(StatusCanceled, nil)
			}
		case Failing:
			if s.allTerminal(s.vertices) {
				s.terminate(StatusFailed, s.cause)
			}
		}
		s.updateCheckpointing()
		if s.state == before && s.tm.phase == phase {
			return
		}
	}
}

// enter changes the state.
func (s *Scheduler) enter(state State) {
	if state == s.state {
		return
	}
	s.emit(StateChanged{From: s.state, To: state})
	s.state = state
	s.waitUntil = never
	if state != Finished {
		s.enterInRescale(state)
	}
}

func (s *Scheduler) setStatus(status Status, err error) {
	if s.status != status {
		s.status = status
		s.emit(JobStatus{Status: status, Err: err})
	}
}

func (s *Scheduler) waitForResources() {
	s.enter(WaitingForResources)
	if s.cfg.ResourceWait >= 0 {
		s.waitUntil = s.now + s.cfg.ResourceWait
	}
	s.enterManager()
}

// prepare leaves WaitingForResources or Restarting for a new execution.
func (s *Scheduler) prepare(parallelism map[string]int) {
	s.enter(CreatingExecutionGraph)
	s.tm = manager{phase: idling, until: never}
	s.execution++
	s.prep = &preparation{execution: s.execution, parallelism: parallelism, slots: slotsOf(s.workers, widest(parallelism))}
	s.emit(Prepare{Execution: s.execution, Global: true, Vertices: slices.Clone(s.vertices), Parallelism: maps.Clone(parallelism)})
}

func (s *Scheduler) prepared(e Prepared) {
	if s.preparedRegion(e) || s.prep == nil || s.prep.execution != e.Execution {
		return
	}
	p := s.prep
	s.prep = nil
	if e.Err != nil {
		s.fail(failure{err: fmt.Errorf("prepare execution %d: %w", e.Execution, e.Err), fatal: e.Fatal, global: true})
		return
	}
	if now := s.fit(); now != nil && !maps.Equal(now, p.parallelism) {
		// Slots came back, or another wish came, while the checkpoint was loaded:
		// to deploy what is prepared would mean to restart at once.
		s.prepare(now)
		return
	}
	s.parallelism, s.slots = p.parallelism, p.slots
	s.enter(Executing)
	s.setStatus(StatusRunning, nil)
	s.endRescale(Succeeded, nil)
	s.deploy(p.execution, true, s.vertices)
	s.enterManager()
}

// deploy starts the next attempt of vertices.
func (s *Scheduler) deploy(execution int, global bool, vertices []string) {
	d := Deploy{Execution: execution, Global: global, Vertices: slices.Clone(vertices),
		Parallelism: map[string]int{}, Attempts: map[string]int{}, Slots: slices.Clone(s.slots)}
	for _, v := range vertices {
		n := s.parallelism[v]
		s.attempts[v]++
		r := &run{attempt: s.attempts[v], workers: s.slots[:n], states: make([]TaskState, n)}
		for i := range r.states {
			r.states[i] = TaskDeploying
		}
		s.runs[v] = r
		d.Parallelism[v], d.Attempts[v] = n, r.attempt
	}
	s.emit(d)
}

// transition leaves Executing for another parallelism.
func (s *Scheduler) transition() {
	s.decided = s.fit()
	s.restart(0, nil)
}

// restart cancels everything; what follows waits for that and the delay. err is the
// failure that it comes from, if it does from one.
func (s *Scheduler) restart(delay time.Duration, err error) {
	s.abandonRegions()
	s.tm = manager{phase: idling, until: never}
	s.restartAt = s.now + delay
	s.stopCheckpointing()
	s.enter(Restarting)
	s.setStatus(StatusRestarting, err)
	s.cancelTasks(s.vertices)
}

// afterRestart goes straight on if the parallelism that was decided on is what
// the resources and wishes of now give; they may have changed since.
func (s *Scheduler) afterRestart() {
	decided := s.decided
	s.decided, s.restartAt = nil, never
	if decided != nil && maps.Equal(decided, s.fit()) {
		s.prepare(decided)
		return
	}
	s.waitForResources()
}

func (s *Scheduler) addWorker(e WorkerAdded) {
	if slices.ContainsFunc(s.workers, func(w worker) bool { return w.id == e.ID }) {
		return
	}
	s.workers = append(s.workers, worker{e.ID, max(e.Slots, 0)})
	if s.state == Executing && s.openRescale() == nil {
		if p := s.fit(); p != nil && s.differs(p) {
			s.beginRescale(NewResource, "")
		}
	}
	s.change()
}

func (s *Scheduler) rescale(e Rescale) {
	if s.state == Canceling || s.state == Failing {
		s.reply(e.Token, "", fmt.Errorf("the job is %s", s.status))
		return
	}
	if err := s.requirements(e); err != nil {
		s.reply(e.Token, "", err)
		return
	}
	s.reply(e.Token, "", nil)
	s.requirementsID++
	if s.state != Created {
		s.beginRescale(UpdateRequirement, RequirementsUpdated)
	}
	s.change()
	if s.state == Executing && s.tm.phase == idling {
		s.endRescale(NothingChanged, nil)
	}
}

func (s *Scheduler) cancel() {
	switch s.state {
	case Canceling:
		return
	case Created, WaitingForResources, CreatingExecutionGraph:
		s.prep = nil
	}
	s.leave(JobCanceling, errors.New("the job was cancelled"))
	s.enter(Canceling)
	s.setStatus(StatusCancelling, nil)
	s.cancelTasks(s.vertices)
}

// leave ends what was in progress in the state before a final one.
func (s *Scheduler) leave(reason Reason, err error) {
	s.abandonRegions()
	s.stopCheckpointing()
	s.endRescale(reason, err)
	s.decided, s.restartAt = nil, never
	s.tm = manager{phase: idling, until: never}
	if s.stop != nil {
		stop := s.stop
		s.stop = nil
		s.reply(stop.token, stop.path, err)
	}
}

// suspend ends the work here from any state. It is no end of the job: whatever
// a new master needs stays.
func (s *Scheduler) suspend(err error) {
	if err == nil {
		err = errors.New("the job was suspended")
	}
	s.prep = nil
	s.leave(JobCanceling, err)
	s.cancelTasks(s.vertices)
	s.terminate(StatusSuspended, err)
}

func (s *Scheduler) finish() {
	s.endRescale(JobFinished, nil)
	var path string
	if s.stop != nil {
		path = s.stop.path
		stop := s.stop
		s.stop = nil
		var err error
		if path == "" {
			err = errors.New("the job finished before its savepoint was complete")
		}
		s.reply(stop.token, path, err)
	}
	s.savepoint = path
	s.terminate(StatusFinished, nil)
}

func (s *Scheduler) terminate(status Status, err error) {
	s.endRescale(JobFailing, err)
	s.checkpointing = false
	s.enter(Finished)
	s.setStatus(status, err)
	s.tm.until = never
	s.emit(Terminal{Status: status, Err: err, Savepoint: s.savepoint})
}

// armTimer asks for a timer at the earliest time at which something is due.
func (s *Scheduler) armTimer() {
	at := never
	take := func(t time.Duration) {
		if t != never && (at == never || t < at) {
			at = t
		}
	}
	if s.state != Finished {
		take(s.tm.until)
		take(s.waitUntil)
		if s.state == Restarting && s.restartAt > s.now {
			take(s.restartAt)
		}
		for i := range s.regions {
			if r := &s.regions[i]; r.stage == regionCanceling && r.at > s.now {
				take(r.at)
			}
		}
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
