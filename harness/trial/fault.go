package trial

import (
	"context"
	"fmt"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// injectTimeout bounds the act of disturbing, not the recovery after it.
const injectTimeout = 60 * time.Second

// fault carries out a step that disturbs the job.
func (e *execution) fault(ctx context.Context, s spec.Step) error {
	if err := e.moment(ctx, s.Do.When); err != nil {
		return err
	}
	if err := e.ending(ctx, "and there is nothing left to disturb"); err != nil {
		return err
	}
	f := e.choose(s)
	e.catchUp()
	e.closeWindow()
	ictx, cancel := context.WithTimeout(ctx, injectTimeout)
	defer cancel()
	t0, err := e.job.Inject(ictx, f)
	if err != nil {
		if ictx.Err() != nil && ctx.Err() == nil {
			return stopf(result.Timeout, "the fault %s did not happen within %s", s.Do.Kind, options.FormatDuration(injectTimeout))
		}
		return e.failed(ctx, fmt.Errorf("%s: %w", s.Do.Kind, err))
	}
	// What happened before t0 belongs to the window before.
	for _, ev := range e.Log.From(e.next) {
		if ev.T >= t0 {
			break
		}
		e.obs.add(ev)
		e.next++
	}
	e.say("%s %s (t0 %.3f s)", s.Do.Kind, aim(f), t0.Seconds())
	e.obs.fault(s.Do, t0, e.restarts(s.Do))
	e.sunk = e.job.Status().SinkRecords
	e.windows = append(e.windows, Window{Name: s.Name, Kind: s.Do.Kind, T0: t0})
	return nil
}

// closeWindow remembers of the fault before what only counters tell.
func (e *execution) closeWindow() {
	if n := len(e.windows); n > 0 {
		e.windows[n-1].Undrained = !e.obs.isDrained(e.job.Status().RestoredShare)
	}
}

// restarts tells whether tasks restart because of a fault, so that a condition
// must not hold before they did.
func (e *execution) restarts(d *spec.Do) bool {
	switch d.Kind {
	case "rescale", "fail-task", "kill-worker", "kill-jobmanager":
		return true
	case "freeze-worker":
		return d.For > options.HeartbeatTimeout.Get(e.Workload.Options)
	}
	return false
}

// choose makes the random choices of a fault. They depend on seed, workload,
// block and step only.
func (e *execution) choose(s spec.Step) target.Fault {
	d := s.Do
	f := target.Fault{Step: s.Name, Kind: d.Kind, Parallelism: d.Parallelism, Vertex: d.Vertex, Subtask: d.Subtask, Worker: d.Worker,
		For: d.For, ReplaceAfter: d.ReplaceAfter, StorageKind: d.StorageKind, DownFor: d.DownFor}
	r := plan.Rand(e.Workload.Run.Seed, e.Workload.Name, e.Block, "step/"+s.Name)
	if f.Subtask == spec.Random {
		vertex := d.Vertex
		if e.obs.batch != nil {
			vertex = e.Workload.ChainHead(vertex) // events name tasks by it
		}
		f.Subtask = r.IntN(max(1, e.obs.known[vertex]))
		switch b := e.obs.batch; { // tasks of a batch job come and go
		case b == nil:
		case d.Kind == "drop-partition":
			f.Subtask = from(b.finished, vertex, f.Subtask, e.obs.known[vertex])
		default:
			f.Subtask = from(b.running, vertex, f.Subtask, e.obs.known[vertex])
		}
	}
	if f.Worker == spec.Random {
		f.Worker = r.IntN(max(1, e.job.Status().WorkersWithTasks))
	}
	return f
}

// aim says what a fault hits.
func aim(f target.Fault) string {
	switch f.Kind {
	case "rescale":
		return fmt.Sprint(f.Parallelism)
	case "fail-task", "drop-partition":
		return fmt.Sprintf("%s/%d", f.Vertex, f.Subtask)
	case "kill-worker", "freeze-worker":
		return fmt.Sprintf("worker %d", f.Worker)
	case "kill-jobmanager":
		return "down for " + options.FormatDuration(f.DownFor)
	}
	return f.StorageKind
}

// moment waits until the time for a fault has come.
func (e *execution) moment(ctx context.Context, w *spec.When) error {
	if w == nil {
		return nil
	}
	deadline := time.Now().Add(w.Timeout)
	for {
		e.catchUp()
		s := e.status()
		what, now, counters := e.when(w, s)
		if now {
			return nil
		}
		if err := e.ending(ctx, "before the moment for the fault had come: "+what); err != nil {
			return err
		}
		if !time.Now().Before(deadline) {
			return stopf(result.Timeout, "after %s the moment for the fault had not come: %s", options.FormatDuration(w.Timeout), what)
		}
		until := deadline
		if counters {
			until = earlier(until, time.Now().Add(time.Millisecond)) // the moment is short
		}
		e.sleep(until)
	}
}

func (e *execution) when(w *spec.When, s target.Status) (what string, now, counters bool) {
	o := e.obs
	switch {
	case w.DuringRecovery:
		return "during-recovery: no recovery is under way", o.recovering(s.RestoredShare), o.assigned && o.batch == nil
	case w.Restored >= 0:
		return fmt.Sprintf("restored: %.2f of %.2f", s.RestoredShare, w.Restored), o.assigned && s.RestoredShare >= w.Restored, true
	default:
		return "checkpoint: none is in progress", len(o.pending) > 0, false
	}
}
