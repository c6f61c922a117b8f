package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"

	"pgregory.net/rapid"
)

func able(op string) []Coordinator   { return []Coordinator{{Operator: op, Snapshots: true}} }
func unable(op string) []Coordinator { return []Coordinator{{Operator: op}} }

// jobs are the shapes that random tests run.
func jobs() map[string]Config {
	return map[string]Config{
		"three stages": {
			Vertices: []Vertex{{ID: "source", Parallelism: 3, Source: true, Coordinators: able("source")},
				{ID: "middle", Parallelism: 3}, {ID: "sink", Commits: true}},
			Edges: []Edge{{DataSet: "a", From: "source", To: "middle", Pointwise: true}, {DataSet: "b", From: "middle", To: "sink"}},
		},
		"two sources": {
			Vertices: []Vertex{{ID: "left", Source: true, Coordinators: able("left")}, {ID: "right", Parallelism: 2, Source: true, Coordinators: unable("right")},
				{ID: "join"}, {ID: "sink", Parallelism: 1, Commits: true}},
			Edges: []Edge{{DataSet: "l", From: "left", To: "join"}, {DataSet: "r", From: "right", To: "join", Broadcast: true},
				{DataSet: "j", From: "join", To: "sink"}},
		},
		"pipelined": {
			Vertices: []Vertex{{ID: "source", Parallelism: 2, Source: true, Coordinators: able("source")}, {ID: "map", Parallelism: 2},
				{ID: "sort", Parallelism: 3}, {ID: "sink", Commits: true, MaxParallelism: 2}},
			Edges: []Edge{{DataSet: "p", From: "source", To: "map", Pointwise: true, Pipelined: true},
				{DataSet: "q", From: "map", To: "sort"}, {DataSet: "s", From: "sort", To: "sink", Pointwise: true}},
		},
		"diamond": {
			Vertices: []Vertex{{ID: "source", Parallelism: 4, Source: true, Coordinators: able("source")}, {ID: "up", Parallelism: 2},
				{ID: "down"}, {ID: "sink", Parallelism: 2, Commits: true}},
			Edges: []Edge{{DataSet: "u", From: "source", To: "up", Pointwise: true}, {DataSet: "d", From: "source", To: "down"},
				{DataSet: "v", From: "up", To: "sink"}, {DataSet: "w", From: "down", To: "sink"}},
		},
	}
}

func configure(cfg Config, mode Mode) Config {
	cfg.Mode, cfg.Epoch, cfg.Recovery = mode, 1, true
	cfg.Parallelism = ParallelismConfig{DataPerTask: 10, Min: 1, Max: 4}
	cfg.WorkerTimeout, cfg.MinPause = 30*time.Second, 3*time.Minute
	cfg.Restart = scheduling.RestartConfig{Type: scheduling.FixedDelay, Attempts: scheduling.Unlimited}
	return cfg
}

