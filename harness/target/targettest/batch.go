package targettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// Batch says how a batch job is played: vertex after vertex in the order of the
// file, in waves of as many tasks as there are slots. Each task consumes 100
// records and writes 1000 bytes. With job recovery on, a new master keeps what
// had finished but the last Gap tasks; with it off, nothing. Worker 1, which runs
// the odd subtasks, takes the output of its tasks along when it dies.
type Batch struct {
	TaskTime time.Duration // 0: 1 s
	Gap      int
	Torn     bool             // the log cannot be replayed
	Outlast  bool             // tasks finish while no master leads
	Err      error            // of the job, at its end
	Tells    []timeline.Event // when the job has begun
	Figures  *target.BatchFigures
}

// What a new master takes its time for.
const (
	noticeTime   = 5 * time.Millisecond
	replayTime   = 10 * time.Millisecond
	waitTime     = 20 * time.Millisecond
	scheduleTime = 1 * time.Millisecond
)

type taskName struct {
	vertex  string
	subtask int
}

// batchJob is what the player of a batch job owns.
type batchJob struct {
	*Job
	plan     Batch
	finished []taskName // in order
	done     map[taskName]bool
	attempts map[taskName]int
	epoch    int
}

func (j *Job) playBatch(plan Batch) {
	if plan.TaskTime == 0 {
		plan.TaskTime = time.Second
	}
	b := &batchJob{Job: j, plan: plan, done: map[taskName]bool{}, attempts: map[taskName]int{}, epoch: 1}
	b.state(timeline.Submitted)
	b.state("CREATED")
	b.state("RUNNING")
	for _, e := range plan.Tells {
		b.log.Add(e)
	}
	for {
		wave := b.next()
		if len(wave) == 0 {
			break
		}
		if !b.run(wave) {
			return
		}
	}
	if plan.Err == nil {
		b.state("FINISHED")
	}
	j.End(plan.Err)
}

func (b *batchJob) state(s string) {
	e := timeline.Of(timeline.JobState)
	e.State = s
	b.log.Add(e)
}

func (b *batchJob) task(n taskName, state string) {
	e := timeline.Task(timeline.TaskState, n.vertex, n.subtask, b.attempts[n])
	if e.State = state; state == "FINISHED" {
		e.Records, e.Bytes = 100, 1000
	}
	b.log.Add(e)
}

// next is the next wave: tasks of the first vertex that has any left.
func (b *batchJob) next() []taskName {
	var wave []taskName
	slots := b.w.Cluster.Workers * b.w.Cluster.SlotsPerWorker
	for _, v := range b.w.Vertices {
		for i := range max(1, v.Parallelism) {
			if n := (taskName{v.ID, i}); !b.done[n] && len(wave) < slots {
				wave = append(wave, n)
			}
		}
		if len(wave) > 0 {
			break
		}
	}
	return wave
}

// run plays a wave; false: the job is over.
func (b *batchJob) run(wave []taskName) bool {
	for _, n := range wave {
		b.task(n, "DEPLOYING")
	}
	for _, n := range wave {
		b.task(n, "RUNNING")
	}
	t := time.NewTimer(b.plan.TaskTime)
	defer t.Stop()
	select {
	case <-b.ctx.Done():
		return false
	case f := <-b.strikes:
		return b.strike(f, wave)
	case <-t.C:
	}
	for _, n := range wave {
		b.done[n] = true
		b.finished = append(b.finished, n)
		b.task(n, "FINISHED")
		b.count()
	}
	return true
}

func (b *batchJob) count() {
	all := 0
	for _, v := range b.w.Vertices {
		all += max(1, v.Parallelism)
	}
	b.mu.Lock()
	b.progress = float64(len(b.done)) / float64(all)
	b.sunk += 10
	b.mu.Unlock()
}

