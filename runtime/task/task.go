package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/record"
	"benchrun/runtime/shuffle"
	"benchrun/runtime/source"
	"benchrun/runtime/state"
)

// errCanceled ends the loop of a task that was told to stop.
var errCanceled = errors.New("task was cancelled")

// Task is one execution attempt of a subtask.
type Task struct {
	dep      Deployment
	env      Env
	listener Listener
	v        *graph.Vertex
	subject  string // for fault points

	mail     *mailbox
	ctx      context.Context // ends when the task is cancelled or over
	cancel   context.CancelCauseFunc
	stop     <-chan struct{} // of ctx
	done     chan struct{}
	openOnce sync.Once
	opened   chan struct{} // closed when the restored files are no longer needed

	parts   []*exchange.Partition
	writers []*shuffle.Writer // batch
	outs    []operator.Output
	inputs  []*input
	chain   *chain
	reader  source.Reader
	handler *barriers
	valve   *valve

	cur        current
	more       func() bool   // moreRecords, made once
	recScratch record.Record // outlives each call, so that records need no allocation
	dataEnded  int           // channels that have said so
	turn       int           // input to look at first
	ticked     atomic.Bool
	deadline   time.Time // earliest of what the loop waits for besides wake-ups
	timer      *time.Timer

	state     State
	ended     bool  // end of data was passed on
	finishing bool  // nothing is left to wait for
	firstLast int64 // first checkpoint taken after the end of data
	holding   int64 // synchronous savepoint that is waited for
	paused    bool  // a source that waits for its first checkpoint
	requested bool  // a split was asked for and has not come
	answered  bool  // the split enumerator has said something to this attempt
	idleSent  bool
	lastMark  time.Time
	snapshots snapshots
	drain     drainReport
	timers    []alarm
	sink      operator.Counter // of a sink that has got no record yet

	finished []shuffle.Finished // batch: what the task leaves

	emitted  atomic.Int64 // records that left the source
	taken    atomic.Int64 // splits that its reader got
	consumed atomic.Int64 // records that were read
	bytesIn  atomic.Int64
	read     [2]int64     // records, bytes: of the loop, which publishes them now and then
	arrived  atomic.Int64 // records that reached a sink
	lag      atomic.Int64 // ns; -1 without a rate
}

// alarm is a time at which a checkpoint's alignment ends.
type alarm struct {
	at         time.Time
	checkpoint int64
	output     bool
}

