package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"benchrun/harness/target"
	"benchrun/harness/target/embedded"
	"benchrun/harness/target/process"
	"benchrun/harness/trial"
)

const trialVariable = "PROCESS_TEST_TRIAL"

func trialProcess() int {
	exe := executable
	exe.Env = append(exe.Env, trialVariable+"=") // the last one counts
	targets := trial.Targets{"process": func() target.Target { return process.New(exe) }, "embedded": embedded.New}
	return trial.Child(context.Background(), os.Stdin, os.Stdout, os.Stderr, targets, "test")
}

const longJob = `schema = 1
name = "long"
[cluster]
target = %q
[workload]
mode = %q
parallelism = 2
[[workload.vertex]]
id = "numbers"
operator = "sequence"
params = { rate = "1000/s", records = 1000000 }
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "out"
partitioner = "rebalance"
[[scenario.step]]
name = "up"
wait = { running = true }
[[scenario.step]]
name = "on"
wait = { elapsed = "10m", timeout = "11m" }
[[scenario.step]]
do = "finish"
`

// TestNothingOutlivesTheTrial kills a trial's process with kill -9, alone, not
// its group: the cluster's processes, which have groups of their own, go with
// it. An embedded cluster is no other process. Fails if they have no death signal of
// the kernel and do not heed the end of their stdin either.
func TestNothingOutlivesTheTrial(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the list of processes is read from /proc")
	}
	for _, mode := range []string{"streaming", "batch"} {
		for target, processes := range map[string]int{"process": 3, "embedded": 0} {
			t.Run(mode+"/"+target, func(t *testing.T) { killTrial(t, fmt.Sprintf(longJob, target, mode), processes) })
		}
	}
}

// killTrial kills the process of a trial that has a number of others.
func killTrial(t *testing.T, text string, processes int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), trialVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	b, err := json.Marshal(trial.Request{Protocol: trial.Protocol, Trial: "t", File: "long.toml", Dir: t.TempDir(), Text: text, Cell: "default", Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	in.Write(append(b, '\n'))
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), `"phase":"on"`) {
			break
		}
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) != processes {
		t.Fatalf("the trial has the processes %v, not %d", children, processes)
	}
	for _, pid := range children {
		if pgid, err := syscall.Getpgid(pid); err != nil || pgid != pid {
			t.Errorf("process %d is in group %d, %v", pid, pgid, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range children {
		awaitGone(t, pid)
	}
}

// childrenOf finds the processes that a process has started.
func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) < 2 || f[1] != strconv.Itoa(parent) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		pids = append(pids, pid)
	}
	return pids
}

// awaitGone waits until a process has ended, by the kernel's own word: its handle
// can be read then, also where whoever inherits the process leaves it unreaped.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var fd int
	if err := errors.Join(p.WithHandle(func(handle uintptr) { fd, err = syscall.Dup(int(handle)) }), err); err != nil {
		// There is no handle of one that is just being reaped either.
		if gone := syscall.Kill(pid, 0); !errors.Is(err, os.ErrProcessDone) && !errors.Is(gone, syscall.ESRCH) {
			t.Errorf("process %d: %v, %v", pid, err, gone)
		}
		return
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	defer unix.Close(fd)
	n := 0
	for deadline := time.Now().Add(10 * time.Second); n == 0 && time.Now().Before(deadline); {
		if n, err = unix.Poll(fds, int(time.Until(deadline).Milliseconds())+1); err != nil && err != unix.EINTR {
			t.Fatalf("process %d: %v", pid, err)
		}
		n = max(n, 0)
	}
	if n == 0 {
		syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("process %d is still there", pid)
	}
}
