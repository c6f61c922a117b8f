package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"benchrun/runtime/control"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/shuffle"
)

// batchJob is the job as a worker knows it.
type batchJob struct {
	id     string
	graph  graph.Graph
	values options.Values
	msg    control.BatchJob
	from   map[string]string // data set -> vertex that makes it
	scaled map[scaledVertex]*graph.Graph
	// producers are where partitions come from, by data set, as this master has
	// told. Of the goroutine that carries commands out.
	producers map[string][]batch.Producer
}

type scaledVertex struct {
	vertex      string
	parallelism int
}

func newBatchJob(m control.BatchJob) (*batchJob, error) {
	j := &batchJob{id: m.Job, graph: m.Graph, msg: m, from: map[string]string{}, scaled: map[scaledVertex]*graph.Graph{}, producers: map[string][]batch.Producer{}}
	values, errs := options.Parse(m.Options)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	j.values = values
	for i := range j.graph.Edges {
		e := &j.graph.Edges[i]
		j.from[e.ID] = j.graph.Vertices[e.From].ID
	}
	return j, nil
}

// with is the graph with the parallelism of a vertex as it was decided. Not safe
// for concurrent use.
func (j *batchJob) with(vertex, parallelism int) *graph.Graph {
	k := scaledVertex{j.graph.Vertices[vertex].ID, parallelism}
	g := j.scaled[k]
	if g == nil {
		x := j.graph
		x.Vertices = slices.Clone(x.Vertices)
		x.Vertices[vertex].Parallelism = parallelism
		g = &x
		j.scaled[k] = g
	}
	return g
}

func (j *batchJob) partition(p batch.PartitionID) shuffle.PartitionID {
	return shuffle.PartitionID{Job: j.id, Dataset: p.DataSet, Index: p.Producer.Subtask, Attempt: p.Producer.Attempt, Epoch: p.Producer.Epoch}
}

// name undoes partition.
func (j *batchJob) name(id shuffle.PartitionID) batch.PartitionID {
	return batch.PartitionID{DataSet: id.Dataset, Producer: joblog.AttemptID{
		TaskID: joblog.TaskID{Vertex: j.from[id.Dataset], Subtask: id.Index}, Epoch: id.Epoch, Attempt: id.Attempt,
	}}
}

// learn takes what the master says about producers. Attempts have parts of the
// list, so another one is made when one of its entries changes.
func (j *batchJob) learn(m control.Producers) {
	if m.First < 0 {
		return
	}
	list := j.producers[m.DataSet]
	if missing := m.First + len(m.List) - len(list); missing > 0 {
		list = append(list, make([]batch.Producer, missing)...)
	}
	part := list[m.First : m.First+len(m.List)]
	for i, p := range m.List {
		if part[i] != p && part[i] != (batch.Producer{}) {
			list = slices.Clone(list)
			part = list[m.First : m.First+len(m.List)]
			break
		}
	}
	copy(part, m.List)
	j.producers[m.DataSet] = list
}

// resolve finds the producers of what an attempt reads.
func (j *batchJob) resolve(in *batch.Input) error {
	list, first, last := j.producers[in.DataSet], in.Range.FirstPartition, in.Range.LastPartition
	if first < 0 || last < first-1 || last >= len(list) {
		return fmt.Errorf("it reads the partitions %d to %d of %s, of which the master has told %d", first, last, in.DataSet, len(list))
	}
	in.Producers = list[first : last+1 : last+1]
	for i := range in.Producers {
		if in.Producers[i] == (batch.Producer{}) {
			return fmt.Errorf("it reads partition %d of %s, whose producer the master has not told", first+i, in.DataSet)
		}
	}
	return nil
}

// carryOut implements kind.
func (w *Batch) carryOut(s *service, m control.Command) {
	switch m := m.(type) {
	case control.BatchJob:
		w.begin(s, m)
	case control.Peers:
		w.mu.Lock()
		w.mu.others.learn(m)
		w.mu.Unlock()
	case control.AskInventory:
		w.inventory(s, m.Epoch)
	case control.Settle:
		w.settle(m)
	case control.Producers:
		w.mu.Lock()
		j := w.mu.job
		w.mu.Unlock()
		if j != nil {
			j.learn(m)
		}
	case control.DeployAttempt:
		w.deploy(m)
	case control.CancelAttempt:
		w.cancelAttempt(m)
	case control.ReleasePartitions:
		w.release(m.Partitions)
	case control.Recorded:
		w.mu.Lock()
		for _, id := range m.Attempts {
			delete(w.mu.done, id)
		}
		w.mu.Unlock()
	case control.DropData:
		w.dropData(m.Partition)
	case control.ToAttempt:
		w.toAttempt(m)
	case control.JobOver:
		w.jobOver(s, m.Epoch)
	}
}

func (w *Batch) begin(s *service, m control.BatchJob) {
	j, err := newBatchJob(m)
	if err != nil {
		w.fail(err)
		return
	}
	s.conn.Send(control.InUse{Options: j.values.Map()})
	w.abandoning <- struct{}{}
	w.mu.Lock()
	w.mu.job = j
	name := w.mu.name
	w.mu.Unlock()
	<-w.abandoning
	w.noteName(name) // the master may have given it another one than it asked for
}

