package trial

import (
	"maps"
	"slices"
	"time"

	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// attempt is one execution of a task of a batch job.
type attempt struct {
	task     taskKey
	from, to time.Duration // to < 0: it did not finish
	broken   time.Duration // when it failed or was cancelled; negative: nobody said so
	next     time.Duration // when its task was deployed again after it had finished; negative: never
	records  int64         // consumed; of a source: emitted
	bytes    int64         // written
	// lost is when each of its outputs was lost, by name, that has not come back.
	lost map[string]time.Duration
	// gone is when its work stopped to count, because the task ran again: at the
	// fault before its first output was lost, or before it was deployed if none was;
	// without such a fault then. Negative: it counts.
	gone time.Duration
}

func (a *attempt) finished() bool { return a.to >= 0 }

// replaced notes that the task was deployed again, after some faults.
func (a *attempt) replaced(t time.Duration, faults []time.Duration) {
	a.next, a.gone = t, t
	for _, lost := range a.lost {
		a.gone = min(a.gone, lost)
	}
	until := a.gone
	for _, t0 := range faults {
		if t0 >= a.to && t0 <= until {
			a.gone = t0
		}
	}
}

// counts tells whether the work is done, and still there, at a moment. What
// a fault at that moment takes along still is.
func (a *attempt) counts(t time.Duration) bool {
	return a.finished() && a.to <= t && (a.gone < 0 || a.gone >= t)
}

// ledger is the useful work of a batch job: the attempts of its tasks, in the
// order in which they began.
type ledger struct {
	attempts []*attempt
	ended    map[attemptName]time.Duration // when each first finished
	last     time.Duration                 // of the timeline
}

// attemptName names one execution of a task.
type attemptName struct {
	taskKey
	attempt int
}

// over tells whether the attempt of an event had finished before.
func (l *ledger) over(e timeline.Event) bool {
	at, ok := l.ended[attemptName{taskKey{e.Vertex, e.Subtask}, e.Attempt}]
	return ok && at < e.T
}

// newLedger reads a timeline; faults are the t0 of each.
func newLedger(events []timeline.Event, faults []time.Duration) *ledger {
	l := &ledger{ended: map[attemptName]time.Duration{}}
	running, failed := map[attemptName]*attempt{}, map[attemptName]*attempt{}
	done := map[taskKey][]*attempt{}
	for _, e := range events {
		l.last = max(l.last, e.T)
		k := taskKey{e.Vertex, e.Subtask}
		switch {
		case e.Kind == timeline.PartitionLost:
			for _, a := range done[k] {
				if _, twice := a.lost[e.Detail]; !twice { // the next master misses it, too
					a.lost[e.Detail] = e.T
				}
			}
		case e.Kind == timeline.PartitionKept && e.Reason == "":
			for _, a := range done[k] {
				delete(a.lost, e.Detail)
			}
		}
		if e.Kind != timeline.TaskState {
			continue
		}
		n := attemptName{k, e.Attempt}
		a := running[n]
		if a == nil && failed[n] != nil && (e.State == "RUNNING" || e.State == "FINISHED") {
			// Its worker was taken for dead, and the next master goes on with it.
			a = failed[n]
			a.broken, running[n] = -1, a
			delete(failed, n)
		}
		switch e.State {
		case "DEPLOYING":
			if a != nil {
				break // a new master goes on with it
			}
			a = &attempt{task: k, from: e.T, to: -1, broken: -1, next: -1, gone: -1, lost: map[string]time.Duration{}}
			running[n] = a
			l.attempts = append(l.attempts, a)
			for _, old := range done[k] {
				old.replaced(e.T, faults)
			}
			done[k] = nil
		case "FINISHED":
			if _, twice := l.ended[n]; !twice {
				l.ended[n] = e.T
			}
			if a == nil {
				break
			}
			a.to, a.records, a.bytes = e.T, max(0, e.Records), max(0, e.Bytes)
			delete(running, n)
			done[k] = append(done[k], a)
		case "FAILED", "CANCELED":
			if a != nil {
				a.broken, failed[n] = e.T, a
			}
			delete(running, n)
		}
	}
	return l
}

// work is the useful work done at a moment, in records.
func (l *ledger) work(t time.Duration) (sum int64) {
	for _, a := range l.attempts {
		if a.counts(t) {
			sum += a.records
		}
	}
	return sum
}

// before is the work that was done at a fault, and again what of it the fault,
// until end, made tasks do again.
func (l *ledger) before(t0, end time.Duration) (done, again []*attempt) {
	for _, a := range l.attempts {
		if !a.counts(t0) {
			continue
		}
		done = append(done, a)
		if a.gone >= t0 && a.gone < end {
			again = append(again, a)
		}
	}
	return done, again
}

// parity is the first moment from a base on at which as much is done as at t0. What
// is done grows and shrinks step by step, so each attempt is looked at once.
func (l *ledger) parity(t0, base, end time.Duration) (time.Duration, bool) {
	want, kept := l.work(t0), int64(0)
	gains, losses := map[time.Duration]int64{base: 0}, map[time.Duration]int64{}
	for _, a := range l.attempts {
		if !a.finished() || a.gone == t0 {
			continue
		}
		if a.counts(base) {
			kept += a.records
		}
		if a.to > base {
			gains[a.to] += a.records
		}
		if a.gone >= base {
			losses[a.gone] += a.records
		}
	}
	moments := slices.Concat(slices.Collect(maps.Keys(gains)), slices.Collect(maps.Keys(losses)))
	slices.Sort(moments)
	for _, t := range slices.Compact(moments) {
		if t >= end {
			break
		}
		if kept += gains[t]; kept >= want {
			return t, true
		}
		kept -= losses[t] // what a moment takes along still counts at it
	}
	return 0, false
}

// spent is the time that an attempt ran within a window.
func (l *ledger) spent(a *attempt, end time.Duration) time.Duration {
	to := a.to
	if to < 0 {
		to = a.broken
	}
	if to < 0 || to > end {
		to = min(end, l.last)
	}
	return to - a.from
}

// wasted sums up the bytes of attempts whose output nothing that counts in the
// end has read: what began while an output was the one of its task has read it,
// as far as the vertices tell. What an attempt had written that did not finish is
// not known.
func (l *ledger) wasted(readers consumers) (bytes int64) {
	began := map[string][]time.Duration{} // attempts that count, by vertex
	for _, a := range l.attempts {
		if a.finished() && a.gone < 0 {
			began[a.task.vertex] = append(began[a.task.vertex], a.from)
		}
	}
	for _, a := range l.attempts {
		if !a.finished() || len(readers[a.task.vertex]) == 0 {
			continue
		}
		read := slices.ContainsFunc(readers[a.task.vertex], func(v string) bool {
			i, _ := slices.BinarySearch(began[v], a.to)
			return i < len(began[v]) && (a.next < 0 || began[v][i] < a.next)
		})
		if !read {
			bytes += a.bytes
		}
	}
	return bytes
}

// done tells whether all tasks of a vertex that ever began have finished, and
// count, at a moment.
func (l *ledger) done(vertex string, t time.Duration) bool {
	open := map[taskKey]bool{}
	for _, a := range l.attempts {
		if a.task.vertex == vertex {
			open[a.task] = true
		}
	}
	all := len(open) > 0
	for _, a := range l.attempts {
		if a.counts(t) {
			delete(open, a.task)
		}
	}
	return all && len(open) == 0
}

// consumers are the vertices that read the output of one, by its name. Vertices
// that are chained to others are parts of those.
type consumers map[string][]string

func consumersOf(w *spec.Workload) consumers {
	head := map[string]string{}
	for _, v := range w.Vertices {
		head[v.ID] = v.ID
	}
	for range w.Vertices { // as long as chains may be
		for _, e := range w.Edges {
			if w.Chained(e) {
				head[e.To] = head[e.From]
			}
		}
	}
	g := consumers{}
	for _, e := range w.Edges {
		if !w.Chained(e) {
			g[head[e.From]] = append(g[head[e.From]], e.To)
		}
	}
	return g
}
