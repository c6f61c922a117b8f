package expect

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"benchrun/workloads/spec"

	"pgregory.net/rapid"
)

// job makes a batch workload of vertices and edges "FROM PARTITIONER TO".
func job(t *testing.T, vertices, edges string) *spec.Workload {
	t.Helper()
	text := "schema = 1\nname = \"w\"\n[workload]\nmode = \"batch\"\nparallelism = 2\n" + vertices + edges + "[[scenario.step]]\ndo = \"finish\"\n"
	f, err := spec.Parse("w.toml", "/", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve("default")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func vertex(id, operator, params string) string {
	return fmt.Sprintf("[[workload.vertex]]\nid = %q\noperator = %q\nparams = { %s }\n", id, operator, params)
}

func edge(from, partitioner, to string) string {
	return fmt.Sprintf("[[workload.edge]]\nfrom = %q\nto = %q\npartitioner = %q\n", from, to, partitioner)
}

// whole are the ends of a sequence of records in splits.
func whole(records, splits int) (out []Position) {
	for s := range splits {
		n := 0
		for k := s; k < records; k += splits {
			n++
		}
		out = append(out, Position{Split: s, Emitted: uint64(n)})
	}
	return out
}

// A count in a batch job is one record a key, with the whole count; in a
// streaming job it is one a record.
//
// Fails if a batch count has running values, or if its records have the identity
// of their inputs.
func TestBatchCount(t *testing.T) {
	w := job(t, vertex("s", "sequence", "records = 1000, keys = 7, splits = 3")+vertex("k", "count-by-key", "")+vertex("out", "verify-sink", ""), edge("s", "hash", "k")+edge("k", "rebalance", "out"))
	e, err := Compute(w, map[string][]Position{"s": whole(1000, 3)})
	if err != nil {
		t.Fatal(err)
	}
	out := e["out"]
	if out.Records != 7 || len(out.aggs) != 7 || len(out.lanes) != 0 {
		t.Fatalf("%d records, %d aggregates, %d lanes", out.Records, len(out.aggs), len(out.lanes))
	}
	sum := int64(0)
	for _, n := range out.aggs {
		sum += n
	}
	if sum != 1000 {
		t.Errorf("the counts add up to %d", sum)
	}
	seen := NewSeen()
	for k, n := range out.aggs {
		seen.Record(1, 0, k[0], k[1], n, true)
	}
	if v := out.Compare(seen); !v.OK() {
		t.Errorf("%+v", v)
	}
	for k, n := range out.aggs { // one count is off
		seen = NewSeen()
		for k2, n2 := range out.aggs {
			if k2 == k {
				n2 = n + 1
			}
			seen.Record(1, 0, k2[0], k2[1], n2, true)
		}
		break
	}
	if v := out.Compare(seen); v.OK() {
		t.Error("a wrong count is right")
	}
	w.Mode = spec.Streaming
	if e, err = Compute(w, map[string][]Position{"s": whole(1000, 3)}); err != nil || e["out"].Records != 1000 {
		t.Errorf("streaming: %v, %d records", err, e["out"].Records)
	}
}

// Fails if a chained vertex is counted, if a source counts what goes into it, or
// if words are not counted as split-words cuts them.
func TestConsumption(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "the quick fox\r\n\nthe end\n", "b.txt": "no newline"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]string{"t": {filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")}}
	for name, c := range map[string]struct {
		w    *spec.Workload
		want map[string]int64
	}{
		"words": {
			job(t, vertex("t", "lines", "paths = [\"*\"]")+vertex("w", "split-words", "")+vertex("k", "count-by-key", "")+vertex("out", "file-sink", ""),
				edge("t", "forward", "w")+edge("w", "hash", "k")+edge("k", "rebalance", "out")),
			map[string]int64{"t": 4, "k": 7, "out": 6}, // w runs in the task of t
		},
		"join": {
			job(t, vertex("a", "sequence", "records = 100")+vertex("b", "sequence", "records = 80")+vertex("j", "join", "")+vertex("x", "flat-map", "fan-out = 3")+vertex("out", "verify-sink", ""),
				edge("a", "hash", "j")+edge("b", "hash", "j")+edge("j", "rebalance", "x")+edge("x", "rebalance", "out")),
			map[string]int64{"a": 100, "b": 80, "j": 180, "x": 80, "out": 240},
		},
		"windows": {
			job(t, vertex("a", "sequence", "records = 1000, keys = 10")+vertex("f", "filter", "keep = 0.5")+vertex("w", "window-sum", "size = \"100ms\"")+vertex("out", "verify-sink", ""),
				edge("a", "rebalance", "f")+edge("f", "hash", "w")+edge("w", "rebalance", "out")),
			map[string]int64{"a": 1000, "f": 1000, "w": 500, "out": 100},
		},
	} {
		got, err := Consumption(c.w, files)
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	if _, err := Consumption(job(t, vertex("t", "lines", "paths = [\"*\"]")+vertex("out", "verify-sink", ""), edge("t", "rebalance", "out")), map[string][]string{"t": {filepath.Join(dir, "absent")}}); err == nil {
		t.Error("a file that is not there has no lines")
	}
}

// TestConsumptionIsWhatTheModelCounts: where every key occurs and nothing is
// filtered, the estimate is exact.
func TestConsumptionIsWhatTheModelCounts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		records, keys := rapid.IntRange(200, 400).Draw(r, "records"), rapid.IntRange(1, 5).Draw(r, "keys")
		middle := rapid.SampledFrom([]string{"map", "sort", "keyed-sum", "count-by-key"}).Draw(r, "operator")
		fan := rapid.IntRange(1, 3).Draw(r, "fan-out")
		w := job(t, vertex("s", "sequence", fmt.Sprintf("records = %d, keys = %d, splits = 4", records, keys))+vertex("x", "flat-map", fmt.Sprintf("fan-out = %d", fan))+vertex("m", middle, "")+vertex("out", "verify-sink", ""),
			edge("s", "rebalance", "x")+edge("x", "hash", "m")+edge("m", "rebalance", "out"))
		got, err := Consumption(w, nil)
		if err != nil {
			r.Fatal(err)
		}
		e, err := Compute(w, map[string][]Position{"s": whole(records, 4)})
		if err != nil {
			r.Fatal(err)
		}
		if got["s"] != int64(records) || got["m"] != int64(records*fan) || got["out"] != e["out"].Records {
			r.Fatalf("%v, the model puts %d out", got, e["out"].Records)
		}
	})
}
