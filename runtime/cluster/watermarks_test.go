package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// A reader with two splits is half as far as one with one split when channels
// are full. After a rescale of the source another reader goes on with a split
// that is behind, on the channel on which the watermarks of the one ahead were in
// flight. No window may be emitted before all of its records are there: it would
// be emitted again.
//
// Fails if Plan.continues answers true (upstream and downstream, most times).
func TestWatermarksOfOldChannels(t *testing.T) {
	for path, opts := range paths {
		for _, rescale := range []map[string]int{{"numbers": 3}, {"numbers": 3, "windows": 3}, {"numbers": 4, "windows": 1}} {
			t.Run(fmt.Sprintf("%s/%d-%d", path, rescale["numbers"], rescale["windows"]), func(t *testing.T) {
				j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 64, Splits: 3, Keys: 20}).
					op("windows", "window-sum", 2, operator.Params{Size: 20, Source: 9, Cost: int64(200 * time.Microsecond)}).
					op("out", "verify-sink", 1, operator.Params{}).
					link("numbers", "windows", graph.Hash).link("windows", "out", graph.Rebalance)
				o := unaligned("100 ms", opts)
				o["pipeline.auto-watermark-interval"] = "2 ms"
				c, log := setup{workers: 2, slots: 8, segment: 1 << 10, network: task.NetworkConfig{Exclusive: 4, Floating: 8, MaxPerSub: 10, Overdraft: 5}, options: o}.start(t, j)
				_, at := await(t, log, 0, "a window", kind(timeline.FirstOutput))
				for range 3 {
					_, at = await(t, log, at, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > 20_000 })
				}
				if err := c.Master().Rescale(t.Context(), rescale, func() {}); err != nil {
					t.Fatal(err)
				}
				restored, at := await(t, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
				_, at = await(t, log, at, "first checkpoint", completedCheckpoint)
				await(t, log, at, "another checkpoint", completedCheckpoint)
				c.Master().StopSources()
				r := finish(t, c)
				r.exactly(t, r.distinct)
				t.Logf("%d bytes in flight, %d windows", restored.Bytes, r.distinct)
			})
		}
	}
}