// New makes the task's partitions, so that others can find them, and its
// gates. Run does the rest.
func New(dep Deployment, env Env, l Listener) (*Task, error) {
	t := &Task{
		dep: dep, env: env, listener: l, v: &dep.Graph.Vertices[dep.Vertex], mail: newMailbox(), state: Created,
		subject: fmt.Sprintf("%s/%d/%d", dep.ID.Vertex, dep.Subtask, dep.Attempt),
		done:    make(chan struct{}), opened: make(chan struct{}), timer: time.NewTimer(time.Hour),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.stop = t.ctx.Done()
	t.more = t.moreRecords
	t.lag.Store(-1)
	t.snapshots.t = t
	if err := t.makeOutputs(); err != nil {
		t.release()
		return nil, err
	}
	if err := t.makeInputs(); err != nil {
		t.release()
		return nil, err
	}
	return t, nil
}

// ID names the attempt.
func (t *Task) ID() ID { return t.dep.ID }

// Vertex returns the vertex that the task runs.
func (t *Task) Vertex() *graph.Vertex { return t.v }

// Emitted is the number of records that left a source in this attempt.
func (t *Task) Emitted() int64 { return t.emitted.Load() }

// Arrived is the number of records that reached a sink in this attempt.
func (t *Task) Arrived() int64 { return t.arrived.Load() }

// Lag is how late a rated source is; ok is false for others.
func (t *Task) Lag() (time.Duration, bool) {
	l := t.lag.Load()
	return time.Duration(l), l >= 0
}

// Drained is the share of the restored in-flight bytes that was processed.
func (t *Task) Drained() (done, total int64) { return t.drain.done.Load(), t.drain.total.Load() }

// QueuedBytes is the number of record bytes that wait in the task's channels.
func (t *Task) QueuedBytes() (n int64) {
	for _, p := range t.parts {
		n += p.QueuedBytes()
	}
	for _, in := range t.inputs {
		n += in.gate.QueuedBytes()
	}
	return n
}

// PartitionKey names a result partition on its worker.
func PartitionKey(execution int, edge string, subtask int) string {
	return fmt.Sprintf("%d/%s/%d", execution, edge, subtask)
}

func (t *Task) makeOutputs() error {
	if t.dep.Batch != nil {
		return t.makeBlockingOutputs()
	}
	for _, e := range t.v.Outputs {
		edge := &t.dep.Graph.Edges[e]
		down := &t.dep.Graph.Vertices[edge.To]
		first, last := graph.Targets(edge.Partitioner, t.v.Parallelism, down.Parallelism, t.dep.Subtask)
		n := last - first + 1
		lo, hi := t.env.Network.PartitionBuffers(n)
		p, err := exchange.NewPartition(t.env.Global, exchange.PartitionConfig{
			Key: PartitionKey(t.dep.Execution, edge.ID, t.dep.Subtask), Subpartitions: n, MinBuffers: lo, MaxBuffers: hi,
			MaxPerSub: t.env.Network.MaxPerSub, Overdraft: t.env.Network.Overdraft, Wake: t.mail.signal, Stop: t.stop,
		})
		if err != nil {
			return err
		}
		t.parts = append(t.parts, p)
		t.outs = append(t.outs, &partitionOutput{
			p: p, n: n, broadcast: edge.Partitioner == graph.Broadcast,
			sel: exchange.NewSelector(edge.Partitioner, n, down.MaxParallelism, t.dep.Subtask),
		})
		t.env.Server.Register(p)
	}
	return nil
}

// Run is the task's goroutine. It returns when the task is over and everything
// it held is released, except partitions of a finished task, which stay for
// their consumers until Release.
func (t *Task) Run() {
	defer close(t.done)
	err := t.run()
	t.restored()
	cause := context.Cause(t.ctx)
	t.cancel(errCanceled) // ends what works for the task in the background
	t.mail.close()
	t.snapshots.abortAll()
	for _, in := range t.inputs {
		in.close()
	}
	var closeErr error
	if t.chain != nil {
		for _, c := range t.chain.ops {
			if c.op != nil {
				closeErr = errors.Join(closeErr, c.op.Close())
			}
		}
	}
	if c, ok := t.reader.(interface{ Close() error }); ok {
		closeErr = errors.Join(closeErr, c.Close())
	}
	t.timer.Stop()
	switch {
	case err == nil && closeErr == nil:
		t.setState(Finished, nil)
		return
	case errors.Is(cause, errCanceled):
		t.Release()
		t.setState(Canceled, nil)
	default:
		t.Release()
		if cause != nil {
			err = cause // the loop only saw that it was stopped
		}
		t.setState(Failed, fmt.Errorf("%s (%d/%d): %w", t.dep.ID.Vertex, t.dep.Subtask+1, t.v.Parallelism, errors.Join(err, closeErr)))
	}
}

// Done is closed when Run has returned.
func (t *Task) Done() <-chan struct{} { return t.done }

// WaitOpened waits until the task needs its Restore no longer: what it restores
// has been read, or it is over.
func (t *Task) WaitOpened() { <-t.opened }

// Cancel stops the task as soon as it looks. Safe from any goroutine.
func (t *Task) Cancel() {
	t.cancel(errCanceled)
	t.mail.signal()
}

// Fail stops the task with an error, as if it had thrown it.
func (t *Task) Fail(err error) {
	t.cancel(err)
	t.mail.signal()
}

func (t *Task) isStopped() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// Release drops the partitions. After Run, or instead of it.
func (t *Task) Release() {
	for _, p := range t.parts {
		t.env.Server.Unregister(p)
		p.Close()
	}
	t.parts = nil
	t.dropWriters()
}

// release undoes New.
func (t *Task) release() {
	for _, in := range t.inputs {
		in.close()
	}
	t.Release()
}

func (t *Task) setState(s State, err error) {
	t.state = s
	t.listener.State(t.dep.ID, s, err)
}

func (t *Task) run() error {
	t.setState(Initializing, nil)
	if err := t.initialize(); err != nil {
		return err
	}
	if err := t.loop(); err != nil {
		return err
	}
	if err := FailClose.Hit(t.subject); err != nil {
		return err
	}
	return t.finish()
}

// finish reports and tells consumers that nothing will follow.
func (t *Task) finish() error {
	t.snapshots.settle()
	t.updateCounts()
	for _, c := range t.chain.ops {
		if r, ok := c.op.(operator.Reporter); ok {
			rep, err := r.Report()
			if err != nil {
				return err
			}
			t.listener.Report(t.dep.ID, c.id, rep)
		}
	}
	if t.reader != nil {
		t.listener.Report(t.dep.ID, t.chain.ops[0].id, &SourceReport{t.reader.Splits()})
	}
	if t.dep.Batch != nil {
		return t.finishWriters()
	}
	t.endOutputs()
	return nil
}

// restored gives up the checkpoint that the task was restored from.
func (t *Task) restored() {
	t.openOnce.Do(func() { close(t.opened) })
}

// SourceReport is where a source's splits stood in the end.
type SourceReport struct {
	Splits [][]byte
}

func keyGroups(v *graph.Vertex, subtask int) (first, last int) {
	return record.KeyGroupRange(v.MaxParallelism, v.Parallelism, subtask)
}

// initialize restores and opens everything that needs no input.
func (t *Task) initialize() error {
	if err := FailRestore.Hit(t.subject); err != nil {
		return err
	}
	if err := t.resendOutputs(); err != nil {
		return err
	}
	ctx := func(op *graph.Operator) *operator.Context {
		first, last := keyGroups(t.v, t.dep.Subtask)
		if t.dep.Batch != nil {
			first, last = 0, t.v.MaxParallelism-1 // what it reads is a range of subpartitions
		}
		c := &operator.Context{
			ID: op.ID, Subtask: t.dep.Subtask, Parallelism: t.v.Parallelism, MaxParallelism: t.v.MaxParallelism, Attempt: t.dep.Attempt,
			Keyed: state.NewBackend(first, last), Lists: &state.Lists{}, Restored: t.dep.Restore != nil,
			Dir: t.env.OutputDir, Uncharged: t.env.Uncharged, Stop: t.stop,
		}
		t.batchContext(c)
		return c
	}
	var err error
	if t.chain, err = newChain(t.v, t.outs, ctx); err != nil {
		return err
	}
	t.sink = t.chain.ops[len(t.chain.ops)-1].counts
	if err := t.restoreState(); err != nil {
		return err
	}
	for i := len(t.chain.ops) - 1; i >= 0; i-- {
		if c := t.chain.ops[i]; c.op != nil {
			if err := c.op.Open(c.ctx); err != nil {
				return err
			}
		}
	}
	if t.v.Source() {
		if err := t.openSource(); err != nil {
			return err
		}
	}
	return t.openInputs()
}

func (t *Task) restoreState() error {
	r := t.dep.Restore
	if r == nil {
		return nil
	}
	var n int64
	for _, c := range t.chain.ops {
		k, err := r.keyed(c.id, c.keyed)
		if err != nil {
			return err
		}
		l, err := r.list(c.id, t.dep.Subtask, t.v.Parallelism, c.lists)
		if err != nil {
			return err
		}
		n += k + l
	}
	t.drain.state = n
	return nil
}

func (t *Task) openSource() error {
	head := &t.v.Operators[0]
	var err error
	if t.reader, err = source.NewReader(head.Operator, head.Params, t.env.Start); err != nil {
		return fmt.Errorf("vertex %s: %w", head.ID, err)
	}
	l, err := t.chain.ops[0].lists.Get(source.SplitsState, state.Split)
	if err != nil {
		return err
	}
	if err := t.reader.AddSplits(l.Items); err != nil {
		return err
	}
	if t.dep.Draining {
		t.reader.Stop()
	}
	t.paused = t.dep.Restore != nil && options.PauseSources.Get(t.dep.Values) && options.CheckpointInterval.Get(t.dep.Values) > 0
	t.registerReader()
	return nil
}
