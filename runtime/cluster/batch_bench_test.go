package cluster_test

import (
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// BenchmarkBatchStart is the time from nothing to a batch job whose first task
// runs; master and two workers are processes.
func BenchmarkBatchStart(b *testing.B) {
	for b.Loop() {
		begin := time.Now()
		c, log := setup{workers: 2, slots: 4, segment: 32 << 10, options: recovering(nil)}.batchProcesses(b, simple(1000, 4))
		await(b, log, 0, "a running task", runningTask(0))
		b.ReportMetric(time.Since(begin).Seconds(), "s-running")
		b.ReportMetric(0.5, "s-running-target")
		c.Close()
	}
}

func runningTask(after time.Duration) func(timeline.Event) bool {
	return func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.T > after
	}
}

// BenchmarkBatchControlRecovery is the time from the start of a new master until
// a task runs again, with all workers alive and the partitions of 1,000 finished
// tasks there. With the default interval of flushes, and with one so short that
// nearly all of them are in the log.
func BenchmarkBatchControlRecovery(b *testing.B) {
	for _, flush := range []string{"1 s", "10 ms"} {
		b.Run("flush="+strings.ReplaceAll(flush, " ", ""), func(b *testing.B) { benchmarkControlRecovery(b, flush) })
	}
}

func benchmarkControlRecovery(b *testing.B, flush string) {
	const p = 500
	for b.Loop() {
		j := (&job{}).sequence("numbers", p, source.Params{Records: 50_000, Splits: p}).op("pass", "map", p, operator.Params{}).
			op("count", "count-by-key", 4, operator.Params{Cost: 10_000}).op("out", "discard", 4, operator.Params{}).
			link("numbers", "pass", graph.Rescale).link("pass", "count", graph.Hash).link("count", "out", graph.Rebalance)
		for i := range j.Nodes {
			j.Nodes[i].MaxParallelism = 1024
		}
		c, log := setup{workers: 2, slots: 2, segment: 32 << 10, options: recovering(map[string]any{flushEvery: flush})}.batchProcesses(b, j)
		_, i := await(b, log, 0, "1,000 finished tasks", finishedTask("pass", p))
		if err := c.KillMaster(0, func() {}); err != nil {
			b.Fatal(err)
		}
		elected, i := await(b, log, i, "another master", kind(timeline.MasterElected))
		running, _ := await(b, log, i, "a running task", runningTask(elected.T))
		b.ReportMetric((running.T - elected.T).Seconds(), "s-control-recovery")
		b.ReportMetric(0.5, "s-control-recovery-target")
		finishBench(b, c)
		var again int
		seen := map[int]int{} // attempt by subtask; what is told twice is one
		for _, e := range log.Events() {
			if e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == "pass" {
				if first, ok := seen[e.Subtask]; ok && first != e.Attempt {
					again++
				}
				seen[e.Subtask] = e.Attempt
			}
		}
		b.ReportMetric(float64(again), "tasks-again")
		b.ReportMetric(0, "tasks-again-target")
		c.Close()
	}
}

func finishBench(b *testing.B, c cluster.Running) {
	b.Helper()
	select {
	case <-c.Done():
	case <-time.After(finishLimit):
		b.Fatal("the job does not end")
	}
	if err := c.Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBatchShuffle is the rate of records of 100 bytes through one blocking
// edge on two embedded workers, from making them to discarding them.
func BenchmarkBatchShuffle(b *testing.B) {
	const records, size = 4_000_000, 100
	for b.Loop() {
		j := (&job{}).sequence("numbers", 4, source.Params{Records: records, RecordSize: size, Splits: 4}).op("out", "discard", 4, operator.Params{}).
			link("numbers", "out", graph.Hash)
		c, log := setup{workers: 2, slots: 2, segment: 32 << 10, memory: 128 << 20, options: recovering(nil)}.batch(b, j)
		first, _ := await(b, log, 0, "a running task", runningTask(0))
		finishBench(b, c)
		b.ReportMetric(records*size/1e6/(log.Now()-first.T).Seconds(), "MB/s")
		b.ReportMetric(300, "MB/s-target")
		c.Close()
	}
}

// BenchmarkBatchTinyTasks is the rate of tasks that read one record each, through
// the whole engine: 20,000 of them in one vertex on two embedded workers with two
// slots each.
func BenchmarkBatchTinyTasks(b *testing.B) {
	const tasks = 20_000
	for b.Loop() {
		j := (&job{}).sequence("numbers", tasks, source.Params{Records: tasks, Splits: tasks}).op("out", "discard", tasks, operator.Params{}).
			link("numbers", "out", graph.Forward)
		for i := range j.Nodes {
			j.Nodes[i].MaxParallelism = 32768
		}
		begin := time.Now()
		c, _ := setup{workers: 2, slots: 2, segment: 32 << 10, options: recovering(nil)}.batch(b, j)
		finishBench(b, c)
		b.ReportMetric(tasks/time.Since(begin).Seconds(), "tasks/s")
		b.ReportMetric(1000, "tasks/s-target")
		c.Close()
	}
}
