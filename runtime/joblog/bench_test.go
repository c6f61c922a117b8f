package joblog

import (
	"testing"
	"time"
)

// BenchmarkReplay: 100,000 finished tasks with their bytes by subpartition.
func BenchmarkReplay(b *testing.B) {
	const tasks = 100_000
	dir := must(OpenDir(b.TempDir()))(b)
	s := open(b, dir, 1)
	results := make([]int64, 8)
	for i := range tasks {
		e := finished("vertex", i, 0, 1)
		e.Results = []Result{{DataSet: "vertex->next#0", Bytes: results}}
		s.Append(Entry{Event: e})
	}
	shut(b, s)
	st := s.Stats()
	var spent time.Duration
	epoch := uint64(2)
	b.ResetTimer()
	for b.Loop() {
		begin := time.Now()
		s := open(b, dir, epoch)
		n := 0
		if err := s.Replay(func(Event) error { n++; return nil }); err != nil || n != tasks {
			b.Fatal(n, err)
		}
		spent += time.Since(begin)
		epoch++
		shut(b, s)
	}
	b.ReportMetric(float64(st.HookTime.Nanoseconds())/tasks, "ns/append")
	b.ReportMetric(1000, "ns/append-target")
	b.ReportMetric(float64(st.WriterCPU.Nanoseconds())/tasks, "ns-writer-CPU/event")
	b.ReportMetric(float64(st.Bytes)/tasks, "B/task")
	b.ReportMetric(tasks*float64(b.N)/spent.Seconds(), "events/s")
	b.ReportMetric(200_000, "events/s-target")
}
