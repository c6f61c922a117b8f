package master

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// batchJob is a source of four splits on four subtasks and two tasks that read all
// of it, with what outlives the masters of the job.
type batchJob struct {
	t      *testing.T
	graph  *graph.Graph
	values options.Values
	folder *joblog.Dir
	output string
	log    *timeline.Log
	epoch  int64
	result keptResult
	leads  func(epoch int64) error // nil: all do
	writes func(joblog.AttemptID) (reports []control.Report, done bool)
}

// keptResult is where the end of the job is kept; it fails as long as it is told to.
type keptResult struct {
	kept  *joblog.JobFinished
	fails func() error
}

func (r *keptResult) Read() (*joblog.JobFinished, error) { return r.kept, nil }

func (r *keptResult) Write(x joblog.JobFinished) error {
	if r.fails != nil {
		if err := r.fails(); err != nil {
			return err
		}
	}
	r.kept = &x
	return nil
}

func newBatchJob(t *testing.T, more map[string]any) *batchJob {
	t.Helper()
	return newBatchJobTo(t, "discard", more)
}

// newBatchJobTo is one with another sink.
func newBatchJobTo(t *testing.T, sink string, more map[string]any) *batchJob {
	t.Helper()
	return newBatchJobOf(t, graph.Job{
		Nodes: []graph.Node{{ID: "a", Operator: "sequence", Params: []byte(`{"records":4,"splits":4}`), Parallelism: 4, Source: true}, {ID: "b", Operator: sink, Parallelism: 2}},
		Links: []graph.Link{{From: "a", To: "b", Partitioner: graph.Hash}},
	}, more)
}

// newBatchJobOf is one of another shape.
func newBatchJobOf(t *testing.T, shape graph.Job, more map[string]any) *batchJob {
	t.Helper()
	g, err := graph.Build(shape, graph.Config{Batch: true})
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]any{options.BatchJobRecovery.Key(): true, options.HeartbeatTimeout.Key(): "1h"}
	for k, v := range more {
		set[k] = v
	}
	values, errs := options.Parse(set)
	if errs != nil {
		t.Fatal(errs)
	}
	folder, err := joblog.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &batchJob{t: t, graph: g, values: values, folder: folder, output: t.TempDir(), log: timeline.New()}
}

