package cluster_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/timeline"
)

// The log of another submission of a job is no log of this one, though both have
// the same name: it is refused with the reason, or wiped.
//
// Fails if batchMaster calls the job by its name alone.
func TestBatchLogOfAnotherSubmission(t *testing.T) {
	dir := t.TempDir()
	s := setup{workers: 1, slots: 2, dir: dir, options: recovering(nil)}
	c, log := s.batch(t, simple(200_000, 2))
	await(t, log, 0, "a finished task", finishedTask("numbers", 1))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := s.config(t, simple(1000, 2))
	cfg.Batch = true
	c, err := cluster.StartBatch(cfg)
	if err == nil {
		c.Close()
	}
	var unread *cluster.JobLogError
	var foreign *joblog.ForeignError
	if !errors.As(err, &unread) || !errors.As(err, &foreign) {
		t.Fatalf("the log of another submission: %v", err)
	}
	cfg.FromScratch = true
	c, err = cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	finish(t, c).exactly(t, 1000)
	if n := count(cfg.Timeline, func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed && e.Reason != "" }); n != 1 {
		t.Errorf("%d times somebody has said that the log was wiped", n)
	}
}

// A new master does not run a job that was changed on the disk: the job ends, with
// the file and the place in it.
//
// Fails if readSubmission does not look at the seal, or if nobody tells the
// supervisor why the master does not lead.
func TestBatchChangedSubmission(t *testing.T) {
	c, log := setup{workers: 1, slots: 2, options: recovering(nil)}.batchProcesses(t, simple(200_000, 2))
	await(t, log, 0, "a finished task", finishedTask("numbers", 1))
	name := filepath.Join(c.StateFolder(), "job.json")
	err := c.KillMaster(time.Millisecond, func() {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, bytes.Replace(b, []byte("200000"), []byte("100000"), 1), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	var unread *cluster.StateError
	if !errors.As(c.Err(), &unread) || !strings.Contains(c.Err().Error(), name+":") {
		t.Errorf("a changed submission: %v", c.Err())
	}
}

// Reports that another submission of the job has left do not count, and stay.
//
// Fails if ReportsOf leaves out the run.
func TestBatchReportsOfAnotherSubmission(t *testing.T) {
	dir := t.TempDir()
	left := joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "out", Subtask: 7}, Epoch: 1}
	others := control.ReportsOf(dir, "OTHER")
	if err := control.WriteReports(others, left, []control.Report{{Operator: "out"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := control.CommitReports(others, left); err != nil {
		t.Fatal(err)
	}
	c, _ := setup{workers: 1, slots: 2, dir: dir, options: recovering(nil)}.batch(t, simple(1000, 2))
	finish(t, c).exactly(t, 1000)
	reports, err := c.Reports(t.Context())
	for _, r := range reports {
		if r.Task.Vertex == "" {
			t.Errorf("a report of another submission counts: %+v", r)
		}
	}
	if theirs, e := control.ReadReports(others); err != nil || e != nil || len(theirs) != 1 || len(reports) == 0 {
		t.Errorf("%d reports, %v; %d of another submission, %v", len(reports), err, len(theirs), e)
	}
}
