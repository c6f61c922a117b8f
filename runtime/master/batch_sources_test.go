package master

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/source"
)

// readers is a worker whose source tasks ask for their splits. It outlives masters.
// What a master tells it takes a while to be carried out, and its readers go on
// meanwhile.
type readers struct {
	t      *testing.T
	r      *rand.Rand
	index  int
	conn   *fakeWorker // nil: there is no master
	inbox  []command
	tasks  map[joblog.AttemptID]*reading
	done   map[joblog.AttemptID]*reading
	holds  []batch.Held
	read   map[joblog.AttemptID][]string // splits, by executions that have finished
	twice  bool                          // a task may have two executions
	early  int                           // requests of readers that had not registered with their master
	output string                        // folder of reports
}

type command struct {
	due time.Time
	m   any
}

// reading is the task of a source: as task.Task, it asks once, and again after it
// was answered or has registered anew.
type reading struct {
	id          joblog.AttemptID
	outputs     []batch.Output
	parallelism int
	splits      []string
	read        int
	last, asked bool
	registered  bool // with this master
	result      batch.Result
}

// play runs the worker for one master, until that is killed.
func (w *readers) play(p *pipe, killed <-chan struct{}) {
	w.conn = joinAs(w.t, p, control.Hello{Index: w.index, Slots: 16})
	defer func() {
		w.conn.Close(false)
		close(w.conn.got)
		for _, x := range w.tasks {
			x.registered = false
		}
		w.inbox = nil
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-killed:
			return
		case m := <-w.conn.got:
			w.inbox = append(w.inbox, command{time.Now().Add(time.Duration(w.r.IntN(8)) * time.Millisecond), m})
		case <-tick.C:
			for len(w.inbox) > 0 && !time.Now().Before(w.inbox[0].due) {
				m := w.inbox[0].m
				w.inbox = w.inbox[1:]
				w.carryOut(m)
			}
			w.readOn()
		}
	}
}

func (w *readers) carryOut(m any) {
	switch m := m.(type) {
	case control.AskInventory:
		inv := control.Inventory{Epoch: m.Epoch, Partitions: w.holds, Records: make([]int64, len(w.holds))}
		for _, x := range w.tasks {
			inv.Running = append(inv.Running, batch.Execution{Attempt: x.id, Parallelism: x.parallelism, State: scheduling.TaskRunning, Result: batch.Result{Splits: slices.Clone(x.splits)}})
		}
		for id, x := range w.done {
			inv.Running = append(inv.Running, batch.Execution{Attempt: id, Parallelism: x.parallelism, State: scheduling.TaskFinished, Result: x.result})
		}
		w.conn.Send(inv)
	case control.Settle:
		w.holds = slices.DeleteFunc(w.holds, func(h batch.Held) bool { return slices.Contains(m.Release, h.Partition) })
		for _, id := range m.Adopt {
			if x := w.done[id]; x != nil {
				w.conn.Send(control.AttemptState{Attempt: id, State: scheduling.TaskFinished, Result: x.result})
			} else if x := w.tasks[id]; x != nil {
				x.asked = false
				w.register(x)
			}
		}
		for _, id := range m.Cancel {
			if w.tasks[id] != nil && !w.twice {
				w.t.Errorf("%s is cancelled", id)
			}
			w.cancel(id)
		}
	case control.CancelAttempt:
		w.cancel(m.Attempt)
	case control.ReleasePartitions:
		w.holds = slices.DeleteFunc(w.holds, func(h batch.Held) bool { return slices.Contains(m.Partitions, h.Partition) })
	case control.DeployAttempt:
		x := &reading{id: m.Attempt, outputs: m.Outputs, parallelism: m.Parallelism}
		w.conn.Send(control.AttemptState{Attempt: m.Attempt, State: scheduling.TaskRunning})
		if m.Attempt.Vertex == "a" {
			w.tasks[x.id] = x
			w.register(x)
			break
		}
		w.finish(x)
	case control.ToAttempt:
		e, err := source.DecodeCoordinatorEvent(m.Payload)
		if err != nil {
			w.t.Error(err)
		}
		if x := w.tasks[m.Attempt]; x != nil {
			x.splits, x.asked, x.last = append(x.splits, m.Splits...), false, x.last || e.NoMore
		}
	case control.Recorded:
		for _, id := range m.Attempts {
			delete(w.done, id)
		}
	case control.JobOver:
		w.conn.Send(control.Leftover{Epoch: m.Epoch, Bytes: int64(len(w.holds))})
	}
}

// cancel gives up an execution whose task has another one.
func (w *readers) cancel(id joblog.AttemptID) {
	if w.tasks[id] != nil {
		delete(w.tasks, id)
		w.conn.Send(control.AttemptState{Attempt: id, State: scheduling.TaskCanceled})
	}
	delete(w.done, id)
}

func (w *readers) tell(x *reading, e source.ReaderEvent) {
	w.conn.Send(control.FromAttempt{Attempt: x.id, Payload: source.EncodeReaderEvent(e)})
}

func (w *readers) register(x *reading) {
	x.registered = true
	w.tell(x, source.ReaderEvent{Register: true})
}

