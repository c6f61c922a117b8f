package trial

import (
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/timeline"
)

// Window is the part of a timeline that belongs to one fault: from its t0 to
// the next fault's.
type Window struct {
	Name string
	Kind string
	T0   time.Duration
	// Undrained tells that the next fault came before all restored in-flight
	// data were processed.
	Undrained bool
}

// Measure computes what a timeline says about each fault. Metrics that were
// not reached within a window are absent.
func Measure(events []timeline.Event, windows []Window) []result.Fault {
	out := make([]result.Fault, len(windows))
	for i, w := range windows {
		end := time.Duration(1<<63 - 1)
		if i+1 < len(windows) {
			end = windows[i+1].T0
		}
		m := measurement{window: w, metrics: map[string]float64{}, before: events}
		for _, e := range events {
			if e.T >= w.T0 && e.T < end {
				m.events = append(m.events, e)
			}
		}
		m.measure(end)
		out[i] = result.Fault{Name: w.Name, Kind: w.Kind, T0Us: w.T0.Microseconds(), Metrics: m.metrics, RecoveryPath: m.path}
	}
	return out
}

// masterLost tells whether a worker has lost its master, or the supervisor one.
func masterLost(e timeline.Event) bool {
	return e.Kind == timeline.JobState && e.State == timeline.Suspended
}

// measurement computes the metrics of one window.
type measurement struct {
	window  Window
	events  []timeline.Event // of the window
	before  []timeline.Event // the whole timeline
	metrics map[string]float64
	path    string
	known   time.Duration // when somebody knew of the fault; with detect_s
}

func (m *measurement) put(name string, t time.Duration) {
	m.metrics[name] = float64((t - m.window.T0).Microseconds()) / 1e6
}

func (m *measurement) measure(end time.Duration) {
	m.detect()
	var assigned []timeline.Event
	for _, e := range m.events {
		if e.Kind == timeline.RestoreAssigned {
			assigned = append(assigned, e)
		}
	}
	m.states(assigned)
	if len(assigned) > 0 {
		last := assigned[len(assigned)-1]
		m.restored(last)
		m.firstCheckpoint(last)
	}
	m.caughtUp(end)
}

// detect finds the first sign that the master knows of the fault; of a master's
// death, that somebody does. That a master is elected is neither.
func (m *measurement) detect() {
	for _, e := range m.events {
		if e.Kind == timeline.JobState && e.State == "FINISHED" {
			break // whoever goes now is cleared away
		}
		known := false
		switch {
		case m.window.Kind == result.KillMaster: // the dying master's last words
		case e.Kind == timeline.WorkerLost, e.Kind == timeline.PartitionLost:
			known = true
		case e.Kind == timeline.TaskState:
			known = e.State == "FAILED" || e.State == "CANCELING" || e.State == "CANCELED"
		case e.Kind == timeline.JobState: // other states are those of a master that comes, or of a log
			known = e.State == "RESTARTING" || e.State == "FAILING" || e.State == "FAILED"
		case e.Kind == timeline.CheckpointFailed:
			known = m.window.Kind == "fail-storage"
		}
		if known && m.window.Kind != result.StartFault {
			m.notice(e)
			return
		}
	}
	if m.window.Kind == result.KillMaster {
		if e, ok := m.missed(); ok {
			m.notice(e)
		}
	}
}

func (m *measurement) notice(e timeline.Event) {
	m.known = e.T
	m.put("detect_s", e.T)
}

// elected finds the election of the master under which the job went on: the last
// one before a task runs. Another one may have come to lead while the fault that
// kills it was under way.
func (m *measurement) elected() (last timeline.Event, ok bool) {
	for _, e := range m.events {
		switch {
		case e.Kind == timeline.MasterElected:
			last, ok = e, true
		case ok && e.Kind == timeline.TaskState && e.State == "RUNNING":
			return last, true
		}
	}
	return last, ok
}

