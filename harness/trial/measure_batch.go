package trial

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
)

// measureBatch computes what the timeline of a batch job says about each fault.
// Metrics that were not reached within a window are absent, and so is the
// durability gap of a job whose masters keep no log.
func measureBatch(events []timeline.Event, windows []Window, readers consumers, logged bool) []result.Fault {
	var t0s []time.Duration
	for _, w := range windows {
		t0s = append(t0s, w.T0)
	}
	work := newLedger(events, t0s)
	out := make([]result.Fault, len(windows))
	for i, w := range windows {
		end := time.Duration(1<<63 - 1)
		if i+1 < len(windows) {
			end = windows[i+1].T0
		}
		m := batchMeasurement{measurement{window: w, metrics: map[string]float64{}, before: events}, work, readers, logged, end}
		for _, e := range events {
			if e.T >= w.T0 && e.T < end {
				m.events = append(m.events, e)
			}
		}
		m.measure()
		out[i] = result.Fault{Name: w.Name, Kind: w.Kind, T0Us: w.T0.Microseconds(), Metrics: m.metrics, RecoveryPath: m.path}
	}
	return out
}

// batchMeasurement computes the metrics of one window of a batch job.
type batchMeasurement struct {
	measurement
	work    *ledger
	readers consumers
	logged  bool // masters keep a log
	end     time.Duration
}

func (m *batchMeasurement) measure() {
	m.detect()
	base, known := m.control()
	if !known && m.window.Kind != result.KillMaster {
		base, known = m.noticed()
		known = known && !m.open()
	}
	back := false
	if known {
		var t time.Duration
		if t, back = m.work.parity(m.window.T0, base, m.end); back {
			m.put("time_to_parity_s", t)
		}
	}
	if back || !m.cut() { // else what is done again has only begun
		m.again()
	}
}

// cut tells whether another fault ended the window.
func (m *batchMeasurement) cut() bool { return m.end <= m.work.last }

// noticed is when the master knows of a fault other than its own death. If it
// never does, nothing hangs on what was lost; if it had no time to, nobody knows.
func (m *batchMeasurement) noticed() (time.Duration, bool) {
	if _, ok := m.metrics["detect_s"]; ok {
		return m.known, true
	}
	return m.window.T0, !m.cut()
}

// open tells whether another fault ended the window while outputs were lost and not
// made again. Whether somebody would have needed them nobody knows.
func (m *batchMeasurement) open() bool {
	lost := map[taskKey]bool{}
	for _, e := range m.events {
		switch k := (taskKey{e.Vertex, e.Subtask}); {
		case e.Kind == timeline.PartitionLost:
			lost[k] = true
		case e.Kind == timeline.PartitionKept && e.Reason == "":
			delete(lost, k)
		case e.Kind == timeline.TaskState && e.State == "FINISHED":
			delete(lost, k)
		}
	}
	return m.cut() && len(lost) > 0
}

// first finds an event of the window, from a moment on.
func (m *batchMeasurement) first(from time.Duration, is func(timeline.Event) bool) (timeline.Event, bool) {
	for _, e := range m.events {
		if e.T >= from && is(e) {
			return e, true
		}
	}
	return timeline.Event{}, false
}

// control reads the phases from the loss of a master to the first task of the
// next. They add up to the whole: what did not happen takes no time. If another
// fault comes before that task there is no whole, but the phases that were over. If
// nobody noticed the loss before the next master led, the time until then is not
// parted.
func (m *batchMeasurement) control() (running time.Duration, ok bool) {
	if m.window.Kind != result.KillMaster {
		return 0, false
	}
	elected, ok := m.elected()
	if !ok {
		return 0, false
	}
	up, ran := m.first(elected.T, func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && !m.work.over(e)
	})
	if !ran {
		up.T = m.end
	}
	at := elected.T
	phase := func(name string, to time.Duration) { // microseconds from t0, so that nothing is lost between two
		to = min(max(at, to), up.T)
		m.metrics[name] = float64((to-m.window.T0).Microseconds()-(at-m.window.T0).Microseconds()) / 1e6
		at = to
	}
	if _, noticed := m.metrics["detect_s"]; noticed {
		at = m.known
		phase("recovery_elect_s", elected.T)
	}
	m.path = m.way(elected.T)
	if replayed, ok := m.first(elected.T, func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed }); ok {
		phase("recovery_replay_s", replayed.T)
		if ready, ok := m.first(replayed.T, func(e timeline.Event) bool { return e.Kind == timeline.JobState && e.State == "RUNNING" }); ok {
			phase("recovery_wait_s", ready.T)
		}
	}
	if !ran {
		return m.idle(elected.T)
	}
	phase("recovery_schedule_s", up.T)
	m.put("control_recovery_s", up.T)
	return up.T, true
}

// idle is when a master that led from a moment on had the job in hand, if that then
// finished and no task was left to run: the end of the outage.
func (m *batchMeasurement) idle(from time.Duration) (time.Duration, bool) {
	end, finished := m.first(from, func(e timeline.Event) bool { return e.Kind == timeline.JobState && e.State == "FINISHED" })
	if !finished {
		return 0, false
	}
	if ready, ok := m.first(from, func(e timeline.Event) bool { return e.Kind == timeline.JobState && e.State == "RUNNING" }); ok {
		return min(ready.T, end.T), true
	}
	return end.T, true // it only had to be told
}

