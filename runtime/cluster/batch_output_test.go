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
	"benchrun/runtime/record"
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
	reports, err := c.Reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen, total := map[uint64]bool{}, 0
	for _, r := range reports {
		f, ok := r.Data.(*operator.FileReport)
		if !ok {
			continue
		}
		if err := operator.ReadFiles(f, func(r *record.Record) error {
			seen[r.Number] = true
			total++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		break // all subtasks share a folder
	}
	if total != records || len(seen) != records {
		t.Errorf("%d records, %d distinct, in the files; want %d", total, len(seen), records)
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
