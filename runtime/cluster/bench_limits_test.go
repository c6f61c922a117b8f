package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// BenchmarkUnalignedCheckpoint takes one with at least 64 MiB in flight under
// full back-pressure at parallelism 32.
func BenchmarkUnalignedCheckpoint(b *testing.B) {
	for b.Loop() {
		j := (&job{}).sequence("numbers", 32, source.Params{RecordSize: 1024, Splits: 256}).
			op("slow", "keyed-sum", 32, operator.Params{Cost: int64(4 * time.Millisecond)}).op("out", "discard", 32, operator.Params{}).
			link("numbers", "slow", graph.Hash).link("slow", "out", graph.Forward)
		c, log := setup{
			workers: 2, slots: 32, segment: 32 << 10, memory: 1 << 30,
			network: task.NetworkConfig{Exclusive: 4, Floating: 8, MaxPerSub: 10, Overdraft: 5},
			options: unaligned("1 s", nil),
		}.start(b, j)
		_, i := await(b, log, 0, "64 MiB in flight", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes >= 64<<20 })
		begin, i := await(b, log, i, "trigger", func(e timeline.Event) bool { return e.Kind == timeline.CheckpointTriggered })
		end, _ := await(b, log, i, "checkpoint", completedCheckpoint)
		b.ReportMetric((end.T - begin.T).Seconds(), "s-checkpoint")
		b.ReportMetric(0.5, "s-checkpoint-target")
		b.ReportMetric(float64(end.Bytes)/(1<<20), "MiB-in-flight")
		c.Close()
	}
}

// BenchmarkStart is the time from nothing to a running job.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		begin := time.Now()
		j := (&job{}).sequence("numbers", 4, source.Params{}).
			op("sum", "keyed-sum", 4, operator.Params{}).op("out", "discard", 4, operator.Params{}).
			link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
		c, log := setup{workers: 2, slots: 4, segment: 32 << 10, options: unaligned("1 s", nil)}.start(b, j)
		await(b, log, 0, "all tasks running", func(e timeline.Event) bool { return e.Kind == timeline.CheckpointTriggered })
		b.ReportMetric(time.Since(begin).Seconds(), "s-running")
		b.ReportMetric(0.15, "s-running-target")
		c.Close()
	}
}

// heap is the live heap.
func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkIdleCost is the memory of a subtask and of a channel that do
// nothing: the difference between two sizes of the same idle job.
func BenchmarkIdleCost(b *testing.B) {
	idle := func(p int) (bytes, subtasks, channels int64) {
		before := heap()
		j := (&job{}).sequence("numbers", p, source.Params{Rate: 1, Splits: p}).op("out", "map", p, operator.Params{}).
			link("numbers", "out", graph.Rebalance)
		c, log := setup{workers: 2, slots: p, segment: 32 << 10, memory: 4 << 30, options: map[string]any{options.WatermarkInterval.Key(): "1 h"}}.start(b, j)
		defer c.Close()
		for n, i := 0, 0; n < 2*p; n++ {
			_, i = await(b, log, i, "tasks", func(e timeline.Event) bool { return e.Kind == timeline.TaskState && e.State == "RUNNING" })
		}
		return heap() - before, int64(2 * p), int64(p * p)
	}
	for b.Loop() {
		// Three equations: bytes = base + subtasks*x + channels*y.
		m0, s0, c0 := idle(20)
		m1, s1, c1 := idle(70)
		m2, s2, c2 := idle(120)
		b.Logf("%d subtasks: %d KiB, %d: %d KiB, %d: %d KiB", s0, m0>>10, s1, m1>>10, s2, m2>>10)
		m1, s1, c1, m2, s2, c2 = m1-m0, s1-s0, c1-c0, m2-m0, s2-s0, c2-c0
		y := float64(m2*s1-m1*s2) / float64(c2*s1-c1*s2)
		x := (float64(m1) - y*float64(c1)) / float64(s1)
		b.ReportMetric(x/1024, "KiB/subtask")
		b.ReportMetric(64, "KiB/subtask-target")
		b.ReportMetric(y, "B/channel")
		b.ReportMetric(512, "B/channel-target")
	}
}

