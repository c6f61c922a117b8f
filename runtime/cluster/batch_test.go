package cluster_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

const (
	jobRecovery = "execution.batch.job-recovery.enabled"
	flushEvery  = "job-event.store.write-buffer.flush-interval"
)

// recovering are the options of a job that survives its master.
func recovering(more map[string]any) map[string]any {
	o := map[string]any{jobRecovery: true, flushEvery: "10 ms"}
	maps.Copy(o, more)
	return o
}

func (s setup) batch(t testing.TB, j *job) (*cluster.Batch, *timeline.Log) {
	t.Helper()
	cfg := s.config(t, j)
	cfg.Batch = true
	c, err := cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	return c, cfg.Timeline
}

// simple is source, keyed operator, sink.
func simple(records uint64, p int) *job {
	return (&job{}).sequence("numbers", p, source.Params{Records: records, Splits: 16}).
		op("sum", "keyed-sum", p, operator.Params{}).op("out", "verify-sink", p, operator.Params{}).
		link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
}

// threeStage is two sources, a join, a count and a sink.
func threeStage(records uint64, p int) *job { return threeStageTo("verify-sink", records, p) }

func threeStageTo(sink string, records uint64, p int) *job {
	return (&job{}).sequence("left", p, source.Params{Records: records, Splits: 16}).sequence("right", p, source.Params{Records: records, Splits: 16}).
		op("pairs", "join", p, operator.Params{}).op("count", "count-by-key", p, operator.Params{Source: 9}).op("out", sink, p, operator.Params{}).
		link("left", "pairs", graph.Hash).link("right", "pairs", graph.Hash).link("pairs", "count", graph.Hash).link("count", "out", graph.Rebalance)
}

// finishCounts returns the number of keys and the sum of their counts in a
// finished job's sinks, and how many arrived.
func finishCounts(t testing.TB, c cluster.Running) (keys, sum, arrived int64) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(finishLimit):
		t.Fatal("the job does not end")
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	reports, err := c.Reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]uint64]bool{}
	add := func(key, number uint64, value int64) {
		if k := [2]uint64{key, number}; !seen[k] {
			seen[k] = true
			keys++
			sum += value
		}
	}
	files := false // those of all subtasks are in one folder
	for _, rep := range reports {
		switch x := rep.Data.(type) {
		case *operator.SinkReport:
			arrived += x.Arrived
			for _, a := range x.Aggregates {
				add(a.Key, a.Number, a.Value)
			}
		case *operator.FileReport:
			if files {
				continue
			}
			files = true
			if err := operator.ReadFiles(x, func(r *record.Record) error {
				arrived++
				add(r.Key, r.Number, r.Value)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return keys, sum, arrived
}

// nothingLeft walks the folders of a cluster whose job has ended.
func nothingLeft(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if strings.HasPrefix(rel, "worker-") || strings.HasPrefix(filepath.Base(rel), ".") || strings.HasPrefix(rel, "master/job-events") {
			t.Errorf("%s is left", rel)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestBatchJob(t *testing.T) {
	for _, recovery := range []bool{false, true} {
		t.Run(fmt.Sprint("recovery ", recovery), func(t *testing.T) {
			o := map[string]any{}
			if recovery {
				o = recovering(nil)
			}
			dir := t.TempDir()
			c, _ := setup{workers: 2, slots: 2, options: o, dir: dir}.batch(t, simple(100_000, 4))
			finish(t, c).exactly(t, 100_000)
			nothingLeft(t, dir)
			f, err := c.Batch(t.Context())
			if err != nil || f.Leftover == nil || *f.Leftover != 0 {
				t.Errorf("figures %+v, %v", f, err)
			}
			if recovery == (*f.LogBytes == 0) {
				t.Errorf("%d bytes of log", *f.LogBytes)
			}
		})
	}
}

// A join, a count and parallelism that is decided at run time, with a time limit
// for each.
func TestBatchOperators(t *testing.T) {
	dir := t.TempDir()
	c, _ := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
		"execution.batch.adaptive.auto-parallelism.max-parallelism": 8, "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": "1 MB",
	})}.batch(t, threeStage(50_000, 0))
	keys, sum, arrived := finishCounts(t, c)
	if keys != 1000 || sum != 50_000 || arrived != 1000 {
		t.Errorf("%d keys of 1000, %d pairs of 50000, %d records", keys, sum, arrived)
	}
	nothingLeft(t, dir)
}

// killMasterWhen kills the master when something has happened.
func killMasterWhen(t testing.TB, c *cluster.Batch, log *timeline.Log, match func(timeline.Event) bool) {
	t.Helper()
	await(t, log, 0, "the time to kill", match)
	if err := c.KillMaster(10*time.Millisecond, func() { log.Add(timeline.Of(timeline.Fault)) }); err != nil {
		t.Fatal(err)
	}
}

func finishedTask(vertex string, n int) func(timeline.Event) bool {
	return func(e timeline.Event) bool {
		if e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == vertex {
			n--
		}
		return n <= 0
	}
}

func count(log *timeline.Log, match func(timeline.Event) bool) (n int) {
	for _, e := range log.Events() {
		if match(e) {
			n++
		}
	}
	return n
}

// A master dies in the middle; the next one goes on. Nothing that had finished
// runs again.
func TestBatchMasterIsLost(t *testing.T) {
	for _, mode := range []string{"hardened", "faithful"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			j := simple(100_000, 4)
			j.Nodes[1].Params = []byte(`{"Cost":10000}`)
			c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
				"execution.batch.job-recovery.mode": mode, "execution.batch.job-recovery.snapshot.min-pause": "0 s",
			})}.batch(t, j)
			killMasterWhen(t, c, log, finishedTask("sum", 1))
			finish(t, c).exactly(t, 100_000)
			nothingLeft(t, dir)
			if n := count(log, func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed && e.Records > 0 && e.Bytes > 0 }); n != 1 {
				t.Errorf("the log was replayed %d times", n)
			}
			if mode == "hardened" {
				for _, v := range []string{"numbers", "sum", "out"} {
					if n := count(log, finishedTask(v, 1)); n == 0 {
						t.Errorf("%s never finished", v)
					}
				}
				winner := map[string]int{}
				for _, e := range log.Sorted() {
					if e.Kind != timeline.TaskState || e.State != "FINISHED" {
						continue
					}
					k := fmt.Sprint(e.Vertex, "/", e.Subtask)
					if a, twice := winner[k]; twice && a != e.Attempt {
						t.Errorf("%s was finished by attempt %d and by %d", k, a, e.Attempt)
					}
					winner[k] = e.Attempt
				}
				if f, _ := c.Batch(t.Context()); *f.Leftover != 0 {
					t.Errorf("left over %d", *f.Leftover)
				}
			}
		})
	}
}