// master starts the next one.
func (j *batchJob) master() (*Batch, *pipe) {
	j.t.Helper()
	j.epoch++
	network := newPipe()
	epoch := j.epoch
	m, err := NewBatch(BatchConfig{
		Run: "run", Leads: func() error {
			if j.leads == nil {
				return nil
			}
			return j.leads(epoch)
		},
		Graph: j.graph, Values: j.values, Job: "job", Timeline: j.log, Origin: j.log.Origin(), Transport: network, Epoch: j.epoch,
		Log: j.folder, Result: &j.result, OutputDir: j.output,
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return m, network
}

// events are those of some kinds, as far as a test looks.
func (j *batchJob) events(kinds ...timeline.Kind) (found []string) {
	for _, e := range j.log.Events() {
		if slices.Contains(kinds, e.Kind) {
			found = append(found, strings.TrimSpace(string(e.Kind)+" "+e.Detail))
		}
	}
	return found
}

// states are these of the job's, with their details, in order.
func (j *batchJob) states(which ...string) (found []string) {
	for _, e := range j.log.Events() {
		if e.Kind == timeline.JobState && slices.Contains(which, e.State) {
			found = append(found, e.State+" "+e.Detail)
		}
	}
	return found
}

// actor is a worker that does nothing and says that it has done all.
type actor struct {
	*fakeWorker
	holds   []batch.Held
	splits  map[joblog.AttemptID][]string
	outputs map[joblog.AttemptID][]batch.Output
	output  string // folder of its reports
	writes  func(joblog.AttemptID) (reports []control.Report, done bool)
	waits   string                           // for the tasks of this vertex: they never finish
	looked  <-chan time.Time                 // for what it has, before it answers; nil: at once
	left    func() (bytes int64, tells bool) // when the job is over; nil: what it holds
	over    chan struct{}
}

// act joins a master. What another actor held is there.
func (j *batchJob) act(p *pipe, before *actor, waits string) *actor {
	w := j.newActor(p, waits)
	if before != nil {
		w.holds = before.holds
	}
	go w.play()
	return w
}

// newActor is one that has yet to play.
func (j *batchJob) newActor(p *pipe, waits string) *actor { return j.actorNamed(p, 0, waits) }

// actorNamed is one that comes with an index.
func (j *batchJob) actorNamed(p *pipe, index int, waits string) *actor {
	return &actor{
		fakeWorker: joinAs(j.t, p, control.Hello{Index: index, Slots: 2}), output: j.output, writes: j.writes, splits: map[joblog.AttemptID][]string{},
		outputs: map[joblog.AttemptID][]batch.Output{}, waits: waits, over: make(chan struct{}),
	}
}

// leave ends it.
func (w *actor) leave() {
	w.Close(false)
	close(w.got)
	<-w.over
}

func (w *actor) play() {
	defer close(w.over)
	for m := range w.got {
		switch m := m.(type) {
		case control.AskInventory:
			if w.looked != nil {
				<-w.looked
			}
			w.Send(control.Inventory{Epoch: m.Epoch, Partitions: w.holds, Records: make([]int64, len(w.holds))})
		case control.ReleasePartitions:
			w.release(m.Partitions)
		case control.Settle:
			w.release(m.Release)
		case control.DeployAttempt:
			w.Send(control.AttemptState{Attempt: m.Attempt, State: scheduling.TaskRunning})
			w.outputs[m.Attempt] = m.Outputs
			if m.Attempt.Vertex == "a" {
				w.Send(control.FromAttempt{Attempt: m.Attempt, Payload: source.EncodeReaderEvent(source.ReaderEvent{Register: true})})
				continue
			}
			w.finish(m.Attempt)
		case control.ToAttempt:
			w.splits[m.Attempt] = append(w.splits[m.Attempt], m.Splits...)
			w.finish(m.Attempt)
		case control.JobOver:
			bytes, tells := int64(len(w.holds)), true
			if w.left != nil {
				bytes, tells = w.left()
			}
			if tells {
				w.Send(control.Leftover{Epoch: m.Epoch, Bytes: bytes})
			}
		}
	}
}

func (w *actor) release(ids []batch.PartitionID) {
	w.holds = slices.DeleteFunc(w.holds, func(h batch.Held) bool { return slices.Contains(ids, h.Partition) })
}

func (w *actor) finish(id joblog.AttemptID) {
	if id.Vertex == w.waits {
		return
	}
	var reports []control.Report
	if w.writes != nil {
		all, done := w.writes(id)
		if !done {
			return
		}
		reports = all
	}
	r := batch.Result{Splits: w.splits[id]}
	for _, o := range w.outputs[id] {
		r.Results = append(r.Results, joblog.Result{DataSet: o.DataSet, Bytes: make([]int64, o.Subpartitions)})
		w.holds = append(w.holds, batch.Held{Partition: batch.PartitionID{DataSet: o.DataSet, Producer: id}, Bytes: make([]int64, o.Subpartitions)})
	}
	if err := control.WriteReports(control.ReportsOf(w.output, "run"), id, reports); err != nil {
		w.Send(control.AttemptState{Attempt: id, State: scheduling.TaskFailed, Error: err.Error()})
		return
	}
	w.Send(control.AttemptState{Attempt: id, State: scheduling.TaskFinished, Result: r})
}

// The end of a job does not wait for the interval in which the log is flushed,
// whether one master ran it or a second one found the first vertex complete.
// Fails if step does not hurry, or only if all vertices end under one master.
func TestBatchEndDoesNotWaitForTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, map[string]any{options.JobEventFlushInterval.Key(): "1h"})
		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "b")
		time.Sleep(10 * time.Second) // the sources have finished
		if err := m.log.store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.Kill()
		w.leave()

		begin := time.Now()
		m, network = j.master()
		m.Begin(0, 1, time.Minute)
		w = j.act(network, w, "")
		select {
		case <-m.Done():
			if err := m.Err(); err != nil {
				t.Error(err)
			}
		case <-time.After(time.Hour):
			t.Error("the job has not ended")
		}
		if d := time.Since(begin); d > time.Second {
			t.Errorf("the second master took %v", d)
		}
		if kept := j.events(timeline.PartitionKept); len(kept) != 4 {
			t.Errorf("kept %d partitions", len(kept))
		}
		m.Close()
		w.leave()
	})
}