// checkpointed makes a checkpoint with much in flight and returns its folder.
func checkpointed(b *testing.B, dir string, memory int64, bytes int64, exclusive int) string {
	c, log := setup{
		workers: 1, slots: 16, segment: 32 << 10, memory: memory, dir: dir,
		network: task.NetworkConfig{Exclusive: exclusive, Floating: 8, MaxPerSub: exclusive, Overdraft: 5},
		options: unaligned("1 s", map[string]any{options.ExternalizedRetention.Key(): "RETAIN_ON_CANCELLATION"}),
	}.start(b, bigJob(8, 5*time.Millisecond))
	e, _ := await(b, log, 0, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes >= bytes })
	c.Master().Cancel()
	<-c.Master().Done()
	c.Close()
	b.ReportMetric(float64(e.Bytes)/(1<<20), "MiB-in-flight")
	return filepath.Join(dir, "checkpoints", fmt.Sprintf("chk-%d", e.Checkpoint))
}

func bigJob(p int, cost time.Duration) *job {
	return (&job{}).sequence("numbers", p, source.Params{RecordSize: 1024, Splits: 64, Keys: 1 << 20}).
		op("slow", "keyed-sum", p, operator.Params{Cost: int64(cost)}).op("out", "discard", p, operator.Params{}).
		link("numbers", "slow", graph.Hash).link("slow", "out", graph.Forward)
}

// BenchmarkRestoreMemory restores what was in flight in 1 GiB of network memory
// with 256 MiB of it.
func BenchmarkRestoreMemory(b *testing.B) {
	for b.Loop() {
		path := checkpointed(b, b.TempDir(), 1<<30, 400<<20, 400)
		debug.FreeOSMemory()
		before := heap()
		var peak atomic.Int64
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			t := time.NewTicker(20 * time.Millisecond)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					var m goruntime.MemStats
					goruntime.ReadMemStats(&m)
					peak.Store(max(peak.Load(), int64(m.HeapAlloc)))
				case <-stop:
					return
				}
			}
		}()
		opts := unaligned("1 s", paths["during"])
		opts[options.RecoveryPath.Key()] = path
		c, log := setup{
			workers: 1, slots: 16, segment: 32 << 10, memory: 256 << 20,
			network: task.NetworkConfig{Exclusive: 16, Floating: 8, MaxPerSub: 16, Overdraft: 5}, options: opts,
		}.start(b, bigJob(12, 5*time.Millisecond))
		e, i := await(b, log, 0, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
		var last timeline.Event
		for n := 0; n < 12; n++ {
			last, i = await(b, log, i, "filtered", func(e timeline.Event) bool { return e.Kind == timeline.RestoreFiltered })
		}
		b.ReportMetric(float64(e.Bytes)/1e6/(last.T-e.T).Seconds(), "MB/s-filtered")
		b.ReportMetric(500, "MB/s-filtered-target")
		await(b, log, i, "checkpoint", completedCheckpoint)
		close(stop)
		<-done
		b.ReportMetric(float64(peak.Load()-before)/(1<<20), "MiB-peak")
		b.ReportMetric(256+128, "MiB-peak-target")
		c.Close()
	}
}

// BenchmarkSync is the bandwidth of written and synced files, to read the times
// of checkpoints by.
func BenchmarkSync(b *testing.B) {
	const size = 16 << 20
	data := make([]byte, size)
	for b.Loop() {
		dir := b.TempDir()
		begin := time.Now()
		for i := range 16 {
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.Write(data); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
		b.ReportMetric(16*size/1e6/time.Since(begin).Seconds(), "MB/s-synced")
	}
}