// readOn lets each reader end its split, or ask for one.
func (w *readers) readOn() {
	for _, id := range w.running() {
		x := w.tasks[id]
		switch {
		case x.read < len(x.splits):
			if w.r.IntN(3) == 0 {
				x.read++
			}
		case x.last:
			w.finish(x)
		case !x.asked:
			if !x.registered {
				w.early++
			}
			x.asked = true
			w.tell(x, source.ReaderEvent{Request: true})
		}
	}
}

func (w *readers) running() (ids []joblog.AttemptID) {
	for id := range w.tasks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b joblog.AttemptID) int { return a.Subtask - b.Subtask })
	return ids
}

func (w *readers) finish(x *reading) {
	if err := control.WriteReports(control.ReportsOf(w.output, "run"), x.id, nil); err != nil {
		w.t.Error(err)
	}
	r := batch.Result{Splits: x.splits}
	if x.id.Vertex == "a" {
		w.read[x.id] = slices.Sorted(slices.Values(x.splits))
	}
	for _, o := range x.outputs {
		d := joblog.Result{DataSet: o.DataSet, Bytes: make([]int64, o.Subpartitions)}
		r.Results = append(r.Results, d)
		w.holds = append(w.holds, batch.Held{Partition: batch.PartitionID{DataSet: o.DataSet, Producer: x.id}, Bytes: d.Bytes})
	}
	delete(w.tasks, x.id)
	w.done[x.id], x.result = x, r
	w.conn.Send(control.AttemptState{Attempt: x.id, State: scheduling.TaskFinished, Result: r})
}

// Masters die one after the other while sixteen readers work on short splits, and
// ask the next one before they have heard that they are adopted. The job ends well
// and each split is read once; with odd seeds slow tasks are executed twice. Seeds are
// in the names.
//
// Fails if what an adopted reader has is looked up before the coordinator is reset: a
// second execution reads nothing.
// Fails if readerEvent takes a request of a reader that has not registered: the job
// fails. Fails if adopted does not take what a reader has for told: splits come twice.
func TestReadersThatAskBeforeTheyRegister(t *testing.T) {
	early := 0
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { early += askBeforeRegistering(t, rand.New(rand.NewPCG(seed, 5)), seed%2 == 1) })
		})
	}
	if early < 100 {
		t.Errorf("readers asked too early %d times: this shows nothing", early)
	}
}

func askBeforeRegistering(t *testing.T, r *rand.Rand, speculative bool) (early int) {
	const splits = 200
	set := map[string]any{options.JobEventFlushInterval.Key(): "20 ms"}
	if speculative {
		set["execution.batch.speculative.enabled"] = true
		set["slow-task-detector.check-interval"], set["slow-task-detector.execution-time.baseline-lower-bound"] = "1 ms", "1 ms"
		set["slow-task-detector.execution-time.baseline-ratio"], set["slow-task-detector.execution-time.baseline-multiplier"] = 0.1, 1.0
	}
	j := newBatchJobOf(t, graph.Job{
		Nodes: []graph.Node{
			{ID: "a", Operator: source.Lines, Params: fmt.Appendf(nil, `{"Files":[%s"last"]}`, strings.Repeat(`"text",`, splits-1)), Parallelism: 16, Source: true},
			{ID: "b", Operator: "discard", Parallelism: 2},
		},
		Links: []graph.Link{{From: "a", To: "b", Partitioner: graph.Hash}},
	}, set)
	var workers []*readers
	for i := range 2 {
		workers = append(workers, &readers{
			t: t, r: rand.New(rand.NewPCG(r.Uint64(), 5)), index: i, output: j.output, twice: speculative,
			tasks: map[joblog.AttemptID]*reading{}, read: map[joblog.AttemptID][]string{}, done: map[joblog.AttemptID]*reading{},
		})
	}
	for kills := 8; ; kills-- {
		m, network := j.master()
		m.Begin(0, len(workers), time.Minute)
		killed := make(chan struct{})
		var working sync.WaitGroup
		for _, w := range workers {
			working.Go(func() { w.play(network, killed) })
		}
		lives := time.Hour
		if kills > 0 {
			lives = time.Duration(5+r.IntN(30)) * time.Millisecond
		}
		ended := false
		select {
		case <-m.Done():
			ended = true
		case <-time.After(lives):
		}
		m.Kill()
		close(killed)
		working.Wait()
		if ended {
			if err := m.Err(); err != nil {
				t.Error(err)
			}
			break
		}
		if kills == 0 {
			t.Fatal("the job stands still")
		}
	}
	read, tasks := map[string]int{}, map[int][]string{}
	for _, w := range workers {
		early += w.early
		for id, splits := range w.read {
			other, twice := tasks[id.Subtask]
			if twice && !slices.Equal(other, splits) {
				t.Errorf("executions of %s have read %v and %v", id.TaskID, other, splits)
			}
			tasks[id.Subtask] = splits
		}
	}
	for _, splits := range tasks {
		for _, split := range splits {
			read[split]++
		}
	}
	for split, n := range read {
		if n != 1 {
			t.Errorf("split %s was read %d times", split, n)
		}
	}
	if len(read) != splits {
		t.Errorf("%d of %d splits were read", len(read), splits)
	}
	return early
}
