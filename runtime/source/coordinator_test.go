package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestCoordinatorScripts runs the scripts in testdata/scripts. Each command is
// an event; what comes out are the effects, one a line.
func TestCoordinatorScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var c *Coordinator
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			number := func(key string, otherwise int) int {
				if a, ok := d.Arg(key); ok {
					n, err := strconv.Atoi(a.Vals[0])
					if err != nil {
						d.Fatalf(t, "%s: %v", key, err)
					}
					return n
				}
				return otherwise
			}
			subtask, attempt, id := number("subtask", 0), number("attempt", 0), int64(number("id", 0))
			var e Event
			switch d.Cmd {
			case "new":
				kind := StaticSplits(testSplits(number("splits", 4)))
				if d.HasArg("on-request") {
					kind = SplitsOnRequest(testSplits(number("splits", 4)))
				}
				c = NewCoordinator("s", number("parallelism", 2), kind)
				return ""
			case "ready":
				e = SubtaskReady{subtask, attempt}
			case "failed":
				e = SubtaskFailed{subtask, attempt}
			case "subtask-reset":
				e = SubtaskReset{subtask, id}
			case "register":
				e = FromReader{subtask, attempt, ReaderEvent{Register: true}}
			case "request":
				e = FromReader{subtask, attempt, ReaderEvent{Request: true}}
			case "delivered":
				ev := Delivered{Subtask: subtask, Seq: uint64(number("seq", 0))}
				if d.HasArg("lost") {
					ev.Err = errors.New("lost")
				}
				e = ev
			case "checkpoint":
				e = BeginCheckpoint{id}
			case "passed":
				e = PassedBarrier{subtask, id}
			case "completed":
				e = CheckpointCompleted{id}
			case "aborted":
				e = CheckpointAborted{id}
			case "reset":
				ev := Reset{Checkpoint: id, Parallelism: number("parallelism", 2)}
				if d.HasArg("state") {
					ev.State = c.encode()
				} else if d.Input != "" {
					ev.State = []byte(d.Input)
				}
				e = ev
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			var b strings.Builder
			for _, eff := range c.Step(e) {
				fmt.Fprintln(&b, show(eff))
			}
			if b.Len() == 0 {
				return "ok\n"
			}
			return b.String()
		})
	})
}

func testSplits(n int) []Split {
	data := make([][]byte, n)
	for i := range data {
		data[i] = []byte{byte('A' + i)}
	}
	return NewSplits(data)
}

func show(e Effect) string {
	switch e := e.(type) {
	case Send:
		what := "no more splits"
		if !e.Event.NoMore {
			what = fmt.Sprintf("splits %s", e.Event.Splits)
		}
		return fmt.Sprintf("send %d to %d#%d: %s", e.Seq, e.Subtask, e.Attempt, what)
	case SnapshotDone:
		left, err := decodeNumbered(e.Data[coordinatorHeader:])
		if err != nil {
			return err.Error()
		}
		var ids []string
		for _, s := range left {
			ids = append(ids, string(s.Data))
		}
		return fmt.Sprintf("snapshot %d: %v", e.ID, ids)
	case SnapshotFailed:
		return fmt.Sprintf("snapshot %d failed: %v", e.ID, e.Err)
	case FailTask:
		return fmt.Sprintf("fail %d#%d: %v", e.Subtask, e.Attempt, e.Err)
	case FailJob:
		return fmt.Sprintf("FAIL JOB: %v", e.Err)
	}
	return fmt.Sprintf("%#v", e)
}

// cluster is everything around a coordinator: readers, their mailboxes, and
// checkpoints that are taken by all.
type cluster struct {
	t       *rapid.T
	c       *Coordinator
	kind    EnumeratorKind
	all     []string
	readers []*reader
	next    int64
	pending map[int64]*taken
	last    *taken     // completed
	base    [][]string // what readers fall back to: of the last completed, or of the restart if it was later
	baseID  int64
}