// TestRandomHistories: tasks finish and fail in any order, workers come and go,
// partitions vanish, masters follow one another. In the end each split was read
// once, each task read what counts, output was committed once and nothing is
// left; no task is deployed whose input is not there, and at any instant each
// split is in exactly one place, for the faithful scheduler, too, up to where its
// hazards begin. The clock jumps now and then. Seeds are printed by rapid.
//
// Fails, for one, if
//   - restartSet leaves out producers, consumers, regions or fragile vertices,
//   - needed takes a reader for finished that is to run again,
//   - releaseConsumed does not wait for the log,
//   - keptAttempts or takeover is left out of settle (H3),
//   - coordinators leaves Held out (H2), or initializeAll is left out (H1),
//   - answer keeps what is not known (H5, H6), output commits at once (H13).
func TestRandomHistories(t *testing.T) {
	names := []string{"three stages", "two sources", "pipelined", "diamond"}
	finished := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "job")
		mode := Hardened
		if name != "pipelined" && rapid.IntRange(0, 4).Draw(t, "faithful") == 0 {
			mode = Faithful
		}
		cfg := configure(jobs()[name], mode)
		cfg.KeepConsumed = rapid.Bool().Draw(t, "keep consumed")
		cfg.MinPause = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "min pause")
		cfg.Silence = 5 * time.Second
		cfg.Restart.Delay = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "delay")
		if rapid.Bool().Draw(t, "speculation") {
			cfg.Speculation = &SpeculationConfig{MaxExecutions: 2, BlockWorker: time.Second, CheckInterval: time.Second, Ratio: 0.3, Multiplier: 1}
		}
		splits := map[string]int{}
		for _, v := range cfg.Vertices {
			if v.Source {
				splits[v.ID] = 5
			}
		}
		w := newWorld(cfg, splits)
		w.slowLog = mode == Hardened
		serial := 0
		join := func() {
			w.join(Worker(fmt.Sprint("w", serial)), rapid.IntRange(2, 4).Draw(t, "slots"))
			serial++
		}
		join()
		join()
		w.step(Start{})
		h := &history{t: t, w: w, join: join, ops: everything}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if w.end != nil {
				break
			}
			h.step(mode)
			if err := errors.Join(append(w.errs, w.splitsAreConserved())...); err != nil {
				t.Fatal(err)
			}
		}
		h.drain()
		if w.end == nil {
			t.Fatalf("the job does not end: phase %d, %d restarts, %d ready, vertices %s", w.s.phase, len(w.s.restarts), len(w.s.ready), h.vertices())
		}
		if w.end.Status != scheduling.StatusFinished {
			t.Fatalf("%s: %v", w.end.Status, w.end.Err)
		}
		if mode == Hardened {
			if err := w.verify(); err != nil {
				t.Fatal(err)
			}
		} else if err := errors.Join(w.errs...); err != nil {
			t.Fatal(err)
		}
		finished[name]++
	})
	for _, n := range names {
		if finished[n] == 0 {
			t.Errorf("job %q never ran", n)
		}
	}
}

// TestSplitsAreInOnePlace looks at nothing but splits, while tasks, workers and
// masters die; see splitsAreConserved. There are fewer slots than tasks.
//
// Fails if reset does not tell coordinators, if restore of the faithful policy does
// nothing, or if coordinators leaves Held out.
func TestSplitsAreInOnePlace(t *testing.T) {
	crashes := map[Mode]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 10 { // many short histories: a master is lost in few of them
			mode, crashed := splitHistory(t)
			if crashed {
				crashes[mode]++
			}
		}
	})
	if crashes[Faithful] < 100 || crashes[Hardened] < 100 {
		t.Errorf("masters were lost %v times", crashes)
	}
}

func splitHistory(t *rapid.T) (mode Mode, crashed bool) {
	mode = rapid.SampledFrom([]Mode{Faithful, Hardened}).Draw(t, "mode")
	cfg := configure(jobs()[rapid.SampledFrom([]string{"three stages", "diamond"}).Draw(t, "job")], mode)
	cfg.MinPause = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "min pause")
	w := newWorld(cfg, map[string]int{"source": 6})
	w.slowLog = mode == Hardened
	serial := 0
	h := &history{t: t, w: w, ops: []string{"finish", "pull", "pull", "pull", "fail", "lose", "crash", "drop", "freeze", "thaw"}}
	h.join = func() {
		w.join(Worker(fmt.Sprint("w", serial)), 1)
		serial++
	}
	h.join()
	h.join()
	w.step(Start{})
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		if w.end != nil {
			break
		}
		w.early = rapid.Bool().Draw(t, "ends before all splits are read") && mayEndEarly(w)
		h.step(mode)
		w.early = false
		if err := errors.Join(append(w.errs, w.splitsAreConserved())...); err != nil {
			t.Fatal(err)
		}
	}
	return mode, h.crashed
}

// mayEndEarly: somebody is left to read the rest.
func mayEndEarly(w *world) bool {
	v := w.s.byID["source"]
	return v.parallelism > 0 && v.finished+1 < v.parallelism
}

type history struct {
	t       *rapid.T
	w       *world
	join    func()
	crashed bool
	ops     []string // of which step does one
}

var everything = []string{"finish", "finish", "finish", "finish", "pull", "fail", "lose", "drop", "sync", "time", "crash", "answer", "global", "deaf", "freeze", "thaw"}

