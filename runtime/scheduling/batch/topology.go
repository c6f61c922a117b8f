package batch

import (
	"cmp"
	"slices"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
)

// vertex is a vertex of the running job. It has no tasks before it is
// initialised.
type vertex struct {
	Vertex
	index       int
	parallelism int
	tasks       []*task
	in, out     []*edge
	finished    int
	restarting  int             // tasks that are to run again
	inferring   bool            // a source that was asked for its parallelism
	durations   []time.Duration // of finished attempts
	ledger      *Ledger
}

// edge is a data set of the running job.
type edge struct {
	Edge
	from, to      *vertex
	output        int // position in from.out
	subpartitions int // once the producer is initialised
	ranges        []joblog.InputRange
	consumers     []span // of a pointwise edge, by partition
	available     int    // partitions that are there
	producers     []Producer
}

// task is a subtask.
type task struct {
	v        *vertex
	subtask  int
	state    taskState
	next     int        // number of the next attempt
	live     []*attempt // that have not ended
	region   []*task    // with which it is connected by pipelined edges; nil: it alone
	restart  *restart
	queued   bool
	setbacks setback // since it finished last

	// Of a finished task.
	winner joblog.VertexFinished
	since  uint64    // in which place it finished, among all: what it has read finished before
	lost   AttemptID // whose output was lost last
	parts  []part    // by output
}

func (t *task) id() TaskID { return TaskID{Vertex: t.v.ID, Subtask: t.subtask} }

// taskState is where a task stands, whatever its attempts do.
type taskState uint8

const (
	created taskState = iota
	running
	finished
)

// attempt is an execution that has not ended.
type attempt struct {
	id        AttemptID
	t         *task
	worker    Worker
	state     scheduling.TaskState
	since     time.Duration
	canceling bool
}

// part is a partition of a finished task.
type part struct {
	there  bool
	worker Worker
	bytes  []int64
}

// high is the highest parallelism that may be decided for a vertex.
func (v *vertex) high(c ParallelismConfig) int {
	if v.MaxParallelism > 0 {
		return min(v.MaxParallelism, c.Max)
	}
	return c.Max
}

// group is the tasks that start, fail and restart together with one.
func (t *task) group() []*task {
	if t.region != nil {
		return t.region
	}
	return []*task{t}
}

func (t *task) partition(output int) PartitionID {
	return PartitionID{DataSet: t.v.out[output].DataSet, Producer: t.winner.Attempt}
}

func byPlace(a, b *task) int {
	return cmp.Or(cmp.Compare(a.v.index, b.v.index), cmp.Compare(a.subtask, b.subtask))
}

// sorted returns the tasks of a set in order.
func sorted(set map[*task]bool) []*task {
	out := make([]*task, 0, len(set))
	for t := range set {
		out = append(out, t)
	}
	slices.SortFunc(out, byPlace)
	return out
}

// readers are the subtasks that read a partition of an edge.
func (e *edge) readers(partition int) span {
	if e.consumers != nil {
		return e.consumers[partition]
	}
	return span{0, e.to.parallelism - 1}
}

// initializable tells whether the parallelism of a vertex can be settled.
func (v *vertex) initializable() bool {
	for _, e := range v.in {
		if e.from.parallelism == 0 || v.Parallelism == 0 && e.from.finished < e.from.parallelism {
			return false
		}
	}
	return true
}

// initialize makes the tasks of a vertex. ranges come from a log, else nil.
func (v *vertex) initialize(c ParallelismConfig, parallelism int, spans []span, ranges map[string][]joblog.InputRange) {
	v.parallelism = parallelism
	v.tasks = make([]*task, parallelism)
	for i := range v.tasks {
		v.tasks[i] = &task{v: v, subtask: i, parts: make([]part, len(v.out))}
	}
	for _, e := range v.out {
		e.subpartitions = subpartitions(e.Edge, parallelism, e.to.Parallelism, e.to.high(c))
		e.producers = make([]Producer, parallelism)
	}
	for _, e := range v.in {
		if e.ranges = ranges[e.DataSet]; e.ranges == nil {
			e.ranges = inputs(e.Edge, e.from.parallelism, e.subpartitions, parallelism, spans)
		}
		if e.Pointwise && !e.Broadcast {
			e.consumers = make([]span, e.from.parallelism)
			for i := range e.consumers {
				e.consumers[i] = span{0, -1}
			}
			for i, r := range e.ranges {
				for p := r.FirstPartition; p <= r.LastPartition; p++ {
					if s := &e.consumers[p]; s.last < s.first {
						*s = span{i, i}
					} else {
						s.last = i
					}
				}
			}
		}
		if e.Pipelined {
			for i, t := range v.tasks {
				r := e.ranges[i]
				for p := r.FirstPartition; p <= r.LastPartition; p++ {
					join(e.from.tasks[p], t)
				}
			}
		}
	}
}

// join merges the regions of two tasks.
func join(a, b *task) {
	if a.region != nil && slices.Contains(a.region, b) {
		return
	}
	all := slices.Concat(a.group(), b.group())
	slices.SortFunc(all, byPlace)
	for _, t := range all {
		t.region = all
	}
}

// consumable tells whether everything that a task reads from outside its region
// is there, and its region is complete.
func (t *task) consumable() bool {
	for _, e := range t.v.out {
		if e.Pipelined && e.to.parallelism == 0 {
			return false
		}
	}
	for _, e := range t.v.in {
		if e.Pipelined || e.available == e.from.parallelism && e.from.restarting == 0 {
			continue
		}
		r := e.ranges[t.subtask]
		for p := r.FirstPartition; p <= r.LastPartition; p++ {
			if from := e.from.tasks[p]; !from.parts[e.output].there || from.restart != nil {
				return false
			}
		}
	}
	return true
}

// inputsOf describes what an attempt reads.
func (t *task) inputsOf() []Input {
	var out []Input
	for _, e := range t.v.in {
		r := e.ranges[t.subtask]
		out = append(out, Input{DataSet: e.DataSet, Range: r, Pipelined: e.Pipelined,
			Producers: e.producers[r.FirstPartition : r.LastPartition+1 : r.LastPartition+1]})
	}
	return out
}

func (t *task) outputs() []Output {
	var out []Output
	for _, e := range t.v.out {
		out = append(out, Output{DataSet: e.DataSet, Subpartitions: e.subpartitions, Pipelined: e.Pipelined, Broadcast: e.Broadcast})
	}
	return out
}

// setProducer notes where a partition comes from. Deployed attempts share the
// list, so it is copied when it changes after it has been complete.
func (e *edge) setProducer(partition int, p Producer) {
	if e.producers[partition] == p {
		return
	}
	if e.producers[partition] != (Producer{}) {
		e.producers = slices.Clone(e.producers)
	}
	e.producers[partition] = p
}
