package checkpoint

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"benchrun/runtime/snapshot"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scripts in testdata/scripts. Each command is an event; what
// comes out are the effects, one a line. Arguments:
//
//	at=2s     the time of the event; the default is the time before
//	id=3      of a checkpoint
//	task=a/0  attempt 0 unless a/0#1
//	err=io    an I/O error; other words are plain errors
//
// "new" makes a coordinator. "fire" sends the timer at the time that was asked
// for. With until=coordinators, acks, finalize or end, everything that the
// command begins is answered with success up to that stage, and only what is
// left over is printed; "take" asks for a checkpoint that way.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		h := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return h.run(t, d)
		})
	})
}

type script struct {
	c     *Coordinator
	now   time.Duration
	timer time.Duration
	tasks []Task
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
	number := func(key, otherwise string) int64 {
		var n int64
		if _, err := fmt.Sscan(arg(key, otherwise), &n); err != nil {
			d.Fatalf(t, "%s: %v", key, err)
		}
		return n
	}
	flag := func(key string) bool { return arg(key, "") == "true" }
	failure := func() error {
		switch e := arg("err", ""); e {
		case "":
			return nil
		case "io":
			return fmt.Errorf("write: %w", syscall.ENOSPC)
		case "closing":
			return fmt.Errorf("finished: %w", &Error{Reason: DeclinedTaskClosing})
		default:
			return errors.New(e)
		}
	}
	task := func() Task { return parseTask(arg("task", "a/0")) }
	reason := func() Reason {
		r, err := ParseReason(arg("reason", "CHECKPOINT_DECLINED"))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return r
	}
	id := number("id", "0")
	h.now = duration("at", h.now.String())

	var e Event
	switch d.Cmd {
	case "new":
		h.now, h.timer = 0, never
		retention := map[string]Retention{"none": NoExternalized, "delete": DeleteOnCancellation, "retain": RetainOnCancellation}
		h.c = New(Config{
			Interval: duration("interval", "10s"), Timeout: duration("timeout", "1m"), MinPause: duration("min-pause", "0s"),
			BacklogInterval: duration("backlog-interval", "0s"), HasBacklogInterval: arg("backlog-interval", "") != "",
			MaxConcurrent: int(number("max-concurrent", "1")), TolerableFailures: int(number("tolerable", "0")),
			Retained: int(number("retained", "1")), Retention: retention[arg("retention", "none")],
			Unaligned: flag("unaligned"), AlignedTimeout: duration("aligned-timeout", "0s"),
		})
		h.tasks = nil
		for _, t := range strings.Split(arg("tasks", "a/0,b/0"), ",") {
			h.tasks = append(h.tasks, parseTask(t))
		}
		return ""
	case "fire":
		if h.timer == never {
			return "no timer\n"
		}
		h.now = h.timer
		e = TimerFired{}
	case "tick":
		e = TimerFired{}
	case "start":
		e = Start{}
	case "stop":
		e = Stop{}
	case "trigger":
		e = TriggerRequest{Token: uint64(number("token", "0")), Savepoint: flag("savepoint"), Stop: flag("stop"), Drain: flag("drain"), Forced: flag("forced")}
	case "trigger-many":
		e := TriggerRequest{Savepoint: flag("savepoint")}
		var out []Effect
		for i := number("count", "1"); i > 0; i-- {
			out = append(out, h.c.Step(h.now, e)...)
		}
		return h.print(out)
	case "end-of-data":
		e = EndOfData{}
	case "backlog":
		e = Backlog{Source: arg("source", "s"), On: flag("on")}
	case "plan":
		e = h.plan(uint64(number("seq", "0")))
	case "reject":
		e = PlanRejected{Seq: h.planSeq(uint64(number("seq", "0"))), Reason: reason(), Err: failure()}
	case "located":
		e = LocationReady{ID: id, Folder: arg("folder", snapshot.Folder(id))}
	case "location-failed":
		e = LocationFailed{ID: id, Err: failure()}
	case "coordinators":
		e = CoordinatorsAcked{ID: id}
	case "coordinators-failed":
		e = CoordinatorsFailed{ID: id, Err: failure()}
	case "trigger-failed":
		e = TriggerFailed{ID: id, Task: task(), Err: failure()}
	case "ack":
		e = Ack{Task: task(), ID: id, State: &snapshot.SubtaskState{}}
	case "decline":
		e = Decline{Task: task(), ID: id, Reason: reason(), Err: failure()}
	case "task-failed":
		e = TaskFailed{Task: task()}
	case "failover":
		e = JobFailover{}
	case "finalized":
		e = Finalized{ID: id}
	case "finalize-failed":
		e = FinalizeFailed{ID: id, Err: failure(), UnknownOutcome: flag("unknown")}
	case "discarded":
		e = Discarded{ID: id, Err: failure()}
	case "restored":
		e = Restored{ID: id, Folder: arg("folder", snapshot.Folder(id)), Savepoint: flag("savepoint"), Claimed: flag("claimed")}
	case "restore":
		e = RestoreRequest{Token: uint64(number("token", "1"))}
	case "damaged":
		e = Damaged{ID: id}
	case "shutdown":
		status := map[string]Status{"finished": Finished, "canceled": Canceled, "failed": Failed, "suspended": Suspended}
		e = Shutdown{Status: status[arg("status", "finished")]}
	case "take":
		return h.print(h.settle(h.c.Step(h.now, TriggerRequest{Savepoint: flag("savepoint"), Stop: flag("stop")}), arg("until", "end")))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	out := h.c.Step(h.now, e)
	if until := arg("until", ""); until != "" {
		out = h.settle(out, until)
	}
	return h.print(out)
}

// planSeq is that of the plan in the making, unless the script names one.
func (h *script) planSeq(seq uint64) uint64 {
	if seq == 0 && h.c.trigger != nil {
		return h.c.trigger.planSeq
	}
	return seq
}

func (h *script) plan(seq uint64) PlanComputed {
	return PlanComputed{Seq: h.planSeq(seq), Trigger: h.tasks[:1], Ack: h.tasks}
}

// settle answers effects until none is left that needs an answer, or until the
// named one comes up: then it is left unanswered.
func (h *script) settle(todo []Effect, until string) []Effect {
	var left []Effect
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		step := func(ev Event) { todo = append(todo, h.c.Step(h.now, ev)...) }
		switch e := e.(type) {
		case ComputePlan:
			step(h.plan(e.Seq))
		case InitLocation:
			step(LocationReady{ID: e.ID, Folder: snapshot.Folder(e.ID)})
		case SnapshotCoordinators:
			if until == "coordinators" {
				left = append(left, e)
				continue
			}
			step(CoordinatorsAcked{ID: e.ID})
		case TriggerTasks:
			if until == "acks" {
				left = append(left, e)
				continue
			}
			for _, t := range h.tasks {
				step(Ack{Task: t, ID: e.ID, State: &snapshot.SubtaskState{}})
			}
		case Finalize:
			if until == "finalize" {
				left = append(left, e)
				continue
			}
			step(Finalized{ID: e.ID})
		case Discard:
			step(Discarded{ID: e.ID})
			left = append(left, e)
		case ReportTriggered:
		default:
			left = append(left, e)
		}
	}
	return left
}

