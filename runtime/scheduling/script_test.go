package scheduling

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts in testdata/scripts. Each command is an event;
// what comes out are the effects, one a line. Arguments:
//
//	at=2s     the time of the event; the default is the time before
//	task=a/0  the current attempt unless a/0#1
//
// "new" makes a scheduler for the vertices of vertices=(a:2,b:4), and submits
// it with workers=(4,4) slots if they are given. With until=running the answers
// that the command asks for come at once, up to the state of the tasks that is
// named; only what needs no answer is printed. "tasks" brings all tasks of the
// current attempts, or those of vertex=, to a state. "fire" sends the timer at
// the time that was asked for.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		h := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return h.run(t, d) })
	})
}

type script struct {
	s     *Scheduler
	now   time.Duration
	timer time.Duration
}

func (h *script) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(key, otherwise string) string {
		if a, ok := d.Arg(key); ok {
			if len(a.Vals) == 0 {
				return "true"
			}
			return strings.Join(a.Vals, ",")
		}
		return otherwise
	}
	duration := func(key, otherwise string) time.Duration {
		v, err := time.ParseDuration(arg(key, otherwise))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return v
	}
	number := func(key, otherwise string) int {
		n, err := strconv.Atoi(arg(key, otherwise))
		if err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return n
	}
	flag := func(key string) bool { return arg(key, "") == "true" }
	failure := func() error {
		if e := arg("err", ""); e != "" {
			return errors.New(e)
		}
		return nil
	}
	parallelism := func(key string) map[string]int {
		if arg(key, "") == "" {
			return nil
		}
		m := map[string]int{}
		for _, p := range strings.Split(arg(key, ""), ",") {
			v, n, _ := strings.Cut(p, ":")
			m[v], _ = strconv.Atoi(n)
		}
		return m
	}
	settle := func(es []Effect) string { return h.print(h.settle(es, arg("until", ""))) }
	h.now = duration("at", h.now.String())

	var e Event
	switch d.Cmd {
	case "new":
		h.now, h.timer = 0, never
		cfg := Config{
			RegionFailover: flag("region-failover"),
			ResourceWait:   duration("wait", "5m"), SubmissionStabilization: duration("submission-stabilization", "0s"),
			Cooldown: duration("cooldown", "0s"), Stabilization: duration("stabilization", "0s"),
			MaxDelay: duration("max-delay", "0s"), MaxCheckpointFailures: number("max-failures", "2"),
			Restart: RestartConfig{Type: RestartType(arg("restart", "fixed-delay")), Attempts: number("attempts", strconv.Itoa(Unlimited)),
				Delay: duration("delay", "0s"), Interval: duration("interval", "1m"), Initial: duration("initial", "1s"),
				Max: duration("max", "1m"), Multiplier: 2, ResetThreshold: duration("threshold", "1h")},
			Seed: 1,
		}
		lower := parallelism("lower")
		for _, p := range strings.Split(arg("vertices", "a:2,b:4"), ",") {
			id, n, _ := strings.Cut(p, ":")
			v := Vertex{ID: id, Lower: lower[id], MaxParallelism: 16}
			v.Parallelism, _ = strconv.Atoi(n)
			cfg.Vertices = append(cfg.Vertices, v)
		}
		if r := arg("regions", ""); r != "" {
			for _, set := range strings.Split(r, ",") {
				cfg.Regions = append(cfg.Regions, strings.Split(set, "+"))
			}
		}
		h.s = New(cfg)
		w := arg("workers", "")
		if w == "" {
			return ""
		}
		var out []Effect
		for i, slots := range strings.Split(w, ",") {
			n, _ := strconv.Atoi(slots)
			out = append(out, h.s.Step(h.now, WorkerAdded{ID: Worker(fmt.Sprint("w", i)), Slots: n})...)
		}
		return settle(append(out, h.s.Step(h.now, Submit{})...))
	case "submit":
		e = Submit{}
	case "fire":
		if h.timer == never {
			return "no timer\n"
		}
		h.now = h.timer
		e = TimerFired{}
	case "worker":
		e = WorkerAdded{ID: Worker(arg("id", "")), Slots: number("slots", "4")}
	case "lose":
		e = WorkerLost{ID: Worker(arg("id", "")), Err: failure()}
	case "prepared":
		e = Prepared{Execution: number("execution", strconv.Itoa(h.s.execution)), Err: failure(), Fatal: flag("fatal")}
	case "task":
		state, err := ParseTaskState(arg("state", ""))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		e = TaskChanged{Task: h.task(arg("task", "")), State: state, Err: failure(), Fatal: flag("fatal"), SideEffect: flag("side-effect")}
	case "tasks":
		state, err := ParseTaskState(arg("state", ""))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		var out []Effect
		vertices := h.s.vertices
		if v := arg("vertex", ""); v != "" {
			vertices = []string{v}
		}
		for _, task := range h.s.nonTerminal(vertices) {
			out = append(out, h.s.Step(h.now, TaskChanged{Task: task, State: state})...)
		}
		return settle(out)
	case "rescale":
		e = Rescale{Token: uint64(number("token", "1")), Parallelism: parallelism("to"), Lower: parallelism("lower")}
	case "global-failure":
		e = GlobalFailure{Err: failure(), Fatal: flag("fatal")}
	case "checkpoint":
		e = CheckpointCompleted{}
	case "checkpoint-failed":
		e = CheckpointFailed{PreFlight: flag("pre-flight")}
	case "stop":
		e = StopRequest{Token: uint64(number("token", "1")), Drain: flag("drain")}
	case "savepoint":
		e = SavepointDone{Token: uint64(number("token", "1")), Path: arg("path", ""), Err: failure()}
	case "cancel":
		e = CancelJob{}
	case "suspend":
		e = Suspend{}
	case "exceptions":
		var b strings.Builder
		for _, x := range h.s.Exceptions() {
			who := "global"
			if x.Task != nil {
				who = x.Task.String()
			}
			fmt.Fprintf(&b, "%v %s %s: %v -> %s\n", x.At, who, x.Worker, x.Err, x.Decision)
			for _, c := range x.Concurrent {
				fmt.Fprintf(&b, "  with %v: %v\n", c.Task, c.Err)
			}
		}
		return b.String()
	case "rescales":
		var b strings.Builder
		for _, r := range h.s.Rescales() {
			fmt.Fprintf(&b, "%d req %d attempt %d %s: %s %s, %v to %v, slots %d (%d to %d wanted) -> %d\n", r.ID, r.Requirements, r.Attempt, r.Cause,
				r.Reason, r.Reason.Outcome(), r.Start, r.End, r.PreSlots, r.MinimalSlots, r.DesiredSlots, r.PostSlots)
			for _, v := range r.Vertices {
				fmt.Fprintf(&b, "  %s: %d -> %d (%d to %d wanted)\n", v.ID, v.Pre, v.Post, v.Sufficient, v.Desired)
			}
			for _, st := range r.States {
				fmt.Fprintf(&b, "  %s %v to %v\n", st.State, st.Enter, st.Leave)
			}
		}
		return b.String()
	case "phase":
		return h.s.tm.phase.String() + "\n"
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return settle(h.s.Step(h.now, e))
}

