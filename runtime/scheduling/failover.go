package scheduling

import (
	"fmt"
	"slices"
	"time"
)

// failure is something that ended work that was to go on.
type failure struct {
	err        error
	fatal      bool
	task       *Task
	worker     Worker
	global     bool // operator coordinators may be hurt, too
	workerLost bool
}

func lost(e WorkerLost) error {
	if e.Err != nil {
		return fmt.Errorf("worker %s was lost: %w", e.ID, e.Err)
	}
	return fmt.Errorf("worker %s was lost", e.ID)
}

// region is a set of vertices that restarts together.
type region struct {
	vertices  []string
	stage     regionStage
	at        time.Duration // regionCanceling: the restart is not before
	execution int           // regionPreparing
}

type regionStage uint8

const (
	regionRunning regionStage = iota
	regionCanceling
	regionPreparing
)

// fail decides what follows from a failure.
func (s *Scheduler) fail(f failure) {
	x := Exception{At: s.now, Task: f.task, Worker: f.worker, Err: f.err}
	switch s.state {
	case Created, WaitingForResources:
		if !f.fatal {
			return // nothing runs that could be hurt
		}
	case Canceling, Failing:
		s.recordConcurrent(x)
		return
	case Restarting:
		if !f.fatal {
			// Part of the failure that is being dealt with, or of the rescale.
			s.recordConcurrent(x)
			return
		}
	case Executing, StopWithSavepoint:
		if f.task != nil && !f.fatal && !f.workerLost {
			if i := s.regionOf(f.task.Vertex); s.regions[i].stage != regionRunning {
				s.recordConcurrent(x)
				return
			}
		}
	}
	if f.fatal {
		x.Decision = "fail job"
		s.recordException(x)
		s.failJob(f.err)
		return
	}
	delay, refused := s.strategy.failed(s.now)
	if refused != "" {
		x.Decision = "fail job"
		s.recordException(x)
		s.failJob(fmt.Errorf("%w (no restart: %s)", f.err, refused))
		return
	}
	if restart := s.regionsToRestart(f); restart != nil {
		x.Decision = "restart region"
		s.recordException(x)
		s.restartRegions(restart, delay)
		return
	}
	x.Decision = "restart job"
	s.recordException(x)
	if s.stop != nil {
		stop := s.stop
		s.stop = nil
		s.reply(stop.token, stop.path, fmt.Errorf("the job failed while it was being stopped with a savepoint, and restarts: %w", f.err))
	}
	s.prep = nil
	s.decided = nil
	s.beginRescale(RecoverableFailover, JobFailoverRestarted)
	s.restart(delay, f.err)
}

func (s *Scheduler) failJob(err error) {
	s.prep = nil
	s.cause = err
	s.leave(JobFailing, err)
	s.enter(Failing)
	s.setStatus(StatusFailing, err)
	s.cancelTasks(s.vertices)
}

func (s *Scheduler) regionOf(vertex string) int {
	return slices.IndexFunc(s.regions, func(r region) bool { return slices.Contains(r.vertices, vertex) })
}

// regionsToRestart lists the regions that a failure concerns; nil means the
// whole job.
func (s *Scheduler) regionsToRestart(f failure) []int {
	if !s.cfg.RegionFailover || s.state != Executing || f.global || f.workerLost || f.task == nil || len(s.regions) < 2 {
		return nil
	}
	sets := make([][]string, len(s.regions))
	for i := range s.regions {
		sets[i] = s.regions[i].vertices
	}
	is := FailoverRegions(sets, s.cfg.Blocking, f.task.Vertex, nil)
	if len(is) == len(s.regions) {
		return nil
	}
	return is
}

// FailoverRegions gives the indices of the regions that a failed vertex makes
// restart, in order: its own, those upstream whose results are lost, again with
// what they need, and all that are downstream of any of these. lost may be nil:
// all results are there.
func FailoverRegions(regions [][]string, blocking []Edge, failed string, lost func(vertex string) bool) []int {
	of := func(vertex string) int {
		return slices.IndexFunc(regions, func(r []string) bool { return slices.Contains(r, vertex) })
	}
	start := of(failed)
	if start < 0 {
		return nil
	}
	hit := map[int]bool{start: true}
	for todo := []int{start}; len(todo) > 0; todo = todo[1:] {
		for _, e := range blocking {
			from, to := of(e.From), of(e.To)
			if from == to || from < 0 || to < 0 {
				continue
			}
			if from == todo[0] && !hit[to] {
				hit[to] = true
				todo = append(todo, to)
			}
			if to == todo[0] && !hit[from] && lost != nil && lost(e.From) {
				hit[from] = true
				todo = append(todo, from)
			}
		}
	}
	var is []int
	for i := range regions {
		if hit[i] {
			is = append(is, i)
		}
	}
	return is
}

// restartRegions cancels some regions; the rest of the job goes on.
func (s *Scheduler) restartRegions(is []int, delay time.Duration) {
	s.stopCheckpointing()
	for _, i := range is {
		r := &s.regions[i]
		r.stage, r.at = regionCanceling, s.now+delay
		s.cancelTasks(r.vertices)
	}
}

// advanceRegions prepares regions that have been cancelled.
func (s *Scheduler) advanceRegions() {
	for i := range s.regions {
		r := &s.regions[i]
		if r.stage != regionCanceling || r.at > s.now || !s.allTerminal(r.vertices) {
			continue
		}
		s.execution++
		r.stage, r.at, r.execution = regionPreparing, never, s.execution
		p := map[string]int{}
		for _, v := range r.vertices {
			p[v] = s.parallelism[v]
		}
		s.emit(Prepare{Execution: r.execution, Vertices: slices.Clone(r.vertices), Parallelism: p})
	}
}

// preparedRegion takes the answer to the Prepare of a region; false if it was
// not for one.
func (s *Scheduler) preparedRegion(e Prepared) bool {
	for i := range s.regions {
		r := &s.regions[i]
		if r.stage != regionPreparing || r.execution != e.Execution {
			continue
		}
		r.stage = regionRunning
		if e.Err != nil {
			// What the region needs cannot be had; perhaps the job as a whole can
			// start from it.
			s.fail(failure{err: fmt.Errorf("prepare execution %d: %w", e.Execution, e.Err), fatal: e.Fatal, global: true})
			return true
		}
		s.deploy(e.Execution, false, r.vertices)
		return true
	}
	return false
}

// abandonRegions forgets restarts of regions, because the whole job does
// something else.
func (s *Scheduler) abandonRegions() {
	for i := range s.regions {
		s.regions[i].stage, s.regions[i].at = regionRunning, never
	}
}

// requestStop begins a stop-with-savepoint.
func (s *Scheduler) requestStop(e StopRequest) {
	if s.state != Executing || !s.checkpointing {
		s.reply(e.Token, "", fmt.Errorf("stop with savepoint: not all tasks run; the scheduler is in state %s", s.state))
		return
	}
	s.endRescale(NothingChanged, nil)
	s.tm = manager{phase: idling, until: never}
	s.stop = &stopping{token: e.Token}
	s.enter(StopWithSavepoint)
	s.emit(TakeSavepoint(e))
}

func (s *Scheduler) savepointDone(e SavepointDone) {
	if s.stop == nil || s.stop.token != e.Token || s.stop.path != "" {
		return
	}
	if e.Err == nil {
		s.stop.path = e.Path
		return
	}
	// The job goes on.
	s.stop = nil
	s.reply(e.Token, "", e.Err)
	s.enter(Executing)
	s.enterManager()
}