// A disk that fails for a while, under the events and under the result of the
// job: the timeline has the beginning and the end of each trouble once, however
// often it was tried; the job ends when it is over, and not before.
// Fails if keepResult does not insist, if trouble tells each attempt, or if the
// store does not try again.
func TestBatchDiskFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, nil)
		begin := time.Now()
		full := errors.New("no space left")
		until := func(d time.Duration) func() error {
			return func() error {
				if time.Since(begin) < d {
					return full
				}
				return nil
			}
		}
		j.result.fails = until(25 * time.Second)
		m, network := j.master()
		point, err := failpoint.Lookup("joblog/flush")
		if err != nil {
			t.Fatal(err)
		}
		defer point.Arm(func(int, string) error { return until(10 * time.Second)() })()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if got := j.states(timeline.Unprotected, timeline.Protected); !slices.Equal(got, []string{"UNPROTECTED events"}) {
			t.Errorf("while the log fails: %q", got)
		}
		if done := j.events(timeline.TaskState); len(done) == 0 {
			t.Error("the job stands still")
		}
		<-m.Done()
		if d := time.Since(begin).Round(time.Second); d < 25*time.Second || d > 27*time.Second || m.Err() != nil {
			t.Errorf("ended after %v: %v", d, m.Err())
		}
		want := []string{"UNPROTECTED events", "PROTECTED events", "UNPROTECTED result", "PROTECTED result"}
		if got := j.states(timeline.Unprotected, timeline.Protected); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if j.result.kept == nil {
			t.Error("the result is not kept")
		}
		m.Close()
		w.leave()
	})
}

// A disk that does not come back, under the events or under the result: the job
// ends all the same, after a limit, and the timeline says that nobody could go on
// with it. The log stays if the result could not be kept.
//
// Fails if recorded has no limit; if an error of the result or of the log's end
// is one of the job; if the log is cleared.
func TestBatchDiskStaysAway(t *testing.T) {
	full := errors.New("no space left")
	for name, test := range map[string]struct {
		result error
		events bool
		limit  time.Duration
		want   []string
		kept   bool
	}{
		"result": {full, false, insistLimit, []string{"UNPROTECTED result"}, false},
		"events": {nil, true, 30 * time.Second, []string{"UNPROTECTED events", "UNPROTECTED end"}, true},
		"both":   {full, true, 30*time.Second + insistLimit, []string{"UNPROTECTED events", "UNPROTECTED end", "UNPROTECTED result"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newBatchJob(t, nil)
				j.result.fails = func() error { return test.result }
				m, network := j.master()
				if test.events {
					point, err := failpoint.Lookup("joblog/flush")
					if err != nil {
						t.Fatal(err)
					}
					defer point.Arm(func(int, string) error { return full })()
				}
				m.Begin(0, 1, time.Minute)
				w := j.act(network, nil, "")
				begin := time.Now()
				<-m.Done()
				if d := time.Since(begin); d < test.limit || d > test.limit+15*time.Second || m.Err() != nil {
					t.Errorf("ended after %v: %v", d, m.Err())
				}
				if got := j.states(timeline.Unprotected, timeline.Protected); !slices.Equal(got, test.want) {
					t.Errorf("got  %q\nwant %q", got, test.want)
				}
				if (j.result.kept != nil) != test.kept {
					t.Errorf("the result is kept: %v", j.result.kept)
				}
				names, err := j.folder.Names()
				if err != nil || len(names) == 0 && !test.kept || len(names) > 20 {
					t.Errorf("files of the log: %q, %v", names, err)
				}
				m.Close()
				w.leave()
			})
		})
	}
}

// A worker joins on the folder of one that died while the job ends, and the end is
// decided before it could say what it has, or carried out, too. It is told to let go
// of that before it is asked what is left over.
//
// Fails if terminal does not wait for inventories that were asked for, if what they
// name is not released, or only when all have been told of the end.
func TestBatchEndsBeforeAnInventory(t *testing.T) {
	for name, looks := range map[string]time.Duration{"carried out": 8 * time.Second, "decided": 2 * time.Second} {
		t.Run(name, func(t *testing.T) { endsBeforeAnInventory(t, looks) })
	}
}

