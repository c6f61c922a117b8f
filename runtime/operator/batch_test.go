package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// batchOperator opens an operator as a batch task does.
func batchOperator(t failer, name, params string, c Context) (Operator, *collector) {
	t.Helper()
	op, err := New(name, []byte(params))
	if err != nil {
		t.Fatal(err)
	}
	out := &collector{}
	c.ID, c.Parallelism, c.MaxParallelism, c.Out, c.Batch, c.Uncharged = name, 1, 128, out, true, new(atomic.Bool)
	c.Keyed, c.Lists = state.NewBackend(0, 127), &state.Lists{}
	if err := op.Open(&c); err != nil {
		t.Fatal(err)
	}
	return op, out
}

// Sort gives its input in order, whatever fits its memory, and leaves no file.
//
// Fails if spill does not merge when there are too many runs and forgets one of
// them, if merge ends with the first run that does, or if a run keeps its name.
func TestSortSpillsAndMerges(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.SampledFrom([]int{1, 200, 70_000, 1 << 20}).Draw(t, "memory")
		op, out := batchOperator(t, "sort", `{}`, Context{SpillDir: dir, Memory: memory})
		keys := rapid.Uint64Range(1, 50).Draw(t, "keys")
		size := rapid.IntRange(0, 300).Draw(t, "data")
		var want []record.Record
		for n := range rapid.IntRange(0, 400).Draw(t, "records") {
			r := record.Record{Key: record.Mix(uint64(n)) % keys, Number: uint64(n), Value: int64(n), Source: uint16(n % 3), Data: []byte(strings.Repeat("x", (n*7)%(size+1)))}
			want = append(want, r)
			if err := op.Process(0, &r); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, func(a, b record.Record) int {
			for _, d := range []int{int(a.Key) - int(b.Key), int(a.Source) - int(b.Source), int(a.Number) - int(b.Number)} {
				if d != 0 {
					return d
				}
			}
			return 0
		})
		if err := op.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := op.Close(); err != nil {
			t.Fatal(err)
		}
		if len(out.recs) != len(want) {
			t.Fatalf("%d records of %d", len(out.recs), len(want))
		}
		for i := range want {
			if text(&out.recs[i]) != text(&want[i]) {
				t.Fatalf("place %d: %s, want %s", i, text(&out.recs[i]), text(&want[i]))
			}
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatalf("%s is left", left[0].Name())
		}
	})
}

// A count in a batch job emits one record a key, at the end.
//
// Fails if Process emits running counts in a batch job.
func TestBatchCountByKey(t *testing.T) {
	op, out := batchOperator(t, "count-by-key", `{"Source":7}`, Context{})
	for n := range 100 {
		if err := op.Process(0, &record.Record{Key: uint64(n % 3), Number: uint64(n), Value: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if len(out.recs) != 0 {
		t.Errorf("%d records before the end", len(out.recs))
	}
	if err := op.Finish(); err != nil {
		t.Fatal(err)
	}
	got := texts(out.recs)
	want := []string{}
	for k, n := range []int{34, 33, 33} {
		want = append(want, fmt.Sprintf("s7 c0 n0 k%d v%d f%d t0 \"\"", k, n, record.FlagAggregate))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of two attempts of a subtask the files of the one that is committed become
// visible, once, however often that is repeated; the other's go.
//
// Fails if names do not tell attempts apart, or if CommitFiles of a second time
// is an error.
func TestBatchFileSinkCommitsOneAttempt(t *testing.T) {
	dir := t.TempDir()
	var reports []*FileReport
	for _, name := range []string{AttemptName("run", 1, 0), AttemptName("run", 2, 0)} {
		op, _ := batchOperator(t, "file-sink", `{}`, Context{Dir: dir, Name: name})
		for n := range 10 {
			if err := op.Process(0, &record.Record{Number: uint64(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := op.Finish(); err != nil {
			t.Fatal(err)
		}
		rep, err := op.(Reporter).Report()
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, rep.(*FileReport))
		if err := op.Close(); err != nil {
			t.Fatal(err)
		}
	}
	visible := func() (n int) {
		if err := ReadFiles(reports[0], func(*record.Record) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := visible(); n != 0 {
		t.Errorf("%d records are visible before a commit", n)
	}
	for range 2 {
		if err := CommitFiles(reports[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := DropFiles(reports[1], 2); err != nil {
		t.Fatal(err)
	}
	if n := visible(); n != 10 {
		t.Errorf("%d records are visible, not 10", n)
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "output"))
	if len(entries) != 1 {
		t.Errorf("%d files, not 1", len(entries))
	}
}
