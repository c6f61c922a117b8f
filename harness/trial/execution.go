package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/pprof"
	"strings"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// Execution is one pass through a scenario.
type Execution struct {
	Workload *spec.Workload
	Target   target.Target
	Block    int
	Folder   string
	Keep     bool // the last checkpoints stay
	// Submission is the id of the job; empty: it has one of its own.
	Submission string
	Scratch    bool                     // a master that cannot read the log of its job begins anew
	Delays     map[string]time.Duration // planted in the engine, by fault point
	Log        *timeline.Log
	Phase      func(step string) // called when a step begins; may be nil
	Stderr     io.Writer         // for a person
}

// stop is the end of a trial that is not ok.
type stop struct {
	outcome result.Outcome
	reason  string
}

func (s *stop) Error() string { return string(s.outcome) + ": " + s.reason }

func stopf(o result.Outcome, format string, args ...any) error {
	return &stop{o, fmt.Sprintf(format, args...)}
}

// errTrialTimeout is the cause of a context that ends with the trial's time.
var errTrialTimeout = errors.New("the trial's time is over")

// execution is the state of an Execution while it runs. One goroutine owns it.
type execution struct {
	Execution
	job  target.Job
	obs  *observer
	next int // first event that obs has not seen

	// jobCtx ends with the job, with the trial's time, or from outside.
	jobCtx context.Context

	windows   []Window
	finish    time.Duration // when the sources were told to end; 0: never
	submitted time.Duration
	phase     string
	out       *target.Output
	sunk      int64 // sink records at the last fault
	read      map[string]any
	last      target.Status
}

// closeTimeout bounds the stopping of a cluster.
const closeTimeout = 10 * time.Second

// Run executes the scenario and returns the trial with outcome, metrics,
// faults, correctness, options and resources; the caller fills in what
// identifies it. The context's end makes the trial interrupted.
func (x Execution) Run(ctx context.Context) *result.Trial {
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, x.Workload.Run.TrialTimeout, errTrialTimeout)
	defer cancel()
	e := &execution{Execution: x, obs: newObserver(x.Workload), phase: "start"}
	err := e.blame(e.run(ctx))
	e.dump(err)
	e.begunAnew()
	if e.job != nil {
		if cerr := e.close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	t := &result.Trial{Target: x.Target.Name(), Outcome: result.OK, Started: started.UTC(), WallS: time.Since(started).Seconds(), Options: e.read}
	if t.Options == nil {
		t.Options = map[string]any{}
	}
	e.fill(t, err)
	return t
}

// say writes a line to the log of the trial. It begins with the moment at which it is
// said, so lines are in order; one of the timeline that it tells of is in its text.
func (e *execution) say(format string, args ...any) {
	fmt.Fprintf(e.Stderr, "%8.3f s  %s\n", e.Log.Now().Seconds(), fmt.Sprintf(format, args...))
}

// begunAnew says in the log which master wiped a log that it could not read.
func (e *execution) begunAnew() {
	for _, ev := range e.Log.Events() {
		if ev.Kind == timeline.EventReplayed && ev.Reason != "" {
			e.say("the job began anew, its log was wiped: %s (at %.3f s)", ev.Reason, ev.T.Seconds())
		}
	}
}

// dump writes to the log what all goroutines were doing when a trial did not
// get on.
func (e *execution) dump(err error) {
	var s *stop
	if !errors.As(err, &s) || s.outcome != result.Timeout {
		return
	}
	fmt.Fprintf(e.Stderr, "%v in step %s: %s\n", s.outcome, e.phase, s.reason)
	pprof.Lookup("goroutine").WriteTo(e.Stderr, 1)
}

