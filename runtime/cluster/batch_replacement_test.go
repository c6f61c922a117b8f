package cluster_test

import (
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// Master and worker die together. What the log says to be at the dead worker is
// kept if another one has its folder by then: the new master waits for that one,
// under whatever name it comes. If nobody will, the wait is over at once.
//
// The wait may last for ten minutes, and the test does not: fails if inventories do
// not say for whom they answer, or if nobody tells that a worker is not replaced.
// Fails if a folder is not kept for who is to come (folders.keep): its sources run
// again.
func TestBatchMasterAndWorkerDieTogether(t *testing.T) {
	type start func(t *testing.T, s setup, j *job) (cluster.Running, *timeline.Log)
	starts := map[string]start{
		"embedded": func(t *testing.T, s setup, j *job) (cluster.Running, *timeline.Log) { return s.batch(t, j) },
		"processes": func(t *testing.T, s setup, j *job) (cluster.Running, *timeline.Log) {
			return s.batchProcesses(t, j)
		},
	}
	for name, start := range starts {
		for _, x := range []struct {
			name               string
			down, replaceAfter time.Duration
			kept, lost         int // partitions of the sources
		}{
			{"the replacement comes later than the master", 10 * time.Millisecond, 300 * time.Millisecond, 4, 0},
			{"it comes before", 400 * time.Millisecond, 10 * time.Millisecond, 4, 0},
			{"nobody comes", 10 * time.Millisecond, -1, 2, 2},
		} {
			t.Run(name+"/"+x.name, func(t *testing.T) {
				j := (&job{}).sequence("numbers", 4, source.Params{Records: 40_000, Splits: 16}).
					op("sum", "keyed-sum", 8, operator.Params{}).op("out", "verify-sink", 4, operator.Params{}).
					link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
				costly(j, "sum", 50_000) // two waves, each a quarter of a second: the log has long been written
				dir := t.TempDir()
				c, log := start(t, setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
					"heartbeat.interval": "100 ms", "execution.batch.job-recovery.previous-worker.recovery.timeout": "10 min",
				})}, j)
				await(t, log, 0, "a finished task that read what sources wrote", finishedTask("sum", 1))
				if err := c.KillMaster(x.down, func() {}); err != nil {
					t.Fatal(err)
				}
				if err := c.KillWorker(0, x.replaceAfter, func() {}); err != nil {
					t.Fatal(err)
				}
				finish(t, c).exactly(t, 40_000)
				kept := count(log, func(e timeline.Event) bool { return e.Kind == timeline.PartitionKept && e.Vertex == "numbers" })
				lost := count(log, func(e timeline.Event) bool {
					return e.Kind == timeline.PartitionLost && e.Vertex == "numbers" && e.Reason == "not-reported"
				})
				if kept != x.kept || lost != x.lost {
					t.Errorf("%d partitions of sources were kept, %d lost; want %d and %d", kept, lost, x.kept, x.lost)
				}
				if n := finishedOf(log, "numbers"); n != 4+x.lost {
					t.Errorf("sources finished %d times, not %d", n, 4+x.lost)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				nothingLeft(t, dir)
			})
		}
	}
}

// A worker dies alone, and another one gets its folder while the restart waits for its
// delay: what the sources had left counts again, and none of them runs again. Without a
// delay the sources begin at once, and what comes back is too late.
//
// Fails if late releases all that is reported (returned), or if what returns does not
// narrow the restart.
func TestBatchOutputOfADeadWorkerComesBack(t *testing.T) {
	for _, x := range []struct {
		name, delay   string
		again         int // sources
		kept, tooLate int
	}{
		{"in time", "1 s", 0, 2, 0},
		{"too late", "0 s", 2, 0, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			j := (&job{}).sequence("numbers", 4, source.Params{Records: 40_000, Splits: 16}).
				op("sum", "keyed-sum", 8, operator.Params{}).op("out", "verify-sink", 4, operator.Params{}).
				link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
			costly(j, "sum", 50_000) // two waves, each a quarter of a second
			dir := t.TempDir()
			c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
				"heartbeat.interval": "100 ms", "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": x.delay,
			})}.batch(t, j)
			await(t, log, 0, "a task that reads what worker-0 has", func(e timeline.Event) bool {
				return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.Vertex == "sum" && e.Detail == "worker-0"
			})
			if err := c.KillWorker(0, 10*time.Millisecond, func() {}); err != nil {
				t.Fatal(err)
			}
			finish(t, c).exactly(t, 40_000)
			kept := count(log, func(e timeline.Event) bool {
				return e.Kind == timeline.PartitionKept && e.Vertex == "numbers" && e.Reason == ""
			})
			late := count(log, func(e timeline.Event) bool {
				return e.Kind == timeline.PartitionKept && e.Vertex == "numbers" && e.Reason != ""
			})
			if kept != x.kept || late != x.tooLate {
				t.Errorf("%d partitions of sources came back, %d too late; want %d and %d", kept, late, x.kept, x.tooLate)
			}
			if n := finishedOf(log, "numbers"); n != 4+x.again {
				t.Errorf("sources finished %d times, not %d", n, 4+x.again)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, dir)
		})
	}
}
