package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"benchrun/runtime/cluster"
	"benchrun/runtime/joblog"
	"benchrun/runtime/timeline"
)

// The log of another submission of a job is no log of this one, though both have
// the same name: it is refused with the reason, or wiped.
//
// Fails if batchMaster calls the job by its name alone.
func TestBatchLogOfAnotherSubmission(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "master", "job-events")
	if err := os.MkdirAll(events, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := joblog.OpenDir(events)
	if err != nil {
		t.Fatal(err)
	}
	s, err := joblog.OpenHardened(d, joblog.Config{Job: joblog.Identity("job", "OTHER")})
	if err != nil {
		t.Fatal(err)
	}
	s.Append(joblog.Entry{Event: joblog.JobVertexInitialized{Vertex: "numbers", Parallelism: 2}})
	if err := errors.Join(s.Sync(t.Context()), s.Close(false)); err != nil {
		t.Fatal(err)
	}
	cfg := setup{workers: 1, slots: 2, dir: dir, options: recovering(nil)}.config(t, simple(1000, 2))
	cfg.Batch = true
	_, err = cluster.StartBatch(cfg)
	var unread *cluster.JobLogError
	var foreign *joblog.ForeignError
	if !errors.As(err, &unread) || !errors.As(err, &foreign) || foreign.Job != "job.OTHER" {
		t.Fatalf("the log of another submission: %v", err)
	}
	cfg.FromScratch = true
	c, err := cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	finish(t, c).exactly(t, 1000)
	if n := count(cfg.Timeline, func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed && e.Reason != "" }); n != 1 {
		t.Errorf("%d times somebody has said that the log was wiped", n)
	}
}
