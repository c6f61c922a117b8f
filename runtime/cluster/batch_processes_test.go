package cluster_test

import (
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/timeline"
)

func (s setup) batchProcesses(t testing.TB, j *job) (*cluster.Processes, *timeline.Log) {
	t.Helper()
	cfg := s.config(t, j)
	cfg.Batch = true
	c, err := cluster.StartProcesses(t.Context(), cfg, s.stops.nodes(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	return c, cfg.Timeline
}

// kill -9 for master and worker, one after the other: the output is exact.
//
// Fails if a master that is killed is not asked for its figures before.
func TestBatchProcesses(t *testing.T) {
	j := simple(100_000, 4)
	j.Nodes[1].Params = []byte(`{"Cost":20000}`)
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{"heartbeat.interval": "100 ms"})}.batchProcesses(t, j)
	at := time.Duration(0)
	_, i := await(t, log, 0, "a finished source", finishedTask("numbers", 2))
	if err := c.KillMaster(10*time.Millisecond, func() { at = log.Now() }); err != nil {
		t.Fatal(err)
	}
	_, i = await(t, log, i, "the replay", func(e timeline.Event) bool { return e.Kind == timeline.EventReplayed })
	running, i := await(t, log, i, "a running task", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.T > at
	})
	t.Logf("control recovery %v", running.T-at)
	if err := c.KillWorker(0, 10*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 100_000)
	f, err := c.Batch(t.Context())
	if err != nil || f.Leftover == nil || *f.Leftover != 0 || f.DurabilityGap == nil || f.LogBytes == nil || *f.LogBytes == 0 {
		t.Errorf("figures %+v, %v", f, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
	_ = i
}

// When the job was submitted is known, however soon its first master dies.
//
// Fails if a master tells it as an event of its own, and that is not sent yet, or if
// each master that leads tells it again.
func TestBatchSubmissionOutlivesTheMaster(t *testing.T) {
	j := simple(1000, 2)
	c, log := setup{workers: 2, slots: 2, dir: t.TempDir(), options: recovering(nil)}.batchProcesses(t, j)
	var at time.Duration
	if err := c.KillMaster(10*time.Millisecond, func() { at = log.Now() }); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 1000)
	var told []time.Duration
	for _, e := range log.Sorted() {
		if e.Kind == timeline.JobState && e.State == timeline.Submitted {
			told = append(told, e.T)
		}
	}
	if len(told) != 1 || told[0] <= 0 || told[0] > at {
		t.Errorf("submitted at %v, killed at %v", told, at)
	}
}

// The master is killed when the job has ended: what nobody can be asked any more is not
// known, and who has not said it is named.
//
// Fails if Batch takes the end of the job for an error.
func TestBatchFiguresWithoutAMaster(t *testing.T) {
	c, _ := setup{workers: 2, slots: 2, options: recovering(nil)}.batchProcesses(t, simple(1000, 4))
	finish(t, c).exactly(t, 1000)
	if err := c.KillMaster(time.Hour, func() {}); err != nil {
		t.Fatal(err)
	}
	f, err := c.Batch(t.Context())
	if err != nil || f.Leftover != nil || len(f.Unheard) != 2 {
		t.Errorf("figures %+v, %v", f, err)
	}
}
