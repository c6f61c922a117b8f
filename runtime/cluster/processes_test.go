package cluster_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
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

// TestProcessesRunAJob: the same job as in one process, with the same result;
// how long it takes until all tasks run is logged.
func TestProcessesRunAJob(t *testing.T) {
	j := (&job{}).sequence("numbers", 4, source.Params{Records: 100_000}).
		op("sum", "keyed-sum", 4, operator.Params{StateSize: 16}).op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
	c, log := setup{workers: 2, slots: 4, options: map[string]any{"execution.checkpointing.interval": "100 ms"}}.processes(t, j)
	finish(t, c).exactly(t, 100_000)
	running := map[string]time.Duration{}
	for _, e := range log.Sorted() {
		if e.Kind == timeline.TaskState && e.State == "RUNNING" {
			running[e.Vertex] = e.T
		}
	}
	t.Logf("all tasks of a vertex RUNNING after %v", running)
	if s := c.Status(); s.NetBytes == 0 || s.SinkRecords != 100_000 {
		t.Errorf("%+v", s) // fails if workers share nothing over the network, or counters are not asked for
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if u := c.Usage(); u.Processes != 3 || u.CPU <= 0 || u.MaxRSS < 1<<20 {
		t.Errorf("usage %+v", u)
	}
}

// TestKillWorkerProcess kills workers with kill -9 one after the other; the
// rest takes over, with fewer slots than before, until a new one comes.
func TestKillWorkerProcess(t *testing.T) {
	for path, opts := range paths {
		t.Run(path, func(t *testing.T) {
			c, log := setup{workers: 3, slots: 2, options: unaligned("50 ms", opts)}.processes(t, backlogged(5))
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

// TestKillMasterProcess kills the master with kill -9, twice: the next one
// takes the next epoch and restores the newest complete checkpoint, and ids of
// checkpoints never go back.
// Fails if a master begins to count its checkpoints at 1 again, does not look
// for checkpoints, or does not number its attempts above those before it.
func TestKillMasterProcess(t *testing.T) {
	for path, opts := range paths {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			c, log := setup{workers: 2, slots: 4, dir: dir, options: unaligned("50 ms", opts)}.processes(t, backlogged(5))
			_, at := await(t, log, 0, "in-flight data", inFlight(50_000))
			for i := range 2 {
				broken := filepath.Join(dir, "checkpoints", "chk-500")
				if i == 1 { // begun and never completed
					if err := os.MkdirAll(broken, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(broken, "state"), []byte("x"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				var t0 time.Duration
				if err := c.KillMaster(50*time.Millisecond, func() { t0 = log.Now() }); err != nil {
					t.Fatal(err)
				}
				elected, i1 := await(t, log, at, "another master", kind(timeline.MasterElected))
				if want := []string{"epoch=2", "epoch=3"}[i]; !strings.Contains(elected.Detail, want) {
					t.Errorf("%q, want %s", elected.Detail, want)
				}
				assigned, i2 := await(t, log, i1, "restore", kind(timeline.RestoreAssigned))
				done, i3 := await(t, log, i2, "first checkpoint", completedCheckpoint)
				t.Logf("kill %d: elected after %v, restored checkpoint %d, first one %d after %v", i, elected.T-t0, assigned.Checkpoint, done.Checkpoint, done.T-t0)
				if assigned.Checkpoint < 1 || done.Checkpoint <= assigned.Checkpoint {
					t.Errorf("restored checkpoint %d, then completed %d", assigned.Checkpoint, done.Checkpoint)
				}
				if i == 1 && done.Checkpoint <= 500 {
					t.Errorf("checkpoint %d was begun after 500", done.Checkpoint)
				}
				if _, err := os.Stat(broken); err == nil {
					t.Error("a broken checkpoint is still there")
				}
				at = i3
			}
			checkTimeline(t, log)
			drainAndCheck(t, c)
		})
	}
}

// checkTimeline looks whether ids of checkpoints and attempts only go up.
func checkTimeline(t *testing.T, log *timeline.Log) {
	t.Helper()
	completed := int64(0)
	attempts := map[string]int{}
	for _, e := range log.Sorted() {
		switch e.Kind {
		case timeline.CheckpointCompleted:
			if e.Checkpoint <= completed {
				t.Errorf("checkpoint %d is complete after %d", e.Checkpoint, completed)
			}
			completed = e.Checkpoint
		case timeline.TaskState:
			if e.State == "DEPLOYING" {
				if e.Attempt < attempts[e.Vertex] {
					t.Errorf("attempt %d of %s, where %d is the least", e.Attempt, e.Vertex, attempts[e.Vertex])
				}
				attempts[e.Vertex] = e.Attempt
			}
		case timeline.MasterElected:
			for v := range attempts {
				attempts[v]++
			}
		}
	}
}

// TestKillMasterBeforeAnyCheckpoint: the job begins again from nothing.
func TestKillMasterBeforeAnyCheckpoint(t *testing.T) {
	c, log := setup{workers: 2, slots: 4, options: unaligned("1 h", nil)}.processes(t, backlogged(5))
	_, at := await(t, log, 0, "running", func(e timeline.Event) bool { return e.Kind == timeline.TaskState && e.State == "RUNNING" })
	if err := c.KillMaster(0, func() {}); err != nil {
		t.Fatal(err)
	}
	await(t, log, at, "running again", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "RUNNING" && e.Attempt >= 1000 // under the next master
	})
	drainAndCheck(t, c)
}

// TestEndOutlivesTheMaster: sources that were told to end, just before a master
// dies or while there is none, do. Fails if the next master is not told.
func TestEndOutlivesTheMaster(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprintf("before=%t", before), func(t *testing.T) {
			c, log := setup{workers: 2, slots: 4, options: unaligned("50 ms", nil)}.processes(t, backlogged(5))
			await(t, log, 0, "in-flight data", inFlight(20_000))
			if before {
				if err := c.StopSources(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.KillMaster(20*time.Millisecond, func() {}); err != nil {
				t.Fatal(err)
			}
			if !before {
				if s := c.Status(); !s.Restoring {
					t.Errorf("without a master: %+v", s)
				}
				if err := c.KillMaster(0, func() { t.Error("struck") }); err == nil {
					t.Error("a dead master was killed")
				}
			}
			drainAndCheck(t, c)
		})
	}
}

// TestRescaleOutlivesTheMaster: a parallelism that was accepted is in force
// under the next master. Fails if the wish is not written to the state folder.
func TestRescaleOutlivesTheMaster(t *testing.T) {
	c, log := setup{workers: 2, slots: 4, options: unaligned("50 ms", paths["during"])}.processes(t, backlogged(3))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	var accepted time.Duration
	if err := c.Rescale(t.Context(), map[string]int{"slow": 6}, func(at time.Duration) { accepted = at }); err != nil {
		t.Fatal(err)
	}
	if accepted <= 0 || accepted > log.Now() {
		t.Errorf("accepted at %v, now it is %v", accepted, log.Now())
	}
	if err := c.Rescale(t.Context(), map[string]int{"slow": 10_000}, func(time.Duration) {}); err == nil {
		t.Error("a parallelism above the maximum was accepted")
	}
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	if err := c.KillMaster(0, func() {}); err != nil {
		t.Fatal(err)
	}
	_, at = await(t, log, at, "six tasks", func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.Vertex == "slow" && e.Subtask == 5 && e.State == "RUNNING" && e.Attempt >= 1000
	})
	await(t, log, at, "checkpoint", completedCheckpoint)
	drainAndCheck(t, c)
}

// TestFinishedTasksOutliveTheMaster: a part of the job that has finished is
// not run again by the next master, and what it reported is not lost.
// Fails if checkpoints do not keep the reports of finished tasks.
func TestFinishedTasksOutliveTheMaster(t *testing.T) {
	j := backlogged(3)
	j.sequence("few", 2, source.Params{Records: 5000, RecordSize: 64}).op("also", "map", 2, operator.Params{}).
		op("sink", "verify-sink", 2, operator.Params{}).link("few", "also", graph.Rebalance).link("also", "sink", graph.Hash)
	c, log := setup{workers: 2, slots: 4, options: unaligned("50 ms", nil)}.processes(t, j)
	finished := 0
	_, at := await(t, log, 0, "end of a part", func(e timeline.Event) bool {
		if e.Kind == timeline.TaskState && e.State == "FINISHED" {
			finished++
		}
		return finished == 6
	})
	_, at = await(t, log, at, "checkpoint", completedCheckpoint)
	_, at = await(t, log, at, "another checkpoint", completedCheckpoint)
	if err := c.KillMaster(0, func() {}); err != nil {
		t.Fatal(err)
	}
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	await(t, log, at, "checkpoint", completedCheckpoint)
	if err := c.StopSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := finish(t, c)
	if r.emitted["few"] != 5000 {
		t.Errorf("the source that had finished reports %d records", r.emitted["few"])
	}
	r.exactly(t, int64(r.emitted["numbers"]+r.emitted["few"]))
}

// TestFreezeWorkerProcess stops a worker with SIGSTOP for longer than the
// heartbeat time-out: it is lost, its tasks run elsewhere, and when it goes on
// it is of no account.
func TestFreezeWorkerProcess(t *testing.T) {
	opts := unaligned("50 ms", paths["during"])
	opts[options.HeartbeatInterval.Key()] = "20 ms"
	opts[options.HeartbeatTimeout.Key()] = "300 ms"
	c, log := setup{workers: 2, slots: 8, options: opts}.processes(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	if err := c.FreezeWorker(0, 700*time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	lost, at := await(t, log, at, "loss", kind(timeline.WorkerLost))
	if !strings.Contains(lost.Reason, "no heartbeat") {
		t.Errorf("lost because of %q", lost.Reason)
	}
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	end := log.Now() + time.Second // until long after it goes on
	await(t, log, at, "later checkpoint", func(e timeline.Event) bool { return completedCheckpoint(e) && e.T > end })
	drainAndCheck(t, c)
}

// TestStorageFailsForProcesses: every process sees the fault.
func TestStorageFailsForProcesses(t *testing.T) {
	opts := unaligned("30 ms", nil)
	opts[options.TolerableFailedCheckpoints.Key()] = int64(1000)
	c, log := setup{workers: 2, slots: 8, options: opts}.processes(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	if err := c.FailStorage("error", 400*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	_, at = await(t, log, at, "failed checkpoint", kind(timeline.CheckpointFailed))
	if err := c.KillWorker(0, 0, func() {}); err != nil {
		t.Fatal(err)
	}
	end := log.Now() + 500*time.Millisecond
	await(t, log, at, "later checkpoint", func(e timeline.Event) bool { return completedCheckpoint(e) && e.T > end })
	drainAndCheck(t, c)
}

// TestChaosOfProcesses does to a job what a seed says: kills of workers and
// masters, in the middle of recoveries, too, rescales, failures, freezes. What
// comes out is exact.
func TestChaosOfProcesses(t *testing.T) {
	for round := range 3 {
		t.Run(string(rune('a'+round)), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			chaos(t, seed)
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"upstream", "downstream", "during"}
	opts := maps.Clone(paths[names[r.IntN(3)]])
	c, log := setup{workers: 3, slots: 4, options: unaligned("40 ms", opts)}.processes(t, backlogged(5))
	await(t, log, 0, "in-flight data", inFlight(20_000))
	for range 7 {
		what := r.IntN(6)
		var err error
		switch what {
		case 0:
			err = c.KillWorker(0, time.Duration(r.IntN(100))*time.Millisecond, func() {})
		case 1, 2:
			err = c.KillMaster(time.Duration(r.IntN(100))*time.Millisecond, func() {})
		case 3:
			err = c.Rescale(t.Context(), map[string]int{"slow": 2 + r.IntN(6)}, func(time.Duration) {})
		case 4:
			err = c.FailTask(t.Context(), "slow", 0, "test", func(time.Duration) {})
		case 5:
			err = c.FreezeWorker(0, time.Duration(r.IntN(200))*time.Millisecond, func() {})
		}
		t.Logf("%8.3f s: %d %v", log.Now().Seconds(), what, err)
		if err != nil && !refusalIsFair(err) {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 { // else: into the recovery
			await(t, log, log.Len(), "checkpoint", completedCheckpoint)
			continue
		}
		<-time.After(time.Duration(r.IntN(60)) * time.Millisecond)
	}
	await(t, log, log.Len(), "checkpoint", completedCheckpoint)
	checkTimeline(t, log)
	drainAndCheck(t, c)
}

// refusalIsFair: nothing is there to strike, or who was asked died.
func refusalIsFair(err error) bool {
	for _, s := range []string{"there is no worker", "there is no master to kill", "no subtask", "the process has ended"} {
		if strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}

var _ cluster.Running = (*cluster.Processes)(nil)