// Without recovery the job begins anew, and is exact all the same.
func TestBatchMasterIsLostWithoutRecovery(t *testing.T) {
	j := simple(50_000, 4)
	j.Nodes[1].Params = []byte(`{"Cost":10000}`)
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 2, dir: dir}.batch(t, j)
	killMasterWhen(t, c, log, finishedTask("sum", 1))
	finish(t, c).exactly(t, 50_000)
	nothingLeft(t, dir)
	if n := count(log, func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed }); n != 0 {
		t.Errorf("a log was replayed %d times", n)
	}
}

func TestBatchWorkerIsLost(t *testing.T) {
	j := simple(100_000, 4)
	j.Nodes[1].Params = []byte(`{"Cost":10000}`)
	dir := t.TempDir()
	c, log := setup{workers: 3, slots: 2, dir: dir, options: recovering(nil)}.batch(t, j)
	await(t, log, 0, "a finished task", finishedTask("sum", 1))
	if err := c.KillWorker(0, 10*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 100_000)
	nothingLeft(t, dir)
}

// A partition that is gone is made again: the one task that made it and nobody
// else of its vertex.
func TestBatchPartitionIsLost(t *testing.T) {
	j := simple(100_000, 4)
	j.Nodes[1].Params = []byte(`{"Cost":100000}`)
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 1, dir: dir, options: recovering(nil)}.batch(t, j)
	await(t, log, 0, "the sources", finishedTask("numbers", 4))
	if err := c.DropPartition(t.Context(), "numbers", 2, func(time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 100_000)
	nothingLeft(t, dir)
	lost := count(log, func(e timeline.Event) bool {
		return e.Kind == timeline.PartitionLost && e.Vertex == "numbers" && e.Subtask == 2
	})
	if lost != 1 {
		t.Errorf("%d partitions of numbers/2 were lost", lost)
	}
	for s := range 4 {
		n := count(log, func(e timeline.Event) bool {
			return e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == "numbers" && e.Subtask == s
		})
		if want := 1 + map[int]int{2: 1}[s]; n != want {
			t.Errorf("numbers/%d finished %d times, not %d", s, n, want)
		}
	}
}
