package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// backlogged is a job whose channels fill up.
func backlogged(p int) *job {
	return (&job{}).sequence("numbers", 2, source.Params{RecordSize: 200}).
		op("slow", "keyed-sum", p, operator.Params{StateSize: 16, Cost: int64(100 * time.Microsecond)}).
		op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
}

func inFlight(bytes int64) func(timeline.Event) bool {
	return func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > bytes }
}

func kind(k timeline.Kind) func(timeline.Event) bool {
	return func(e timeline.Event) bool { return e.Kind == k }
}

func drainAndCheck(t *testing.T, c cluster.Running) {
	t.Helper()
	if err := c.StopSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := finish(t, c)
	r.exactly(t, int64(r.emitted["numbers"]))
}

// TestKillWorker kills workers one after the other; the rest takes over, with
// fewer slots than before, until a new one comes.
func TestKillWorker(t *testing.T) {
	for path, opts := range paths {
		t.Run(path, func(t *testing.T) {
			c, log := setup{workers: 3, slots: 2, options: unaligned("50 ms", opts)}.start(t, backlogged(5))
			_, at := await(t, log, 0, "in-flight data", inFlight(50_000))
			for i, replace := range []time.Duration{-1, 0} {
				var t0 time.Duration
				if err := c.KillWorker(0, replace, func() { t0 = log.Now() }); err != nil {
					t.Fatal(err)
				}
				lost, i1 := await(t, log, at, "loss", kind(timeline.WorkerLost))
				assigned, i2 := await(t, log, i1, "restore", kind(timeline.RestoreAssigned))
				done, i3 := await(t, log, i2, "first checkpoint", completedCheckpoint)
				t.Logf("kill %d: lost after %v, restored checkpoint %d, first one %d after %v", i, lost.T-t0, assigned.Checkpoint, done.Checkpoint, done.T-t0)
				at = i3
			}
			drainAndCheck(t, c)
		})
	}
}