// missed finds who noticed the death of the master before the next one led: the
// first worker that has lost it, else the supervisor that saw its process end. Who
// only now misses an earlier master tells nothing of this one.
func (m *measurement) missed() (first timeline.Event, ok bool) {
	led := int64(0)
	for _, e := range m.before {
		if n, known := epochOf(e); known && e.Kind == timeline.MasterElected && e.T < m.window.T0 {
			led = n
		}
	}
	next, elected := m.elected()
	for _, e := range m.events {
		if elected && e.T > next.T {
			break
		}
		if n, known := epochOf(e); !masterLost(e) || known && n < led {
			continue
		}
		if !strings.HasPrefix(e.Detail, timeline.Supervisor) {
			return e, true
		}
		if !ok {
			first, ok = e, true
		}
	}
	return first, ok
}

// epochOf is the epoch that an event of a master names last in its detail.
func epochOf(e timeline.Event) (epoch int64, ok bool) {
	words := strings.FieldsFunc(e.Detail, func(r rune) bool { return r == ' ' || r == '=' })
	if len(words) == 0 {
		return 0, false
	}
	epoch, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	return epoch, err == nil
}

// states reads the tasks' way back to RUNNING.
func (m *measurement) states(assigned []timeline.Event) {
	var deploying, initializing, running time.Duration = -1, -1, -1
	for _, e := range m.events {
		if e.Kind != timeline.TaskState {
			continue
		}
		switch e.State {
		case "DEPLOYING":
			if deploying < 0 {
				deploying = e.T
			}
		case "INITIALIZING":
			initializing = e.T
		case "RUNNING":
			if len(assigned) > 0 && e.T >= assigned[0].T {
				running = e.T
			}
		}
	}
	if len(assigned) == 0 {
		return
	}
	if deploying >= 0 {
		m.put("time_to_deploying_s", deploying)
	}
	if running < 0 || !m.allUpAt(running) {
		return
	}
	if initializing >= 0 && initializing <= running {
		m.put("time_to_initializing_s", initializing)
	}
	m.put("time_to_running_s", running)
	for _, e := range m.events {
		if e.Kind == timeline.FirstOutput && e.T >= assigned[0].T {
			m.put("time_to_first_output_s", e.T)
			break
		}
	}
}

// allUpAt tells whether every task that is there runs at a moment.
func (m *measurement) allUpAt(t time.Duration) bool {
	states := map[taskKey]taskState{}
	seen := map[taskKey]bool{} // in the window, before t or after
	for _, e := range m.before {
		if e.Kind != timeline.TaskState {
			continue
		}
		k := taskKey{e.Vertex, e.Subtask}
		if e.T <= t {
			if old, ok := states[k]; !ok || e.Attempt >= old.attempt {
				states[k] = taskState{e.Attempt, e.State, e.T}
			}
		} else if e.T < m.windowEnd() && e.State != "FINISHED" && e.State != "CANCELED" && e.State != "CANCELING" && e.State != "FAILED" {
			seen[k] = true
		}
	}
	for k, s := range states {
		switch s.state {
		case "RUNNING", "FINISHED", "CANCELED", "FAILED": // the last two: rescaled away
		default:
			return false
		}
		delete(seen, k)
	}
	return len(seen) == 0
}

func (m *measurement) windowEnd() time.Duration {
	if len(m.events) == 0 {
		return m.window.T0
	}
	return m.events[len(m.events)-1].T + 1
}

// restored sums up what the tasks read, and when the last of it was processed.
func (m *measurement) restored(assigned timeline.Event) {
	drained := time.Duration(-1)
	var read, filtered, spilled int64
	m.path = result.RecoveryNone
	for _, e := range m.events {
		if e.T < assigned.T {
			continue
		}
		switch e.Kind {
		case timeline.RestoreRead:
			read += max(e.Bytes, 0)
			if m.path == result.RecoveryNone {
				m.path = e.Detail
			}
		case timeline.RestoreFiltered:
			filtered += max(e.Bytes, 0)
		case timeline.RestoreSpilled:
			spilled += max(e.Bytes, 0)
		case timeline.RestoreDrained:
			drained = e.T
		}
	}
	if assigned.Bytes != timeline.None {
		m.metrics["restored_inflight_bytes"] = float64(assigned.Bytes)
	}
	m.metrics["restored_bytes"] = float64(read)
	m.metrics["filtered_out_bytes"] = float64(filtered)
	m.metrics["spilled_bytes"] = float64(spilled)
	switch running, ok := m.metrics["time_to_running_s"]; {
	case m.window.Undrained:
	case drained >= 0:
		m.put("time_to_drained_s", drained)
	case ok && assigned.Bytes <= 0:
		m.metrics["time_to_drained_s"] = running
	}
}

