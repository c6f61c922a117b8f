package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"benchrun/runtime/snapshot"

	"pgregory.net/rapid"
)

// world is everything around the coordinator: it carries out effects in random
// order, with random outcome, and holds what must be true at all times.
type world struct {
	t     *rapid.T
	c     *Coordinator
	now   time.Duration
	timer time.Duration
	tasks []Task

	todo     []Effect // not yet answered
	acks     []Ack    // not yet sent
	sent     []Ack    // for duplicates
	tokens   map[uint64]bool
	restores map[uint64]bool
	next     uint64

	begun     map[int64]bool // true: savepoint
	over      map[int64]string
	lastID    int64
	restored  int64 // ids up to here must not complete any more as checkpoints
	coords    map[int64]bool
	discarded map[string]int
}

func newWorld(t *rapid.T) *world {
	return &world{
		t: t, timer: never,
		c: New(Config{
			Interval:          rapid.SampledFrom([]time.Duration{0, 5, 50}).Draw(t, "interval") * time.Second,
			Timeout:           rapid.SampledFrom([]time.Duration{3, 30}).Draw(t, "timeout") * time.Second,
			MinPause:          rapid.SampledFrom([]time.Duration{0, 4}).Draw(t, "min-pause") * time.Second,
			MaxConcurrent:     rapid.IntRange(1, 3).Draw(t, "max-concurrent"),
			TolerableFailures: rapid.SampledFrom([]int{0, 1, Unlimited}).Draw(t, "tolerable"),
			Retained:          rapid.IntRange(1, 3).Draw(t, "retained"),
			Retention:         Retention(rapid.IntRange(0, 2).Draw(t, "retention")),
			Unaligned:         rapid.Bool().Draw(t, "unaligned"),
		}),
		tasks:    []Task{{"a", 0, 0}, {"a", 1, 0}, {"b", 0, 0}},
		tokens:   map[uint64]bool{},
		restores: map[uint64]bool{},
		begun:    map[int64]bool{}, over: map[int64]string{}, coords: map[int64]bool{}, discarded: map[string]int{},
	}
}

func (w *world) step(e Event) {
	for _, eff := range w.c.Step(w.now, e) {
		w.apply(eff)
	}
	w.check()
}

func (w *world) apply(e Effect) {
	t := w.t
	end := func(id int64, how string) {
		if _, ok := w.begun[id]; !ok {
			t.Fatalf("checkpoint %d ended (%s) before it began", id, how)
		}
		if was := w.over[id]; was != "" {
			t.Fatalf("checkpoint %d ended twice: %s, then %s", id, was, how)
		}
		w.over[id] = how
	}
	switch e := e.(type) {
	case SetTimer:
		w.timer = e.At
	case StopTimer:
		w.timer = never
	case ReportTriggered:
		if e.ID <= w.lastID {
			t.Fatalf("id %d after %d", e.ID, w.lastID)
		}
		w.lastID = e.ID
		w.begun[e.ID] = e.Savepoint
	case ReportCompleted:
		end(e.Checkpoint.ID, "completed")
		if e.Checkpoint.ID <= w.restored && !e.Checkpoint.Savepoint {
			t.Fatalf("checkpoint %d completed after a restore that did not use it", e.Checkpoint.ID)
		}
	case ReportFailed:
		if e.ID != 0 {
			end(e.ID, e.Reason.String())
		}
	case TriggerTasks:
		if !w.coords[e.ID] || w.over[e.ID] != "" {
			t.Fatalf("tasks of %d triggered, coordinators done: %t, over: %q", e.ID, w.coords[e.ID], w.over[e.ID])
		}
		for _, task := range w.tasks {
			w.acks = append(w.acks, Ack{Task: task, ID: e.ID, State: &snapshot.SubtaskState{}})
		}
	case Finalize:
		if len(e.States) != len(e.Plan.Ack) {
			t.Fatalf("finalize %d with %d of %d states", e.ID, len(e.States), len(e.Plan.Ack))
		}
		w.todo = append(w.todo, e)
	case NotifyComplete:
		if w.over[e.ID] != "completed" {
			t.Fatalf("notify complete %d, which is %q", e.ID, w.over[e.ID])
		}
	case NotifyAborted:
		if o := w.over[e.ID]; o == "" || o == "completed" {
			t.Fatalf("notify aborted %d, which is %q", e.ID, o)
		}
	case Discard:
		for _, k := range w.c.Completed() {
			if k.Folder == e.Folder {
				t.Fatalf("%s is discarded and still in use", e.Folder)
			}
		}
		w.discarded[e.Folder]++
		w.todo = append(w.todo, e)
	case Reply:
		if done, ok := w.tokens[e.Token]; !ok || done {
			t.Fatalf("token %d was answered before, or never given", e.Token)
		}
		w.tokens[e.Token] = true
	case RestoreFrom:
		if done, ok := w.restores[e.Token]; !ok || done {
			t.Fatalf("restore %d was answered before, or never asked", e.Token)
		}
		w.restores[e.Token] = true
		w.restored = w.lastID
	case ComputePlan, InitLocation, SnapshotCoordinators:
		w.todo = append(w.todo, e)
	}
}

