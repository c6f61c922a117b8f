package cluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"benchrun/runtime/cluster"
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/timeline"
)

// TestTwoMasters takes the lock away from a master, that is stopped or that
// runs, and starts another: the first ends as soon as it can notice, workers
// listen to the second alone, and nothing of the output is wrong.
// Fails if workers do not look for a newer leader (the frozen one), or masters
// do not look whether they lead.
func TestTwoMasters(t *testing.T) {
	for _, frozen := range []bool{true, false} {
		t.Run(fmt.Sprintf("frozen=%t", frozen), func(t *testing.T) {
			c, log := setup{workers: 2, slots: 4, options: unaligned("30 ms", nil)}.processes(t, backlogged(5))
			_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
			first := c.Leader()
			if frozen {
				if err := first.Freeze(true); err != nil {
					t.Fatal(err)
				}
			}
			// As long as the lock is held, a second one only waits.
			if err := c.AddMaster(); err != nil {
				t.Fatal(err)
			}
			if !frozen {
				_, at = await(t, log, at, "checkpoint", completedCheckpoint)
				_, at = await(t, log, at, "checkpoint", completedCheckpoint)
			}
			for _, e := range log.Events() {
				if e.Kind == timeline.MasterElected && strings.Contains(e.Detail, "epoch=2") {
					t.Fatal("two lead")
				}
			}
			if err := os.Remove(filepath.Join(c.StateFolder(), "leader.lock")); err != nil {
				t.Fatal(err)
			}
			_, at = await(t, log, at, "another master", kind(timeline.MasterElected))
			_, at = await(t, log, at, "restore", kind(timeline.RestoreAssigned))
			await(t, log, at, "checkpoint", completedCheckpoint)
			if frozen {
				if err := first.Freeze(false); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-first.Exited():
				if code := first.ExitCode(); code != 4 {
					t.Errorf("the deposed master ended with status %d", code)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the deposed master goes on")
			}
			await(t, log, log.Len(), "checkpoint", completedCheckpoint)
			checkTimeline(t, log)
			drainAndCheck(t, c)
		})
	}
}

// TestStrangers: who does not know the secret, speaks another version or is
// nobody's process is refused, with words, and the job does not notice.
func TestStrangers(t *testing.T) {
	c, log := setup{workers: 2, slots: 4, options: unaligned("50 ms", nil)}.processes(t, backlogged(4))
	_, at := await(t, log, 0, "in-flight data", inFlight(20_000))
	for name, x := range map[string]struct {
		secret   []byte
		protocol int
		cluster  string
		status   int
		words    string
	}{
		"secret":  {control.NewSecret(), 0, "", 1, "does not know this cluster's secret"},
		"version": {nil, cluster.NodeProtocol + 1, "", 5, "this build speaks"},
		"job":     {nil, 0, "another", 1, "is of another submission"},
	} {
		status, words, err := c.RunStranger(x.secret, x.protocol, x.cluster)
		if err != nil || status != x.status || !strings.Contains(words, x.words) {
			t.Errorf("%s: status %d, %q, %v; want %d, %q", name, status, words, err, x.status, x.words)
		}
	}
	b, err := os.ReadFile(filepath.Join(c.StateFolder(), "leader.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `"addr":"`)
	leader, _, _ := strings.Cut(rest, `"`)
	for _, addr := range []string{c.Supervisor(), leader} {
		_, err := control.Secure(exchange.Loopback{}, control.NewSecret(), "b").Dial(t.Context(), addr)
		var h *control.HandshakeError
		if !errors.As(err, &h) || h.Refusal != control.BadSecret {
			t.Errorf("%s: %v", addr, err)
		}
		_, err = control.Secure(exchange.Loopback{}, c.Secret(), "another build").Dial(t.Context(), addr)
		if !errors.As(err, &h) || h.Refusal != control.BadBuild {
			t.Errorf("%s: %v", addr, err)
		}
		raw, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		raw.Write([]byte("\x02GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 200)))
		raw.Close()
	}
	for _, name := range []string{"nobody", "worker-0"} { // the second is there already
		x, err := c.AttachAs(name)
		if err != nil {
			t.Fatal(err)
		}
		x.Send(control.JobEnded{Epoch: 1, Error: "lies"})
		if err := x.Flush(10 * time.Second); err != nil {
			t.Error(err)
		}
		x.Close(false)
	}
	await(t, log, at, "checkpoint", completedCheckpoint)
	drainAndCheck(t, c)
}

// TestBadExecutables: a cluster that cannot come up says why.
func TestBadExecutables(t *testing.T) {
	for name, x := range map[string]struct {
		exe  cluster.Executable
		want string
	}{
		"missing":      {cluster.Executable{Path: "/nowhere/benchrun"}, "could not be started"},
		"ends at once": {cluster.Executable{Path: "/bin/false"}, "-0 ended by itself: exit status 1"},
		"says why":     {cluster.Executable{Path: "/bin/sh", Args: []string{"-c", "echo oh dear >&2; exit 7"}}, "exit status 7: oh dear"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := setup{workers: 1, slots: 4}.config(t, backlogged(1))
			c, err := cluster.StartProcesses(t.Context(), cfg, x.exe, io.Discard)
			if err == nil {
				c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want %q", err, x.want)
			}
		})
	}
	cfg := setup{workers: 1, slots: 4}.config(t, backlogged(1))
	cfg.Storage = "mem://x"
	if _, err := cluster.StartProcesses(t.Context(), cfg, nodes, io.Discard); !errors.Is(err, cluster.ErrConfig) {
		t.Errorf("storage in memory: %v", err)
	}
}

// TestNodeInput: what is no request is refused at once.
func TestNodeInput(t *testing.T) {
	for name, x := range map[string]struct{ in, want string }{
		"nothing":         {"", "no request on stdin"},
		"no JSON":         {"hello\n", "no JSON"},
		"another version": {`{"protocol":99}` + "\n", "protocol 99 is asked for"},
	} {
		var said strings.Builder
		if status := cluster.Node(t.Context(), cluster.RoleWorker, strings.NewReader(x.in), &said); status != 5 || !strings.Contains(said.String(), x.want) {
			t.Errorf("%s: status %d, %q", name, status, said.String())
		}
	}
}

// TestUnexpectedEndOfAWorker: one that nobody wanted dead ends the job, of either
// kind, though the job could get over it; KillWorker does not (TestBatchProcesses).
//
// Fails if only the end of a master does, or if a batch job is left out.
func TestUnexpectedEndOfAWorker(t *testing.T) {
	for name, start := range map[string]func() (*cluster.Processes, *timeline.Log){
		"streaming": func() (*cluster.Processes, *timeline.Log) {
			return setup{workers: 2, slots: 4, options: unaligned("50 ms", nil)}.processes(t, backlogged(4))
		},
		"batch": func() (*cluster.Processes, *timeline.Log) {
			j := simple(100_000, 4)
			j.Nodes[1].Params = []byte(`{"Cost":1000000}`)
			return setup{workers: 2, slots: 2, dir: t.TempDir(), options: recovering(nil)}.batchProcesses(t, j)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, log := start()
			await(t, log, 0, "a running task", func(e timeline.Event) bool { return e.Kind == timeline.TaskState && e.State == "RUNNING" })
			for _, pid := range c.Pids() {
				if commandLine(pid, cluster.RoleWorker) {
					syscall.Kill(pid, syscall.SIGKILL)
					break
				}
			}
			select {
			case <-c.Done():
			case <-time.After(finishLimit):
				t.Fatal("the job does not end")
			}
			if err := c.Err(); err == nil || !regexp.MustCompile(`^the process worker-\d ended by itself: signal: killed$`).MatchString(err.Error()) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestUnexpectedEnds: a master that dies by itself ends the job with its last words.
func TestUnexpectedEnds(t *testing.T) {
	c, log := setup{workers: 2, slots: 4, options: unaligned("50 ms", nil)}.processes(t, backlogged(4))
	_, _ = await(t, log, 0, "in-flight data", inFlight(20_000))
	p := c.Leader()
	for _, pid := range c.Pids() {
		if commandLine(pid, cluster.RoleMaster) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	<-p.Exited()
	select {
	case <-c.Done():
	case <-time.After(finishLimit):
		t.Fatal("the job does not end")
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "master-0 ended by itself: signal: killed") {
		t.Errorf("error %v", err)
	}
	if err := c.Rescale(t.Context(), map[string]int{"slow": 3}, func(time.Duration) {}); err == nil {
		t.Error("a dead cluster was rescaled")
	}
}

func commandLine(pid int, role string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasSuffix(strings.TrimRight(string(b), "\x00"), role)
}

// TestNothingOutlivesItsSupervisor kills the process that a cluster was
// started from with kill -9: its processes, one of them stopped, and their
// sockets are gone. Fails if processes have no death signal and do not heed the
// end of their stdin either; each alone is enough, see the two tests below.
func TestNothingOutlivesItsSupervisor(t *testing.T) {
	if dir := os.Getenv("CLUSTER_TEST_SUPERVISOR"); dir != "" {
		c, log := setup{workers: 3, slots: 4, dir: dir, options: unaligned("50 ms", nil)}.processes(t, backlogged(4))
		await(t, log, 0, "in-flight data", inFlight(20_000))
		if err := c.FreezeWorker(0, time.Hour, func() {}); err != nil {
			t.Fatal(err)
		}
		for _, pid := range c.Pids() {
			fmt.Println("PID", pid)
		}
		fmt.Println("ADDR", c.Supervisor())
		<-t.Context().Done()
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the list of processes is read from /proc")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestNothingOutlivesItsSupervisor$", "-test.v")
	cmd.Env = append(os.Environ(), "CLUSTER_TEST_SUPERVISOR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	addr := ""
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		if s, ok := strings.CutPrefix(lines.Text(), "PID "); ok {
			pid, _ := strconv.Atoi(s)
			pids = append(pids, pid)
		}
		addr, _ = strings.CutPrefix(lines.Text(), "ADDR ")
		if addr == lines.Text() {
			addr = ""
		}
	}
	if len(pids) != 4 {
		t.Errorf("processes %v", pids)
	}
	sockets := listening(t, append(pids, cmd.Process.Pid))
	if len(sockets) < 5 { // supervisor, master, three workers
		t.Errorf("only %d sockets listen", len(sockets))
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		awaitGone(t, pid)
	}
	for _, port := range sockets {
		awaitSilence(t, port)
	}
}

// awaitSilence waits until nobody listens on a port: the last thread of a
// process closes its sockets after the first one counts as dead.
func awaitSilence(t *testing.T, port int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return
		}
		c.Close()
		if time.Now().After(deadline) {
			t.Errorf("somebody still listens on port %d", port)
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestDeathSignal: the kernel ends processes that heed nothing. Fails if they
// are started without the signal, or from a thread that ends before.
func TestDeathSignal(t *testing.T) {
	if dir := os.Getenv("CLUSTER_TEST_DEAF"); dir != "" {
		cfg := setup{workers: 2, slots: 4, dir: dir}.config(t, backlogged(1))
		cluster.StartProcesses(t.Context(), cfg, cluster.Executable{Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}}, io.Discard)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no such signal")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestDeathSignal$")
	cmd.Env = append(os.Environ(), "CLUSTER_TEST_DEAF="+t.TempDir())
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for deadline := time.Now().Add(10 * time.Second); len(pids) < 3 && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
		pids = sleepersOf(cmd.Process.Pid)
	}
	if len(pids) != 3 {
		t.Errorf("processes %v", pids)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		awaitGone(t, pid)
	}
}

// sleepersOf finds the children of a process that have become a sleep.
func sleepersOf(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(b), "(sleep) ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			pids = append(pids, pid)
		}
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

// listening finds the ports on which processes listen.
func listening(t *testing.T, pids []int) (ports []int) {
	t.Helper()
	inodes := map[string]bool{}
	for _, pid := range pids {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:[") {
				inodes[strings.Trim(to, "socket:[]")] = true
			}
		}
	}
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" || !inodes[f[9]] {
			continue
		}
		host, port, _ := strings.Cut(f[1], ":")
		if host != "0100007F" {
			t.Errorf("a socket listens on %s, not on 127.0.0.1", host)
		}
		n, _ := strconv.ParseInt(port, 16, 32)
		ports = append(ports, int(n))
	}
	return ports
}

// TestOrphanEnds: a process whose stdin ends is gone, also where the system
// has no death signal.
func TestOrphanEnds(t *testing.T) {
	cmd := exec.Command(nodes.Path, cluster.RoleWorker)
	cmd.Env = nodes.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a supervisor that says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, `{"protocol":%d,"name":"worker-0","secret":"AAAA","supervisor":%q}`+"\n", cluster.NodeProtocol, l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in.Close()
	begin := time.Now()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || time.Since(begin) > control.HandshakeTimeout {
		t.Errorf("status %d after %v", code, time.Since(begin))
	}
}
