package trial

import (
	"time"

	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// taskKey names a subtask across attempts.
type taskKey struct {
	vertex  string
	subtask int
}

// taskState is the newest state of a subtask.
type taskState struct {
	attempt int
	state   string
	since   time.Duration
}

// observer follows the timeline and knows at each moment what the conditions
// of a scenario ask for. It is fed by one goroutine.
type observer struct {
	w        *spec.Workload
	expected map[taskKey]bool // the subtasks of the current parallelism
	states   map[taskKey]taskState
	known    map[string]int // parallelism by vertex
	whole    bool           // the job is one failover region: every restart is one of all tasks

	since    time.Duration // t0 of the last fault; 0 before
	mustBack bool          // the last fault makes tasks restart

	restarted bool // something of a new execution was seen since the last fault
	assigned  bool // restore-assigned was seen since the last fault, or since the start
	inflight  int64
	restored  int64 // id of the restored checkpoint
	drained   bool  // restore-drained was seen since restore-assigned
	drainedAt time.Duration

	checkpoints int  // complete ones since the last fault, in the newest execution
	first       bool // one with an id above the restored
	newestBytes int64
	newest      bool           // a complete checkpoint is there since the last fault
	pending     map[int64]bool // triggered, neither complete nor failed

	lag   lagTracker
	batch *batchObserver // nil: the job is streaming
}

func newObserver(w *spec.Workload) *observer {
	o := &observer{w: w, states: map[taskKey]taskState{}, known: map[string]int{}, pending: map[int64]bool{}, whole: oneRegion(w)}
	for _, v := range w.Vertices {
		o.known[v.ID] = v.Parallelism
	}
	if w.Mode == spec.Batch {
		o.batch = &batchObserver{noticed: true, finished: map[taskKey]bool{}, running: map[taskKey]bool{}}
	}
	o.expect()
	return o
}

// oneRegion tells whether all tasks of a job fail over together: the graph
// hangs together and an edge joins all subtasks with all.
func oneRegion(w *spec.Workload) bool {
	if len(w.Vertices) == 0 {
		return false
	}
	allToAll := false
	reached := map[string]bool{w.Vertices[0].ID: true}
	for range w.Vertices {
		for _, e := range w.Edges {
			if reached[e.From] || reached[e.To] {
				reached[e.From], reached[e.To] = true, true
			}
			allToAll = allToAll || e.Partitioner != "forward" && e.Partitioner != "rescale"
		}
	}
	return allToAll && len(reached) == len(w.Vertices)
}

// expect computes the tasks that must run: those of every vertex that is not
// chained to the one before it.
func (o *observer) expect() {
	o.expected = map[taskKey]bool{}
	chained := map[string]bool{}
	for _, e := range o.w.Edges {
		if o.w.Chained(e) {
			chained[e.To] = true
		}
	}
	for v, p := range o.known {
		if chained[v] {
			continue
		}
		for i := range p {
			o.expected[taskKey{v, i}] = true
		}
	}
	for k := range o.states {
		if k.subtask >= o.known[k.vertex] {
			delete(o.states, k)
		}
	}
}

// fault starts a new window.
func (o *observer) fault(f *spec.Do, t0 time.Duration, mustBack bool) {
	for v, p := range f.Parallelism {
		o.known[v] = p
	}
	if f.Kind == "rescale" {
		o.expect()
	}
	o.since, o.mustBack = t0, mustBack
	o.restarted, o.assigned, o.inflight, o.restored, o.drained = false, false, 0, 0, false
	o.checkpoints, o.first, o.newest, o.newestBytes = 0, false, false, 0
	clear(o.pending)
	o.lag.fault(t0)
	if o.batch != nil {
		o.batch.fault(f.Kind, mustBack)
	}
}

// add takes an event. Events before the last fault's t0 are late news of the
// window before and only change the tasks' states.
func (o *observer) add(e timeline.Event) {
	if o.batch != nil {
		o.known[e.Vertex] = max(o.known[e.Vertex], e.Subtask+1) // it may be decided at run time
		if e.T >= o.since {
			o.batch.add(e)
		}
		return
	}
	switch e.Kind {
	case timeline.TaskState:
		k := taskKey{e.Vertex, e.Subtask}
		if old, ok := o.states[k]; e.Subtask < o.known[e.Vertex] && (!ok || e.Attempt >= old.attempt) {
			o.states[k] = taskState{e.Attempt, e.State, e.T}
		}
		switch e.State {
		case "SCHEDULED", "DEPLOYING", "INITIALIZING":
			o.restarted = o.restarted || e.T > o.since
		}
	case timeline.Throughput:
		o.lag.add(e)
	}
	if e.T < o.since {
		return
	}
	switch e.Kind {
	case timeline.RestoreAssigned:
		if o.whole {
			o.forgetStates(e.T) // a worker that died has said nothing of its tasks' end
		}
		o.restarted, o.assigned = true, true
		o.drained = o.drainedAt > e.T // news of several processes overtake each other
		o.inflight, o.restored = max(e.Bytes, 0), e.Checkpoint
		o.checkpoints, o.first, o.newest = 0, false, false
		clear(o.pending)
	case timeline.MasterElected:
		o.forgetStates(e.T) // it starts all tasks again
	case timeline.RestoreDrained:
		o.drained, o.drainedAt = true, e.T
	case timeline.CheckpointTriggered:
		o.pending[e.Checkpoint] = true
	case timeline.CheckpointFailed, timeline.CheckpointDeclined:
		delete(o.pending, e.Checkpoint)
	case timeline.CheckpointCompleted:
		delete(o.pending, e.Checkpoint)
		if isSavepoint(e) {
			return
		}
		if o.mustBack && !o.restarted {
			return // the old execution's last word
		}
		o.checkpoints++
		o.newest, o.newestBytes = true, max(e.Bytes, 0)
		if !o.assigned || e.Checkpoint > o.restored {
			o.first = true
		}
	}
}

// forgetStates drops what is known of tasks from before a moment.
func (o *observer) forgetStates(before time.Duration) {
	for k, s := range o.states {
		if s.since <= before {
			o.states[k] = taskState{s.attempt, "", s.since}
		}
	}
}

// running tells whether every task runs, after the restart that the last fault
// causes.
func (o *observer) running() bool {
	if o.batch != nil {
		return o.batch.ran
	}
	if o.mustBack && !o.restarted {
		return false
	}
	for k := range o.expected {
		if !isUp(o.states[k].state) {
			return false
		}
	}
	for _, s := range o.states {
		if !isUp(s.state) {
			return false
		}
	}
	return true
}

func isUp(state string) bool { return state == "RUNNING" || state == "FINISHED" }

// isDrained tells whether all restored in-flight data have been processed.
func (o *observer) isDrained(share float64) bool {
	if !o.running() || share < 1 {
		return false
	}
	return o.inflight == 0 || o.drained
}

// recovering tells whether a recovery is under way.
func (o *observer) recovering(share float64) bool {
	if o.batch != nil {
		return o.batch.recovering()
	}
	return o.restarted && o.assigned && !o.isDrained(share)
}

// lagTracker finds the moment from which rated sources are on time again.
type lagTracker struct {
	latest  map[string]time.Duration
	recent  []lagSample // as reported, of the last lagMemory
	samples []lagSample // the worst of all sources
	t0      time.Duration
	limit   time.Duration
	known   bool // limit is
	holding bool
	start   time.Duration
	done    bool
}

type lagSample struct{ t, lag time.Duration }

// How long before a fault the lag is taken as normal, and for how long it must
// be normal again.
const (
	lagBefore = 5 * time.Second
	lagHold   = 2 * time.Second
)

func (l *lagTracker) fault(t0 time.Duration) {
	l.t0, l.holding, l.done, l.known, l.limit = t0, false, false, false, 0
	for _, s := range l.samples {
		if s.t > t0-lagBefore && s.t <= t0 {
			l.known, l.limit = true, max(l.limit, s.lag)
		}
	}
	l.limit += l.limit / 10
	l.samples = nil
}

// lagMemory covers the reports of one vertex by several workers, which do not
// say which is whose.
const lagMemory = 250 * time.Millisecond

// add takes a throughput event; the lag is that of the latest source.
func (l *lagTracker) add(e timeline.Event) {
	if e.Lag == timeline.None {
		return
	}
	if l.latest == nil {
		l.latest = map[string]time.Duration{}
	}
	l.latest[e.Vertex] = e.Lag
	worst := time.Duration(0)
	for _, lag := range l.latest {
		worst = max(worst, lag)
	}
	old := 0
	for old < len(l.recent) && l.recent[old].t < e.T-lagMemory {
		old++
	}
	l.recent = append(l.recent[old:], lagSample{e.T, e.Lag})
	for _, s := range l.recent {
		worst = max(worst, s.lag)
	}
	l.samples = append(l.samples, lagSample{e.T, worst})
	if len(l.samples) > 1<<14 {
		l.samples = l.samples[len(l.samples)/2:]
	}
	if l.done || !l.known || e.T <= l.t0 {
		return
	}
	switch {
	case worst > l.limit:
		l.holding = false
	case !l.holding:
		l.holding, l.start = true, e.T
	case e.T-l.start >= lagHold:
		l.done = true
	}
}