// check holds the coordinator's insides against what must be true.
func (w *world) check() {
	t, c := w.t, w.c
	for _, p := range c.pending {
		if w.over[p.id] != "" {
			t.Fatalf("checkpoint %d is over (%s) and pending", p.id, w.over[p.id])
		}
		if p.stage == triggered && len(p.waiting) == 0 {
			t.Fatalf("checkpoint %d is acknowledged and not finalised", p.id)
		}
	}
	if c.trigger == nil && len(c.queue) > 0 && len(c.pending) < c.cfg.MaxConcurrent && c.deletions() <= c.cfg.MaxConcurrent {
		t.Fatalf("stuck: %d requests are queued and nothing is in progress", len(c.queue))
	}
	if p := c.trigger; p != nil && !slices.ContainsFunc(w.todo, func(e Effect) bool {
		switch e := e.(type) {
		case ComputePlan:
			return e.Seq == p.planSeq
		case InitLocation:
			return e.ID == p.id
		case SnapshotCoordinators:
			return e.ID == p.id
		}
		return false
	}) {
		t.Fatalf("the trigger waits for an answer that nobody owes")
	}
	if c.shutdown && (len(c.queue) > 0 || c.trigger != nil || c.periodic) {
		t.Fatalf("something goes on after the shutdown")
	}
	if len(c.completed) > c.cfg.Retained+1 {
		t.Fatalf("%d completed ones are kept, %d are wanted", len(c.completed), c.cfg.Retained)
	}
	if len(c.restores) > 0 && !slices.ContainsFunc(c.pending, func(p *pending) bool { return p.stage == finalizing }) {
		t.Fatalf("a restore waits for nothing")
	}
}

// answer answers one effect, well or badly.
func (w *world) answer(i int, bad bool) {
	e := w.todo[i]
	w.todo = slices.Delete(w.todo, i, i+1)
	boom := fmt.Errorf("random: %w", syscall.EIO)
	switch e := e.(type) {
	case ComputePlan:
		if bad {
			w.step(PlanRejected{Seq: e.Seq, Reason: NotAllRequiredTasksRunning})
		} else {
			w.step(PlanComputed{Seq: e.Seq, Trigger: w.tasks[:1], Ack: w.tasks})
		}
	case InitLocation:
		if bad {
			w.step(LocationFailed{ID: e.ID, Err: boom})
		} else {
			w.step(LocationReady{ID: e.ID, Folder: fmt.Sprint("folder-", e.ID)})
		}
	case SnapshotCoordinators:
		if bad {
			w.step(CoordinatorsFailed{ID: e.ID, Err: errors.New("random")})
		} else {
			w.coords[e.ID] = true
			w.step(CoordinatorsAcked{ID: e.ID})
		}
	case Finalize:
		if bad {
			w.step(FinalizeFailed{ID: e.ID, Err: boom, UnknownOutcome: e.ID%2 == 0})
		} else {
			w.step(Finalized{ID: e.ID})
		}
	case Discard:
		if bad {
			w.step(Discarded{ID: e.ID, Err: boom})
		} else {
			w.step(Discarded{ID: e.ID})
		}
	}
}

func TestRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.step(Start{})
		request := func(r TriggerRequest) {
			w.next++
			r.Token = w.next
			w.tokens[r.Token] = false
			w.step(r)
		}
		pick := func(n int) int {
			if n == 0 {
				t.Skip("nothing there")
			}
			return rapid.IntRange(0, n-1).Draw(t, "which")
		}
		answer := func(t *rapid.T) { w.answer(pick(len(w.todo)), false) }
		ack := func(t *rapid.T) {
			i := pick(len(w.acks))
			a := w.acks[i]
			w.acks = slices.Delete(w.acks, i, i+1)
			w.sent = append(w.sent, a)
			w.step(a)
		}
		t.Repeat(map[string]func(*rapid.T){
			"answer": answer, "answer 2": answer, "answer 3": answer, "answer 4": answer,
			"ack": ack, "ack 2": ack, "ack 3": ack,
			"answer badly": func(t *rapid.T) { w.answer(pick(len(w.todo)), true) },
			"ack again":    func(t *rapid.T) { w.step(w.sent[pick(len(w.sent))]) },
			"decline": func(t *rapid.T) {
				a := w.acks[pick(len(w.acks))]
				w.step(Decline{Task: a.Task, ID: a.ID, Reason: rapid.SampledFrom(Reasons()).Draw(t, "reason")})
			},
			"trigger failed": func(t *rapid.T) {
				a := w.acks[pick(len(w.acks))]
				w.step(TriggerFailed{ID: a.ID, Task: a.Task, Err: errors.New("random")})
			},
			"task failed": func(t *rapid.T) { w.step(TaskFailed{Task: w.tasks[pick(3)]}) },
			"failover":    func(t *rapid.T) { w.step(JobFailover{}) },
			"timer": func(t *rapid.T) {
				if w.timer == never {
					t.Skip("no timer")
				}
				w.now = max(w.now, w.timer)
				w.timer = never
				w.step(TimerFired{})
				for _, p := range w.c.pending {
					if p.deadline != never && p.deadline <= w.now {
						t.Fatalf("checkpoint %d should have expired", p.id)
					}
				}
			},
			"time":        func(t *rapid.T) { w.now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond },
			"checkpoint":  func(t *rapid.T) { request(TriggerRequest{Forced: rapid.Bool().Draw(t, "forced")}) },
			"savepoint":   func(t *rapid.T) { request(TriggerRequest{Savepoint: true}) },
			"stop with":   func(t *rapid.T) { request(TriggerRequest{Stop: true}) },
			"end of data": func(t *rapid.T) { w.step(EndOfData{}) },
			"stop":        func(t *rapid.T) { w.step(Stop{}) },
			"start":       func(t *rapid.T) { w.step(Start{}) },
			"stale plan":  func(t *rapid.T) { w.step(PlanComputed{Seq: 0, Ack: w.tasks}) },
			"damaged":     func(t *rapid.T) { w.step(Damaged{ID: w.c.latest()}) },
			"restart": func(t *rapid.T) {
				w.step(Stop{})
				w.next++
				w.restores[w.next] = false
				w.step(RestoreRequest{Token: w.next})
			},
			"shutdown": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					t.Skip("not yet")
				}
				w.step(Shutdown{Status: Status(rapid.IntRange(0, 3).Draw(t, "status"))})
			},
		})

		// Let everything come to rest: all that began must have ended.
		w.step(Shutdown{Status: Failed})
		for len(w.todo) > 0 || w.timer != never {
			if len(w.todo) > 0 {
				w.answer(0, false)
				continue
			}
			w.now = max(w.now, w.timer)
			w.timer = never
			w.step(TimerFired{})
		}
		for id := range w.begun {
			if w.over[id] == "" {
				t.Fatalf("checkpoint %d never ended", id)
			}
		}
		for token, done := range w.tokens {
			if !done {
				t.Fatalf("request %d was never answered", token)
			}
		}
		for token, done := range w.restores {
			if !done {
				t.Fatalf("restore %d was never answered", token)
			}
		}
		if len(w.c.cleaning) > 0 || len(w.c.pending) > 0 {
			t.Fatalf("left over: %d deletions, %d pending", len(w.c.cleaning), len(w.c.pending))
		}
	})
}

// CC-23: what was checked before planning is checked again after it.
func TestSecondCheck(t *testing.T) {
	for _, stop := range []func(c *Coordinator){
		func(c *Coordinator) { c.periodic = false },
		func(c *Coordinator) { c.shutdown = true },
	} {
		c := New(Config{Interval: time.Second})
		c.Step(0, Start{})
		stop(c)
		for _, e := range c.Step(1, PlanComputed{Seq: c.trigger.planSeq}) {
			if _, ok := e.(ReportTriggered); ok {
				t.Error("a checkpoint began after its end")
			}
		}
		if c.trigger != nil {
			t.Error("the trigger is held")
		}
	}
}

func TestReasons(t *testing.T) {
	if n := len(Reasons()); n != 24 {
		t.Errorf("%d reasons, Flink has 24", n)
	}
	counted := map[Reason]bool{IOException: true, CheckpointAsyncException: true, CheckpointExpired: true, CheckpointDeclined: true, FinalizeFailure: true}
	preFlight := map[Reason]bool{PeriodicSchedulerShutdown: true, TooManyCheckpointRequests: true, MinimumTimeBetweenCheckpoints: true,
		NotAllRequiredTasksRunning: true, IOException: true, BlockingOutputExist: true}
	for _, r := range Reasons() {
		if r.Counts() != counted[r] {
			t.Errorf("%s counts: %t", r, r.Counts())
		}
		if r.PreFlight() != preFlight[r] {
			t.Errorf("%s is pre-flight: %t", r, r.PreFlight())
		}
		if back, err := ParseReason(r.String()); err != nil || back != r {
			t.Errorf("%s is read back as %s, %v", r, back, err)
		}
	}
	if _, err := ParseReason("X"); err == nil {
		t.Error("an unknown reason was accepted")
	}
}
