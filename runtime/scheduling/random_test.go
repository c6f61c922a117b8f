package scheduling

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is the cluster around the scheduler: it carries out effects in random
// order, with random outcome, and holds what must be true at all times.
type world struct {
	t     *rapid.T
	s     *Scheduler
	cfg   Config
	now   time.Duration
	timer time.Duration

	workers  map[Worker]int
	next     int
	tasks    map[Task]TaskState
	where    map[Task]Worker
	cancel   map[Task]bool
	prepares []Prepare
	stop     uint64 // of the savepoint being taken
	tokens   map[uint64]int
	running  bool // checkpointing
	terminal *Terminal
	desired  map[string]int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, timer: never, workers: map[Worker]int{}, tasks: map[Task]TaskState{}, where: map[Task]Worker{},
		cancel: map[Task]bool{}, tokens: map[uint64]int{}, desired: map[string]int{}}
	times := []time.Duration{0, 0, 5 * time.Second}
	w.cfg = Config{
		Regions:                 [][]string{{"a", "b"}, {"c"}},
		RegionFailover:          rapid.Bool().Draw(t, "regions"),
		ResourceWait:            -1,
		SubmissionStabilization: rapid.SampledFrom(times).Draw(t, "submission"),
		Cooldown:                rapid.SampledFrom(times).Draw(t, "cooldown"),
		Stabilization:           rapid.SampledFrom(times).Draw(t, "stabilization"),
		MaxDelay:                rapid.SampledFrom(times).Draw(t, "max-delay"),
		MaxCheckpointFailures:   2,
		Restart: rapid.SampledFrom([]RestartConfig{
			{Type: FixedDelay, Attempts: Unlimited}, {Type: FixedDelay, Attempts: Unlimited, Delay: time.Second},
			{Type: FixedDelay, Attempts: 3}, {Type: FailureRate, Attempts: 2, Interval: time.Minute},
			{Type: ExponentialDelay, Attempts: Unlimited, Initial: time.Second, Max: time.Minute, Multiplier: 2, ResetThreshold: time.Hour, Jitter: 0.5},
		}).Draw(t, "restart"),
		Seed: 7,
	}
	for _, id := range []string{"a", "b", "c"} {
		p := rapid.IntRange(1, 5).Draw(t, "parallelism")
		w.desired[id] = p
		w.cfg.Vertices = append(w.cfg.Vertices, Vertex{ID: id, Parallelism: p, MaxParallelism: 8})
	}
	w.s = New(w.cfg)
	return w
}

func (w *world) step(e Event) {
	for _, eff := range w.s.Step(w.now, e) {
		w.apply(eff)
	}
	w.check()
}

func (w *world) slots() int {
	n := 0
	for _, s := range w.workers {
		n += s
	}
	return n
}

func (w *world) apply(e Effect) {
	t := w.t
	if w.terminal != nil {
		switch e.(type) {
		case Reply, StopTimer:
		default:
			t.Fatalf("%s after the end", show(e))
		}
	}
	switch e := e.(type) {
	case SetTimer:
		if e.At < w.now {
			t.Fatalf("timer at %v, now %v", e.At, w.now)
		}
		w.timer = e.At
	case StopTimer:
		w.timer = never
	case Prepare:
		w.prepares = append(w.prepares, e)
	case Deploy:
		used := map[Worker]map[int]bool{}
		for _, v := range e.Vertices {
			for old, st := range w.tasks {
				if old.Vertex == v && !st.Terminal() {
					t.Fatalf("%s is deployed anew while %s is %s", v, old, st)
				}
			}
			if n := e.Parallelism[v]; n < 1 || n > len(e.Slots) {
				t.Fatalf("%d subtasks of %s on %d slots", n, v, len(e.Slots))
			}
			for i := range e.Parallelism[v] {
				task := Task{v, i, e.Attempts[v]}
				if _, twice := w.tasks[task]; twice {
					t.Fatalf("%s is deployed twice", task)
				}
				w.tasks[task], w.where[task] = TaskDeploying, e.Slots[i]
				if used[e.Slots[i]] == nil {
					used[e.Slots[i]] = map[int]bool{}
				}
				used[e.Slots[i]][i] = true
			}
		}
		for id, slots := range used {
			if len(slots) > w.workers[id] {
				t.Fatalf("worker %s with %d slots gets %d", id, w.workers[id], len(slots))
			}
		}
	case CancelTasks:
		if w.running {
			t.Fatalf("tasks are cancelled before checkpointing is stopped")
		}
		for _, task := range e.Tasks {
			if st, ok := w.tasks[task]; !ok || st.Terminal() || w.cancel[task] {
				t.Fatalf("%s is cancelled: state %s, cancelled before: %t", task, st, w.cancel[task])
			}
			w.cancel[task] = true
		}
	case StartCheckpointing:
		if w.running {
			t.Fatalf("checkpointing is started twice")
		}
		w.running = true
	case StopCheckpointing:
		if !w.running {
			t.Fatalf("checkpointing is stopped twice")
		}
		w.running = false
	case TakeSavepoint:
		w.stop = e.Token
	case Reply:
		if n, ok := w.tokens[e.Token]; !ok || n > 0 {
			t.Fatalf("token %d: %d replies before", e.Token, n)
		}
		w.tokens[e.Token]++
	case Terminal:
		w.terminal = &e
		w.running = false
	}
}

