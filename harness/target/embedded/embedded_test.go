package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"benchrun/harness/target"
	"benchrun/harness/target/embedded"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

const head = `
schema = 1
name = "job"
description = "a small job"
[cluster]
target = "embedded"
workers = 2
slots-per-worker = 8
network-memory = "32 MiB"
buffer-size = "4 KiB"
[options]
"execution.checkpointing.interval" = "30 ms"
"execution.checkpointing.unaligned.enabled" = true
[workload]
parallelism = 2
max-parallelism = 16
`

// workload makes one from lines: "a keyed-sum 3 cost = 1" is a vertex with its
// parallelism (0: the default) and parameters, "a hash b" an edge.
func workload(t testing.TB, lines ...string) *spec.Workload {
	t.Helper()
	var vertices, edges strings.Builder
	for _, l := range lines {
		f := strings.SplitN(l, " ", 4)
		if strings.Contains("forward rebalance rescale hash broadcast shuffle global custom", f[1]) {
			fmt.Fprintf(&edges, "[[workload.edge]]\nfrom = %q\nto = %q\npartitioner = %q\n", f[0], f[2], f[1])
			continue
		}
		fmt.Fprintf(&vertices, "[[workload.vertex]]\nid = %q\noperator = %q\n", f[0], f[1])
		if len(f) > 2 && f[2] != "0" {
			fmt.Fprintf(&vertices, "parallelism = %s\n", f[2])
		}
		if len(f) > 3 {
			fmt.Fprintf(&vertices, "params = { %s }\n", f[3])
		}
	}
	file, err := spec.Parse("job.toml", t.TempDir(), []byte(head+vertices.String()+edges.String()+"[[scenario.step]]\ndo = \"finish\"\n"), nil)
	if err != nil {
		t.Fatalf("%s\n%v", strings.Join(lines, "\n"), err)
	}
	w, err := file.Resolve(file.Cells()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a job to its end and returns what came out. meanwhile may wait
// for what happens.
func run(t testing.TB, w *spec.Workload, meanwhile func(ctx context.Context, log *timeline.Log)) *target.Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := timeline.New()
	j, err := embedded.New().Start(ctx, target.Request{Workload: w, Dir: t.TempDir(), Seed: 1}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if meanwhile != nil {
		meanwhile(ctx, log)
	}
	out, err := j.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func prove(t testing.TB, out *target.Output, records int64) {
	t.Helper()
	if !out.Proved || out.Lost != 0 || out.Duplicated != 0 || out.Received != out.Expected || out.Digest != out.ExpectedDigest {
		t.Errorf("%+v", *out)
	}
	if records >= 0 && out.Received != records || out.Received == 0 {
		t.Errorf("%d records came out, want %d", out.Received, records)
	}
}

func text(t testing.TB, name, content string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const seq = "records = 3000, record-size = \"64 B\", keys = 50"

func TestJobsAreProved(t *testing.T) {
	words := text(t, "a.txt", strings.Repeat("the quick, brown fox\r\n\njumps over Straße_9 -- twice\n", 40)+"no end")
	for _, c := range []struct {
		name    string
		records int64
		lines   []string
	}{
		{"map", 3000, []string{"s sequence 3 " + seq, "m map 2", "out verify-sink 1", "s rebalance m", "m rescale out"}},
		{"filter and flat-map", -1, []string{"s sequence 0 " + seq, "f filter 0 keep = 0.3", "x flat-map 0 fan-out = 3", "out verify-sink 3", "s forward f", "f forward x", "x shuffle out"}},
		{"keyed-sum", 3000, []string{"s sequence 0 " + seq + ", key-skew = 1.1", "k keyed-sum 3 state-size = \"20 B\"", "out verify-sink 0", "s hash k", "k rebalance out"}},
		{"window-sum", -1, []string{"s sequence 0 " + seq, "w window-sum 3 size = \"70 ms\"", "out verify-sink 0", "s hash w", "w rebalance out"}},
		{"join", 3000, []string{"a sequence 0 " + seq, "b sequence 0 " + seq, "j join 3", "out verify-sink 0", "a hash j", "b hash j", "j rebalance out"}},
		{"co-map", 6000, []string{"a sequence 0 " + seq, "b sequence 0 " + seq, "c co-map 3", "out verify-sink 0", "a rebalance c", "b rebalance c", "c rebalance out"}},
		{"broadcast-map", 6000, []string{"a sequence 0 " + seq, "b sequence 0 " + seq, "c broadcast-map 3", "out verify-sink 0", "a rebalance c", "b broadcast c", "c rebalance out"}},
		{"words", 40*7 + 2 + 40*1, []string{fmt.Sprintf("t lines 0 paths = [%q]", words), "w split-words 0", "k count-by-key 3", "out verify-sink 0", "t rebalance w", "w hash k", "k rebalance out"}},
		{"committed files", 3000, []string{"s sequence 0 " + seq, "k keyed-sum 3", "out file-sink 0", "s hash k", "k rebalance out"}},
		{"two file sinks, one folder", 6000, []string{"s sequence 0 " + seq, "out file-sink 0", "out-1 file-sink 0", "s rebalance out", "s rebalance out-1"}},
		{"sum of a window's sums", -1, []string{"s sequence 0 " + seq, "w window-sum 3 size = \"70 ms\"", "m map 0", "out verify-sink 0", "s hash w", "w rebalance m", "m forward out"}},
	} {
		t.Run(c.name, func(t *testing.T) { prove(t, run(t, workload(t, c.lines...), nil), c.records) })
	}
}

// chain is a random chain of operators behind a sequence.
var chain = rapid.Custom(func(t *rapid.T) []string {
	lines := []string{fmt.Sprintf("v0 sequence %d records = %d, record-size = %q, keys = %d, splits = %d", rapid.IntRange(1, 3).Draw(t, "sources"),
		rapid.IntRange(1, 3000).Draw(t, "records"), fmt.Sprint(rapid.IntRange(44, 9000).Draw(t, "size"), " B"), rapid.IntRange(1, 200).Draw(t, "keys"), rapid.IntRange(1, 9).Draw(t, "splits"))}
	n := rapid.IntRange(1, 4).Draw(t, "operators")
	windowed := false
	for i := 1; i <= n; i++ {
		ops := []string{"map 2", "filter 3 keep = 0.7", "flat-map 1 fan-out = 2", "keyed-sum 3", "count-by-key 2", "window-sum 3 size = \"100 ms\""}
		if windowed { // copies of an aggregate have no identity of their own
			ops = slices.Delete(ops, 2, 3)
		}
		op := rapid.SampledFrom(ops).Draw(t, "operator")
		windowed = windowed || strings.HasPrefix(op, "window")
		partitioners := []string{"rebalance", "shuffle", "rescale", "global"}
		if strings.Contains(op, "key") || strings.HasPrefix(op, "window") {
			partitioners = []string{"hash"}
		}
		lines = append(lines, fmt.Sprintf("v%d %s", i, op), fmt.Sprintf("v%d %s v%d", i-1, rapid.SampledFrom(partitioners).Draw(t, "partitioner"), i))
	}
	sink := rapid.SampledFrom([]string{"verify-sink", "file-sink"}).Draw(t, "sink")
	return append(lines, fmt.Sprintf("out %s %d", sink, rapid.IntRange(1, 3).Draw(t, "sinks")), fmt.Sprintf("v%d rebalance out", n))
})

func TestRandomChainsAreProved(t *testing.T) {
	for seed := range 12 {
		lines := chain.Example(seed + 40)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Log("\n" + strings.Join(lines, "\n"))
			out := run(t, workload(t, lines...), nil)
			if out.Expected == 0 && out.Received == 0 { // all was filtered away
				return
			}
			prove(t, out, -1)
		})
	}
}

// Files that are read over and over: each is, also when there are more files
// than readers, and every pass is proved.
func TestLoopingFilesAreProved(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), []byte(fmt.Sprintf("file %d\nsecond line\n", i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := workload(t, fmt.Sprintf("t lines 2 loop = true, paths = [%q]", dir+"/*.txt"), "out verify-sink 2", "t rebalance out")
	out := run(t, w, func(ctx context.Context, log *timeline.Log) {
		completed := 0
		for seen := 0; completed < 3; {
			events, err := log.Wait(ctx, seen)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(events)
			for _, e := range events {
				if e.Kind == timeline.CheckpointCompleted {
					completed++
				}
			}
		}
	})
	prove(t, out, -1)
}
