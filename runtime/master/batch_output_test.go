package master

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

func init() { gob.Register(&operator.FileReport{}) }

// outputJob is a job whose two sinks write a file each. There are six reports.
func outputJob(t *testing.T, recovery bool) *batchJob {
	t.Helper()
	j := newBatchJobTo(t, "file-sink", map[string]any{options.BatchJobRecovery.Key(): recovery})
	j.writes = func(id joblog.AttemptID) ([]control.Report, bool) {
		if id.Vertex != "b" {
			return nil, true
		}
		f := &operator.FileReport{Dir: filepath.Join(j.output, "output"), Prefix: "part-b-", Run: "run", Files: []string{partName("run", id)}}
		j.put("." + f.Files[0])
		return []control.Report{{Operator: "b", Data: f}}, true
	}
	return j
}

func partName(run string, id joblog.AttemptID) string {
	return fmt.Sprintf("part-%s-%d-1-%s", id.Vertex, id.Subtask, operator.AttemptName(run, id.Epoch, id.Attempt))
}

// put makes a file in the folder of the sinks.
func (j *batchJob) put(name string) {
	dir := filepath.Join(j.output, "output")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		j.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		j.t.Error(err)
	}
}

// in lists a folder of the output.
func (j *batchJob) in(folder string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(j.output, folder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		j.t.Error(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func visible(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, ".") })
}

func point(t *testing.T, name string) *failpoint.Point {
	t.Helper()
	p, err := failpoint.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A master that is killed half way through its commits carries out none after
// that. With the log the next one goes on; without, it takes back what there is
// before it deploys anything, and the job runs again. In the end every sink's file
// is there once.
//
// Fails if mayAct does not look whether the master was killed; if hardened.anew, or
// undo, does nothing; if the scheduler deploys while that is under way.
func TestBatchMasterDiesBetweenCommits(t *testing.T) {
	for _, recovery := range []bool{true, false} {
		t.Run(fmt.Sprint("recovery=", recovery), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := outputJob(t, recovery)
				m, network := j.master()
				killed := make(chan struct{})
				disarm := point(t, "reports/rename").Arm(func(n int, _ string) error {
					if n == 5 { // the sources, and the first sink
						go func() {
							defer close(killed)
							m.Kill()
						}()
						time.Sleep(time.Second)
					}
					return nil
				})
				m.Begin(0, 1, time.Minute)
				w := j.act(network, nil, "")
				<-killed
				disarm()
				w.leave()
				if reports, files := visible(j.in("reports/run")), visible(j.in("output")); len(reports) != 5 || len(files) != 1 {
					t.Fatalf("committed by the first master: %q and %q", reports, files)
				}

				defer point(t, "filesink/remove").Arm(failpoint.Delay(time.Second))() // time to deploy too early
				m, network = j.master()
				write := j.writes
				j.writes = func(id joblog.AttemptID) ([]control.Report, bool) {
					if there := visible(j.in("output")); len(there) > 0 {
						t.Errorf("%s runs while %q is there", id, there)
					}
					return write(id)
				}
				m.Begin(0, 1, time.Minute)
				w = j.act(network, w, "")
				<-m.Done()
				if err := m.Err(); err != nil {
					t.Error(err)
				}
				epoch := uint64(1)
				if !recovery {
					epoch = 2
				}
				var want []string
				for subtask := range 2 {
					want = append(want, partName("run", joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "b", Subtask: subtask}, Epoch: epoch}))
				}
				if got := j.in("output"); !slices.Equal(got, want) {
					t.Errorf("files %q, want %q", got, want)
				}
				if got := j.in("reports/run"); len(got) != 6 || len(visible(got)) != 6 {
					t.Errorf("reports %q", got)
				}
				m.Close()
				w.leave()
			})
		})
	}
}

// A master that does not lead any more, and does not know, commits nothing behind
// the next one's back, keeps no result and removes nothing.
//
// Fails if commitAttempt, or keepResult, does not ask.
func TestBatchDeposedMasterCommitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := outputJob(t, false)
		deposed := errors.New("epoch 2 has begun")
		j.leads = func(epoch int64) error {
			if epoch < j.epoch {
				return deposed
			}
			return nil
		}
		first, network := j.master()
		stopped, resume := make(chan struct{}), make(chan struct{})
		disarm := point(t, "reports/rename").Arm(func(n int, _ string) error {
			if n == 5 {
				close(stopped)
				<-resume
			}
			return nil
		})
		first.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		<-stopped
		w.leave()

		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w = j.act(network, w, "")
		<-m.Done()
		if err := m.Err(); err != nil {
			t.Error(err)
		}
		reports, files := j.in("reports/run"), j.in("output")
		if len(files) != 2 || len(reports) != 6 {
			t.Errorf("%q and %q", reports, files)
		}
		kept := j.result.kept
		later := "." + partName("run", joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "b"}, Epoch: 3})
		j.put(later)
		close(resume)
		time.Sleep(5 * time.Minute) // all its limits
		if r, f := j.in("reports/run"), j.in("output"); !slices.Equal(r, reports) || len(f) != 3 || !slices.Contains(f, later) {
			t.Errorf("the deposed master made %q of %q, and %q of %q", r, reports, f, files)
		}
		if j.result.kept != kept {
			t.Errorf("it kept the result %+v", j.result.kept)
		}
		disarm()
		first.Close()
		m.Close()
		w.leave()
	})
}

