package cluster_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
)

// killedJob is the job that dies with its process.
func killedJob(p int) *job {
	return (&job{}).sequence("numbers", 3, source.Params{RecordSize: 150}).
		op("slow", "keyed-sum", p, operator.Params{StateSize: 16, Cost: int64(50 * time.Microsecond)}).
		op("out", "verify-sink", 2, operator.Params{}).
		link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
}

// TestKillProcess kills a process in the middle of its checkpoints and goes on
// from the newest complete one in another. The test binary is both.
func TestKillProcess(t *testing.T) {
	if dir := os.Getenv("CLUSTER_TEST_DIR"); dir != "" {
		_, log := setup{workers: 2, slots: 8, dir: dir, options: unaligned("20 ms", map[string]any{options.NumRetained.Key(): int64(2)})}.start(t, killedJob(4))
		for at := 0; ; {
			e, i := await(t, log, at, "checkpoint", completedCheckpoint)
			fmt.Println("CHECKPOINT", e.Checkpoint)
			at = i
		}
	}
	for path, opts := range paths {
		t.Run(path, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			dir := t.TempDir()
			runUntilKilled(t, dir, 3+r.IntN(5), time.Duration(r.IntN(20_000))*time.Microsecond)
			opts := unaligned("50 ms", opts)
			opts[options.RecoveryPath.Key()] = dir + "/checkpoints"
			c, _ := setup{workers: 2, slots: 8, options: opts}.start(t, killedJob(6)) // another parallelism, too
			c.Master().StopSources()
			res := finish(t, c)
			res.exactly(t, int64(res.emitted["numbers"]))
			if res.arrived == 0 {
				t.Error("nothing was restored")
			}
		})
	}
}

// runUntilKilled runs the job in a process of its own and kills that some time
// after its n-th checkpoint, most likely in the middle of another.
func runUntilKilled(t *testing.T, dir string, n int, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKillProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "CLUSTER_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "CHECKPOINT "); ok {
			if k, _ := strconv.Atoi(id); k >= n {
				break
			}
		}
	}
	<-time.After(after)
	cmd.Process.Kill() // SIGKILL
	cmd.Wait()
}
