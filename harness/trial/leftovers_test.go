package trial

import (
	"os"
	"strings"
	"testing"
	"time"

	"benchrun/workloads/spec"
)

// A run that is gone on with removes what trials have left that were cut off, by the
// ids that their jobs had, and nothing of those that have ended.
//
// Fails if sweep does not look for a line, asks for another id than the trial's job
// had, or removes the temporary folder although the files could not be removed.
func TestResumeSweepsWhatTrialsLeft(t *testing.T) {
	first := begin(t, "0", "1")
	if err := first.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Folder.Close()
	for _, id := range []string{"0001-fake", "0099-fake", "0100-other"} {
		if err := os.MkdirAll(first.Folder.Path("tmp", id), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	task, err := first.task(first.Slots[0], 99)
	if err != nil {
		t.Fatal(err)
	}
	var swept []string
	broken := os.ErrPermission
	resume := Resume{Dir: first.Folder.Dir(), Sweep: func(_ *spec.Workload, submission string) error {
		swept = append(swept, submission)
		return broken
	}}
	if _, err := resume.Begin(); err == nil || !strings.Contains(err.Error(), "0099-fake") {
		t.Errorf("files that cannot be removed: %v", err)
	}
	broken, swept = nil, nil
	r, err := resume.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Folder.Close()
	if cells := len(r.Files["fake"].Cells()); len(swept) != cells {
		t.Errorf("%d times for %d cells of one trial", len(swept), cells)
	}
	for _, s := range swept {
		if s != task.Request.Submission || strings.ContainsAny(s, ".-=") {
			t.Errorf("swept %q, the job was %q", s, task.Request.Submission)
		}
	}
	left, err := os.ReadDir(first.Folder.Path("tmp"))
	if err != nil || len(left) != 1 || left[0].Name() != "0001-fake" {
		t.Errorf("temporary folders %v, %v", left, err)
	}
}

// Fails if what a child that was killed has left stays, or if that of one that has
// told its result goes.
func TestRunnerSweepsAfterAKill(t *testing.T) {
	for role, want := range map[string]int{"ok": 0, "panic": 1} {
		swept := 0
		task := testTask(role, "0001-"+role, time.Minute)
		task.Sweep = func() error { swept++; return nil }
		if _, err := (&Runner{Folder: testFolder(t)}).Run(t.Context(), task); err != nil || swept != want {
			t.Errorf("%s: swept %d times, %v", role, swept, err)
		}
	}
}

// Fails if two trials, or those of two runs, have one id, or one has two.
func TestSubmissions(t *testing.T) {
	seen := map[string]bool{}
	for range 2 { // it is the same whenever it is asked for
		for _, run := range []string{"a", "b", "a/0001"} {
			for _, id := range []string{"0001-x", "0002-x"} {
				seen[submission(run, id)] = true
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d ids of 6 trials", len(seen))
	}
}

// Trials of two runs that write to one folder read their own files, though they have
// the same ids. A batch job's path is that of the trial.
//
// Fails if private leaves the submission out of a streaming job's path.
func TestPathsOfTwoRuns(t *testing.T) {
	path := func(mode, submission string) string {
		w := &spec.Workload{Mode: mode, Vertices: []spec.Vertex{{ID: "out", Operator: "file-sink", Params: spec.Params{Path: "/data"}}}}
		return private(w, "0001-x", submission).Vertices[0].Params.Path
	}
	storage := func(mode, submission string) string {
		return private(&spec.Workload{Mode: mode, Cluster: spec.Cluster{Storage: "file:///chk/"}}, "0001-x", submission).Cluster.Storage
	}
	for got, want := range map[string]string{
		storage(spec.Streaming, "AAA"): "file:///chk/0001-x-AAA", storage(spec.Batch, "AAA"): "file:///chk/0001-x",
		path(spec.Streaming, "AAA"): "/data/0001-x-AAA", path(spec.Streaming, "BBB"): "/data/0001-x-BBB",
		path(spec.Streaming, ""): "/data/0001-x", path(spec.Batch, "AAA"): "/data/0001-x",
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
