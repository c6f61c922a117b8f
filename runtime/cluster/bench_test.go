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
	<-time.After(d)
	to := log.Now()
	var n int64
	for _, e := range log.Events() {
		if e.Kind == timeline.Throughput && e.T > from && e.T <= to {
			n += e.Records
		}
	}
	return float64(n) / (to - from).Seconds()
}

// BenchmarkRescale measures a rescale with R and D from its start to RUNNING,
// to the first checkpoint, and to the last byte filtered.
func BenchmarkRescale(b *testing.B) {
	for _, x := range []struct {
		from, to        int
		cost            time.Duration
		size            int
		running, first  float64 // targets, seconds
		memory, segment int
	}{
		{4, 6, 200 * time.Microsecond, 256, 0.05, 0.1, 256 << 20, 32 << 10},
		{32, 48, time.Millisecond, 1024, 0.15, 0.3, 1 << 30, 32 << 10},
		{100, 128, 4 * time.Millisecond, 1024, 0.6, 1, 2 << 30, 32 << 10},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d-%d/workers=%d", x.from, x.to, workers), func(b *testing.B) {
				for b.Loop() {
					j := (&job{}).sequence("numbers", x.from, source.Params{RecordSize: x.size, Splits: 256}).
						op("slow", "keyed-sum", x.from, operator.Params{Cost: int64(x.cost)}).op("out", "verify-sink", x.from, operator.Params{}).
						link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
					c, log := setup{
						workers: workers, slots: x.to, segment: x.segment, memory: int64(x.memory),
						network: task.NetworkConfig{Exclusive: 2, Floating: 8, MaxPerSub: 10, Overdraft: 5},
						options: unaligned("1 s", paths["during"]),
					}.start(b, j)
					var last int64
					_, at := await(b, log, 0, "full channels", func(e timeline.Event) bool {
						full := completedCheckpoint(e) && last > 0 && e.Bytes < last*11/10
						if completedCheckpoint(e) {
							last = e.Bytes
						}
						return full
					})
					var t0 time.Duration
					if err := c.Master().Rescale(b.Context(), map[string]int{"slow": x.to}, func() { t0 = log.Now() }); err != nil {
						b.Fatal(err)
					}
					_, i := await(b, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
					first, _ := await(b, log, i, "first checkpoint", completedCheckpoint)
					var running, filtered time.Duration
					var inflight int64
					for _, e := range log.Events() {
						switch {
						case e.T < t0:
						case e.Kind == timeline.TaskState && e.State == "RUNNING":
							running = e.T
						case e.Kind == timeline.RestoreFiltered:
							filtered = max(filtered, e.T)
						case e.Kind == timeline.RestoreAssigned:
							inflight = e.Bytes
						}
					}
					b.ReportMetric((running - t0).Seconds(), "s-running")
					b.ReportMetric(x.running, "s-running-target")
					b.ReportMetric((first.T - t0).Seconds(), "s-checkpoint")
					b.ReportMetric(x.first, "s-checkpoint-target+writing")
					b.ReportMetric((filtered - t0).Seconds(), "s-filtered")
					b.ReportMetric(float64(inflight)/1e6, "MB-restored")
					b.ReportMetric(float64(first.Bytes)/1e6, "MB-first")
					c.Close()
				}
			})
		}
	}
}
