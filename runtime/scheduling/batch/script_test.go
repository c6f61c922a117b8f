package batch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts in testdata/scripts: a scheduler in a world that
// carries its effects out and answers (world_test.go). What comes out are the
// effects, one a line.
//
//	new        the job of the lines below: "vertex ID [p=N] [source] [able=OP]
//	           [unable=OP] [commits]", "edge DATA FROM TO [pointwise] [broadcast]
//	           [pipelined]"; mode=, workers=(slots,...), splits=, data=, max=,
//	           restart=, min-pause=, slot-timeout=, silence=, no-recovery, slow-log, speculation
//	start      begins it
//	finish     task=a/0 or vertex=a, each subpartition with bytes=; untold: while
//	           there is no master; none: without reading the splits that are left
//	fail       task=, class=lost (of=DATA:task)|transfer (peer=)|fatal
//	drop       of=DATA:task on its worker, unnoticed unless tell
//	lose, join id=
//	freeze     id= is taken for dead, and goes on; thaw: it is back, before a takeover
//	           if there is no master
//	die        id=: its folder stays, and the master hears of it if tell; replace id= of=
//	crash      the master dies, and the last lost= events that are not durable
//	takeover   a new one begins; silent=(w0) do not answer
//	truncate   the log by events=; rewrite takes the snapshots of an end away
//	event      of an older master; unreadable: the log
//	mangle     the report of a partition
//	recovery   on or off for the next master
//	answer     the inventory of id= comes
//	commits    from here on work; or fail, all but the first some=N, permanently; or
//	           are stuck: they are carried out, and nobody hears of it
//	pull, infer, sync, global, pressure, fire, cancel, suspend, show, verify
//
// Fails if an attempt that had finished is said to run on (goOn).
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		h := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := h.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			for _, e := range h.w.errs {
				out += "WRONG: " + e.Error() + "\n"
			}
			h.w.errs = nil
			return out
		})
	})
}

type script struct{ w *world }

type arguments struct{ d *datadriven.TestData }

func (a arguments) get(key string) string {
	if x, ok := a.d.Arg(key); ok {
		if len(x.Vals) == 0 {
			return "true"
		}
		return strings.Join(x.Vals, ",")
	}
	return ""
}

func (a arguments) has(key string) bool { return a.get(key) != "" }

func (a arguments) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(a.get(key)); err == nil {
		return n
	}
	return otherwise
}

func parseTask(s string) (TaskID, error) {
	v, n, ok := strings.Cut(s, "/")
	i, err := strconv.Atoi(n)
	if !ok || err != nil {
		return TaskID{}, fmt.Errorf("%q is no task", s)
	}
	return TaskID{Vertex: v, Subtask: i}, nil
}