// splitsAreConserved: at this instant each split of a source is in exactly one
// place: with its enumerator, with one subtask that runs, or contained in a
// finished task that is kept; and who has finished contains what it has read.
func (w *world) splitsAreConserved() error {
	if w.s.phase != phaseRunning && w.s.phase != phaseCommitting {
		return nil
	}
	var errs []error
	for _, v := range w.s.vertices {
		for _, c := range v.Coordinators {
			if v.parallelism == 0 || !c.Snapshots && w.cfg.Mode == Faithful {
				continue // not known yet; never known again after a takeover
			}
			e, at := w.enumerators[c.Operator], map[string]string{}
			put := func(splits []string, place string) {
				for _, s := range splits {
					if other, twice := at[s]; twice {
						errs = append(errs, fmt.Errorf("split %s is with %s and with %s", s, other, place))
					}
					at[s] = place
				}
			}
			put(e.free, "the enumerator")
			for _, t := range v.tasks {
				has := e.has[t.subtask]
				put(has, t.id().String())
				if t.state == created && t.restart == nil && len(has) > 0 {
					errs = append(errs, fmt.Errorf("%s has not begun and has %v", t.id(), has))
				}
				if read := w.splitsOf[t.winner.Attempt]; t.state == finished && !slices.Equal(slices.Sorted(slices.Values(read)), slices.Sorted(slices.Values(has))) {
					errs = append(errs, fmt.Errorf("%s has finished with %v and counts for %v", t.winner.Attempt, read, has))
				}
			}
			if len(at) != w.splits[v.ID] {
				errs = append(errs, fmt.Errorf("%d of %d splits of %s are somewhere", len(at), w.splits[v.ID], v.ID))
			}
		}
	}
	return errors.Join(errs...)
}

// trusted tells whether a faithful master can be lost here without the known
// hazards: those need a reset before, or a master that was lost before.
func (h *history) trusted() bool {
	return !h.crashed && !slices.ContainsFunc(h.w.log, func(e joblog.Event) bool { return e.Kind() == joblog.KindVerticesReset })
}

func (h *history) vertices() string {
	var b strings.Builder
	for _, v := range h.w.s.vertices {
		fmt.Fprintf(&b, "%s %d/%d ", v.ID, v.finished, v.parallelism)
		for _, t := range v.tasks {
			if t.state != finished {
				fmt.Fprintf(&b, "(%d: state %d, queued %v, live %d, consumable %v) ", t.subtask, t.state, t.queued, len(t.live), t.consumable())
				for _, a := range t.live {
					fmt.Fprintf(&b, "[%s on %s %s canceling %v] ", a.id, a.worker, a.state, a.canceling)
				}
			}
		}
	}
	return b.String()
}

// step does something at random.
func (h *history) step(mode Mode) {
	t, w := h.t, h.w
	running, where := w.running()
	pick := func() AttemptID { return rapid.SampledFrom(running).Draw(t, "attempt").Attempt }
	switch op := rapid.SampledFrom(h.ops).Draw(t, "op"); op {
	case "finish":
		if len(running) > 0 {
			a := pick()
			if h.mayFinish(a) {
				w.finish(where[a], a, int64(rapid.IntRange(0, 9).Draw(t, "bytes")), false)
			}
		}
	case "pull":
		if len(running) > 0 {
			w.pull(pick(), false)
		}
	case "fail":
		if len(running) == 0 {
			return
		}
		a := pick()
		d := w.workers[where[a]].running[a]
		e := TaskChanged{Attempt: a, State: scheduling.TaskFailed, Err: errors.New("boom")}
		if rapid.IntRange(0, 3).Draw(t, "broken connection") == 0 {
			e.Class, e.Peer = FailureTransfer, rapid.SampledFrom(w.order).Draw(t, "peer")
		}
		if len(d.Inputs) > 0 && rapid.Bool().Draw(t, "lost") {
			in := rapid.SampledFrom(d.Inputs).Draw(t, "input")
			p := rapid.SampledFrom(in.Producers).Draw(t, "producer")
			if !in.Pipelined {
				e.Class, e.Partition = FailurePartitionLost, PartitionID{in.DataSet, p.Attempt}
				if s := w.workers[p.Worker]; s != nil {
					delete(s.partitions, e.Partition)
				}
			}
		}
		delete(w.workers[where[a]].running, a)
		w.step(e)
	case "lose":
		id := rapid.SampledFrom(w.order).Draw(t, "worker")
		w.lose(id)
		h.join()
	case "freeze":
		if mode == Hardened {
			w.freeze(rapid.SampledFrom(w.order).Draw(t, "worker"))
			h.join()
		}
	case "thaw":
		if all := slices.Sorted(maps.Keys(w.frozen)); len(all) > 0 {
			w.thaw(rapid.SampledFrom(all).Draw(t, "worker"))
		}
	case "drop":
		id := rapid.SampledFrom(w.order).Draw(t, "worker")
		if inv := w.inventory(id); len(inv.Partitions) > 0 {
			p := rapid.SampledFrom(inv.Partitions).Draw(t, "partition").Partition
			delete(w.workers[id].partitions, p)
			w.step(PartitionsGone{Partitions: []PartitionID{p}})
		}
	case "sync":
		w.sync()
		w.step(TimerFired{})
	case "time":
		w.now += time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
		if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
			w.now += 1000 * time.Hour // the process was stopped
		}
		w.step(TimerFired{})
	case "global":
		w.step(GlobalFailure{Err: errors.New("global")})
	case "deaf":
		for _, id := range w.order {
			was := w.silent[id]
			w.silent[id] = !was && rapid.IntRange(0, 3).Draw(t, "deaf") == 0
			if was {
				w.step(w.lateAnswer(id))
			}
		}
	case "answer":
		// A worker reports without being asked, or twice.
		if mode == Hardened {
			w.step(w.inventory(rapid.SampledFrom(w.order).Draw(t, "worker")))
		}
	case "crash":
		if mode == Faithful && !h.trusted() {
			return // it is wrong about some of them: see the scripts of hazards
		}
		h.crashed = true
		h.crash(running, where)
	}
}

