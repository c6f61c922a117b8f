package page

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

// nightly is a run of a whole night: ten workloads of eight cells and ten
// blocks.
func nightly(t testing.TB) string {
	t.Helper()
	var all []fixture
	for i := range 10 {
		f := standard()
		f.workload, f.blocks, f.parallelism, f.cells = fmt.Sprintf("workload-%d", i), 10, 8, nil
		for _, p := range []int{4, 8} {
			for _, c := range []string{"U=false,R=false,D=false", "U=true,R=false,D=false", "U=true,R=true,D=false", "U=true,R=true,D=true"} {
				f.cells = append(f.cells, fmt.Sprintf("%s,parallelism=%d", c, p))
			}
		}
		if i%2 == 1 {
			f.steps = []string{"up", "down"}
		}
		all = append(all, f)
	}
	return writeRun(t, all...)
}

// TestPageSize holds the page of a whole night below 5 MB, raw samples
// included. Fails if, for instance, gzipFrom is raised beyond the size of the
// raw samples.
func TestPageSize(t *testing.T) {
	if testing.Short() {
		t.Skip("renders 800 trials")
	}
	dir := nightly(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	page := read(t, dir, "report.html")
	if len(page) > 5_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, name := range []string{"trials.jsonl", "run.json", "samples.csv", "summary.json"} {
		if !strings.Contains(page, `download="`+name+`.gz"`) {
			t.Errorf("%s is not in the page, or not compressed", name)
		}
	}
	if !bytes.Equal(unpack(t, page, "trials.jsonl.gz"), []byte(read(t, dir, "trials.jsonl"))) {
		t.Error("the raw samples in the page are not those of the run")
	}
}

// BenchmarkNight renders a whole night: the page, then the pictures. Aims: 3 s,
// 10 s, 300 MB at the peak.
func BenchmarkNight(b *testing.B) {
	dir := nightly(b)
	l, err := result.Load(dir)
	if err != nil {
		b.Fatal(err)
	}
	var html, plots time.Duration
	var size, peak int
	for b.Loop() {
		start := time.Now()
		v, _, err := newView(l, nil)
		if err != nil {
			b.Fatal(err)
		}
		page, err := execute("report.html", v)
		if err != nil {
			b.Fatal(err)
		}
		html += time.Since(start)
		size = len(page)
		start = time.Now()
		if err := writePlots(dir, "", v.plots()); err != nil {
			b.Fatal(err)
		}
		plots += time.Since(start)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, int(m.HeapSys+m.StackSys))
	}
	n := float64(b.N)
	files, err := filepath.Glob(filepath.Join(dir, "plots", "*.png"))
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			bytes += int(info.Size())
		}
	}
	b.ReportMetric(html.Seconds()/n, "html-s")
	b.ReportMetric(plots.Seconds()/n, "plots-s")
	b.ReportMetric(float64(size)/1e6, "html-MB")
	b.ReportMetric(float64(peak)/(1<<20), "heap-MiB")
	b.ReportMetric(float64(len(files)), "plots")
	b.ReportMetric(float64(bytes)/1e6, "plots-MB")
	b.ReportMetric(0, "ns/op")
}
