package cluster_test

import (
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// rescaled runs a job, rescales it under back-pressure on each path, and
// returns what came out.
func rescaled(t *testing.T, j *job, opts map[string]any, parallelism map[string]int, check func(t *testing.T, r result)) {
	for path, more := range paths {
		t.Run(path, func(t *testing.T) {
			o := unaligned("50 ms", more)
			for k, v := range opts {
				o[k] = v
			}
			c, log := setup{workers: 2, slots: 8, network: task.NetworkConfig{Exclusive: 2, Floating: 8, MaxPerSub: 4, Overdraft: 5}, options: o}.start(t, j)
			_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
			if err := c.Master().Rescale(t.Context(), parallelism, func() {}); err != nil {
				t.Fatal(err)
			}
			restoredWith(t, log, at, path)
			c.Master().StopSources()
			check(t, finish(t, c))
		})
	}
}

// TestFLINK40269_TwoEdgesBetweenTheSameVertices: in-flight data are found by
// the edge's id, not by the vertices that it joins. Mutation: Plan.index with
// the position of the peer in place of the id.
func TestFLINK40269_TwoEdgesBetweenTheSameVertices(t *testing.T) {
	j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 100}).
		op("twice", "co-map", 2, operator.Params{Cost: int64(50 * time.Microsecond)}).op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "twice", graph.Hash).link("numbers", "twice", graph.Rebalance).link("twice", "out", graph.Shuffle)
	rescaled(t, j, nil, map[string]int{"twice": 4}, func(t *testing.T, r result) {
		n := int64(r.emitted["numbers"])
		if r.distinct != n || r.arrived != 2*n {
			t.Errorf("%d arrivals of %d records, want each of %d twice", r.arrived, r.distinct, n)
		}
	})
}

// TestFLINK31963_StatelessMiddleOperator: a vertex without state between two
// that have some takes part in the assignment, too.
func TestFLINK31963_StatelessMiddleOperator(t *testing.T) {
	j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 100}).
		op("sum", "keyed-sum", 2, operator.Params{}).op("middle", "map", 3, operator.Params{}).op("out", "verify-sink", 2, operator.Params{Cost: int64(50 * time.Microsecond)}).
		link("numbers", "sum", graph.Hash).link("sum", "middle", graph.Rebalance).link("middle", "out", graph.Hash)
	rescaled(t, j, nil, map[string]int{"middle": 1, "sum": 5}, func(t *testing.T, r result) { r.exactly(t, int64(r.emitted["numbers"])) })
}

// TestFLINK35351_CustomPartitioner: its restored records are filtered by a
// copy of the partitioner that knows the operator's parallelism.
func TestFLINK35351_CustomPartitioner(t *testing.T) {
	j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 100}).
		op("custom", "map", 3, operator.Params{Cost: int64(50 * time.Microsecond)}).op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "custom", graph.Custom).link("custom", "out", graph.Rebalance)
	rescaled(t, j, map[string]any{options.UnalignedForced.Key(): true}, map[string]int{"custom": 5}, func(t *testing.T, r result) { r.exactly(t, int64(r.emitted["numbers"])) })
}

// TestFLINK40518_DuringRecoveryWithoutUnaligned: with D but not U the job takes
// the path without it, and its checkpoints complete.
func TestFLINK40518_DuringRecoveryWithoutUnaligned(t *testing.T) {
	j := backlogged(4)
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 8, dir: dir, options: unaligned("50 ms", map[string]any{options.ExternalizedRetention.Key(): "RETAIN_ON_CANCELLATION"})}.start(t, j)
	await(t, log, 0, "in-flight data", inFlight(20_000))
	c.Master().Cancel()
	<-c.Master().Done()
	c.Close()
	c, log = setup{workers: 2, slots: 8, options: map[string]any{
		"execution.checkpointing.interval": "50 ms", keyR: true, keyD: true, options.RecoveryPath.Key(): dir + "/checkpoints",
	}}.start(t, j)
	read, at := await(t, log, 0, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreRead })
	if read.Detail != "downstream" {
		t.Errorf("restored on path %s", read.Detail)
	}
	await(t, log, at, "first checkpoint", completedCheckpoint)
	drainAndCheck(t, c)
}

// TestAlignedWithTimeout begins aligned and overtakes after a time, on inputs
// and on outputs; what is restored is exact.
func TestAlignedWithTimeout(t *testing.T) {
	for _, timeout := range []string{"1 ms", "20 ms", "10 s"} {
		t.Run(timeout, func(t *testing.T) {
			opts := unaligned("50 ms", paths["during"])
			opts[options.AlignedTimeout.Key()] = timeout
			c, log := setup{workers: 2, slots: 8, network: task.NetworkConfig{Exclusive: 2, Floating: 8, MaxPerSub: 4, Overdraft: 5}, options: opts}.start(t, backlogged(4))
			_, at := await(t, log, 0, "checkpoint", completedCheckpoint)
			done, at := await(t, log, at, "another", completedCheckpoint)
			if timeout != "10 s" && done.Bytes == 0 {
				_, at = await(t, log, at, "in-flight data", inFlight(1000))
			}
			for _, p := range []int{6, 3} {
				if err := c.Master().Rescale(t.Context(), map[string]int{"slow": p}, func() {}); err != nil {
					t.Fatal(err)
				}
				_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
				_, at = await(t, log, at, "first checkpoint", completedCheckpoint)
			}
			drainAndCheck(t, c)
		})
	}
}
