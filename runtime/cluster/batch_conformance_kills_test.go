package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// killAt kills the master at the n-th passing of a fault point, once; what was
// passed there fails. hit tells whether that came to be.
func killAt(t testing.TB, p *failpoint.Point, n int, c func() *cluster.Batch) (disarm func(), hit *atomic.Bool) {
	hit = &atomic.Bool{}
	done := make(chan struct{})
	off := p.Arm(func(k int, _ string) error {
		x := c()
		if k < n || x == nil || hit.Swap(true) {
			return nil
		}
		struck := make(chan struct{})
		go func() {
			defer close(done)
			if err := x.KillMaster(time.Millisecond, func() { close(struck) }); err != nil {
				t.Log(err) // the job was faster
				close(struck)
			}
		}()
		<-struck
		return errors.New("the master dies here")
	})
	return func() {
		off()
		if hit.Load() {
			<-done
		}
	}, hit
}

// The master dies before and after each kind of operation on its log; the list is
// that of the fault points, so a new one is not forgotten. The output is exact.
func TestBatchMasterDiesAtEveryPointOfItsLog(t *testing.T) {
	hits := dieAtEveryPoint(t, "hardened", 2, func(t *testing.T, c *cluster.Batch, dir string) {
		finish(t, c).exactly(t, 5_000)
		nothingLeft(t, dir)
	})
	if hits < 6 {
		t.Errorf("a master died at %d points only", hits)
	}
}

// Of a faithful master the output is not exact when the end of its log is lost (H13),
// and the job cannot go on when the beginning is (H1). It ends all the same, and soon:
// who waits for partitions that were released waits as long as the option says.
//
// Fails if standstill is not asked: the job hangs.
func TestFaithfulMasterDiesAtEveryPointOfItsLog(t *testing.T) {
	stalled, finished := 0, 0
	for n := 1; n <= 3; n++ {
		dieAtEveryPoint(t, "faithful", n, func(t *testing.T, c *cluster.Batch, _ string) {
			select {
			case <-c.Done():
			case <-time.After(finishLimit):
				t.Fatal("the job does not end")
			}
			switch err := c.Err(); {
			case err == nil:
				finished++
			case strings.Contains(err.Error(), "the job stands still"):
				stalled++
			default:
				t.Error(err)
			}
		})
	}
	if stalled == 0 || finished < 10 {
		t.Errorf("%d jobs stood still, %d finished", stalled, finished)
	}
}

// dieAtEveryPoint kills a job's master at the n-th passing of each fault point of its
// log, and says at how many it came to that.
func dieAtEveryPoint(t *testing.T, mode string, n int, check func(t *testing.T, c *cluster.Batch, dir string)) (hits int) {
	for _, name := range failpoint.Names() {
		if !strings.HasPrefix(name, "joblog/") {
			continue
		}
		t.Run(fmt.Sprint(strings.TrimPrefix(name, "joblog/"), " ", n), func(t *testing.T) {
			p, err := failpoint.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			var running atomic.Pointer[cluster.Batch]
			disarm, hit := killAt(t, p, n, running.Load)
			defer disarm()
			dir := t.TempDir()
			o := map[string]any{"execution.batch.job-recovery.mode": mode, "execution.batch.job-recovery.snapshot.min-pause": "0 s", flushEvery: "1 ms"}
			if mode == "faithful" {
				o["execution.batch.job-recovery.previous-worker.recovery.timeout"] = "100 ms"
			}
			c, _ := setup{workers: 2, slots: 2, dir: dir, options: recovering(o)}.batch(t, costly(simple(5_000, 4), "sum", 10_000))
			running.Store(c)
			check(t, c, dir)
			if hit.Load() {
				hits++
			}
		})
	}
	return hits
}