// reader is a source task: it works off one mailbox.
type reader struct {
	attempt    int
	alive      bool
	registered bool
	noMore     bool
	asked      bool
	splits     []string
	mailbox    []any // Send or trigger
}

type trigger int64

// taken is a checkpoint.
type taken struct {
	id          int64
	coordinator []byte
	readers     map[int][]string
}

func (cl *cluster) step(e Event) {
	for _, eff := range cl.c.Step(e) {
		switch eff := eff.(type) {
		case Send:
			r := cl.readers[eff.Subtask]
			if r.attempt != eff.Attempt || !r.alive {
				cl.t.Fatalf("%v, which is at %d", eff, r.attempt)
			}
			r.mailbox = append(r.mailbox, eff)
		case SnapshotDone:
			p := cl.pending[eff.ID]
			if p == nil {
				cl.t.Fatalf("snapshot of %d, which is over", eff.ID)
			}
			p.coordinator = eff.Data
			for _, r := range cl.readers {
				if r.alive {
					r.mailbox = append(r.mailbox, trigger(eff.ID))
				}
			}
		case SnapshotFailed:
			cl.abort(eff.ID)
		default:
			cl.t.Fatalf("unexpected %s", show(eff))
		}
	}
}

func (cl *cluster) abort(id int64) {
	if cl.pending[id] != nil {
		delete(cl.pending, id)
		cl.step(CheckpointAborted{id})
	}
}

// work lets a reader take the next thing from its mailbox.
func (cl *cluster) work(i int) {
	r := cl.readers[i]
	m := r.mailbox[0]
	r.mailbox = r.mailbox[1:]
	switch m := m.(type) {
	case Send:
		for _, s := range m.Event.Splits {
			r.splits = append(r.splits, string(s))
			r.asked = false
		}
		if m.Event.NoMore {
			r.noMore = true
		}
		cl.step(Delivered{Subtask: i, Seq: m.Seq})
	case trigger:
		p := cl.pending[int64(m)]
		if p == nil {
			return
		}
		p.readers[i] = slices.Clone(r.splits)
		cl.step(PassedBarrier{i, p.id})
		if len(p.readers) == len(cl.readers) && p.coordinator != nil && cl.pending[p.id] != nil {
			cl.complete(p)
		}
	}
}

func (cl *cluster) complete(p *taken) {
	// Every split is in exactly one place.
	c := NewCoordinator("check", 1, cl.kind)
	e, err := c.decode(p.coordinator)
	if err != nil {
		cl.t.Fatal(err)
	}
	var ids []string
	for _, s := range left(e) {
		ids = append(ids, string(s.Data))
	}
	for _, s := range p.readers {
		ids = append(ids, s...)
	}
	cl.exactly(fmt.Sprintf("checkpoint %d", p.id), ids)
	delete(cl.pending, p.id)
	for id := range cl.pending {
		if id < p.id {
			cl.abort(id)
		}
	}
	cl.last, cl.baseID = p, p.id
	for i := range cl.base {
		cl.base[i] = p.readers[i]
	}
	cl.step(CheckpointCompleted{p.id})
}

func left(e Enumerator) []numbered {
	switch e := e.(type) {
	case *static:
		return slices.DeleteFunc(slices.Clone(e.left), func(s numbered) bool { return s.out })
	case *onRequest:
		return e.left
	}
	return nil
}

func (cl *cluster) exactly(where string, ids []string) {
	slices.Sort(ids)
	if !slices.Equal(ids, cl.all) {
		cl.t.Fatalf("%s holds %v, want %v", where, ids, cl.all)
	}
}