func (e *execution) run(ctx context.Context) error {
	e.submitted = e.Log.Now()
	if options.RecoveryPath.Get(e.Workload.Options) != "" {
		e.windows = append(e.windows, Window{Name: result.StartFault, Kind: result.StartFault, T0: e.submitted})
	}
	job, err := e.Target.Start(ctx, target.Request{
		Workload: e.Workload, Dir: e.Folder, Seed: plan.Seed(e.Workload.Run.Seed, e.Workload.Name, e.Block, "job"), Keep: e.Keep,
		FromScratch: e.Scratch, Submission: e.Submission, Delays: e.Delays,
	}, e.Log)
	if err != nil {
		return e.failed(ctx, fmt.Errorf("starting the cluster and the job: %w", err))
	}
	e.job = job
	jobCtx, stopJob := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-job.Done():
			stopJob(errJobDone)
		case <-jobCtx.Done():
		}
	}()
	defer func() { stopJob(nil); <-watched }()
	e.jobCtx = jobCtx
	for _, s := range e.Workload.Steps {
		e.phase = s.Name
		e.say("step %s", s.Name)
		if e.Phase != nil {
			e.Phase(s.Name)
		}
		if err := e.step(ctx, s); err != nil {
			return err
		}
	}
	e.phase = ""
	return nil
}

var errJobDone = errors.New("the job has ended")

// failed turns an error of the target into the trial's end.
func (e *execution) failed(ctx context.Context, err error) error {
	var s *stop
	switch {
	case errors.As(err, &s):
		return s
	case errors.Is(err, target.ErrUnsupported):
		return stopf(result.Unsupported, "%v", err)
	case ctx.Err() != nil:
		return ended(ctx, e.Workload)
	}
	return stopf(result.Failed, "%v", err)
}

// ended is the end of a trial whose context has ended.
func ended(ctx context.Context, w *spec.Workload) error {
	if errors.Is(context.Cause(ctx), errTrialTimeout) {
		return stopf(result.Timeout, "the trial-timeout of %s passed", options.FormatDuration(w.Run.TrialTimeout))
	}
	return stopf(result.TrialInterrupted, "%v", context.Cause(ctx))
}

func (e *execution) step(ctx context.Context, s spec.Step) error {
	if s.Wait != nil {
		return e.wait(ctx, e.place(s))
	}
	switch {
	case s.Do.IsFault():
		return e.fault(ctx, s)
	case s.Do.Kind == "savepoint", s.Do.Kind == "stop-with-savepoint":
		stopping := s.Do.Kind == "stop-with-savepoint"
		if stopping {
			if err := e.readBack(); err != nil {
				return err
			}
			e.finish = e.Log.Now()
		}
		path, err := e.job.Savepoint(ctx, stopping)
		if err != nil {
			return e.failed(ctx, fmt.Errorf("savepoint: %w", err))
		}
		fmt.Fprintf(e.Stderr, "step %s: savepoint %s\n", s.Name, path)
	case s.Do.Kind == "cancel":
		if err := e.readBack(); err != nil {
			return err
		}
		e.closeWindow()
		e.last = e.job.Status()
		if err := e.job.Cancel(ctx); err != nil {
			return e.failed(ctx, fmt.Errorf("cancel: %w", err))
		}
	case s.Do.Kind == "finish":
		return e.end(ctx)
	default:
		return stopf(result.Unsupported, "the step %q", s.Do.Kind)
	}
	return nil
}

// end lets the job finish and takes its output.
func (e *execution) end(ctx context.Context) error {
	if e.obs.batch != nil {
		if err := e.firstTask(ctx); err != nil {
			return err
		}
	}
	if err := e.readBack(); err != nil {
		return err
	}
	e.finish = e.Log.Now()
	out, err := e.job.Finish(ctx)
	if err != nil {
		return e.failed(ctx, fmt.Errorf("finish: %w", err))
	}
	e.out = out
	e.last = e.job.Status()
	return nil
}

// firstTask waits until a task of a batch job runs, for it is the tasks that tell
// which options they use. Nothing else makes this scenario wait for one.
func (e *execution) firstTask(ctx context.Context) error {
	for {
		e.catchUp()
		if e.obs.batch.any {
			return nil
		}
		if ctx.Err() != nil {
			return ended(ctx, e.Workload)
		}
		select {
		case <-e.job.Done():
			return nil // Finish tells why
		default:
		}
		e.sleep(time.Now().Add(spec.DefaultWaitTimeout))
	}
}

