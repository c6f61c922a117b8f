package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/timeline"
)

// kills disturbs a job some times, at moments drawn from a seed: when a number
// of tasks have changed their state since the last time.
func kills(t testing.TB, c cluster.Running, log *timeline.Log, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	i := 0
	for k := range 2 + r.IntN(3) {
		// Of the time between two faults the one half are long, the other short: then
		// the fault meets the recovery from the one before.
		left := 1 + r.IntN([]int{120, 8}[r.IntN(2)])
		if !reached(t, c, log, &i, func(e timeline.Event) bool {
			if e.Kind == timeline.TaskState || e.Kind == timeline.MasterElected || e.Kind == timeline.EventReplayed {
				left--
			}
			return left <= 0
		}) {
			return
		}
		down := time.Duration(r.IntN(30)) * time.Millisecond
		struck := func() {
			e := timeline.Of(timeline.Fault)
			e.Detail = fmt.Sprint("fault ", k)
			log.Add(e)
		}
		var err error
		switch kind := r.IntN(8); kind {
		case 0, 1, 2:
			err = c.KillMaster(down, struck)
		case 3, 4:
			err = c.KillWorker(r.IntN(2), down, struck)
		case 5:
			err = c.KillMaster(down, struck)
			if werr := c.KillWorker(r.IntN(2), down, struck); err == nil {
				err = werr
			}
		default:
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			vertex := []string{"left", "right", "pairs", "count"}[r.IntN(4)]
			if kind == 6 {
				err = c.DropPartition(ctx, vertex, r.IntN(4), func(time.Duration) { struck() })
			} else {
				err = c.FailTask(ctx, vertex, r.IntN(4), "on request", func(time.Duration) { struck() })
			}
			cancel()
		}
		if err != nil {
			t.Logf("fault %d: %v", k, err) // there may be nothing to disturb just now
		}
	}
}

// The same with kill -9, on processes.
//
// Fails if a worker process does not open the store of the one that died on its
// folder, or if a worker does not find the next leader.
func TestBatchProcessKills(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("BATCH_SOAK"))
	if err != nil {
		n = 3
	}
	first, _ := strconv.ParseUint(os.Getenv("BATCH_SEED"), 10, 64)
	for k := range n {
		seed := first + uint64(k)
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dir := t.TempDir()
			c, log := setup{workers: 3, slots: 2, dir: dir, memory: 16 << 20, options: recovering(map[string]any{"heartbeat.interval": "50 ms"})}.
				batchProcesses(t, costly(threeStage(30_000, 4), "pairs", 5000))
			kills(t, c, log, seed)
			keys, sum, arrived := finishCounts(t, c)
			if keys != 1000 || sum != 30_000 || arrived != 1000 {
				t.Errorf("%d keys of 1000, %d pairs of 30000, %d records of 1000", keys, sum, arrived)
			}
			f, err := c.Batch(t.Context())
			noneLeftOver(t, f, err)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir)
		})
		if !ok {
			t.Fatalf("seed %d is wrong", seed)
		}
	}
}

// noneLeftOver: all workers have said that nothing was left, but for one that was
// killed so late that nobody could.
func noneLeftOver(t *testing.T, f *cluster.BatchFigures, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Error(err)
	case f.Leftover == nil && len(f.Unheard) == 0, len(f.Unheard) > 1:
		t.Errorf("figures %+v", f)
	case f.Leftover != nil && *f.Leftover != 0:
		t.Errorf("%d bytes are left over", *f.Leftover)
	}
}

// costly makes an operator take some time a record.
func costly(j *job, id string, nanoseconds int64) *job {
	for i := range j.Nodes {
		if j.Nodes[i].ID == id {
			j.Nodes[i].Params = fmt.Appendf(nil, `{"Cost":%d}`, nanoseconds)
		}
	}
	return j
}

// reached waits for an event behind index i; false: the job has ended.
func reached(t testing.TB, c cluster.Running, log *timeline.Log, i *int, match func(timeline.Event) bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	go func() {
		select {
		case <-c.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		es, err := log.Wait(ctx, *i)
		if err != nil {
			return false
		}
		for _, e := range es {
			*i++
			if match(e) {
				return true
			}
		}
	}
}

// Masters and workers die, partitions are lost and tasks fail at random, also
// while others of these are being recovered from; the output is exact, every
// split is in one place at any time (the scheduler's ledger would end the job),
// and nothing is left. BATCH_SOAK=n runs, from seed BATCH_SEED.
//
// Fails if a worker does not tell again of an adopted attempt that ended before
// it was adopted (Batch.settle): the job hangs. Fails if the coordinator of a
// new master does not take held splits away (resetBatch): records come twice. Fails
// if a finished attempt that was cancelled, or one that read what has been made
// anew since, may go on under a new master (Batch.current): counts are mixed.
func TestBatchKills(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("BATCH_SOAK"))
	if err != nil {
		n = 12
	}
	first, _ := strconv.ParseUint(os.Getenv("BATCH_SEED"), 10, 64)
	for k := range n {
		seed := first + uint64(k)
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := costly(threeStage(30_000, 4), "pairs", 5000)
			more := map[string]any{"heartbeat.interval": "50 ms"}
			if seed%4 == 3 {
				more["execution.batch.speculative.enabled"] = true
				more["slow-task-detector.check-interval"], more["slow-task-detector.execution-time.baseline-lower-bound"] = "5 ms", "5 ms"
				more["slow-task-detector.execution-time.baseline-ratio"], more["slow-task-detector.execution-time.baseline-multiplier"] = 0.25, 1.0
			}
			c, log := setup{workers: 3, slots: 2, dir: dir, memory: 16 << 20, options: recovering(more)}.batch(t, j)
			kills(t, c, log, seed)
			keys, sum, arrived := finishCounts(t, c)
			if keys != 1000 || sum != 30_000 || arrived != 1000 {
				t.Errorf("%d keys of 1000, %d pairs of 30000, %d records of 1000", keys, sum, arrived)
			}
			f, err := c.Batch(t.Context())
			noneLeftOver(t, f, err)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir)
		})
		if !ok {
			t.Fatalf("seed %d is wrong", seed)
		}
	}
}