// way is how a master that led from a moment on came to the progress of its job:
// from the log, or by beginning anew. Of one that did neither before the window
// ended it is not known.
func (m *batchMeasurement) way(from time.Duration) (path string) {
	for _, e := range m.events {
		if e.T < from {
			continue
		}
		switch {
		case e.Kind == timeline.EventReplayed && e.Reason == "":
			path = result.RecoveryEventLog
		case e.Kind == timeline.EventReplayed:
			return result.RecoveryFull
		case e.Kind == timeline.JobState && e.State == "RESTARTING" && path != "":
			return result.RecoveryFull // what the log says is not of this job
		case e.Kind == timeline.JobState && e.State == "RUNNING", e.Kind == timeline.TaskState && e.State == "DEPLOYING":
			if path == "" {
				path = result.RecoveryFull
			}
			return path
		}
	}
	return path
}

// again measures the work that tasks do again although it was done.
func (m *batchMeasurement) again() {
	done, again := m.work.before(m.window.T0, m.end)
	total := 0.0
	for _, a := range done {
		total += (a.to - a.from).Seconds()
	}
	if total <= 0 {
		return // nothing was done that could be done again
	}
	redone := map[taskKey]bool{}
	for _, a := range again {
		redone[a.task] = true
	}
	forced, kept := m.forced(redone)
	unknown := 0
	for task := range redone {
		if !forced[task] && !kept[task] {
			unknown++
		}
	}
	all, avoidable := 0.0, 0.0
	for _, a := range m.work.attempts {
		if !redone[a.task] || a.from < m.window.T0 || a.from >= m.end {
			continue
		}
		spent := m.work.spent(a, m.end).Seconds()
		all += spent
		if !forced[a.task] {
			avoidable += spent
		}
	}
	m.metrics["reexecuted_fraction"] = all / total
	m.metrics["avoidable_reexecuted_fraction"] = avoidable / total
	if m.window.Kind == result.KillMaster && m.logged {
		m.metrics["durability_gap_tasks"] = float64(unknown)
	}
}

// forced are the tasks among some that ran again because there was no way
// around it: their output was lost, or somebody who had to run again read it when
// all others were done with it and it had been released. kept are those whose
// output a master has found, be it too late: then it was there all the time.
func (m *batchMeasurement) forced(redone map[taskKey]bool) (out, kept map[taskKey]bool) {
	out, kept = map[taskKey]bool{}, map[taskKey]bool{}
	for _, e := range m.events {
		switch k := (taskKey{e.Vertex, e.Subtask}); e.Kind {
		case timeline.PartitionLost:
			if redone[k] {
				out[k] = true
			}
		case timeline.PartitionKept:
			kept[k] = true
			delete(out, k)
		}
	}
	lost := map[string]bool{} // vertices of forced tasks
	for k := range out {
		lost[k.vertex] = true
	}
	released := map[string]bool{}
	for k := range redone {
		if _, known := released[k.vertex]; !known {
			released[k.vertex] = m.released(k.vertex)
		}
	}
	for more := true; more; {
		more = false
		for k := range redone {
			if out[k] || kept[k] || !released[k.vertex] || !slices.ContainsFunc(m.readers[k.vertex], func(v string) bool { return lost[v] }) {
				continue
			}
			out[k], more = true, true
			lost[k.vertex] = true
		}
	}
	return out, kept
}

// released tells whether all who read the output of a vertex had done so at the
// fault. Output that is there all the same is among what a new master keeps.
func (m *batchMeasurement) released(vertex string) bool {
	return !slices.ContainsFunc(m.readers[vertex], func(v string) bool { return !m.work.done(v, m.window.T0) })
}

// life is a batch job's, from its submission to its end; end < 0: it has not
// finished. What its masters say of themselves is no beginning, for the words of the
// first may die with it. Of a target that notes no submission, the caller's counts.
func life(events []timeline.Event, submitted time.Duration) (begin, end time.Duration) {
	begin, end = submitted, -1
	for _, e := range events {
		if e.Kind != timeline.JobState {
			continue
		}
		switch e.State {
		case timeline.Submitted:
			begin = e.T
		case "FINISHED":
			end = e.T
		}
	}
	return begin, end
}

// wholeBatch computes the metrics of a batch job that belong to no fault.
func (e *execution) wholeBatch(t *result.Trial, events []timeline.Event) {
	begin, end := life(events, e.submitted)
	makespan := (end - begin).Seconds()
	if end >= 0 {
		t.Metrics["makespan_s"] = float64((end - begin).Microseconds()) / 1e6
	}
	t.Metrics["wasted_bytes"] = float64(newLedger(events, nil).wasted(consumersOf(e.Workload)))
	e.unrecovered(t, events, end)
	e.remark(t, unprotected(events, end))
	if e.out == nil || e.out.Batch == nil {
		return
	}
	b := e.out.Batch
	put := func(name string, v *int64) {
		if v != nil {
			t.Metrics[name] = float64(*v)
		}
	}
	put("leftover_bytes", b.LeftoverBytes)
	if len(b.Unheard) > 0 {
		at := end
		if at < 0 {
			at = lastMoment(events)
		}
		e.lacks(t, at, "leftover_bytes", "nobody has said what is left in the folder of "+strings.Join(b.Unheard, ", "))
	}
	if options.BatchJobRecovery.Get(e.Workload.Options) {
		put("event_log_bytes", b.EventLogBytes)
		if makespan > 0 && b.EventLogBytes != nil {
			t.Metrics["recording_overhead"] = recording(b, makespan)
		}
	}
}

// recording is the share of the machine that writing the event log took.
func recording(b *target.BatchFigures, makespan float64) float64 {
	return (b.HookTime + b.WriterCPU).Seconds() / (makespan * float64(runtime.NumCPU()))
}