// strike plays what a fault does to a wave.
func (b *batchJob) strike(f target.Fault, wave []taskName) bool {
	lost := func(n taskName, why string) {
		e := timeline.Task(timeline.PartitionLost, n.vertex, n.subtask, b.attempts[n])
		e.Reason, e.Bytes = why, 1000
		b.log.Add(e)
		delete(b.done, n)
		b.finished = slices.DeleteFunc(b.finished, func(m taskName) bool { return m == n })
	}
	again := func(state string) {
		for _, n := range wave {
			if state != "" {
				b.task(n, state)
			}
			b.attempts[n]++
		}
	}
	if !b.plan.Outlast { // else nobody counts what finishes
		defer b.count()
	}
	switch f.Kind {
	case "kill-jobmanager":
		if !b.plan.Outlast {
			return b.newMaster(f, again)
		}
		for _, n := range wave {
			b.done[n] = true
			b.finished = append(b.finished, n)
		}
		return b.newMaster(f, func(string) {
			for _, n := range wave {
				b.task(n, "FINISHED")
			}
		})
	case "kill-worker":
		if !pause(b.ctx, noticeTime) {
			return false
		}
		b.log.Add(timeline.Of(timeline.WorkerLost))
		again("FAILED")
		for _, n := range slices.Clone(b.finished) {
			if n.subtask%2 == 1 {
				lost(n, "its worker died")
				b.attempts[n]++
			}
		}
	case "drop-partition":
		n := taskName{f.Vertex, f.Subtask}
		lost(n, "dropped")
		b.attempts[n]++
		again("CANCELED")
	case "fail-task":
		again("FAILED")
	}
	return true
}

func (b *batchJob) newMaster(f target.Fault, again func(string)) bool {
	noticed := min(noticeTime, f.DownFor)
	if !pause(b.ctx, noticed) {
		return false
	}
	b.state(timeline.Suspended)
	if !pause(b.ctx, f.DownFor-noticed) {
		return false
	}
	b.epoch++
	e := timeline.Of(timeline.MasterElected)
	e.Detail = fmt.Sprint("epoch ", b.epoch)
	b.log.Add(e)
	kept := 0
	if options.BatchJobRecovery.Get(b.w.Options) {
		b.state("RECONCILING")
		if !pause(b.ctx, replayTime) {
			return false
		}
		e := timeline.Of(timeline.EventReplayed)
		if e.Records, e.Bytes = int64(len(b.finished)), int64(100*len(b.finished)); b.plan.Torn {
			e.Reason = "record 3 is damaged"
		} else {
			kept = max(0, len(b.finished)-b.plan.Gap)
		}
		b.log.Add(e)
		for _, n := range b.finished[:kept] {
			e := timeline.Task(timeline.PartitionKept, n.vertex, n.subtask, b.attempts[n])
			e.Bytes = 1000
			b.log.Add(e)
		}
		if !pause(b.ctx, waitTime) {
			return false
		}
		b.state("RUNNING")
	}
	again("CANCELED")
	for _, n := range b.finished[kept:] {
		delete(b.done, n)
		b.attempts[n]++
	}
	b.finished = b.finished[:kept]
	return pause(b.ctx, scheduleTime)
}

// finishBatch waits for the end of a batch job.
func (j *Job) finishBatch(ctx context.Context) (*target.Output, error) {
	select {
	case <-j.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := j.Err(); err != nil {
		return nil, err
	}
	out := &target.Output{Proved: true, Received: 10, Expected: 10, Digest: "d", ExpectedDigest: "d"}
	if j.f.Output != nil {
		out = j.f.Output
	}
	out.Batch = j.f.Batch.Figures
	return out, nil
}

var errJobOver = errors.New("the job is over")

// injectBatch hands a fault to the player.
func (j *Job) injectBatch(ctx context.Context, f target.Fault) (time.Duration, error) {
	e := timeline.Of(timeline.Fault)
	e.Detail, e.State = f.Step, f.Kind
	t0 := j.log.Add(e)
	select {
	case j.strikes <- f:
	case <-j.done:
		return t0, errJobOver
	case <-ctx.Done():
		return t0, context.Cause(ctx)
	}
	return t0, nil
}

func batch(w *spec.Workload) bool { return w.Mode == spec.Batch }
