package trial

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"benchrun/harness/result"
)

// TestNumbersAreNotReused: a trial that is run again takes the files of none that
// has been there.
//
// Fails if the numbers go on from the count of readable lines: the last good
// trial's timeline is then gone, and its id is there twice.
func TestNumbersAreNotReused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, f *result.Folder)
		next  string
	}{
		{"a line that is no JSON", func(t *testing.T, f *result.Folder) { garble(t, f.Path("trials.jsonl"), 2) }, "0007-fake"},
		{"files of a trial without a line", func(t *testing.T, f *result.Folder) {
			garble(t, f.Path("trials.jsonl"), 2)
			if err := os.WriteFile(f.Path("logs", "0011-fake.txt"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}, "0012-fake"},
		{"files that are none of trials", func(t *testing.T, f *result.Folder) {
			garble(t, f.Path("trials.jsonl"), 2)
			for _, name := range []string{"notes.txt", "-5.txt", "99999999999999999999-x.txt"} {
				if err := os.WriteFile(f.Path("logs", name), nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}, "0007-fake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := begin(t, "0", "1")
			if err := first.Execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			first.Folder.Close()
			before, err := os.ReadFile(first.Folder.Path("events", "0006-fake.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(t, first.Folder)
			r, err := Resume{Dir: first.Folder.Dir()}.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Folder.Close()
			played(r)
			if err := r.Execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			l, err := result.Load(first.Folder.Dir())
			if err != nil {
				t.Fatal(err)
			}
			if last := l.Lines[len(l.Lines)-1]; len(l.Lines) != 6 || last.Trial != c.next || len(l.Missing) != 0 {
				t.Errorf("%d lines, the last of %s, %d missing; want 6, %s, 0", len(l.Lines), last.Trial, len(l.Missing), c.next)
			}
			if after, err := os.ReadFile(first.Folder.Path("events", "0006-fake.jsonl")); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the timeline of a good trial was changed: %v", err)
			}
		})
	}
}

// garble makes a line of a file, from 1, one that is no JSON and names nothing.
func garble(t *testing.T, path string, line int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines[line-1] = []byte("\x00\x00 no line\n")
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Fails if a trial truncates a file that is there.
func TestFilesOfATrialAreNew(t *testing.T) {
	for _, name := range []string{"events/0001-fake.jsonl", "logs/0001-fake.txt"} {
		f := testFolder(t)
		if err := os.WriteFile(f.Path(name), []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := (&Runner{Folder: f}).Run(t.Context(), testTask("ok", "0001-fake", time.Minute))
		if b, _ := os.ReadFile(f.Path(name)); !errors.Is(err, fs.ErrExist) || string(b) != "old" {
			t.Errorf("%s: error %v, content %q", name, err, b)
		}
	}
}

// TestReopenLocksFirst: what a run holds is looked at under its lock.
//
// Fails if reopen loads the run before it opens the folder: then what it says is
// of a run.json that another process is about to replace.
func TestReopenLocksFirst(t *testing.T) {
	c := begin(t, "0", "1") // holds the lock
	run := *c.Run
	run.Builds = map[string]result.Build{"base": {Path: "/nowhere"}}
	if err := c.Folder.WriteRun(&run); err != nil {
		t.Fatal(err)
	}
	if _, err := (Resume{Dir: c.Folder.Dir()}).Begin(); !errors.Is(err, result.ErrLocked) || !errors.Is(err, ErrRefused) {
		t.Errorf("error %v", err)
	}
	// What is refused later gives the lock back.
	c.Folder.Close()
	if _, err := (Resume{Dir: c.Folder.Dir()}).Begin(); !errors.Is(err, ErrRefused) || errors.Is(err, result.ErrLocked) {
		t.Errorf("error %v", err)
	}
	f, err := result.Open(c.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
