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

// steadyFor is how long a throughput is measured.
const steadyFor = 3 * time.Second

// BenchmarkSteady is sequence -> hash -> keyed-sum -> discard with 100-byte
// records, a checkpoint every 2 s.
func BenchmarkSteady(b *testing.B) {
	for _, x := range []struct {
		workers, slots int
		target         float64
	}{{1, 2, 12}, {2, 1, 10}} {
		b.Run(fmt.Sprintf("workers=%d", x.workers), func(b *testing.B) {
			for b.Loop() {
				j := (&job{}).sequence("numbers", 2, source.Params{RecordSize: 100}).
					op("sum", "keyed-sum", 2, operator.Params{}).op("out", "discard", 2, operator.Params{}).
					link("numbers", "sum", graph.Hash).link("sum", "out", graph.Forward)
				c, log := setup{
					workers: x.workers, slots: x.slots, segment: 32 << 10, memory: 256 << 20,
					network: task.NetworkConfig{Exclusive: 2, Floating: 8, MaxPerSub: 10, Overdraft: 5},
					options: map[string]any{"execution.checkpointing.interval": "2 s"},
				}.start(b, j)
				await(b, log, 0, "a checkpoint", completedCheckpoint)
				b.ReportMetric(rate(log, steadyFor)/1e6, "Mrec/s")
				b.ReportMetric(x.target, "Mrec/s-target")
				c.Close()
			}
		})
	}
}

// rate is the number of records that left the sources per second.
func rate(log *timeline.Log, d time.Duration) float64 {
	from := log.Now()
	time.Sleep(d)
	to := log.Now()
	var n int64
	for _, e := range log.Events() {
		if e.Kind == timeline.Throughput && e.T > from && e.T <= to {
			n += e.Records
		}
	}
	return float64(n) / (to - from).Seconds()
}
