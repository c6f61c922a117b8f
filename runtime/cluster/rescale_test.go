package cluster_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

const (
	keyR = "execution.checkpointing.unaligned.recover-output-on-downstream.enabled"
	keyD = "execution.checkpointing.unaligned.during-recovery.enabled"
)

// paths are the three recovery paths and the options that lead to them.
var paths = map[string]map[string]any{
	"upstream":   {},
	"downstream": {keyR: true},
	"during":     {keyR: true, keyD: true},
}

func unaligned(interval string, more map[string]any) map[string]any {
	o := map[string]any{"execution.checkpointing.interval": interval, "execution.checkpointing.unaligned.enabled": true}
	maps.Copy(o, more)
	return o
}

// TestRescaleUnderBackPressure rescales a job whose channels are full, there
// and back, on each path.
func TestRescaleUnderBackPressure(t *testing.T) {
	for path, opts := range paths {
		for _, workers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", path, workers), func(t *testing.T) {
				j := (&job{}).sequence("numbers", 3, source.Params{RecordSize: 200}).
					op("slow", "keyed-sum", 4, operator.Params{StateSize: 32, Cost: int64(100 * time.Microsecond)}).
					op("out", "verify-sink", 2, operator.Params{Cost: int64(20 * time.Microsecond)}).
					link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
				c, log := setup{workers: workers, slots: 8, network: task.NetworkConfig{Exclusive: 4, Floating: 8, MaxPerSub: 10, Overdraft: 5}, options: unaligned("100 ms", opts)}.start(t, j)
				_, at := await(t, log, 0, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > 100_000 })
				for _, p := range []int{6, 3, 4} {
					if err := c.Master().Rescale(t.Context(), map[string]int{"slow": p}, func() {}); err != nil {
						t.Fatal(err)
					}
					assigned, i := await(t, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
					if assigned.Bytes == 0 {
						t.Error("restored a checkpoint without in-flight data")
					}
					read, _ := await(t, log, i, "path", func(e timeline.Event) bool { return e.Kind == timeline.RestoreRead })
					if read.Detail != path {
						t.Errorf("restored on path %s", read.Detail)
					}
					done, i := await(t, log, i, "first checkpoint", completedCheckpoint)
					t.Logf("p=%d first checkpoint %d after %v, in flight %d -> %d", p, done.Checkpoint, done.T-assigned.T, assigned.Bytes, done.Bytes)
					at = i
				}
				c.Master().StopSources()
				r := finish(t, c)
				r.exactly(t, int64(r.emitted["numbers"]))
			})
		}
	}
}

// TestNoGrowth rescales 1 -> 10 -> 1 -> 10 -> 1 without new input, each time
// from a checkpoint taken during the recovery before: exactly the input comes
// out, and what is in flight does not grow (FLIP-547, section 2).
func TestNoGrowth(t *testing.T) {
	const records = 3000
	j := (&job{}).sequence("numbers", 1, source.Params{Records: records, RecordSize: 256}).
		op("slow", "keyed-sum", 1, operator.Params{Cost: int64(2 * time.Millisecond)}).op("out", "verify-sink", 1, operator.Params{}).
		link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
	c, log := setup{
		workers: 2, slots: 10, network: task.NetworkConfig{Exclusive: 200, Floating: 8, MaxPerSub: 200, Overdraft: 5},
		options: unaligned("50 ms", paths["during"]),
	}.start(t, j)
	before, at := await(t, log, 0, "all in flight", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > records*256*8/10 })
	for _, p := range []int{10, 1, 10, 1} {
		if err := c.Master().Rescale(t.Context(), map[string]int{"slow": p}, func() {}); err != nil {
			t.Fatal(err)
		}
		var assigned, done timeline.Event
		assigned, at = await(t, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
		done, at = await(t, log, at, "first checkpoint", completedCheckpoint)
		t.Logf("p=%d: %d bytes restored, %d in the first checkpoint", p, assigned.Bytes, done.Bytes)
		if done.Bytes > before.Bytes {
			t.Errorf("p=%d: %d bytes in flight, more than the %d at the beginning", p, done.Bytes, before.Bytes)
		}
		if assigned.Bytes < before.Bytes/2 {
			t.Errorf("p=%d: only %d bytes restored: the test proves nothing", p, assigned.Bytes)
		}
	}
	finish(t, c).exactly(t, records)
}

// TestPausedSourcesKeepInFlightBounded chains rescales with sources that wait
// for the first checkpoint: recovered data go first, so they do not pile up.
func TestPausedSourcesKeepInFlightBounded(t *testing.T) {
	j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 256}).
		op("slow", "keyed-sum", 4, operator.Params{Cost: int64(time.Millisecond)}).op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
	opts := unaligned("30 ms", paths["during"])
	opts["pipeline.sources.pause-until-first-checkpoint"] = true
	c, log := setup{workers: 2, slots: 8, network: task.NetworkConfig{Exclusive: 8, Floating: 8, MaxPerSub: 10, Overdraft: 5}, options: opts}.start(t, j)
	before, at := await(t, log, 0, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > 200_000 })
	for i := range 8 {
		p := []int{7, 2}[i%2]
		if err := c.Master().Rescale(t.Context(), map[string]int{"slow": p}, func() {}); err != nil {
			t.Fatal(err)
		}
		var done timeline.Event
		_, at = await(t, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
		done, at = await(t, log, at, "first checkpoint", completedCheckpoint)
		if done.Bytes > 2*before.Bytes {
			t.Errorf("rescale %d: %d bytes in flight, %d at the beginning", i+1, done.Bytes, before.Bytes)
		}
	}
	c.Master().StopSources()
	r := finish(t, c)
	r.exactly(t, int64(r.emitted["numbers"]))
}