// place draws where in a range of progress a wait ends.
func (e *execution) place(s spec.Step) *spec.Wait {
	w := *s.Wait
	if w.ProgressTo > w.Progress {
		r := plan.Rand(e.Workload.Run.Seed, e.Workload.Name, e.Block, "step/"+s.Name)
		w.Progress += r.Float64() * (w.ProgressTo - w.Progress)
	}
	return &w
}

// wait blocks until all conditions hold.
func (e *execution) wait(ctx context.Context, w *spec.Wait) error {
	begin := time.Now()
	deadline := begin.Add(w.Timeout)
	poll, slowest := time.Duration(0), 50*time.Millisecond
	if w.Progress > 0 {
		slowest = 10 * time.Millisecond // a fault is to hit that place
	}
	for {
		e.catchUp()
		over, status := e.finishedWell(), e.status()
		missing, counters := e.missing(w, status, over, time.Since(begin))
		if len(missing) == 0 {
			return nil
		}
		if !over && e.finishedWell() {
			continue // which may be all that it waits for
		}
		if err := e.ending(ctx, "still missing: "+strings.Join(missing, ", ")); err != nil {
			return err
		}
		now := time.Now()
		if !now.Before(deadline) {
			return stopf(result.Timeout, "after %s still missing: %s", options.FormatDuration(w.Timeout), strings.Join(missing, ", "))
		}
		// Events wake the wait up; only counters must be looked at, ever more seldom.
		until := deadline
		if counters {
			poll = min(max(poll+poll/4, 2*time.Millisecond), slowest)
			until = earlier(until, now.Add(poll))
		}
		if w.Elapsed > 0 && now.Before(begin.Add(w.Elapsed)) {
			until = earlier(until, begin.Add(w.Elapsed))
		}
		e.sleep(until)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sleep waits for the next event, until a moment, or until the job ends.
func (e *execution) sleep(until time.Time) {
	ctx, cancel := context.WithDeadline(e.jobCtx, until)
	defer cancel()
	e.Log.Wait(ctx, e.next) // the caller looks again, whatever woke it up
}

// catchUp shows the observer all events so far.
func (e *execution) catchUp() {
	for _, ev := range e.Log.From(e.next) {
		if ev.Kind == timeline.CheckpointCompleted && !options.UnalignedEnabled.Get(e.Workload.Options) && !isSavepoint(ev) {
			ev.Bytes = e.job.Status().InFlightBytes // nothing is in the checkpoint; what counts is what is queued now
		}
		e.obs.add(ev)
		e.next++
	}
}

func (e *execution) status() target.Status {
	e.last = e.job.Status()
	return e.last
}

// ending tells why a step that has yet to see something makes no sense any more.
func (e *execution) ending(ctx context.Context, yet string) error {
	if ctx.Err() != nil {
		return ended(ctx, e.Workload)
	}
	select {
	case <-e.job.Done():
	default:
		return nil
	}
	if err := e.job.Err(); err != nil {
		return stopf(result.Failed, "the job failed: %v", err)
	}
	return stopf(result.Failed, "the job ended before the step %q was over, %s", e.phase, yet)
}

// finishedWell tells whether a batch job came to its end after a fault. That it goes
// on, and how far it gets, need not be waited for any more: nothing was left for a
// new master to run.
func (e *execution) finishedWell() bool {
	if e.obs.batch == nil || len(e.windows) == 0 {
		return false
	}
	select {
	case <-e.job.Done():
		return e.job.Err() == nil
	default:
		return false
	}
}

// missing lists the conditions that do not hold, and tells whether one of them
// is seen in counters rather than in events. over: the job has finished well.
func (e *execution) missing(w *spec.Wait, s target.Status, over bool, elapsed time.Duration) (missing []string, counters bool) {
	o := e.obs
	if w.Running && !over && !o.running() {
		missing = append(missing, "running ("+o.notRunning()+")")
	}
	if w.Checkpoints > 0 && o.checkpoints < w.Checkpoints {
		missing = append(missing, fmt.Sprintf("checkpoints (%d of %d)", o.checkpoints, w.Checkpoints))
	}
	if n := s.SinkRecords - e.sunk; w.Records > 0 && n < w.Records {
		missing = append(missing, fmt.Sprintf("records (%d of %d)", n, w.Records))
		counters = true
	}
	if w.FirstCheckpoint && !o.first {
		missing = append(missing, "first-checkpoint")
	}
	if w.Drained && !o.isDrained(s.RestoredShare) {
		missing = append(missing, fmt.Sprintf("drained (%.0f %%)", 100*math.Floor(100*s.RestoredShare)/100))
		counters = true
	}
	if w.CaughtUp && !o.lag.done {
		why := "caught-up"
		if !o.lag.known {
			why += " (no lag was measured before the fault)"
		}
		missing = append(missing, why)
	}
	if w.InFlight > 0 && (!o.newest || o.newestBytes < w.InFlight) {
		missing = append(missing, fmt.Sprintf("in-flight (%s of %s)", options.FormatSize(o.newestBytes), options.FormatSize(w.InFlight)))
	}
	if w.Progress > 0 && !over && s.Progress < w.Progress {
		missing = append(missing, fmt.Sprintf("progress (%.3f of %.3f)", s.Progress, w.Progress))
		counters = true
	}
	if w.Elapsed > 0 && elapsed < w.Elapsed {
		missing = append(missing, "elapsed")
	}
	return missing, counters
}

// notRunning tells what is in the way of running.
func (o *observer) notRunning() string {
	if o.batch != nil {
		return "no task of the execution after the fault runs"
	}
	if o.mustBack && !o.restarted {
		return "no restart was seen since the fault"
	}
	up := 0
	for k := range o.expected {
		if isUp(o.states[k].state) {
			up++
		}
	}
	return fmt.Sprintf("%d of %d tasks", up, len(o.expected))
}

// readBack takes the options that the running tasks use and holds them against
// the workload's.
func (e *execution) readBack() error {
	e.read = e.job.Options()
	if reason := misconfigured(e.Workload.Options, e.read); reason != "" {
		select {
		case <-e.job.Done():
			if err := e.job.Err(); err != nil { // so nothing was there to answer
				return stopf(result.Failed, "the job failed: %v", err)
			}
		default:
		}
		return stopf(result.Misconfigured, "%s", reason)
	}
	return nil
}

// misconfigured compares options as they were asked for with those in use.
func misconfigured(asked options.Values, used map[string]any) string {
	want := asked.Effective()
	var differ []string
	seen := map[string]bool{}
	for _, info := range options.All() {
		for _, key := range append([]string{info.Key}, info.Aliases...) {
			raw, ok := used[key]
			if !ok {
				continue
			}
			seen[info.Key] = true
			v, err := info.Check(raw)
			if err != nil {
				differ = append(differ, fmt.Sprintf("%s is %v: %v", key, raw, err))
			} else if info.Canonical(v) != want[info.Key] {
				differ = append(differ, fmt.Sprintf("%s is %v, not %v", key, info.Canonical(v), want[info.Key]))
			}
		}
	}
	for _, info := range options.All() {
		if _, set := asked.Map()[info.Key]; set && !seen[info.Key] {
			differ = append(differ, fmt.Sprintf("%s is not reported by the running tasks", info.Key))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return "the running tasks use other options than the workload: " + strings.Join(differ, "; ")
}

// close stops the cluster. A cluster that does not stop is a failure even of a
// trial that went well.
func (e *execution) close() error {
	done := make(chan error, 1)
	go func() { done <- e.job.Close() }() // ends with the process if the cluster hangs
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return stopf(result.Failed, "stopping the cluster: %v", err)
		}
		return nil
	case <-timer.C:
		return stopf(result.Failed, "the cluster did not stop within %s", options.FormatDuration(closeTimeout))
	}
}