// check compares what the scheduler believes with what is.
func (w *world) check() {
	t, s := w.t, w.s
	if (s.state == Finished) != (w.terminal != nil) {
		t.Fatalf("state %s, terminal %v", s.state, w.terminal)
	}
	if w.terminal != nil {
		return
	}
	for _, v := range s.vertices {
		if r := s.runs[v]; r != nil {
			for i, st := range r.states {
				if real := w.tasks[Task{v, i, r.attempt}]; st.Terminal() != real.Terminal() {
					t.Fatalf("%s/%d#%d is %s, the scheduler thinks %s", v, i, r.attempt, real, st)
				}
			}
		}
	}
	all := s.state == Executing || s.state == StopWithSavepoint
	if all {
		for v, n := range s.parallelism {
			for i := range n {
				if st := w.tasks[Task{v, i, s.attempts[v]}]; st != TaskRunning && st != TaskFinished {
					all = false
				}
			}
		}
	}
	if w.running != all {
		t.Fatalf("checkpointing is on: %t; all tasks run: %t", w.running, all)
	}
	// Somebody must owe something, or the job runs, or there are no slots.
	owed := len(w.prepares) > 0 || w.timer != never
	for task, st := range w.tasks {
		owed = owed || !st.Terminal() && (w.cancel[task] || st != TaskRunning)
	}
	if !owed && !w.running && s.state != Created && s.state != Finished && w.slots() > 0 {
		t.Fatalf("stuck in %s", s.state)
	}
}

// run brings the cluster to rest: everything that is owed comes, and well.
func (w *world) run() {
	for range 10000 {
		switch {
		case w.terminal != nil:
			return
		case len(w.prepares) > 0:
			w.answer(0, nil)
		case w.moveAny(false):
		case w.timer != never:
			w.fire()
		default:
			return
		}
	}
	w.t.Fatalf("it does not come to rest")
}

func (w *world) answer(i int, err error) {
	p := w.prepares[i]
	w.prepares = slices.Delete(w.prepares, i, i+1)
	w.step(Prepared{Execution: p.Execution, Err: err})
}

func (w *world) fire() {
	w.now = max(w.now, w.timer)
	w.timer = never
	w.step(TimerFired{})
}

// live lists the tasks that have not ended, in a fixed order.
func (w *world) live() []Task {
	var ts []Task
	for task, st := range w.tasks {
		if !st.Terminal() {
			ts = append(ts, task)
		}
	}
	slices.SortFunc(ts, func(a, b Task) int {
		return slices.Compare([]int{int(a.Vertex[0]), a.Subtask, a.Attempt}, []int{int(b.Vertex[0]), b.Subtask, b.Attempt})
	})
	return ts
}

func (w *world) move(task Task) bool {
	st := w.tasks[task]
	switch {
	case w.cancel[task]:
		st = TaskCanceled
	case st == TaskDeploying:
		st = TaskInitializing
	case st == TaskInitializing:
		st = TaskRunning
	default:
		return false
	}
	w.tasks[task] = st
	w.step(TaskChanged{Task: task, State: st})
	return true
}

func (w *world) moveAny(bool) bool {
	for _, task := range w.live() {
		if w.move(task) {
			return true
		}
	}
	return false
}

func TestRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		pick := func(n int) int {
			if n == 0 {
				t.Skip("nothing there")
			}
			return rapid.IntRange(0, n-1).Draw(t, "which")
		}
		token := func() uint64 {
			n := uint64(len(w.tokens) + 1)
			w.tokens[n] = 0
			return n
		}
		move := func(t *rapid.T) {
			live := w.live()
			w.move(live[pick(len(live))])
		}
		join := func(t *rapid.T) {
			if len(w.workers) > 3 {
				t.Skip("enough")
			}
			w.next++
			id, slots := Worker(fmt.Sprint("w", w.next)), rapid.IntRange(1, 4).Draw(t, "slots")
			w.workers[id] = slots
			w.step(WorkerAdded{ID: id, Slots: slots})
		}
		w.step(Submit{})
		t.Repeat(map[string]func(*rapid.T){
			"move": move, "move 2": move, "move 3": move, "move 4": move, "move 5": move,
			"join":     join,
			"rest":     func(t *rapid.T) { w.run() },
			"prepared": func(t *rapid.T) { w.answer(pick(len(w.prepares)), nil) },
			"not prepared": func(t *rapid.T) {
				w.answer(pick(len(w.prepares)), errors.New("random"))
			},
			"fail": func(t *rapid.T) {
				live := w.live()
				task := live[pick(len(live))]
				w.tasks[task] = TaskFailed
				w.step(TaskChanged{Task: task, State: TaskFailed, Err: errors.New("random")})
			},
			"finish": func(t *rapid.T) {
				live := w.live()
				task := live[pick(len(live))]
				if w.tasks[task] != TaskRunning {
					t.Skip("it does not run")
				}
				w.tasks[task] = TaskFinished
				w.step(TaskChanged{Task: task, State: TaskFinished})
			},
			"late news": func(t *rapid.T) {
				w.step(TaskChanged{Task: Task{"a", 0, rapid.IntRange(-1, 3).Draw(t, "attempt") - 5}, State: TaskFailed})
			},
			"lose": func(t *rapid.T) {
				ids := slices.Sorted(maps.Keys(w.workers))
				id := ids[pick(len(ids))]
				delete(w.workers, id)
				for task, on := range w.where {
					if on == id && !w.tasks[task].Terminal() {
						w.tasks[task] = TaskFailed
					}
				}
				w.step(WorkerLost{ID: id})
			},
			"rescale": func(t *rapid.T) {
				p := map[string]int{}
				for _, v := range []string{"a", "b", "c"} {
					if rapid.Bool().Draw(t, "this one") {
						p[v] = rapid.IntRange(1, 8).Draw(t, "parallelism")
					}
				}
				if w.terminal == nil && w.s.state != Canceling && w.s.state != Failing {
					maps.Copy(w.desired, p)
				}
				w.step(Rescale{Token: token(), Parallelism: p})
			},
			"timer": func(t *rapid.T) {
				if w.timer == never {
					t.Skip("no timer")
				}
				w.fire()
			},
			"time":              func(t *rapid.T) { w.now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond },
			"checkpoint":        func(t *rapid.T) { w.step(CheckpointCompleted{}) },
			"checkpoint failed": func(t *rapid.T) { w.step(CheckpointFailed{PreFlight: rapid.Bool().Draw(t, "pre-flight")}) },
			"global failure":    func(t *rapid.T) { w.step(GlobalFailure{Err: errors.New("random")}) },
			"stop":              func(t *rapid.T) { w.step(StopRequest{Token: token()}) },
			"savepoint": func(t *rapid.T) {
				if w.stop == 0 {
					t.Skip("none is taken")
				}
				e := SavepointDone{Token: w.stop, Path: "p"}
				if rapid.Bool().Draw(t, "bad") {
					e = SavepointDone{Token: w.stop, Err: errors.New("random")}
				}
				w.stop = 0
				w.step(e)
			},
			"end": func(t *rapid.T) {
				if rapid.IntRange(0, 15).Draw(t, "really") > 0 {
					t.Skip("not yet")
				}
				if rapid.Bool().Draw(t, "cancel") {
					w.step(CancelJob{})
				} else {
					w.step(Suspend{})
				}
			},
		})

		// With enough slots and nothing more going wrong, the job ends up running
		// as wished.
		w.workers["last"] = 8
		w.step(WorkerAdded{ID: "last", Slots: 8})
		if w.stop != 0 {
			w.step(SavepointDone{Token: w.stop, Err: errors.New("the end")})
		}
		w.run()
		if w.terminal == nil && w.s.state == Executing && w.s.tm.phase != stabilized {
			if !w.running || !reflect.DeepEqual(w.s.parallelism, w.desired) {
				t.Fatalf("at rest: running %t at %v, wished for %v, phase %s", w.running, w.s.parallelism, w.desired, w.s.tm.phase)
			}
		}
		if w.terminal == nil && w.s.state != Executing && w.s.state != StopWithSavepoint {
			t.Fatalf("at rest in %s", w.s.state)
		}
		w.step(CancelJob{})
		w.run()
		if w.terminal == nil {
			t.Fatalf("cancelled, and in %s", w.s.state)
		}
		for token, n := range w.tokens {
			if n != 1 {
				t.Fatalf("token %d has %d replies", token, n)
			}
		}
		if w.s.openRescale() != nil {
			t.Fatalf("a rescale record is still open")
		}
	})
}

