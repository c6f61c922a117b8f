package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"benchrun/runtime/snapshot"
)

// Coordinator decides about the checkpoints of one job.
type Coordinator struct {
	cfg Config

	// Of the step in progress.
	now     time.Duration
	effects []Effect

	running         bool // all tasks are RUNNING or FINISHED
	periodic        bool // periodic checkpoints are on
	resumeAfterStop bool // they were when a stop-with-savepoint turned them off
	shutdown        bool
	status          Status // after shutdown

	nextPeriodic time.Duration // never: not armed
	finalLater   bool          // a final checkpoint is asked for at Start
	finalAt      time.Duration // when a final checkpoint is asked for again
	timerAt      time.Duration // of the last SetTimer

	hold    bool // nothing begins
	seq     uint64
	queue   []*request // in order of rank
	trigger *pending   // holds the trigger; no id while it is being planned
	pending []*pending // with an id, in order of ids
	ring    []ended    // the newest that have failed

	nextID         int64
	forceFull      bool
	completed      []Completed // in order of ids, without savepoints that were taken
	completedOnce  bool
	lastCompletion time.Duration

	cleaning map[int64]*cleanup
	restores []uint64 // tokens of restores that wait for a finalization
	backlog  map[string]bool
	failures failures
}

// stage is where a checkpoint is in its life.
type stage uint8

const (
	planning stage = iota
	locating
	coordinating
	triggered
	finalizing
)

// pending is a checkpoint between its trigger and its end.
type pending struct {
	id        int64 // 0 while it is being planned
	planSeq   uint64
	req       *request
	stage     stage
	begun     time.Duration
	deadline  time.Duration
	folder    string
	options   Options
	plan      PlanComputed
	waiting   map[Task]bool
	states    map[Task]*snapshot.SubtaskState
	operators []snapshot.CoordinatorState
}

// ended remembers a failed checkpoint for late messages.
type ended struct {
	id     int64
	folder string
}

// cleanup is a deletion that has not succeeded yet.
type cleanup struct {
	folder string
	tries  int
	again  bool          // more was written since the deletion began
	at     time.Duration // of the next try; never: one is in progress
}

// New makes a coordinator to which nothing has happened.
func New(cfg Config) *Coordinator {
	cfg = cfg.sanitized()
	return &Coordinator{
		cfg:          cfg,
		nextPeriodic: never,
		finalAt:      never,
		timerAt:      never,
		nextID:       cfg.FirstID,
		cleaning:     map[int64]*cleanup{},
		backlog:      map[string]bool{},
		failures:     failures{tolerable: cfg.TolerableFailures},
	}
}

// Step takes an event at a time, which must not go back, and returns what is
// to be done, in order. The slice is the caller's.
func (c *Coordinator) Step(now time.Duration, e Event) []Effect {
	c.now = now
	c.effects = nil
	c.handle(e)
	c.armTimer()
	return c.effects
}

func (c *Coordinator) emit(e Effect) { c.effects = append(c.effects, e) }

