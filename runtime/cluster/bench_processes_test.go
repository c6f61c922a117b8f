package cluster_test

import (
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

func sums(p int) *job {
	return (&job{}).sequence("numbers", p, source.Params{}).op("sum", "keyed-sum", p, operator.Params{}).op("out", "discard", p, operator.Params{}).
		link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
}

// BenchmarkStartProcesses is the time from nothing to a running job whose
// master and two workers are processes.
func BenchmarkStartProcesses(b *testing.B) {
	for b.Loop() {
		begin := time.Now()
		c, log := setup{workers: 2, slots: 4, segment: 32 << 10, options: unaligned("1 s", nil)}.processes(b, sums(4))
		await(b, log, 0, "all tasks running", kind(timeline.CheckpointTriggered))
		b.ReportMetric(time.Since(begin).Seconds(), "s-running")
		b.ReportMetric(0.5, "s-running-target")
		c.Close()
	}
}

// BenchmarkMasterChange is the time from the death of a master, which another
// one follows at once, to all tasks running again.
func BenchmarkMasterChange(b *testing.B) {
	for b.Loop() {
		c, log := setup{workers: 2, slots: 4, segment: 32 << 10, options: unaligned("50 ms", paths["during"])}.processes(b, sums(4))
		_, i := await(b, log, 0, "checkpoint", completedCheckpoint)
		var t0 time.Duration
		if err := c.KillMaster(0, func() { t0 = log.Now() }); err != nil {
			b.Fatal(err)
		}
		elected, i := await(b, log, i, "another master", kind(timeline.MasterElected))
		running, _ := await(b, log, i, "all tasks running", kind(timeline.CheckpointTriggered))
		b.ReportMetric((elected.T - t0).Seconds(), "s-elected")
		b.ReportMetric((running.T - elected.T).Seconds(), "s-running")
		b.ReportMetric(0.5, "s-running-target")
		c.Close()
	}
}