// live holds that no split is lost or twice right now.
func (cl *cluster) live() {
	var ids []string
	for _, s := range left(cl.c.enumerator) {
		ids = append(ids, string(s.Data))
	}
	count := func(e Send) {
		for _, s := range e.Event.Splits {
			ids = append(ids, string(s))
		}
	}
	for i, r := range cl.readers {
		if !r.alive {
			return // its splits are nowhere until it is reset
		}
		ids = append(ids, r.splits...)
		for _, m := range r.mailbox {
			if s, ok := m.(Send); ok {
				count(s)
			}
		}
		for _, h := range cl.c.subtasks[i].gateway.closed {
			for _, s := range h.events {
				count(s)
			}
		}
	}
	cl.exactly("the cluster", ids)
}

func (cl *cluster) abortAll() {
	for _, id := range slices.Sorted(maps.Keys(cl.pending)) {
		cl.abort(id)
	}
}

// restart begins the whole job anew at another parallelism.
func (cl *cluster) restart(parallelism int) {
	cl.abortAll()
	e := Reset{Parallelism: parallelism}
	attempt := 0
	for _, r := range cl.readers {
		attempt = max(attempt, r.attempt+1)
	}
	var restored []string
	if cl.last != nil {
		e.Checkpoint, e.State = cl.last.id, cl.last.coordinator
		for _, i := range slices.Sorted(maps.Keys(cl.last.readers)) {
			restored = append(restored, cl.last.readers[i]...)
		}
	}
	cl.readers = make([]*reader, parallelism)
	for i := range cl.readers {
		cl.readers[i] = &reader{attempt: attempt, alive: true}
	}
	for i, s := range restored {
		r := cl.readers[i%parallelism]
		r.splits = append(r.splits, s)
	}
	cl.base, cl.baseID = make([][]string, parallelism), e.Checkpoint
	for i, r := range cl.readers {
		cl.base[i] = slices.Clone(r.splits)
	}
	cl.step(e)
	for i := range cl.readers {
		cl.step(SubtaskReady{i, attempt})
	}
}

// TestEverySplitIsInOnePlace lets readers fail alone and together, at any
// moment of any checkpoint.
func TestEverySplitIsInOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		splits := testSplits(rapid.IntRange(0, 9).Draw(t, "splits"))
		kind := StaticSplits(splits)
		if rapid.Bool().Draw(t, "on request") {
			kind = SplitsOnRequest(splits)
		}
		cl := &cluster{t: t, kind: kind, pending: map[int64]*taken{}}
		for _, s := range splits {
			cl.all = append(cl.all, string(s.Data))
		}
		cl.c = NewCoordinator("s", 1, kind)
		cl.restart(rapid.IntRange(1, 4).Draw(t, "parallelism"))
		reader := func(ok func(r *reader) bool) int {
			var is []int
			for i, r := range cl.readers {
				if ok(r) {
					is = append(is, i)
				}
			}
			if len(is) == 0 {
				t.Skip("none")
			}
			return rapid.SampledFrom(is).Draw(t, "subtask")
		}
		work := func(t *rapid.T) { cl.work(reader(func(r *readerState) bool { return r.alive && len(r.mailbox) > 0 })) }
		register := func(t *rapid.T) {
			i := reader(func(r *readerState) bool { return r.alive && !r.registered })
			cl.readers[i].registered = true
			cl.step(FromReader{i, cl.readers[i].attempt, ReaderEvent{Register: true}})
		}
		request := func(t *rapid.T) {
			i := reader(func(r *readerState) bool { return r.alive && r.registered && !r.asked && !r.noMore })
			cl.readers[i].asked = true
			cl.step(FromReader{i, cl.readers[i].attempt, ReaderEvent{Request: true}})
		}
		t.Repeat(map[string]func(*rapid.T){
			"work": work, "work 2": work, "work 3": work, "work 4": work,
			"register": register, "register 2": register, "request": request, "request 2": request,
			"checkpoint": func(t *rapid.T) {
				if len(cl.pending) > 2 || slices.ContainsFunc(cl.readers, func(r *readerState) bool { return !r.alive }) {
					t.Skip("not now")
				}
				cl.next++
				cl.pending[cl.next] = &taken{id: cl.next, readers: map[int][]string{}}
				cl.step(BeginCheckpoint{cl.next})
			},
			"abort": func(t *rapid.T) {
				if len(cl.pending) == 0 {
					t.Skip("none")
				}
				cl.abort(rapid.SampledFrom(slices.Sorted(maps.Keys(cl.pending))).Draw(t, "id"))
			},
			"fail one": func(t *rapid.T) {
				i := reader(func(r *readerState) bool { return r.alive })
				r := cl.readers[i]
				r.alive, r.mailbox, r.splits = false, nil, nil
				cl.step(SubtaskFailed{i, r.attempt})
				cl.abortAll()
			},
			"restart one": func(t *rapid.T) {
				i := reader(func(r *readerState) bool { return !r.alive })
				r := &readerState{attempt: cl.readers[i].attempt + 1, alive: true, splits: slices.Clone(cl.base[i])}
				cl.readers[i] = r
				cl.step(SubtaskReset{Subtask: i, Checkpoint: cl.baseID})
				cl.step(SubtaskReady{i, r.attempt})
			},
			"restart all": func(t *rapid.T) { cl.restart(rapid.IntRange(1, 4).Draw(t, "parallelism")) },
			"":            func(t *rapid.T) { cl.live() },
		})
		// At the end everybody has registered, asked and worked.
		if slices.ContainsFunc(cl.readers, func(r *readerState) bool { return !r.alive }) {
			cl.restart(2)
		}
		for again := true; again; {
			again = false
			for i, r := range cl.readers {
				switch {
				case !r.registered:
					r.registered = true
					cl.step(FromReader{i, r.attempt, ReaderEvent{Register: true}})
				case len(r.mailbox) > 0:
					cl.work(i)
				case !r.asked && !r.noMore:
					r.asked = true
					cl.step(FromReader{i, r.attempt, ReaderEvent{Request: true}})
				default:
					continue
				}
				again = true
			}
		}
		var ids []string
		for i, r := range cl.readers {
			ids = append(ids, r.splits...)
			if !r.noMore && len(cl.pending) == 0 {
				t.Fatalf("reader %d does not know that there is no more", i)
			}
		}
		if len(cl.pending) == 0 {
			cl.exactly("readers at the end", ids)
		}
	})
}

