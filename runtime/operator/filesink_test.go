package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// committed counts each number in the visible files of a sink.
func committed(t failer, g *group) map[uint64]int {
	t.Helper()
	rep, err := g.ops[0].(Reporter).Report()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]int{}
	if err := ReadFiles(rep.(*FileReport), func(r *record.Record) error {
		seen[r.Number]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return seen
}

// Two-phase commit: a crash between any two steps of writing, preparing,
// completing and telling leaves each record of a complete checkpoint visible
// once in the end, and at no time is one visible that a checkpoint does not
// hold.
func TestFileSinkCommitsExactlyOnceThroughCrashes(t *testing.T) {
	base := t.TempDir()
	if dir, err := os.MkdirTemp("/dev/shm", "filesink"); err == nil { // in memory: it syncs thousands of files
		base = dir
		defer os.RemoveAll(dir)
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		g := &group{t: t, name: "file-sink", dir: dir, out: &collector{}}
		parallelism := rapid.IntRange(1, 3).Draw(t, "parallelism")
		if err := g.open(parallelism, nil); err != nil {
			t.Fatal(err)
		}
		var (
			next, durable uint64 // the source's position: now, and in the last complete checkpoint
			checkpoint    int64
			last          *saved // of the last complete checkpoint
			prepared      *saved
			preparedAt    uint64
			untold        int64 // complete checkpoint that subtasks have not been told of
		)
		check := func() {
			for n, k := range committed(t, g) {
				if k != 1 || n >= durable {
					t.Fatalf("record %d is visible %d times; %d are in complete checkpoints", n, k, durable)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "records") {
					if err := g.ops[rapid.IntRange(0, len(g.ops)-1).Draw(t, "subtask")].Process(0, &record.Record{Number: next, Value: -1}); err != nil {
						t.Fatal(err)
					}
					next++
				}
			},
			"prepare": func(*rapid.T) { // one that never completes is overtaken by the next
				checkpoint++
				prepared, preparedAt = g.snapshot(checkpoint), next
			},
			"complete": func(t *rapid.T) {
				if prepared == nil {
					t.Skip("nothing is prepared")
				}
				last, durable, untold, prepared = prepared, preparedAt, checkpoint, nil
			},
			"tell": func(t *rapid.T) {
				if untold == 0 {
					t.Skip("nothing is complete")
				}
				for _, op := range g.ops {
					if rapid.Bool().Draw(t, "told") { // perhaps again, perhaps never
						if err := op.Completed(untold); err != nil {
							t.Fatal(err)
						}
					}
				}
			},
			"crash": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "closed") {
					g.close()
				}
				if rapid.Bool().Draw(t, "rescaled") {
					parallelism = rapid.IntRange(1, 4).Draw(t, "to")
				}
				prepared, untold, next = nil, 0, durable // the source goes back, too
				if err := g.open(parallelism, last); err != nil {
					t.Fatal(err)
				}
			},
			"": func(*rapid.T) { check() },
		})
		checkpoint++
		g.snapshot(checkpoint)
		durable = next
		for _, op := range g.ops {
			if err := op.Completed(checkpoint); err != nil {
				t.Fatal(err)
			}
		}
		g.close()
		check()
		if seen := committed(t, g); uint64(len(seen)) != next {
			t.Fatalf("%d of %d records are visible in the end", len(seen), next)
		}
	})
}