// mayFinish: who reads a pipeline does not end before those who write it.
func (h *history) mayFinish(a AttemptID) bool {
	w := h.w
	if w.s.attempts[a] == nil && !w.free(a) {
		return false // nobody says that there are no more splits
	}
	for _, s := range w.workers {
		d := s.running[a]
		if d == nil {
			continue
		}
		for _, in := range d.Inputs {
			for _, p := range in.Producers {
				if _, _, err := w.where(p.Attempt.TaskID); in.Pipelined && err == nil {
					return false
				}
			}
		}
	}
	return true
}

// crash loses the master, and with it some of the log, of the workers and of the
// news.
func (h *history) crash(running []Execution, where map[AttemptID]Worker) {
	t, w := h.t, h.w
	w.crash(rapid.IntRange(0, 10).Draw(t, "lost events"))
	for _, id := range slices.Sorted(maps.Keys(w.frozen)) {
		if rapid.Bool().Draw(t, "thaws meanwhile") {
			w.thaw(id)
		}
	}
	for _, x := range running {
		if w.workers[where[x.Attempt]].running[x.Attempt] != nil && h.mayFinish(x.Attempt) && rapid.IntRange(0, 3).Draw(t, "finishes meanwhile") == 0 && w.free(x.Attempt) {
			w.finish(where[x.Attempt], x.Attempt, 3, true)
		}
	}
	if rapid.Bool().Draw(t, "a worker dies, too") {
		id := rapid.SampledFrom(w.order).Draw(t, "worker")
		delete(w.workers, id)
		w.order = slices.DeleteFunc(w.order, func(x Worker) bool { return x == id })
		w.takeOver()
		if rapid.Bool().Draw(t, "it is known") {
			w.step(WorkerLost{ID: id})
		}
		h.join()
		return
	}
	w.takeOver()
}

// free tells whether a source's attempt can finish without asking anybody: while
// there is no master nobody hands out splits.
func (w *world) free(a AttemptID) bool {
	for _, v := range w.cfg.Vertices {
		if v.ID == a.Vertex && len(v.Coordinators) > 0 {
			return false
		}
	}
	return true
}

// drain lets everything finish.
func (h *history) drain() {
	w := h.w
	for range 2000 {
		if w.end != nil {
			return
		}
		for _, id := range w.order {
			if w.silent[id] { // what it was asked long ago comes now
				w.silent[id] = false
				w.step(w.lateAnswer(id))
			}
		}
		for _, v := range w.s.vertices {
			if v.inferring && v.parallelism == 0 {
				w.step(SourceParallelism{Vertex: v.ID, Parallelism: 3})
			}
		}
		w.sync()
		w.now += 10 * time.Second
		w.step(TimerFired{})
		running, where := w.running()
		for _, x := range running {
			if s := w.workers[where[x.Attempt]]; s != nil && s.running[x.Attempt] != nil && h.mayFinish(x.Attempt) {
				w.finish(where[x.Attempt], x.Attempt, 4, false)
			}
		}
	}
}