func parseTask(s string) Task {
	var t Task
	name, attempt, _ := strings.Cut(s, "#")
	vertex, subtask, _ := strings.Cut(name, "/")
	t.Vertex = vertex
	fmt.Sscan(subtask, &t.Subtask)
	fmt.Sscan(attempt, &t.Attempt)
	return t
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
	words := func(parts ...any) string {
		s := make([]string, 0, len(parts))
		for _, p := range parts {
			if v := fmt.Sprint(p); v != "" {
				s = append(s, v)
			}
		}
		return strings.Join(s, " ")
	}
	when := func(cond bool, s string) string {
		if cond {
			return s
		}
		return ""
	}
	tasks := func(ts []Task) string { return strings.Trim(fmt.Sprint(ts), "[]") }
	blame := func(t *Task) string {
		if t == nil {
			return ""
		}
		return "by " + t.String()
	}
	completed := func(k Completed) string {
		return words(when(k.Savepoint, "savepoint"), k.ID, "in", k.Folder)
	}
	switch e := e.(type) {
	case ComputePlan:
		return "compute plan"
	case InitLocation:
		return words("init location", e.ID, when(e.Savepoint, "savepoint"))
	case SnapshotCoordinators:
		return words("snapshot coordinators", e.ID)
	case TriggerTasks:
		o := e.Options
		return words("trigger", e.ID, o.Kind, when(o.AlignedTimeout > 0, o.AlignedTimeout.String()), when(o.Savepoint, "savepoint"),
			when(o.Stop, "stop"), when(o.Drain, "drain"), when(o.Full, "full"), "in", o.Folder+":", tasks(e.Tasks))
	case Finalize:
		var ts []string
		for t := range e.States {
			ts = append(ts, t.String())
		}
		sort.Strings(ts)
		return words("finalize", e.ID, when(e.Savepoint, "savepoint"), when(e.Unaligned, "unaligned"), "in", e.Folder+":", strings.Join(ts, " "))
	case NotifyComplete:
		return words("notify complete", e.ID, when(e.Subsumed != 0, fmt.Sprint("subsumed ", e.Subsumed))+":", tasks(e.Tasks))
	case NotifyAborted:
		return words("notify aborted", e.ID, fmt.Sprint("latest ", e.Latest)+":", tasks(e.Tasks))
	case Discard:
		return words("discard", e.ID, e.Folder)
	case DiscardState:
		return words("discard state of", e.Task, "for", e.ID, e.Folder)
	case FailJob:
		return words("FAIL JOB", e.Reason, e.ID, blame(e.Task))
	case SetTimer:
		return words("timer at", e.At)
	case StopTimer:
		return "no timer"
	case Reply:
		if e.Err != nil {
			return words("reply", e.Token, "error", e.Err)
		}
		return words("reply", e.Token, completed(e.Result))
	case RestoreFrom:
		if !e.Found {
			return words("restore", e.Token, "from nothing")
		}
		return words("restore", e.Token, "from", completed(e.Checkpoint))
	case ReportTriggered:
		return words("triggered", e.ID)
	case ReportCompleted:
		return words("completed", completed(e.Checkpoint))
	case ReportFailed:
		return words("failed", e.ID, e.Reason, when(e.Reason.PreFlight(), "(pre-flight)"), blame(e.Task))
	case ReportDiscardFailed:
		return words("discard failed", e.ID, e.Err, when(e.Final, "for good"))
	}
	return fmt.Sprintf("%#v", e)
}