func (h *script) run(d *datadriven.TestData) (string, error) {
	a := arguments{d}
	if at := a.get("at"); at != "" {
		now, err := time.ParseDuration(at)
		if err != nil {
			return "", err
		}
		h.w.now = now
	}
	var es []Effect
	switch d.Cmd {
	case "new":
		return h.begin(a)
	case "start":
		es = h.w.step(Start{HasLog: h.w.hasLog})
	case "finish":
		return h.finish(a)
	case "fail":
		id, err := parseTask(a.get("task"))
		if err != nil {
			return "", err
		}
		site, attempt, err := h.w.where(id)
		if err != nil {
			return "", err
		}
		e := TaskChanged{Attempt: attempt, Worker: site, State: scheduling.TaskFailed, Err: errors.New("boom")}
		switch a.get("class") {
		case "lost":
			e.Class = FailurePartitionLost
			var at Worker
			if at, e.Partition, err = h.partition(a.get("of")); err != nil {
				return "", err
			}
			delete(h.w.workers[at].partitions, e.Partition)
		case "transfer":
			e.Class, e.Peer = FailureTransfer, Worker(a.get("peer"))
		case "fatal":
			e.Class = FailureFatal
		}
		delete(h.w.workers[site].running, attempt)
		es = h.w.step(e)
	case "drop":
		site, id, err := h.partition(a.get("of"))
		if err != nil {
			return "", err
		}
		delete(h.w.workers[site].partitions, id)
		if a.has("tell") {
			es = h.w.step(PartitionsGone{Partitions: []PartitionID{id}})
		}
	case "lose":
		es = h.w.lose(Worker(a.get("id")))
	case "join":
		es = h.w.join(Worker(a.get("id")), a.number("slots", 4))
	case "freeze":
		es = h.w.freeze(Worker(a.get("id")))
	case "thaw":
		es = h.w.thaw(Worker(a.get("id")))
	case "die":
		h.w.die(Worker(a.get("id")))
		if a.has("tell") {
			es = h.w.step(WorkerLost{ID: Worker(a.get("id"))})
		}
	case "replace":
		if a.has("silent") {
			h.w.silent[Worker(a.get("id"))] = true
		}
		es = h.w.replace(Worker(a.get("id")), Worker(a.get("of")))
	case "crash":
		h.w.crash(a.number("lost", 0))
	case "takeover":
		clear(h.w.silent)
		for _, id := range strings.Split(a.get("silent"), ",") {
			h.w.silent[Worker(id)] = true
		}
		es = h.w.takeOver()
	case "unreadable":
		h.w.unreadable = errors.New("cannot be read")
		es = h.w.step(Start{HasLog: true})
	case "answer":
		id := Worker(a.get("id"))
		h.w.silent[id] = false
		es = h.w.step(h.w.inventory(id))
	case "pull":
		id, err := parseTask(a.get("task"))
		if err != nil {
			return "", err
		}
		_, attempt, err := h.w.where(id)
		if err != nil {
			return "", err
		}
		h.w.pull(attempt, false)
	case "infer":
		es = h.w.step(SourceParallelism{Vertex: a.get("vertex"), Parallelism: a.number("p", 0)})
	case "sync":
		h.w.sync()
		es = h.w.step(TimerFired{})
	case "global":
		es = h.w.step(GlobalFailure{Err: errors.New("global")})
	case "suspend":
		es = h.w.step(Suspend{Err: errors.New("another master leads")})
	case "cancel":
		es = h.w.step(CancelJob{})
	case "fire":
		if h.w.timer == never {
			return "no timer\n", nil
		}
		if !a.has("at") {
			h.w.now = h.w.timer
		}
		es = h.w.step(TimerFired{})
	case "event":
		e, err := logged(a)
		if err != nil {
			return "", err
		}
		h.w.log = append(h.w.log, e)
		h.w.hasLog = true
	case "pressure":
		es = h.w.step(LogPressure{On: a.has("on")})
	case "commits":
		h.w.commitErr, h.w.permanent, h.w.stuck, h.w.some = nil, a.has("permanent"), a.has("stuck"), a.number("some", 0)
		if a.has("fail") {
			h.w.commitErr = errors.New("no space left")
		}
	case "truncate":
		h.w.log = h.w.log[:len(h.w.log)-a.number("events", 1)]
	case "rewrite":
		// The snapshots of an event did not come to be written with it.
		id, err := parseTask(a.get("snapshots-of"))
		if err != nil {
			return "", err
		}
		for i, e := range h.w.log {
			if f, ok := e.(joblog.VertexFinished); ok && f.Attempt.TaskID == id {
				f.Snapshots, f.Snapshotted = nil, false
				h.w.log[i] = f
			}
		}
	case "mangle":
		at, id, err := h.partition(a.get("of"))
		if err != nil {
			return "", err
		}
		h.w.workers[at].partitions[id] = []int64{1, 2, 3, 4, 5, 6, 7}
	case "recovery":
		h.w.cfg.Recovery = a.has("on")
		h.w.newMaster()
	case "show":
		return h.show(), nil
	case "verify":
		if err := h.w.verify(); err != nil {
			return err.Error() + "\n", nil
		}
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
	return printEffects(es), nil
}

// logged is an event that an older master is said to have written.
func logged(a arguments) (joblog.Event, error) {
	if a.has("ended") {
		return joblog.JobFinished{Status: "FAILED", Error: "boom"}, nil
	}
	id, err := parseTask(a.get("task"))
	if err != nil {
		return nil, err
	}
	if a.has("reset") {
		return joblog.VerticesReset{Tasks: []TaskID{id}}, nil
	}
	e := joblog.VertexFinished{Attempt: AttemptID{TaskID: id, Epoch: 1, Attempt: a.number("attempt", 0)}, Worker: "w0", Snapshotted: a.has("snapshot")}
	if op := a.get("of"); op != "" {
		e.Snapshots = []joblog.Snapshot{{Operator: op, Data: []byte(a.get("snapshot"))}}
	}
	for _, ds := range strings.Split(a.get("data"), ",") {
		if ds != "" {
			name, n, _ := strings.Cut(ds, ":")
			k, _ := strconv.Atoi(n)
			e.Results = append(e.Results, joblog.Result{DataSet: name, Bytes: make([]int64, k)})
		}
	}
	return e, nil
}

func (h *script) partition(s string) (Worker, PartitionID, error) {
	ds, name, _ := strings.Cut(s, ":")
	id, err := parseTask(name)
	if err != nil {
		return "", PartitionID{}, err
	}
	for _, w := range h.w.order {
		for p := range h.w.workers[w].partitions {
			if p.DataSet == ds && p.Producer.TaskID == id {
				return w, p, nil
			}
		}
	}
	return "", PartitionID{}, fmt.Errorf("no worker has %s", s)
}

func (h *script) begin(a arguments) (string, error) {
	cfg := Config{Mode: Mode(a.get("mode")), Epoch: 1, Recovery: !a.has("no-recovery"), WorkerTimeout: 30 * time.Second,
		MinPause:     3 * time.Minute,
		Parallelism:  ParallelismConfig{DataPerTask: int64(a.number("data", 10)), Min: 1, Max: a.number("max", 4)},
		KeepConsumed: a.has("keep-consumed"),
		Restart:      scheduling.RestartConfig{Type: scheduling.FixedDelay, Attempts: scheduling.Unlimited}}
	switch n := a.number("restart", -1); {
	case a.get("restart") == "none":
		cfg.Restart = scheduling.RestartConfig{Type: scheduling.NoRestart}
	case n >= 0:
		cfg.Restart.Attempts, cfg.Restart.Delay = n, time.Second
	}
	if p, err := time.ParseDuration(a.get("min-pause")); err == nil {
		cfg.MinPause = p
	}
	if d, err := time.ParseDuration(a.get("slot-timeout")); err == nil {
		cfg.SlotTimeout = d
	}
	if d, err := time.ParseDuration(a.get("silence")); err == nil {
		cfg.Silence = d
	}
	if a.has("speculation") {
		cfg.Speculation = &SpeculationConfig{MaxExecutions: 2, BlockWorker: time.Minute, CheckInterval: time.Second, Ratio: 0.75, Multiplier: 1.5, LowerBound: 10 * time.Second}
	}
	splits := map[string]int{}
	for _, line := range strings.Split(a.d.Input, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		has := func(w string) bool { return slices.Contains(f, w) }
		if f[0] == "edge" {
			cfg.Edges = append(cfg.Edges, Edge{DataSet: f[1], From: f[2], To: f[3], Pointwise: has("pointwise"), Broadcast: has("broadcast"), Pipelined: has("pipelined")})
			continue
		}
		v := Vertex{ID: f[1], Source: has("source"), Commits: has("commits")}
		for _, w := range f[2:] {
			k, val, _ := strings.Cut(w, "=")
			switch k {
			case "p":
				v.Parallelism, _ = strconv.Atoi(val)
			case "able":
				v.Coordinators = append(v.Coordinators, Coordinator{Operator: val, Snapshots: true})
			case "unable":
				v.Coordinators = append(v.Coordinators, Coordinator{Operator: val})
			}
		}
		if v.Source {
			splits[v.ID] = a.number("splits", 0)
		}
		cfg.Vertices = append(cfg.Vertices, v)
	}
	if a.has("shape") {
		var b strings.Builder
		if cfg.Mode == "" {
			cfg.Mode = Hardened
		}
		for _, p := range Recoverable(cfg) {
			fmt.Fprintf(&b, "%s (partial %v)\n", p.Error(), p.Partial)
		}
		if _, err := New(cfg); err != nil {
			fmt.Fprintf(&b, "refused: %v\n", err)
		}
		h.w = &world{}
		return b.String(), nil
	}
	h.w = newWorld(cfg, splits)
	h.w.slowLog = a.has("slow-log")
	for i, slots := range strings.Split(a.get("workers"), ",") {
		if n, err := strconv.Atoi(slots); err == nil {
			h.w.join(Worker(fmt.Sprint("w", i)), n)
		}
	}
	return "ok\n", nil
}

func (h *script) finish(a arguments) (string, error) {
	var ids []TaskID
	if a.has("task") {
		id, err := parseTask(a.get("task"))
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	} else {
		for i := range h.w.s.byID[a.get("vertex")].parallelism {
			ids = append(ids, TaskID{Vertex: a.get("vertex"), Subtask: i})
		}
	}
	var es []Effect
	for _, id := range ids {
		site, attempt, err := h.w.where(id)
		if err != nil {
			if a.has("vertex") {
				continue
			}
			return "", err
		}
		h.w.early, h.w.unread = a.has("none"), a.has("unread")
		es = append(es, h.w.finish(site, attempt, int64(a.number("bytes", 1)), a.has("untold"))...)
		h.w.early, h.w.unread = false, false
	}
	return printEffects(es), nil
}

func (h *script) show() string {
	var b strings.Builder
	for _, v := range h.w.s.vertices {
		fmt.Fprintf(&b, "%s:", v.ID)
		for _, t := range v.tasks {
			switch {
			case t.state == finished:
				fmt.Fprintf(&b, " %s", t.winner.Attempt)
			case t.state == running && len(t.live) > 0:
				fmt.Fprintf(&b, " (%s)", t.live[0].id)
			default:
				b.WriteString(" -")
			}
		}
		b.WriteString("\n")
	}
	for _, id := range h.w.order {
		inv := h.w.inventory(id)
		fmt.Fprintf(&b, "%s holds", id)
		for _, p := range inv.Partitions {
			fmt.Fprintf(&b, " %s", p.Partition)
		}
		b.WriteString("\n")
	}
	return b.String()
}
