package cluster_test

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// TestSoak rescales under contention, each time from the first checkpoint after
// the last restore: SOAK=n runs of it, with two busy loops beside each. Losses
// that need a race show here or nowhere (FLINK-38544, apache/flink PR 28544).
func TestSoak(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SOAK"))
	if err != nil {
		n = 1
	}
	var stop atomic.Bool
	defer stop.Store(true)
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(0) + 2))
	for range 2 {
		go func() {
			goruntime.LockOSThread()
			for !stop.Load() {
			}
		}()
	}
	rows := []row{{"keyed-broadcast", 7, 2}, {"pipeline", 3, 7}, {"union", 2, 3}, {"keyed-different-parallelism", 12, 7}}
	names := []string{"during", "upstream", "during", "downstream"}
	for i := range n {
		r, path := rows[i%len(rows)], names[i/len(rows)%len(names)]
		ok := t.Run(fmt.Sprintf("%d/%s/%d-%d/%s", i, r.topology, r.from, r.to, path), func(t *testing.T) {
			there, back := topology(r.topology, r.to), topology(r.topology, r.from)
			c, log := setup{
				workers: 3, slots: 64, memory: 64 << 20, segment: 2 << 10,
				network: task.NetworkConfig{Exclusive: i % 2, Floating: 8, MaxPerSub: 4, Overdraft: 5},
				options: unaligned("20 ms", paths[path]),
			}.start(t, &back.job)
			_, at := await(t, log, 0, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > 10_000 })
			for _, to := range []*scaled{there, back, there} {
				if err := c.Master().Rescale(t.Context(), to.parallelism, func() {}); err != nil {
					t.Fatal(err)
				}
				at = restoredWith(t, log, at, path)
			}
			c.Master().StopSources()
			res := finish(t, c)
			var emitted int64
			for _, n := range res.emitted {
				emitted += int64(n)
			}
			res.exactly(t, emitted)
		})
		if !ok {
			t.Fatalf("run %d of %d is wrong", i+1, n)
		}
	}
}