// firstCheckpoint finds the first complete checkpoint after the restored one.
func (m *measurement) firstCheckpoint(assigned timeline.Event) {
	first := timeline.Event{T: -1}
	for _, e := range m.events {
		if e.Kind == timeline.CheckpointCompleted && e.T > assigned.T && e.Checkpoint > max(assigned.Checkpoint, 0) {
			first = e
			break
		}
	}
	if first.T < 0 || !m.allAcknowledged(first) {
		return
	}
	m.put("time_to_first_checkpoint_s", first.T)
	for _, e := range m.events {
		if e.Kind == timeline.CheckpointTriggered && e.Checkpoint == first.Checkpoint {
			m.put("time_to_first_checkpoint_trigger_s", e.T)
			break
		}
	}
	if first.Bytes == timeline.None {
		return
	}
	m.metrics["first_checkpoint_inflight_bytes"] = float64(first.Bytes)
	if assigned.Bytes > 0 {
		m.metrics["inflight_inflation"] = float64(first.Bytes) / float64(assigned.Bytes)
	}
}

// ackSlack is how much later than the completion an acknowledgement may be
// stamped, since two goroutines write them.
const ackSlack = time.Millisecond

// allAcknowledged tells whether every task that ran when a checkpoint was
// complete had taken its own snapshot for it in this window.
func (m *measurement) allAcknowledged(first timeline.Event) bool {
	up := map[taskKey]bool{}
	for _, e := range m.events {
		if e.T > first.T {
			break
		}
		if e.Kind != timeline.TaskState {
			continue
		}
		k := taskKey{e.Vertex, e.Subtask}
		switch e.State {
		case "RUNNING":
			up[k] = true
		case "FINISHED", "CANCELED", "FAILED":
			delete(up, k)
		}
	}
	for _, e := range m.events {
		if e.Kind == timeline.CheckpointAcknowledged && e.Checkpoint == first.Checkpoint && e.T <= first.T+ackSlack {
			delete(up, taskKey{e.Vertex, e.Subtask})
		}
	}
	return len(up) == 0
}

// caughtUp finds the moment from which the rated sources are on time again.
func (m *measurement) caughtUp(end time.Duration) {
	var l lagTracker
	started := false
	for _, e := range m.before {
		if e.T >= m.window.T0 && !started {
			l.fault(m.window.T0)
			started = true
		}
		if e.T >= end {
			break
		}
		if e.Kind == timeline.Throughput {
			l.add(e)
		}
	}
	if l.done {
		m.put("time_to_caught_up_s", l.start)
	}
}

// throughputOf is the rate at which records left the sources between two
// moments.
func throughputOf(events []timeline.Event, from, to time.Duration) (perSecond float64, ok bool) {
	type span struct {
		first, last time.Duration
		records     int64
	}
	spans := map[string]*span{}
	for _, e := range events {
		if e.Kind != timeline.Throughput || e.Records == timeline.None || e.T < from || e.T > to {
			continue
		}
		s := spans[e.Vertex]
		if s == nil {
			spans[e.Vertex] = &span{first: e.T, last: e.T} // its records are of the time before
			continue
		}
		s.last = e.T
		s.records += e.Records
	}
	for _, s := range spans {
		if s.last-s.first < 100*time.Millisecond {
			return 0, false // too short to tell
		}
		perSecond += float64(s.records) / (s.last - s.first).Seconds()
	}
	return perSecond, len(spans) > 0
}

func isSavepoint(e timeline.Event) bool { return strings.Contains(e.Detail, "savepoint") }