// A job that is cancelled leaves nothing that was not committed, whether the
// attempt came to report it or not; files of another run and of a later epoch are
// not its own.
//
// Fails if dropOutput goes by the reports that count, or if DropFiles looks at
// neither run nor epoch.
func TestBatchCancelledJobLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := outputJob(t, true)
		write := j.writes
		j.writes = func(id joblog.AttemptID) ([]control.Report, bool) {
			reports, _ := write(id)
			return reports, id.Vertex == "a" || id.Subtask == 0 // the other one has written, and is lost
		}
		sink := func(epoch uint64) joblog.AttemptID {
			return joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "b"}, Epoch: epoch}
		}
		others := []string{"." + partName("another", sink(1)), "." + partName("run", sink(2)), partName("another", sink(1))}
		for _, name := range others {
			j.put(name)
		}
		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		synctest.Wait()
		if files := j.in("output"); len(files) != len(others)+2 {
			t.Fatalf("files while the job runs: %q", files)
		}
		m.Cancel()
		synctest.Wait()
		w.Send(control.AttemptState{Attempt: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "b", Subtask: 1}, Epoch: 1}, State: scheduling.TaskCanceled})
		<-m.Done()
		if !errors.Is(m.Err(), ErrCanceled) {
			t.Error(m.Err())
		}
		slices.Sort(others)
		if files := j.in("output"); !slices.Equal(files, others) {
			t.Errorf("files %q, want %q", files, others)
		}
		if reports := j.in("reports/run"); len(reports) > 0 {
			t.Errorf("reports %q", reports)
		}
		m.Close()
		w.leave()
	})
}

// A round of commits fails for a while: nothing of what fails is visible or lost,
// the timeline has each round once, and the end comes.
//
// Fails if a commit that has been carried out before is an error, if each commit is
// a round, or if a round goes on behind a failure.
func TestBatchCommitsFailForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := outputJob(t, true)
		full := errors.New("no space left")
		begin := time.Now()
		tried := 0
		defer point(t, "filesink/rename").Arm(func(int, string) error {
			if time.Since(begin) < 10*time.Second {
				tried++
				return full
			}
			return nil
		})()
		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		<-m.Done()
		if err := m.Err(); err != nil {
			t.Error(err)
		}
		failed := j.states(timeline.Uncommitted)
		if len(failed) != tried || tried < 5 || tried > 20 || failed[0] != "UNCOMMITTED 4 committed, 2 not" {
			t.Errorf("%d tries, %d events: %q", tried, len(failed), failed)
		}
		if files := visible(j.in("output")); len(files) != 2 {
			t.Errorf("files %q", files)
		}
		m.Close()
		w.leave()
	})
}

// A round is durable before it counts, also what a master before had renamed.
//
// Fails if commit answers before it syncs, or if commitFile does not name the
// folder of a file that has its name already.
func TestBatchCommitsAreSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := outputJob(t, true)
		var synced []string
		torn := errors.New("input/output error")
		fails := true
		defer point(t, "filesink/sync-folder").Arm(func(_ int, dir string) error {
			synced = append(synced, filepath.Base(dir))
			if fails {
				fails = false
				return torn
			}
			return nil
		})()
		reports := 0
		defer point(t, "reports/sync").Arm(func(int, string) error { reports++; return nil })()
		m, network := j.master()
		m.Begin(0, 1, time.Minute)
		w := j.act(network, nil, "")
		<-m.Done()
		if err := m.Err(); err != nil {
			t.Error(err)
		}
		if failed := j.states(timeline.Uncommitted); !slices.Equal(failed, []string{"UNCOMMITTED 0 committed, 6 not"}) {
			t.Errorf("rounds that failed: %q", failed)
		}
		if !slices.Equal(synced, []string{"output", "output"}) || reports != 2 {
			t.Errorf("synced %q, reports %d times", synced, reports)
		}
		m.Close()
		w.leave()
	})
}
