package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
	"benchrun/runtime/timeline"
)

func finishedOf(log *timeline.Log, vertex string) int {
	return count(log, func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == vertex
	})
}

// A task that fails by itself runs again, and nobody who fed it does.
//
// Fails if attemptFailed takes an ordinary failure for the loss of a partition.
func TestBatchTaskFailsAlone(t *testing.T) {
	j := simple(50_000, 4)
	j.Nodes[1].Params = []byte(`{"Cost":20000}`)
	c, log := setup{workers: 2, slots: 2, options: recovering(nil)}.batch(t, j)
	await(t, log, 0, "a running task", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.Vertex == "sum" && e.Subtask == 1
	})
	if err := c.FailTask(t.Context(), "sum", 1, "on request", func(time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 50_000)
	if n := finishedOf(log, "numbers"); n != 4 {
		t.Errorf("sources finished %d times, not 4", n)
	}
	if n := finishedOf(log, "sum"); n != 4 {
		t.Errorf("sum finished %d times, not 4", n)
	}
}

// The connection to a producer's worker breaks: the consumer runs again, the
// producer, whose output is all right, does not.
//
// Fails if classify takes a broken connection for a lost partition, or if a task's
// failure is in the timeline without its reason.
func TestBatchTransferErrorRunsTheConsumerAgain(t *testing.T) {
	j := simple(200_000, 2)
	j.Nodes[1].Params = []byte(`{"Cost":5000}`)
	dir := t.TempDir()
	broken := &breakable{}
	cfg := setup{workers: 2, slots: 1, dir: dir, options: recovering(nil)}.config(t, j)
	cfg.Batch, cfg.Transport = true, broken
	c, err := cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := cfg.Timeline
	cleanUp(t, c, log)
	await(t, log, 0, "running consumers", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.Vertex == "sum"
	})
	broken.breakData(t)
	finish(t, c).exactly(t, 200_000)
	if n := finishedOf(log, "numbers"); n != 2 {
		t.Errorf("sources finished %d times, not 2", n)
	}
	failed := count(log, func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "FAILED" && e.Vertex == "sum" && e.Reason != ""
	})
	if failed == 0 {
		t.Error("no consumer noticed the broken connection")
	}
	nothingLeft(t, dir)
}

// A slow task is started once more elsewhere, with the splits that it has; the
// first to finish counts, and nothing comes twice.
//
// Fails if readers of a second attempt are not fed from the beginning
// (feedReaders): records are lost.
func TestBatchSpeculation(t *testing.T) {
	for _, vertex := range []string{"numbers", "sum"} {
		t.Run(vertex, func(t *testing.T) {
			p, err := failpoint.Lookup("task/record")
			if err != nil {
				t.Fatal(err)
			}
			slow := failpoint.Delay(200 * time.Millisecond)
			defer p.Arm(func(n int, subject string) error {
				if strings.HasPrefix(subject, vertex+"/1/0") { // the first attempt of subtask 1
					return slow(n, subject)
				}
				return nil
			})()
			dir := t.TempDir()
			c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
				"execution.batch.speculative.enabled": true, "slow-task-detector.check-interval": "5 ms",
				"slow-task-detector.execution-time.baseline-lower-bound": "20 ms", "slow-task-detector.execution-time.baseline-ratio": 0.5,
				"execution.batch.speculative.block-slow-node-duration": "0 s",
			})}.batch(t, simple(100_000, 4))
			finish(t, c).exactly(t, 100_000)
			second := count(log, func(e timeline.Event) bool {
				return e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == vertex && e.Subtask == 1 && e.Attempt == 1
			})
			if second != 1 {
				t.Errorf("the second attempt finished %d times", second)
			}
			nothingLeft(t, dir)
		})
	}
}