type readerState = reader

// What was assigned before the restored checkpoint is in the reader's state,
// whether or not the news of its completion has come.
func TestTrackerTakesBackWhatCameLater(t *testing.T) {
	s := testSplits(4)
	tr := newTracker()
	tr.assign(0, s[:1])
	tr.snapshot(1)
	tr.assign(0, s[1:2])
	tr.snapshot(2)
	tr.assign(0, s[2:3])
	tr.assign(1, s[3:4])
	if got := tr.takeBack(0, 1); fmt.Sprint(got) != fmt.Sprint(s[1:3]) {
		t.Errorf("taken back: %v", got)
	}
	if got := tr.takeBack(0, 1); len(got) > 0 {
		t.Errorf("taken back twice: %v", got)
	}
	if got := tr.takeBack(1, 0); fmt.Sprint(got) != fmt.Sprint(s[3:4]) {
		t.Errorf("taken back of the other: %v", got)
	}
	tr.complete(2)
	if len(tr.byCheckpoint) > 0 {
		t.Errorf("left: %v", tr.byCheckpoint)
	}
}

func TestEnumeratorStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var splits []Split
		for i := range rapid.IntRange(0, 5).Draw(t, "splits") {
			splits = append(splits, Split{ID: rapid.String().Draw(t, "id"), Data: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, fmt.Sprint("data ", i))})
		}
		e, err := RestoreStatic(NewStatic(splits).Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(left(e)); got != fmt.Sprint(number(splits)) {
			t.Fatalf("got %s", got)
		}
	})
}

func FuzzDecodeCoordinatorState(f *testing.F) {
	c := NewCoordinator("s", 2, StaticSplits(testSplits(3)))
	f.Add(c.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c.decode(b)
		decodeNumbered(b)
	})
}