func (c *Coordinator) handle(e Event) {
	switch e := e.(type) {
	case Start:
		if !c.shutdown && !c.running {
			c.running = true
			c.startPeriodic(c.now)
			if c.finalLater {
				c.finalLater = false
				c.requestFinal()
			}
		}
	case Stop:
		c.running, c.finalLater = false, false
		c.suspend(fail(CoordinatorSuspend, nil))
	case TimerFired:
		c.timerAt = never
		c.fire()
	case TriggerRequest:
		c.request(e)
	case EndOfData:
		c.requestFinal()
	case Backlog:
		c.setBacklog(e)
	case PlanComputed:
		if p := c.planned(e.Seq); p != nil {
			c.register(p, e)
		}
	case PlanRejected:
		if p := c.planned(e.Seq); p != nil {
			c.failPlan(p, fail(e.Reason, e.Err))
		}
	case LocationReady:
		c.located(e)
	case LocationFailed:
		if p := c.at(e.ID, locating); p != nil {
			c.abort(p, nil, fail(reasonOf(e.Err, TriggerFailure), e.Err))
		}
	case CoordinatorsAcked:
		if p := c.at(e.ID, coordinating); p != nil {
			p.operators = e.States
			c.send(p)
		}
	case CoordinatorsFailed:
		if p := c.at(e.ID, coordinating); p != nil {
			c.abort(p, nil, fail(reasonOf(e.Err, TriggerFailure), e.Err))
		}
	case TriggerFailed:
		if p := c.at(e.ID, triggered); p != nil {
			c.abort(p, nil, fail(TriggerFailure, fmt.Errorf("%s: %w", e.Task, e.Err)))
		}
	case Ack:
		c.acknowledge(e)
	case Decline:
		c.decline(e)
	case TaskFailed:
		c.taskFailed(e.Task)
	case JobFailover:
		c.abortAll(fail(JobFailoverRegion, errors.New("tasks are being restarted")))
	case Finalized:
		if p := c.at(e.ID, finalizing); p != nil {
			c.complete(p)
		}
	case FinalizeFailed:
		if p := c.at(e.ID, finalizing); p != nil {
			if e.UnknownOutcome {
				p.folder = "" // whatever is in it must stay
			}
			r := reasonOf(e.Err, FinalizeFailure)
			if r != DeclinedTaskClosing {
				r = FinalizeFailure
			}
			c.abort(p, nil, &Error{Reason: r, Err: e.Err})
		}
	case Discarded:
		c.discarded(e)
	case Restored:
		c.restored(e)
	case RestoreRequest:
		c.restores = append(c.restores, e.Token)
		c.answerRestores()
	case Damaged:
		c.completed = slices.DeleteFunc(c.completed, func(k Completed) bool { return k.ID == e.ID })
	case Shutdown:
		c.shutDown(e.Status)
	default:
		panic(fmt.Sprintf("checkpoint: unknown event %T", e))
	}
}

// startPeriodic turns the periodic checkpoints on; the first comes at the
// given time.
func (c *Coordinator) startPeriodic(first time.Duration) {
	c.periodic = true
	if c.interval() > 0 {
		c.nextPeriodic = first
		if first <= c.now {
			c.firePeriodic()
		}
	}
}

// interval is the period in force; 0 means that there is none.
func (c *Coordinator) interval() time.Duration {
	if c.cfg.Interval > 0 && c.cfg.HasBacklogInterval && len(c.backlog) > 0 {
		return c.cfg.BacklogInterval
	}
	return c.cfg.Interval
}

func (c *Coordinator) firePeriodic() {
	// A fixed rate: the next one counts from when this one was due.
	c.nextPeriodic += c.interval()
	c.submit(&request{periodic: true})
}

func (c *Coordinator) setBacklog(e Backlog) {
	was := c.interval()
	if e.On {
		c.backlog[e.Source] = true
	} else {
		delete(c.backlog, e.Source)
	}
	interval := c.interval()
	if interval == was || !c.periodic {
		return
	}
	if interval == 0 {
		c.nextPeriodic = never
	} else if c.nextPeriodic == never || c.nextPeriodic > c.now+interval {
		c.nextPeriodic = c.now + interval
	}
}

func (c *Coordinator) request(e TriggerRequest) {
	r := &request{token: e.Token, savepoint: e.Savepoint || e.Stop, stop: e.Stop, drain: e.Drain && e.Stop, forced: e.Forced}
	if c.shutdown {
		c.failRequest(r, fail(CoordinatorShutdown, nil))
		return
	}
	// With unaligned checkpoints a savepoint cannot run beside another one.
	if r.savepoint && !c.cfg.Unaligned {
		r.forced = true
	}
	if r.stop {
		resume := c.periodic || c.resumeAfterStop
		c.suspend(fail(CoordinatorSuspend, nil))
		c.resumeAfterStop = resume
	}
	c.submit(r)
}

// requestFinal asks for the checkpoint that finishing tasks wait for, unless
// one is asked for already.
func (c *Coordinator) requestFinal() {
	if !c.running {
		c.finalLater = true
		return
	}
	if c.shutdown || c.finalAt != never ||
		slices.ContainsFunc(c.queue, func(r *request) bool { return r.final }) {
		return
	}
	c.submit(&request{final: true})
}

