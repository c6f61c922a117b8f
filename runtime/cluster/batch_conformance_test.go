package cluster_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/exchange"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// mutable is a network on which those who dialled can be made unheard: what they
// write from then on goes nowhere.
type mutable struct {
	exchange.Loopback
	mu    sync.Mutex
	conns []*mutedConn
}

type mutedConn struct {
	net.Conn
	muted atomic.Bool
}

func (c *mutedConn) Write(b []byte) (int, error) {
	if c.muted.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (m *mutable) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := m.Loopback.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	x := &mutedConn{Conn: c}
	m.mu.Lock()
	m.conns = append(m.conns, x)
	m.mu.Unlock()
	return x, nil
}

func (m *mutable) mute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.muted.Store(true)
	}
}

// committedRecords counts the records in the committed files of a job and the
// distinct ones.
func committedRecords(t *testing.T, c cluster.Running) (total, distinct int) {
	t.Helper()
	reports, err := c.Reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, r := range reports {
		if f, ok := r.Data.(*operator.FileReport); ok {
			if err := operator.ReadFiles(f, func(r *record.Record) error {
				seen[r.Number] = true
				total++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			break // all subtasks share a folder
		}
	}
	return total, len(seen)
}

// FLINK-11813, FLINK-25430, MAPREDUCE-4850: the master dies when the job is over
// and its log is gone, while workers still clean up. The next master finds the
// job's result before anything else: nothing runs again, nothing is committed
// twice.
//
// Fails if the result is written behind the clean-up, or if a new master does not
// look for it.
func TestFLINK11813_AFinishedJobDoesNotRunAgain(t *testing.T) {
	for _, mode := range []string{"hardened", "faithful"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			j := (&job{}).sequence("numbers", 2, source.Params{Records: 2000, Splits: 8}).op("out", "file-sink", 2, operator.Params{}).link("numbers", "out", graph.Hash)
			quiet := &mutable{}
			cfg := setup{workers: 2, slots: 2, dir: dir, options: recovering(map[string]any{
				"execution.batch.job-recovery.mode": mode, "execution.batch.job-recovery.snapshot.min-pause": "0 s",
			})}.config(t, j)
			cfg.Batch, cfg.Transport = true, quiet
			log := cfg.Timeline
			deleting, err := failpoint.Lookup("joblog/delete")
			if err != nil {
				t.Fatal(err)
			}
			deleted, err := failpoint.Lookup("joblog/deleted")
			if err != nil {
				t.Fatal(err)
			}
			over := func() bool { // files of the log also go when it begins
				_, err := os.Stat(filepath.Join(dir, "master", "result.json"))
				return err == nil
			}
			var muted, once sync.Once
			defer deleting.Arm(func(int, string) error {
				if over() {
					muted.Do(quiet.mute) // nobody says to this master that it has cleaned up
				}
				return nil
			})()
			gone := make(chan struct{})
			defer deleted.Arm(func(int, string) error {
				if e, err := os.ReadDir(filepath.Join(dir, "master", "job-events")); err == nil && len(e) == 0 && over() {
					once.Do(func() { close(gone) })
				}
				return nil
			})()
			c, err := cluster.StartBatch(cfg)
			if err != nil {
				t.Fatal(err)
			}
			cleanUp(t, c, log)
			select {
			case <-gone:
			case <-time.After(finishLimit):
				t.Fatal("the log does not go")
			}
			begin := len(log.Events())
			if err := c.KillMaster(0, func() {}); err != nil {
				t.Fatal(err)
			}
			finish(t, c)
			for _, e := range log.Events()[begin:] {
				if e.Kind == timeline.TaskState && e.State == "DEPLOYING" {
					t.Fatalf("%s/%d runs again", e.Vertex, e.Subtask)
				}
			}
			filesHold(t, c, 2000)
			nothingLeft(t, dir)
		})
	}
}