// TestDeadWorkerSaysNothing: after the instant of death there is no event of a
// task that ran on the worker (the last word of a process that was killed).
func TestDeadWorkerSaysNothing(t *testing.T) {
	c, log := setup{workers: 2, slots: 8, options: unaligned("20 ms", nil)}.start(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	var t0 time.Duration
	if err := c.KillWorker(1, -1, func() { t0 = log.Now() }); err != nil {
		t.Fatal(err)
	}
	await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	for _, e := range log.Events() {
		if e.T > t0+5*time.Millisecond && e.Attempt == 0 && e.Vertex == "slow" && e.Subtask%2 == 1 && e.Kind != timeline.Throughput {
			t.Errorf("%v after its death: %s of %s/%d", e.T-t0, e.Kind, e.Vertex, e.Subtask)
		}
	}
	drainAndCheck(t, c)
}

// TestFreezeWorker freezes a worker for longer than the heartbeat time-out: it
// is lost, its tasks run elsewhere, and when it thaws it is of no account.
func TestFreezeWorker(t *testing.T) {
	opts := unaligned("50 ms", paths["during"])
	opts[options.HeartbeatInterval.Key()] = "20 ms"
	opts[options.HeartbeatTimeout.Key()] = "200 ms"
	c, log := setup{workers: 2, slots: 8, options: opts}.start(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	if err := c.FreezeWorker(0, 600*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	lost, at := await(t, log, at, "loss", kind(timeline.WorkerLost))
	if !strings.Contains(lost.Reason, "no heartbeat") {
		t.Errorf("lost because of %q", lost.Reason)
	}
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	_, at = await(t, log, at, "first checkpoint", completedCheckpoint)
	end := log.Now() + time.Second // until long after it has thawed
	await(t, log, at, "later checkpoint", func(e timeline.Event) bool { return completedCheckpoint(e) && e.T > end })
	drainAndCheck(t, c)
}

// TestShortFreezeIsNoLoss: a pause below the time-out only delays.
func TestShortFreezeIsNoLoss(t *testing.T) {
	c, log := setup{workers: 2, slots: 8, options: unaligned("50 ms", nil)}.start(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	if err := c.FreezeWorker(1, 300*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	end := log.Now() + 500*time.Millisecond
	await(t, log, at, "later checkpoint", func(e timeline.Event) bool { return completedCheckpoint(e) && e.T > end })
	for _, e := range log.Events() {
		if e.Kind == timeline.WorkerLost {
			t.Errorf("%s: %s", e.Detail, e.Reason)
		}
	}
	drainAndCheck(t, c)
}

// TestStorageFails: checkpoints fail while storage does, the job goes on, and
// so do the checkpoints afterwards.
func TestStorageFails(t *testing.T) {
	for _, k := range []string{"error", "slow", "full", "torn"} {
		t.Run(k, func(t *testing.T) {
			opts := unaligned("30 ms", nil)
			opts[options.TolerableFailedCheckpoints.Key()] = int64(1000)
			c, log := setup{workers: 2, slots: 8, options: opts}.start(t, backlogged(4))
			_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
			if err := c.FailStorage(k, 300*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if k != "slow" {
				_, at = await(t, log, at, "failed checkpoint", kind(timeline.CheckpointFailed))
			}
			end := log.Now() + 400*time.Millisecond
			_, at = await(t, log, at, "later checkpoint", func(e timeline.Event) bool { return completedCheckpoint(e) && e.T > end })
			if err := c.Master().FailTask(t.Context(), "slow", 0, "test", func() {}); err != nil {
				t.Fatal(err)
			}
			await(t, log, at, "restore", kind(timeline.RestoreAssigned))
			drainAndCheck(t, c)
		})
	}
}

// TestDamagedCheckpoint: a newest checkpoint that is cut or missing a file is
// given up with the file's name, and the one before is restored.
func TestDamagedCheckpoint(t *testing.T) {
	for _, damage := range []string{"cut metadata", "flipped metadata", "missing data", "flipped data"} {
		t.Run(damage, func(t *testing.T) {
			opts := unaligned("100 ms", nil)
			opts[options.NumRetained.Key()] = int64(3)
			dir := t.TempDir()
			c, log := setup{workers: 2, slots: 8, dir: dir, options: opts}.start(t, backlogged(4))
			_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
			newest, at := await(t, log, at, "another checkpoint", completedCheckpoint)
			folder := filepath.Join(dir, "checkpoints", fmt.Sprintf("chk-%d", newest.Checkpoint))
			meta := filepath.Join(folder, "_metadata")
			b, err := os.ReadFile(meta)
			if err != nil {
				t.Fatal(err)
			}
			switch damage {
			case "cut metadata":
				err = os.WriteFile(meta, b[:len(b)/2], 0o644)
			case "flipped metadata":
				b[len(b)/2] ^= 1
				err = os.WriteFile(meta, b, 0o644)
			case "flipped data":
				var files []string
				files, err = filepath.Glob(filepath.Join(folder, "inflight-*"))
				for _, f := range files {
					if b, err = os.ReadFile(f); err == nil {
						b[len(b)-1] ^= 1
						err = os.WriteFile(f, b, 0o644)
					}
				}
			case "missing data":
				var files []string
				if files, err = filepath.Glob(filepath.Join(folder, "inflight-*")); err == nil && len(files) > 0 {
					err = os.Remove(files[0])
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Master().FailTask(t.Context(), "slow", 0, "test", func() {}); err != nil {
				t.Fatal(err)
			}
			assigned, at := await(t, log, at, "restore", kind(timeline.RestoreAssigned))
			if damage == "flipped data" && assigned.Checkpoint == newest.Checkpoint {
				// Only reading all of it shows; the next restore avoids it.
				assigned, _ = await(t, log, at, "next restore", func(e timeline.Event) bool {
					return e.Kind == timeline.RestoreAssigned && e.Checkpoint != newest.Checkpoint
				})
			}
			said := false
			for _, e := range log.Events() {
				said = said || e.Kind == timeline.CheckpointFailed && e.Checkpoint == newest.Checkpoint && strings.Contains(e.Detail, "damaged: ") && strings.Contains(e.Detail, "chk-")
			}
			// Another checkpoint may have completed before the failure came in.
			if assigned.Checkpoint == newest.Checkpoint || assigned.Checkpoint < newest.Checkpoint && !said {
				t.Errorf("restored checkpoint %d although %d was damaged; said so: %v", assigned.Checkpoint, newest.Checkpoint, said)
			}
			drainAndCheck(t, c)
		})
	}
}

// TestRestoreMismatch: a checkpoint of another job is refused with what to do.
func TestRestoreMismatch(t *testing.T) {
	dir := t.TempDir()
	c, log := setup{workers: 1, slots: 8, dir: dir, options: unaligned("50 ms", map[string]any{options.ExternalizedRetention.Key(): "RETAIN_ON_CANCELLATION"})}.start(t, backlogged(4))
	await(t, log, 0, "in-flight data", inFlight(20_000))
	c.Master().Cancel()
	<-c.Master().Done()
	c.Close()
	for name, x := range map[string]struct {
		change func(j *job)
		want   string
	}{
		"operator": {func(j *job) { j.Nodes[1].ID, j.Links[0].To, j.Links[1].From = "other", "other", "other" }, `operator "slow"`},
		// Fails if the kinds are not compared: then a sum would be read as a count.
		"another operator under its id": {func(j *job) { j.Nodes[1].Operator = "count-by-key" }, `was a keyed-sum there and is a count-by-key now`},
		"max parallelism":               {func(j *job) { j.Nodes[1].MaxParallelism = 64 }, "max-parallelism"},
	} {
		t.Run(name, func(t *testing.T) {
			j := backlogged(4)
			x.change(j)
			c, _ := setup{workers: 1, slots: 8, options: unaligned("50 ms", map[string]any{options.RecoveryPath.Key(): dir + "/checkpoints"})}.start(t, j)
			select {
			case <-c.Master().Done():
			case <-time.After(finishLimit):
				t.Fatal("the job does not end")
			}
			if err := c.Master().Err(); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want one about %s", err, x.want)
			}
		})
	}
}

// TestSavepoints takes one, goes on, stops with another, and begins from both.
func TestSavepoints(t *testing.T) {
	dir := t.TempDir()
	c, log := setup{workers: 2, slots: 8, dir: dir, options: unaligned("50 ms", paths["during"])}.start(t, backlogged(4))
	await(t, log, 0, "in-flight data", inFlight(20_000))
	first, err := c.Master().Savepoint(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Master().Savepoint(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Master().Done()
	if err := c.Master().Err(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{first, second} {
		c, _ := setup{workers: 1, slots: 8, options: unaligned("50 ms", map[string]any{options.RecoveryPath.Key(): path})}.start(t, backlogged(3))
		drainAndCheck(t, c)
	}
}

// TestRegionFailover: of two pipelines that do not touch, only the failed one
// restarts.
func TestRegionFailover(t *testing.T) {
	j := backlogged(3)
	j.sequence("more", 2, source.Params{RecordSize: 200}).op("also", "map", 2, operator.Params{Cost: int64(50 * time.Microsecond)}).
		op("sink", "verify-sink", 2, operator.Params{}).link("more", "also", graph.Rebalance).link("also", "sink", graph.Hash)
	c, log := setup{workers: 2, slots: 8, options: unaligned("50 ms", nil)}.start(t, j)
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	if err := c.Master().FailTask(t.Context(), "also", 0, "test", func() {}); err != nil {
		t.Fatal(err)
	}
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	await(t, log, at, "checkpoint", completedCheckpoint)
	for _, e := range log.Events() {
		if e.Kind == timeline.TaskState && e.Attempt > 0 && (e.Vertex == "slow" || e.Vertex == "numbers" || e.Vertex == "out") {
			t.Errorf("%s restarted although its region had not failed", e.Vertex)
		}
	}
	c.Master().StopSources()
	r := finish(t, c)
	r.exactly(t, int64(r.emitted["numbers"]+r.emitted["more"]))
}