func TestFailoverRegions(t *testing.T) {
	// source+map => (blocking) => sort => (blocking) => sink, and a stray one
	regions := [][]string{{"source", "map"}, {"sort"}, {"sink"}, {"stray"}}
	blocking := []Edge{{"map", "sort"}, {"sort", "sink"}}
	for _, c := range []struct {
		failed string
		lost   []string
		want   []int
	}{
		{"source", nil, []int{0, 1, 2}},
		{"sort", nil, []int{1, 2}},
		{"sort", []string{"map"}, []int{0, 1, 2}},
		{"sink", []string{"map"}, []int{2}}, // what sort needs does not matter while sort's result is there
		{"sink", []string{"sort", "map"}, []int{0, 1, 2}},
		{"stray", []string{"map"}, []int{3}},
		{"nobody", nil, nil},
	} {
		got := FailoverRegions(regions, blocking, c.failed, func(v string) bool { return slices.Contains(c.lost, v) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s fails, lost %v: %v, want %v", c.failed, c.lost, got, c.want)
		}
	}
}

func TestJitterIsSeededAndBounded(t *testing.T) {
	c := RestartConfig{Type: ExponentialDelay, Attempts: Unlimited, Initial: time.Second, Max: 30 * time.Second, Multiplier: 2, ResetThreshold: time.Hour, Jitter: 0.1}
	delays := func(seed uint64) (ds []time.Duration) {
		s := newStrategy(c, seed)
		now := time.Duration(0)
		for range 10 {
			d, refused := s.failed(now)
			if refused != "" {
				t.Fatal(refused)
			}
			ds = append(ds, d)
			now += d
		}
		return ds
	}
	a := delays(1)
	if !slices.Equal(a, delays(1)) {
		t.Error("the same seed gives other delays")
	}
	if slices.Equal(a, delays(2)) {
		t.Error("another seed gives the same delays")
	}
	base := time.Second
	for i, d := range a {
		if lo, hi := base-base/10, min(base+base/10, c.Max); d < lo || d > hi {
			t.Errorf("delay %d is %v, not in %v to %v", i, d, lo, hi)
		}
		base = min(2*base, c.Max)
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	s := New(Config{Vertices: []Vertex{{ID: "a", Parallelism: 2, MaxParallelism: 4}}, Restart: RestartConfig{Type: FixedDelay, Attempts: Unlimited},
		MaxExceptions: 3, MaxRescales: 2})
	s.Step(0, WorkerAdded{ID: "w", Slots: 4})
	s.Step(0, Submit{})
	for i := range 10 {
		s.Step(0, Prepared{Execution: s.execution})
		s.Step(0, TaskChanged{Task: Task{"a", 0, s.attempts["a"]}, State: TaskFailed, Err: fmt.Errorf("failure %d", i)})
		s.Step(0, TaskChanged{Task: Task{"a", 1, s.attempts["a"]}, State: TaskCanceled})
	}
	if x := s.Exceptions(); len(x) != 3 || x[2].Err.Error() != "failure 9" {
		t.Errorf("exceptions: %v", x)
	}
	if r := s.Rescales(); len(r) != 2 || r[1].Cause != RecoverableFailover {
		t.Errorf("rescales: %v", r)
	}
}
