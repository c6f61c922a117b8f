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
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

func workload(t testing.TB, lines ...string) *spec.Workload {
	t.Helper()
	return targettest.Workload(t, "embedded", lines...)
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

func prove(t testing.TB, out *target.Output) {
	t.Helper()
	if !out.Proved || out.Lost != 0 || out.Duplicated != 0 || out.Received != out.Expected || out.Digest != out.ExpectedDigest {
		t.Errorf("%+v", *out)
	}
	if out.Received == 0 {
		t.Error("nothing came out")
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
			prove(t, out)
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
	prove(t, out)
}