// suspend turns the periodic checkpoints off and aborts all.
func (c *Coordinator) suspend(err *Error) {
	c.periodic, c.resumeAfterStop = false, false
	c.nextPeriodic, c.finalAt = never, never
	queue := c.queue
	c.queue = nil
	for _, r := range queue {
		c.failRequest(r, err)
	}
	c.abortAll(err)
}

// abortAll aborts what has begun, except finalizations.
func (c *Coordinator) abortAll(err *Error) {
	c.hold = true // what is queued begins when all are gone
	if p := c.trigger; p != nil && p.stage == planning {
		c.failPlan(p, err)
	}
	for _, p := range slices.Clone(c.pending) {
		if p.stage != finalizing {
			c.abort(p, nil, err)
		}
	}
	c.hold = false
	c.poll()
}

func (c *Coordinator) shutDown(status Status) {
	if c.shutdown {
		return
	}
	c.shutdown, c.status = true, status
	c.running = false
	c.suspend(fail(CoordinatorShutdown, nil))
	c.dropCompleted()
	c.answerRestores()
}

// dropCompleted deletes what the retention does not keep.
func (c *Coordinator) dropCompleted() {
	if !c.cfg.Retention.discards(c.status) {
		return
	}
	for _, k := range c.completed {
		if !k.keep {
			c.discard(k.ID, k.Folder)
		}
	}
	c.completed = nil
}

func (c *Coordinator) restored(e Restored) {
	c.nextID = max(c.nextID, e.ID+1)
	if slices.ContainsFunc(c.completed, func(k Completed) bool { return k.ID == e.ID && k.Folder == e.Folder }) {
		return
	}
	if !e.Claimed {
		c.forceFull = true
	}
	c.insertCompleted(Completed{
		ID: e.ID, Folder: e.Folder, Savepoint: e.Savepoint, Triggered: c.now, Finished: c.now,
		restored: true, keep: !e.Claimed || e.Savepoint,
	})
}

// answerRestores names the newest completed checkpoint once no other can
// become it.
func (c *Coordinator) answerRestores() {
	if slices.ContainsFunc(c.pending, func(p *pending) bool { return p.stage == finalizing && (!p.req.savepoint || p.req.stop) }) {
		return
	}
	tokens := c.restores
	c.restores = nil
	for _, t := range tokens {
		e := RestoreFrom{Token: t}
		if n := len(c.completed); n > 0 {
			e.Found, e.Checkpoint = true, c.completed[n-1]
		}
		c.emit(e)
	}
}

// Completed lists the completed checkpoints that are kept, oldest first.
func (c *Coordinator) Completed() []Completed { return slices.Clone(c.completed) }

// latest is the id of the newest completed checkpoint, or 0.
func (c *Coordinator) latest() int64 {
	if n := len(c.completed); n > 0 {
		return c.completed[n-1].ID
	}
	return 0
}

// fire does what is due.
func (c *Coordinator) fire() {
	for {
		i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.deadline != never && p.deadline <= c.now })
		if i < 0 {
			break
		}
		c.abort(c.pending[i], nil, fail(CheckpointExpired, fmt.Errorf("it was not complete after %v", c.cfg.Timeout)))
	}
	for _, id := range c.cleaningIDs() {
		if k := c.cleaning[id]; k.at != never && k.at <= c.now {
			k.at = never
			c.emit(Discard{ID: id, Folder: k.folder})
		}
	}
	if c.finalAt != never && c.finalAt <= c.now {
		c.finalAt = never
		c.requestFinal()
	}
	if c.periodic && c.nextPeriodic != never && c.nextPeriodic <= c.now {
		c.firePeriodic()
	}
}

// armTimer asks for a timer at the earliest time at which something is due.
func (c *Coordinator) armTimer() {
	at := never
	take := func(t time.Duration) {
		if t != never && (at == never || t < at) {
			at = t
		}
	}
	if c.periodic {
		take(c.nextPeriodic)
	}
	take(c.finalAt)
	for _, p := range c.pending {
		take(p.deadline)
	}
	for _, k := range c.cleaning {
		take(k.at)
	}
	if at == c.timerAt {
		return
	}
	c.timerAt = at
	if at == never {
		c.emit(StopTimer{})
	} else {
		c.emit(SetTimer{At: at})
	}
}