// countsByKey are the counts of each key that the sinks of a finished job got; a
// key that came twice is an error.
func countsByKey(t testing.TB, c cluster.Running) map[uint64]int64 {
	t.Helper()
	keys, _, arrived := finishCounts(t, c)
	if keys != arrived {
		t.Errorf("%d records for %d keys", arrived, keys)
	}
	reports, err := c.Reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[uint64]int64{}
	for _, r := range reports {
		if x, ok := r.Data.(*operator.SinkReport); ok {
			for _, a := range x.Aggregates {
				counts[a.Key] = a.Value
			}
		}
	}
	return counts
}

// The cluster test of the proposal: 4 workers with 4 slots, 8 source subtasks,
// 40,000 records of 10,000 keys, at most 4 tasks where parallelism is decided, of
// 256 KB each, snapshots at every end. The master is lost, a partition is lost,
// both are, or no worker registers in time. Each key has the count that it has
// without any of it.
//
// Fails if Start does not wait for workers when the log is empty, or if what was
// not reported in time is not made again.
func TestBatchConformanceOfTheCluster(t *testing.T) {
	run := func(t *testing.T, mode string, more map[string]any, disturb func(c *cluster.Batch, log *timeline.Log)) map[uint64]int64 {
		j := (&job{}).sequence("numbers", 8, source.Params{Records: 40_000, Splits: 16, Keys: 10_000}).
			op("count", "count-by-key", 0, operator.Params{Source: 9}).op("out", "verify-sink", 2, operator.Params{}).
			link("numbers", "count", graph.Hash).link("count", "out", graph.Rebalance)
		o := recovering(map[string]any{
			"execution.batch.job-recovery.mode": mode, "execution.batch.job-recovery.snapshot.min-pause": "0 s",
			"execution.batch.adaptive.auto-parallelism.max-parallelism": 4, "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "256 KB",
		})
		maps.Copy(o, more)
		dir := t.TempDir()
		c, log := setup{workers: 4, slots: 4, dir: dir, options: o}.batch(t, costly(j, "count", 20_000))
		disturb(c, log)
		counts := countsByKey(t, c)
		nothingLeft(t, dir)
		return counts
	}
	// Earlier a faithful master may be lost between the ends of the sources and the
	// initialization of what reads them; then the job hangs (H1).
	lose := func(t *testing.T, c *cluster.Batch, log *timeline.Log) {
		killMasterWhen(t, c, log, finishedTask("count", 1))
	}
	drop := func(t *testing.T, c *cluster.Batch) {
		if err := c.DropPartition(t.Context(), "numbers", 3, func(time.Duration) {}); err != nil {
			t.Log(err) // nothing is there any more, or not yet
		}
	}
	for _, mode := range []string{"hardened", "faithful"} {
		want := run(t, mode, nil, func(*cluster.Batch, *timeline.Log) {})
		sum := int64(0)
		for _, n := range want {
			sum += n
		}
		if len(want) < 9_000 || sum != 40_000 {
			t.Fatalf("undisturbed: %d keys, %d records", len(want), sum)
		}
		for what, disturb := range map[string]func(t *testing.T, c *cluster.Batch, log *timeline.Log){
			"master": lose,
			"partition": func(t *testing.T, c *cluster.Batch, log *timeline.Log) {
				await(t, log, 0, "the sources", finishedTask("numbers", 8))
				drop(t, c)
			},
			"partition, then master": func(t *testing.T, c *cluster.Batch, log *timeline.Log) {
				await(t, log, 0, "the sources", finishedTask("numbers", 8))
				drop(t, c)
				lose(t, c, log)
			},
			"master, and no worker in time": lose,
		} {
			t.Run(fmt.Sprint(mode, " ", what), func(t *testing.T) {
				more := map[string]any{}
				if strings.Contains(what, "in time") {
					more["execution.batch.job-recovery.previous-worker.recovery.timeout"] = "0 s"
				}
				if got := run(t, mode, more, func(c *cluster.Batch, log *timeline.Log) { disturb(t, c, log) }); !maps.Equal(got, want) {
					t.Errorf("%d keys, not as without faults (%d)", len(got), len(want))
				}
			})
		}
	}
}
