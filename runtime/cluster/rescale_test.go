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