func endsBeforeAnInventory(t *testing.T, looks time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, nil)
		begin := time.Now()
		j.result.fails = func() error { // so the end is decided, and not carried out
			if time.Since(begin) < 4*time.Second {
				return errors.New("no space left")
			}
			return nil
		}
		committing := make(chan struct{})
		var once sync.Once
		defer point(t, "reports/rename").Arm(func(int, string) error {
			once.Do(func() {
				close(committing)
				time.Sleep(time.Second)
			})
			return nil
		})()
		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		<-committing
		heir := j.newActor(network, "")
		heir.looked = time.After(looks)
		heir.holds = []batch.Held{{Partition: batch.PartitionID{DataSet: "a->b#0", Producer: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "a"}, Epoch: 1}}, Bytes: make([]int64, 2)}}
		go heir.play()
		<-m.Done()
		if err := m.Err(); err != nil {
			t.Error(err)
		}
		if f := m.Figures(); !f.Ended || f.Leftover != 0 {
			t.Errorf("%d bytes are left over, ended %v", f.Leftover, f.Ended)
		}
		m.Close()
		w.leave()
		heir.leave()
	})
}

// The log says that the job is over, and nothing else does. The workers that come
// later than the log is read are told, and say what they had left.
//
// Fails if replay does not wait for them, or for ever for one that does not come, or
// if what they have said meanwhile is not let go of.
func TestBatchThatIsOverInItsLogWaitsForItsWorkers(t *testing.T) {
	for _, come := range []int{2, 1} {
		synctest.Test(t, func(t *testing.T) {
			j := newBatchJob(t, nil)
			s, err := joblog.OpenHardened(j.folder, joblog.Config{Job: "job"})
			if err != nil {
				t.Fatal(err)
			}
			s.Append(joblog.Entry{Event: joblog.JobFinished{Status: "FINISHED"}})
			if err := s.Close(false); err != nil {
				t.Fatal(err)
			}
			m, network := j.master()
			begin := time.Now()
			m.Begin(0, 2, time.Minute)
			synctest.Wait()
			var all []*actor
			for i := range come {
				w := j.actorNamed(network, i, "")
				w.holds = []batch.Held{{Partition: batch.PartitionID{DataSet: "a->b#0", Producer: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "a", Subtask: i}}}}}
				all = append(all, w)
				go w.play()
			}
			<-m.Done()
			if err := m.Err(); err != nil {
				t.Error(err)
			}
			if d := time.Since(begin); (come == 1) != (d == time.Minute) {
				t.Errorf("%d of 2 came: it was over after %v", come, d)
			}
			if f := m.Figures(); !f.Ended || f.Leftover != 0 || len(f.Heard) != come {
				t.Errorf("%d of 2 came: figures %+v", come, f)
			}
			m.Close()
			for _, w := range all {
				w.leave()
			}
		})
	}
}

// Of three workers one says what it had left, one cannot tell, and one does not answer:
// the end comes all the same, and it is known of whom the figure is.
//
// Fails if one that is not waited for any longer has been heard, or one that cannot
// tell.
func TestBatchLeftoversOfThoseHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, nil)
		m, network := j.master()
		var all []*actor
		for i, left := range []func() (int64, bool){
			func() (int64, bool) { return 7, true },
			func() (int64, bool) { return control.LeftoverUnknown, true },
			func() (int64, bool) { return 0, false },
		} {
			w := j.actorNamed(network, i, "")
			w.left = left
			all = append(all, w)
			go w.play()
		}
		m.Begin(0, 3, time.Minute)
		begin := time.Now()
		<-m.Done()
		if d := time.Since(begin); d < leftoverLimit || d > leftoverLimit+time.Second {
			t.Errorf("ended after %v", d)
		}
		if f := m.Figures(); !f.Ended || f.Leftover != 7 || !slices.Equal(f.Heard, []int{0}) {
			t.Errorf("figures %+v", f)
		}
		m.Close()
		for _, w := range all {
			w.leave()
		}
	})
}
