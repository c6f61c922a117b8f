package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/master"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
)

// toFiles is a job that writes numbers to files.
func toFiles(records uint64, sinks int, path string) *job {
	return (&job{}).sequence("numbers", 4, source.Params{Records: records, Splits: 8}).
		op("out", "file-sink", sinks, operator.Params{Path: path}).link("numbers", "out", graph.Hash)
}

// filesHold checks that the committed files of a finished job hold each number once.
func filesHold(t *testing.T, c cluster.Running, records int) {
	t.Helper()
	if total, distinct := committedRecords(t, c); total != records || distinct != records {
		t.Errorf("%d records, %d distinct, in the files; want %d", total, distinct, records)
	}
}

// Two masters die half way through their commits, the second one in what it
// repeats, or makes anew where there is no log: the files hold everything once.
//
// Fails if a commit that was carried out before is an error for the next master;
// without the log, if withdraw takes nothing back.
func TestBatchFilesAreCommittedOnce(t *testing.T) {
	for _, recovery := range []bool{true, false} {
		t.Run(fmt.Sprint("recovery=", recovery), func(t *testing.T) {
			p, err := failpoint.Lookup("reports/rename")
			if err != nil {
				t.Fatal(err)
			}
			dir, o := t.TempDir(), map[string]any{}
			if recovery {
				o = recovering(nil)
			}
			began := make(chan struct{})
			var kill func(struck func()) error
			killed := make(chan error, 2)
			defer p.Arm(func(n int, _ string) error {
				if n == 6 || n == 9 { // of eight commits, of each master
					<-began
					struck := make(chan struct{})
					go func() { killed <- kill(func() { close(struck) }) }()
					<-struck // from here on it does not lead
				}
				return nil
			})()
			c, _ := setup{workers: 2, slots: 2, dir: dir, options: o}.batch(t, toFiles(20_000, 4, ""))
			kill = func(struck func()) error { return c.KillMaster(time.Millisecond, struck) }
			close(began)
			finish(t, c)
			for range 2 {
				if err := <-killed; err != nil {
					t.Error(err)
				}
			}
			filesHold(t, c, 20_000)
			nothingLeft(t, dir)
		})
	}
}

// The same with kill -9: masters die between two reports that are made to count,
// and between two files, and what they have done by then is on the disk.
//
// Fails if commits are not to be repeated (commitFile, CommitReports), or without the
// log if withdraw takes nothing back; if the next leader does not sweep the state
// folder, a half of a file may stay.
func TestBatchFilesAreCommittedOnceByProcesses(t *testing.T) {
	for _, recovery := range []bool{true, false} {
		t.Run(fmt.Sprint("recovery=", recovery), func(t *testing.T) {
			dir, o := t.TempDir(), map[string]any{}
			if recovery {
				o = recovering(nil)
			}
			began := make(chan struct{})
			var c *cluster.Processes
			died := map[string]bool{}
			stops := stopAt(t, func(point string) {
				select {
				case <-began:
				case <-t.Context().Done(): // the cluster is not up
					return
				}
				if died[point] {
					return // a later master gets there, too
				}
				died[point] = true
				if err := c.KillMaster(time.Millisecond, func() {}); err != nil {
					t.Error(err)
				}
			}, "reports/rename=3", "filesink/renamed=4")
			c, _ = setup{workers: 2, slots: 2, dir: dir, options: o, stops: stops}.batchProcesses(t, toFiles(20_000, 6, ""))
			close(began)
			finish(t, c)
			stops.close()
			if len(died) != 2 {
				t.Errorf("masters died at %v", died)
			}
			filesHold(t, c, 20_000)
			if files, err := filepath.Glob(filepath.Join(dir, "output", "*")); err != nil || len(files) != 6 {
				t.Errorf("%d files of 6 subtasks, %v", len(files), err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir)
		})
	}
}

// Jobs one after the other write to one folder: one that is cancelled after a
// worker of its has died leaves nothing, and none disturbs another's files.
//
// Fails if names of files do not carry the run, or if dropOutput goes by reports.
func TestBatchJobsShareAFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "shared")
	run := func(cancel bool) cluster.Running {
		dir := t.TempDir()
		c, log := setup{workers: 2, slots: 1, dir: dir, options: recovering(map[string]any{"restart-strategy.fixed-delay.attempts": 3})}.batch(t, toFiles(50_000, 3, out))
		if cancel {
			await(t, log, 0, "the end of a sink", finishedTask("out", 1))
			if err := errors.Join(c.KillWorker(0, -1, func() {}), c.Cancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			<-c.Done()
			if !errors.Is(c.Err(), master.ErrCanceled) {
				t.Error(c.Err())
			}
		} else {
			finish(t, c)
		}
		nothingLeft(t, dir)
		return c
	}
	first := run(false)
	run(true)
	nothingLeft(t, out)
	second := run(false)
	for _, c := range []cluster.Running{first, second} {
		filesHold(t, c, 50_000)
	}
}