// A log that is damaged in the middle is refused with its place; from scratch
// the job begins anew. A torn end is cut off, and the timeline says so.
//
// Fails if master.Unreadable does not know damage, if FromScratch is not asked, or
// if nobody asks the store what it has cut off.
func TestBatchDamagedLog(t *testing.T) {
	j := simple(1000, 2)
	dir := t.TempDir()
	events := filepath.Join(dir, "master", "job-events")
	if err := os.MkdirAll(events, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := joblog.OpenDir(events)
	if err != nil {
		t.Fatal(err)
	}
	cluster.NextID(t, "ID")
	s, err := joblog.OpenHardened(d, joblog.Config{Job: joblog.Identity("job", "ID")}) // of epoch 0: the master that comes has the first
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the last one would be a torn end
		s.Append(joblog.Entry{Event: joblog.JobVertexInitialized{Vertex: "numbers", Parallelism: 2}})
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(false); err != nil {
		t.Fatal(err)
	}
	names, err := d.Names()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b, err := d.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(in string, b []byte) {
		if err := os.WriteFile(filepath.Join(in, names[0]), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	torn := filepath.Join(t.TempDir(), "master", "job-events")
	if err := os.MkdirAll(torn, 0o755); err != nil {
		t.Fatal(err)
	}
	write(torn, b[:len(b)-1])
	cfg := setup{workers: 1, slots: 2, dir: filepath.Dir(filepath.Dir(torn)), options: recovering(nil)}.config(t, j)
	cfg.Batch = true
	c, err := cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	finish(t, c).exactly(t, 1000)
	if count(cfg.Timeline, func(e timeline.Event) bool {
		return e.Kind == timeline.EventReplayed && strings.Contains(e.Detail, " bytes at "+names[0]+":")
	}) != 1 {
		t.Error("nobody has said that an end was cut off")
	}

	b[len(b)/2] ^= 1
	write(events, b)
	cfg = setup{workers: 1, slots: 2, dir: dir, options: recovering(nil)}.config(t, j)
	cfg.Batch = true
	_, err = cluster.StartBatch(cfg)
	var damaged *joblog.DamagedError
	if !errors.As(err, &damaged) || damaged.File != names[0] {
		t.Fatalf("a damaged log: %v", err)
	}
	cfg.FromScratch = true
	c, err = cluster.StartBatch(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	finish(t, c).exactly(t, 1000)
}

// A worker without a master gives everything up when its patience is over; the
// next master finds nothing and runs all again.
//
// Fails if orphaned does not start the timer, or the timer does not look whether
// there is a master again.
func TestBatchWorkersLosePatience(t *testing.T) {
	dir := t.TempDir()
	j := simple(20_000, 2)
	j.Nodes[1].Params = []byte(`{"Cost":20000}`)
	c, log := setup{workers: 2, slots: 1, dir: dir, options: recovering(map[string]any{"taskmanager.registration.timeout": "1 ms"})}.batch(t, j)
	await(t, log, 0, "finished sources", finishedTask("numbers", 2))
	if err := c.KillMaster(100*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 20_000)
	again := count(log, func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == "numbers" && e.Attempt >= 1000 // of the second master
	})
	if again != 2 {
		t.Errorf("%d sources ran again, not 2: partitions were kept", again)
	}
	nothingLeft(t, dir)
}

// Masters that die one after the other, each as soon as it leads: the workers
// find the one that stays.
//
// Fails if a worker waits for the welcome of a master that is dead.
func TestBatchMastersInQuickSuccession(t *testing.T) {
	dir := t.TempDir()
	j := costly(simple(20_000, 4), "sum", 20_000)
	c, log := setup{workers: 3, slots: 2, dir: dir, options: recovering(map[string]any{"heartbeat.interval": "50 ms"})}.batch(t, j)
	_, at := await(t, log, 0, "finished sources", finishedTask("numbers", 4))
	for range 5 {
		if err := c.KillMaster(0, func() {}); err != nil {
			t.Fatal(err)
		}
		_, at = await(t, log, at, "another master", kind(timeline.EventReplayed))
	}
	finish(t, c).exactly(t, 20_000)
	nothingLeft(t, dir)
}

// The only worker is silent for longer than the master waits: it comes back with
// another name, and what it had done counts for nothing.
//
// Fails if a worker waits for a newer master when the one that it has lost still
// leads: the job has no slots.
func TestBatchWorkerComesBack(t *testing.T) {
	dir := t.TempDir()
	j := costly(simple(20_000, 4), "sum", 20_000)
	c, log := setup{workers: 1, slots: 2, dir: dir, options: recovering(map[string]any{"heartbeat.interval": "20 ms", "heartbeat.timeout": "200 ms"})}.batch(t, j)
	await(t, log, 0, "a finished task", finishedTask("sum", 1))
	if err := c.FreezeWorker(0, 400*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 20_000)
	if n := count(log, kind(timeline.WorkerLost)); n == 0 {
		t.Error("the worker was not lost")
	}
	f, err := c.Batch(t.Context())
	if err != nil || f.Leftover == nil || *f.Leftover != 0 {
		t.Errorf("figures %+v, %v", f, err)
	}
	nothingLeft(t, dir)
}

// Whatever is in a worker's folder when the job is over is left over, wherever it
// lies, but the worker's own identity.
//
// Fails if leftover walks the shuffle folder alone, or that of the job in it; so do all
// tests here that end with nothing left over, if it counts the identity.
func TestBatchLeftoversAreLookedForEverywhere(t *testing.T) {
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(nil)}.batch(t, costly(simple(20_000, 4), "sum", 20_000))
	await(t, log, 0, "a finished source", finishedTask("numbers", 1))
	var want int64
	for i, name := range []string{"worker-0/spill/sort-1", "worker-0/shuffle/stranger", "worker-1/shuffle/other/1/d~0~0.data", "worker-1/core"} {
		size := int64(1000 << i)
		want += size
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, c).exactly(t, 20_000)
	f, err := c.Batch(t.Context())
	if err != nil || f.Leftover == nil || *f.Leftover != want {
		t.Errorf("%d bytes are left over: figures %+v, %v", want, f, err)
	}
}

// A worker that is to come to the folder of one that has died does not come before the
// job is over: what is in that folder nobody has said.
//
// Fails if the figure is given all the same (figures).
func TestBatchLeftoversOfAFolderThatWaits(t *testing.T) {
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{"heartbeat.interval": "50 ms"})}.batch(t, costly(simple(20_000, 4), "sum", 20_000))
	await(t, log, 0, "a task that runs there", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.Vertex == "sum" && e.Detail == "worker-1"
	})
	if err := c.KillWorker(1, time.Hour, func() {}); err != nil {
		t.Fatal(err)
	}
	finish(t, c).exactly(t, 20_000)
	f, err := c.Batch(t.Context())
	if err != nil || f.Leftover != nil || !slices.Equal(f.Unheard, []string{"worker-1"}) {
		t.Errorf("figures %+v, %v", f, err)
	}
}
