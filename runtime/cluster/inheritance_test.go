package cluster_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/timeline"
)

// workerFolders lists the folders of workers, dead or alive.
func workerFolders(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "worker-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// awaitFolders waits until there are as many folders of workers as these.
func awaitFolders(t testing.TB, dir string, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(workerFolders(t, dir)) != n; {
		if time.Now().After(deadline) {
			t.Errorf("the workers' folders are %v, want %d", workerFolders(t, dir), n)
			return
		}
		<-time.After(time.Millisecond)
	}
}

// The folder of a killed worker goes with it unless another one was announced,
// and then that has it; a new master goes on without what was in it.
//
// Fails if a dead worker's folder stays (Processes.watch, Batch.KillWorker), or if
// that of one that is to be replaced goes, too, or is not handed on.
func TestFolderOfADeadWorker(t *testing.T) {
	type batchCluster func(t *testing.T, dir string) (cluster.Running, *timeline.Log)
	j := func() *job { return costly(simple(20_000, 4), "sum", 100_000) }
	for name, start := range map[string]batchCluster{
		"one process": func(t *testing.T, dir string) (cluster.Running, *timeline.Log) {
			return setup{workers: 2, slots: 2, dir: dir, options: recovering(nil)}.batch(t, j())
		},
		"processes": func(t *testing.T, dir string) (cluster.Running, *timeline.Log) {
			return setup{workers: 2, slots: 2, dir: dir, options: recovering(nil)}.batchProcesses(t, j())
		},
	} {
		for _, replaced := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", replaced"}[replaced], func(t *testing.T) {
				dir := t.TempDir()
				c, log := start(t, dir)
				await(t, log, 0, "finished sources", finishedTask("numbers", 4))
				if n := len(workerFolders(t, dir)); n != 2 {
					t.Errorf("%d folders of two workers", n)
				}
				down, want := time.Duration(-1), 1
				if replaced {
					down, want = 100*time.Millisecond, 2
				}
				for _, folder := range workerFolders(t, dir) {
					if err := os.WriteFile(filepath.Join(folder, "probe"), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.KillWorker(0, down, func() {}); err != nil {
					t.Fatal(err)
				}
				awaitFolders(t, dir, want)
				if err := c.KillMaster(0, func() {}); err != nil {
					t.Fatal(err)
				}
				finish(t, c).exactly(t, 20_000)
				awaitFolders(t, dir, want)
				probes, _ := filepath.Glob(filepath.Join(dir, "worker-*", "probe"))
				if len(probes) != want {
					t.Errorf("of the folders %v are left", probes)
				}
				again := count(log, func(e timeline.Event) bool {
					return e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == "numbers" && e.Attempt > 0
				})
				if !replaced && again < 2 { // more where the log had not got them all
					t.Errorf("%d sources ran again; two were the dead worker's", again)
				}
				if f, err := c.Batch(t.Context()); err != nil || f.Leftover == nil || *f.Leftover != 0 {
					t.Errorf("figures %+v, %v", f, err)
				}
				c.Close()
				if left := workerFolders(t, dir); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		}
	}
}

// The same for the folder of a streaming worker, which holds nothing that
// outlives it, and that of a process that nobody wanted to end, which ends the job.
func TestFolderOfADeadStreamingWorker(t *testing.T) {
	dir := t.TempDir()
	c, log := setup{workers: 3, slots: 4, dir: dir, options: unaligned("50 ms", nil)}.processes(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	awaitFolders(t, dir, 3)
	if err := c.KillWorker(0, -1, func() {}); err != nil {
		t.Fatal(err)
	}
	awaitFolders(t, dir, 2)
	_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
	await(t, log, at, "checkpoint", completedCheckpoint)
	for _, pid := range c.Pids() {
		if commandLine(pid, cluster.RoleWorker) {
			p, err := os.FindProcess(pid)
			if err != nil || p.Kill() != nil {
				t.Fatal("it cannot be killed")
			}
			break
		}
	}
	awaitFolders(t, dir, 1)
	<-c.Done()
	if c.Err() == nil {
		t.Error("the job goes on without it")
	}
}