func (h *script) task(s string) Task {
	var t Task
	name, attempt, given := strings.Cut(s, "#")
	vertex, subtask, _ := strings.Cut(name, "/")
	t.Vertex = vertex
	t.Subtask, _ = strconv.Atoi(subtask)
	if given {
		t.Attempt, _ = strconv.Atoi(attempt)
	} else if r := h.s.runs[vertex]; r != nil {
		t.Attempt = r.attempt
	}
	return t
}

// settle answers effects until all tasks that are deployed are running, or
// until they are deployed, or until everything is cancelled.
func (h *script) settle(todo []Effect, until string) []Effect {
	if until == "" {
		return todo
	}
	var left []Effect
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		step := func(ev Event) { todo = append(todo, h.s.Step(h.now, ev)...) }
		switch e := e.(type) {
		case CancelTasks:
			for _, t := range e.Tasks {
				step(TaskChanged{Task: t, State: TaskCanceled})
			}
		case Prepare:
			if until == "cancelled" {
				left = append(left, e)
				continue
			}
			step(Prepared{Execution: e.Execution})
		case Deploy:
			left = append(left, e)
			if until == "deployed" {
				continue
			}
			for _, t := range h.s.nonTerminal(e.Vertices) {
				step(TaskChanged{Task: t, State: TaskInitializing})
				step(TaskChanged{Task: t, State: TaskRunning})
			}
		default:
			left = append(left, e)
		}
	}
	return left
}

func (h *script) print(es []Effect) string {
	var b strings.Builder
	for _, e := range es {
		switch e := e.(type) {
		case SetTimer:
			h.timer = e.At
		case StopTimer:
			h.timer = never
		}
		fmt.Fprintln(&b, show(e))
	}
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}

func show(e Effect) string {
	sizes := func(m map[string]int) string {
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Sprint(v, ":", m[v]))
		}
		return strings.Join(parts, " ")
	}
	scope := func(global bool) string {
		if global {
			return "job"
		}
		return "region"
	}
	orNot := func(err error) string {
		if err == nil {
			return ""
		}
		return ": " + err.Error()
	}
	switch e := e.(type) {
	case StateChanged:
		return fmt.Sprintf("%s -> %s", e.From, e.To)
	case JobStatus:
		return fmt.Sprintf("status %s%s", e.Status, orNot(e.Err))
	case Prepare:
		return fmt.Sprintf("prepare %s, execution %d: %s", scope(e.Global), e.Execution, sizes(e.Parallelism))
	case Deploy:
		return fmt.Sprintf("deploy %s, execution %d: %s on %v, attempts %s", scope(e.Global), e.Execution, sizes(e.Parallelism), e.Slots, sizes(e.Attempts))
	case CancelTasks:
		return fmt.Sprintf("cancel %s", strings.Trim(fmt.Sprint(e.Tasks), "[]"))
	case StartCheckpointing:
		return "start checkpointing"
	case StopCheckpointing:
		return "stop checkpointing"
	case TakeSavepoint:
		return fmt.Sprintf("take savepoint %d drain=%t", e.Token, e.Drain)
	case Reply:
		path := ""
		if e.Path != "" {
			path = " " + e.Path
		}
		return fmt.Sprintf("reply %d%s%s", e.Token, path, orNot(e.Err))
	case SetTimer:
		return fmt.Sprintf("timer at %v", e.At)
	case StopTimer:
		return "no timer"
	case Terminal:
		path := ""
		if e.Savepoint != "" {
			path = " " + e.Savepoint
		}
		return fmt.Sprintf("TERMINAL %s%s%s", e.Status, path, orNot(e.Err))
	}
	return fmt.Sprintf("%#v", e)
}