func fileGroup(t *testing.T, id, dir string) (Operator, *Context) {
	t.Helper()
	op, c := mustNew(t, "file-sink", Params{Path: "out"}), newContext(0, 1, nowhere{})
	c.ID, c.Dir = id, dir
	if err := op.Open(c); err != nil {
		t.Fatal(err)
	}
	return op, c
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestUnpreparedFileIsRemovedAtClose(t *testing.T) {
	dir := t.TempDir()
	op, _ := fileGroup(t, "a", dir)
	if err := op.Process(0, &record.Record{}); err != nil {
		t.Fatal(err)
	}
	if n := names(t, filepath.Join(dir, "out")); len(n) != 1 || !strings.HasPrefix(n[0], ".") {
		t.Fatalf("while writing: %v", n)
	}
	if err := op.Close(); err != nil {
		t.Fatal(err)
	}
	if n := names(t, filepath.Join(dir, "out")); len(n) != 0 {
		t.Errorf("left: %v", n)
	}
}

func TestPreparedFileOutlivesClose(t *testing.T) {
	dir := t.TempDir()
	op, _ := fileGroup(t, "a", dir)
	if err := op.Process(0, &record.Record{}); err != nil {
		t.Fatal(err)
	}
	if err := op.Prepare(1); err != nil {
		t.Fatal(err)
	}
	if err := op.Close(); err != nil {
		t.Fatal(err)
	}
	if n := names(t, filepath.Join(dir, "out")); len(n) != 1 {
		t.Errorf("left: %v", n)
	}
}

func TestCommittedRecordsReadBack(t *testing.T) {
	op, _ := fileGroup(t, "a", t.TempDir())
	want := record.Record{Key: 1 << 63, Number: 1<<64 - 1, Value: -5, Copy: 7, Source: 8, Flags: record.FlagAggregate}
	if err := op.Process(0, &want); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(int64) error{op.Prepare, op.Completed, op.Completed} {
		if err := step(1); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := op.(Reporter).Report()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := ReadFiles(rep.(*FileReport), func(r *record.Record) error {
		n++
		if text(r) != text(&want) {
			t.Errorf("%s, want %s", text(r), text(&want))
		}
		return nil
	}); err != nil || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
}

// Sinks may share a folder, and the id of one may begin with that of another.
func TestSinksOfOneFolderReadTheirOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for n, id := range []string{"out", "out-1", "out-1-2"} {
		op, _ := fileGroup(t, id, dir)
		if err := op.Process(0, &record.Record{Number: uint64(n)}); err != nil {
			t.Fatal(err)
		}
		if err := op.Prepare(1); err != nil {
			t.Fatal(err)
		}
		if err := op.Completed(1); err != nil {
			t.Fatal(err)
		}
	}
	for n, id := range []string{"out", "out-1", "out-1-2"} {
		var got []uint64
		if err := ReadFiles(&FileReport{Dir: filepath.Join(dir, "out"), Prefix: "part-" + id + "-"}, func(r *record.Record) error {
			got = append(got, r.Number)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0] != uint64(n) {
			t.Errorf("%s reads records %v, want %d alone", id, got, n)
		}
	}
}

func TestCommitOfALostFileIsAnError(t *testing.T) {
	for _, name := range []string{"part-op-0-1-gone", "../elsewhere"} {
		c := newContext(0, 1, nowhere{})
		c.Dir = t.TempDir()
		l, err := c.Lists.Get("pending", state.Split)
		if err != nil {
			t.Fatal(err)
		}
		l.Items = [][]byte{[]byte(name)}
		if err := mustNew(t, "file-sink", Params{}).Open(c); err == nil {
			t.Errorf("%s was committed", name)
		}
	}
}

// What a job has left goes, committed or not; nothing goes of another job, of another
// sink, or of the folder's owner, and the folder goes if it is empty.
//
// Fails if RemoveFiles does not go by the run or by the prefix, or leaves what is
// hidden.
func TestRemoveFiles(t *testing.T) {
	for _, others := range [][]string{nil, {"notes.txt"}, {"part-out-0-1-OTHER.e1a0", ".part-out-0-1-OTHER.e1a0", "part-out-1-0-1-RUN.e1a0", ".part-out-0-1-RUNE.e1a0", "part-out-0-1-0badf00d"}} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{"part-out-0-1-RUN.e1a0", ".part-out-1-2-RUN.e3a1"}, others...) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // it may be repeated
			if err := RemoveFiles(&FileReport{Dir: dir, Prefix: "part-out-", Run: "RUN"}); err != nil {
				t.Fatal(err)
			}
		}
		left, err := os.ReadDir(dir)
		if len(others) == 0 != errors.Is(err, fs.ErrNotExist) || len(left) != len(others) {
			t.Errorf("%v: %v is left, %v", others, left, err)
		}
	}
	if err := RemoveFiles(&FileReport{Dir: t.TempDir(), Prefix: "part-out-"}); err == nil {
		t.Error("files of all runs were removed")
	}
}