// inventory tells everything that the worker has of the job: finished partitions,
// running attempts, and those that have finished without anybody knowing. What
// happens to an attempt afterwards is told after it.
func (w *Batch) inventory(s *service, epoch int64) {
	w.mu.Lock()
	j := w.mu.job
	w.mu.Unlock()
	if j != nil {
		// The look at the disk takes its time, and attempts go on meanwhile. What they
		// finish is listed, too, and has just been written.
		if err := w.store.Sweep(j.id); err != nil {
			w.trouble(err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inv := control.Inventory{Epoch: epoch, Formerly: w.self.others(w.mu.name)}
	if j == nil {
		s.conn.Send(inv)
		return
	}
	for _, a := range w.mu.attempts {
		if x, ok := a.execution(); ok {
			x.Inputs = a.producers()
			inv.Running = append(inv.Running, x)
		}
	}
	for id, d := range w.mu.done {
		inv.Running = append(inv.Running, batch.Execution{
			Attempt: id, Parallelism: d.state.Parallelism, State: scheduling.TaskFinished, Result: d.state.Result, Inputs: d.inputs,
		})
	}
	slices.SortFunc(inv.Running, func(a, b batch.Execution) int { return compareAttempts(a.Attempt, b.Attempt) })
	for _, f := range w.store.List(j.id) {
		if _, known := j.from[f.ID.Dataset]; !known {
			continue
		}
		var records int64
		for _, n := range f.Records {
			records += n
		}
		inv.Partitions = append(inv.Partitions, batch.Held{Partition: j.name(f.ID), Bytes: f.Bytes})
		inv.Records = append(inv.Records, records)
	}
	s.conn.Send(inv)
}

// settle carries out what the master made of the inventory. Of an adopted attempt
// that has ended meanwhile the end is told again: the master did not know the
// attempt when it was told before.
func (w *Batch) settle(m control.Settle) {
	w.mu.Lock()
	w.mu.others.settled(m.Epoch)
	var cancel, adopt []*attempt
	for _, id := range m.Cancel {
		delete(w.mu.done, id)
		if a := w.mu.attempts[id]; a != nil {
			cancel = append(cancel, a)
		}
	}
	for _, id := range m.Adopt {
		a, done := w.mu.attempts[id], w.mu.done[id]
		switch {
		case a != nil:
			adopt = append(adopt, a)
		case w.mu.conn == nil:
		case done != nil:
			w.mu.conn.Send(done.state)
		default:
			w.mu.conn.Send(control.AttemptState{Attempt: id, State: scheduling.TaskFailed, Error: "it failed while there was no master"})
		}
	}
	w.mu.Unlock()
	for _, a := range cancel {
		a.cancel()
	}
	for _, a := range adopt {
		a.adopt()
	}
	w.release(m.Release)
}

func (w *Batch) release(ids []batch.PartitionID) {
	w.mu.Lock()
	j := w.mu.job
	w.mu.Unlock()
	if j == nil {
		return
	}
	list := make([]shuffle.PartitionID, len(ids))
	for i, id := range ids {
		list[i] = j.partition(id)
	}
	if err := w.store.Release(list...); err != nil {
		w.trouble(err)
	}
}

// dropData deletes a partition's data file; the store goes on believing in it.
func (w *Batch) dropData(id batch.PartitionID) {
	w.mu.Lock()
	j := w.mu.job
	w.mu.Unlock()
	if j != nil {
		if err := w.store.Drop(j.partition(id)); err != nil {
			w.trouble(err)
		}
	}
}

func (w *Batch) cancelAttempt(m control.CancelAttempt) {
	w.mu.Lock()
	a := w.mu.attempts[m.Attempt]
	if m.Failure == "" {
		delete(w.mu.done, m.Attempt) // it was too fast, and does not count
	}
	w.mu.Unlock()
	switch {
	case a == nil:
	case m.Failure != "":
		a.fail(fmt.Errorf("%s", m.Failure))
	default:
		a.cancel()
	}
}

func (w *Batch) toAttempt(m control.ToAttempt) {
	w.mu.Lock()
	a := w.mu.attempts[m.Attempt]
	w.mu.Unlock()
	if a != nil {
		a.coordinatorEvent(m)
	}
}

// leftover are the bytes of all files in the worker's folder, whoever has left them
// there, but for its own. No task runs.
func (w *Batch) leftover() (n int64, err error) {
	err = filepath.WalkDir(w.cfg.Dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !w.self.has(name) {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // removed while we walk
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("worker %s: what is left over: %w", w.cfg.Name, err)
	}
	return n, nil
}

func (w *Batch) jobOver(s *service, epoch int64) {
	s.done = true
	w.stopTasks()
	left, err := w.leftover()
	if err != nil {
		w.trouble(err)
		left = control.LeftoverUnknown
	}
	w.giveUp()
	s.conn.Send(control.Leftover{Epoch: epoch, Bytes: left})
}
