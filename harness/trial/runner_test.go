package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/harness/target/targettest"
	"benchrun/runtime/timeline"
)

// The test binary is its own trial process: with this variable set it plays a
// child (or a run that dies) instead of running tests.
const roleVariable = "TRIAL_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if dir, ok := strings.CutPrefix(role, "dying-run:"); ok {
		dyingRun(dir)
	}
	f := &targettest.Target{Bytes: 1 << 20, Drain: 10 * time.Millisecond, Path: "downstream"}
	targets := Targets{"embedded": func() target.Target { return f }}
	switch role {
	case "ok":
	case "panic":
		targets["embedded"] = func() target.Target { return badTarget{f, func() { panic("boom") }} }
	case "hang":
		targets["embedded"] = func() target.Target { return badTarget{f, hang} }
	case "no-target":
		targets = Targets{}
	case "chatter":
		fmt.Println("this is no message")
	case "talks-on":
		fmt.Println(`{"hello":{"protocol":1,"revision":"x"}}`)
		for {
			fmt.Println(`{"event":{"t_us":1,"kind":"throughput"}}`)
		}
	case "other-protocol":
		fmt.Println(`{"hello":{"protocol":99,"revision":"x"}}`)
		os.Exit(0)
	}
	os.Exit(Child(context.Background(), os.Stdin, os.Stdout, os.Stderr, targets, "rev"))
}

// badTarget does something else than to start.
type badTarget struct {
	*targettest.Target
	act func()
}

func (b badTarget) Start(context.Context, target.Request, *timeline.Log) (target.Job, error) {
	b.act()
	return nil, errors.New("not reached")
}

// hang starts a process of its own, says which, and never comes back.
func hang() {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "pids %d %d\n", os.Getpid(), cmd.Process.Pid)
	select {}
}

// dyingRun is a run that is killed while a trial hangs.
func dyingRun(dir string) {
	f, err := result.Open(dir)
	if err != nil {
		panic(err)
	}
	r := &Runner{Folder: f}
	r.Run(context.Background(), testTask("hang", "0001-x", time.Hour))
	os.Exit(0)
}

const quickSteps = `
[[scenario.step]]
wait = { checkpoints = 1 }
[[scenario.step]]
name = "rescale"
do = "rescale"
parallelism = { out = 3 }
[[scenario.step]]
wait = { first-checkpoint = true, drained = true }
`

func testTask(role, id string, timeout time.Duration) Task {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Task{
		Exe: exe, Args: []string{"-test.run=^$"}, Env: append(os.Environ(), roleVariable+"="+role), Timeout: timeout,
		Workload: "fake", Flags: map[string]any{}, Target: "embedded",
		Request: Request{Trial: id, File: "fake.toml", Dir: "/dir", Text: fakeHead + quickSteps, Cell: "default", Build: "this", Block: 2, Order: 1},
	}
}

func testFolder(t *testing.T) *result.Folder {
	t.Helper()
	f, err := result.Create(t.TempDir(), "fake", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteRun(&result.Run{Schema: 1}); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRunner(t *testing.T) {
	f := testFolder(t)
	var phases []string
	r := &Runner{Folder: f, Notify: func(m Message) {
		if m.Phase != "" {
			phases = append(phases, m.Phase)
		}
	}}
	tr, err := r.Run(t.Context(), testTask("ok", "0001-fake", time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Outcome != result.OK || tr.Trial != "0001-fake" || tr.Workload != "fake" || tr.Revision != "rev" || tr.Block != 2 || tr.Target != "embedded" || tr.RecoveryPath != "downstream" {
		t.Errorf("trial %+v", tr)
	}
	if got := strings.Join(phases, " "); got != "step-1 rescale step-3 finish" {
		t.Errorf("phases %s", got)
	}
	events, err := result.LoadEvents(f.Dir(), "0001-fake")
	if err != nil {
		t.Fatal(err)
	}
	last, faults := int64(-1), 0
	for _, e := range events {
		if e.TUs < last {
			t.Errorf("events out of order at %d", e.TUs)
		}
		last = e.TUs
		if e.Kind == "fault" {
			faults++
		}
	}
	if faults != 1 {
		t.Errorf("%d fault events of %d", faults, len(events))
	}
	if _, err := os.Stat(f.Path("tmp", "0001-fake")); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

func TestRunnerOutcomes(t *testing.T) {
	for _, c := range []struct {
		role    string
		outcome result.Outcome
		reason  string
	}{
		{"panic", result.Failed, "ended without a result: exit status 2: panic: boom (see logs/0001-panic.txt)"},
		{"no-target", result.Unsupported, `no target "embedded"`},
		{"chatter", result.OK, ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			r := &Runner{Folder: testFolder(t)}
			tr, err := r.Run(t.Context(), testTask(c.role, "0001-"+c.role, time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if tr.Outcome != c.outcome || !strings.Contains(tr.Reason, c.reason) {
				t.Errorf("%s: %s", tr.Outcome, tr.Reason)
			}
		})
	}
}

func TestRunnerRefusesOtherProtocols(t *testing.T) {
	r := &Runner{Folder: testFolder(t)}
	if _, err := r.Run(t.Context(), testTask("other-protocol", "0001-x", time.Minute)); !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
	task := testTask("", "0002-x", time.Minute)
	task.Exe, task.Args = "/bin/true", nil
	if _, err := r.Run(t.Context(), task); !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v", err)
	}
	task.Exe, task.Args, task.Request.Trial = "yes", nil, "0004-x"
	if yes, err := exec.LookPath("yes"); err == nil {
		task.Exe = yes
		if _, err := r.Run(t.Context(), task); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "100 lines that are no messages") {
			t.Errorf("error %v", err)
		}
		if info, err := os.Stat(r.Folder.Path("logs", "0004-x.txt")); err != nil || info.Size() > 1<<16 {
			t.Errorf("the log of a program that babbles: %v, %v", info, err)
		}
	}
	task.Exe, task.Request.Trial = filepath.Join(t.TempDir(), "absent"), "0003-x"
	tr, err := r.Run(t.Context(), task)
	if err != nil || tr.Outcome != result.Failed || !strings.Contains(tr.Reason, "could not be started") {
		t.Errorf("%+v, %v", tr, err)
	}
}

// TestRunnerKillsTheGroup: a trial that hangs is killed with all its
// processes when its time is over, and when the run is stopped.
func TestRunnerKillsTheGroup(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		f := testFolder(t)
		r := &Runner{Folder: f, Grace: 300 * time.Millisecond}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		timeout := 500 * time.Millisecond
		want := result.Timeout
		if stopped {
			timeout, want = time.Hour, result.TrialInterrupted
			go func() {
				waitFor(t, func() bool { return len(pids(f, "0001-x")) == 2 })
				cancel(ErrInterrupted)
			}()
		}
		tr, err := r.Run(ctx, testTask("hang", "0001-x", timeout))
		if err != nil {
			t.Fatal(err)
		}
		if tr.Outcome != want || tr.Reason == "" {
			t.Errorf("%s: %s", tr.Outcome, tr.Reason)
		}
		gone(t, pids(f, "0001-x"))
		if _, err := os.Stat(f.Path("tmp", "0001-x")); err != nil {
			t.Errorf("the temporary folder of a trial that is not ok is kept: %v", err)
		}
	}
}

// TestTrialDiesWithTheRun kills the run itself.
func TestTrialDiesWithTheRun(t *testing.T) {
	f := testFolder(t)
	f.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(exe, "-test.run=^$")
	run.Env = append(os.Environ(), roleVariable+"=dying-run:"+f.Dir())
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(pids(f, "0001-x")) == 2 })
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	run.Wait()
	children := pids(f, "0001-x")
	gone(t, children[:1])
	syscall.Kill(children[1], syscall.SIGKILL) // the grandchild has no one left to end it
}

// pids reads what hang wrote.
func pids(f *result.Folder, trial string) []int {
	b, err := os.ReadFile(f.Path("logs", trial+".txt"))
	if err != nil {
		return nil
	}
	var out []int
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "pids" {
			continue
		}
		for _, w := range words[1:] {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("no process was started")
	}
	for _, pid := range pids {
		waitFor(t, func() bool {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(b), ") Z ")
		})
	}
}

// waitFor looks again and again, since other processes give no signal.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Error("waited for too long")
			return
		case <-tick.C:
		}
	}
}

func TestNewestFailureIsKept(t *testing.T) {
	f := testFolder(t)
	r := &Runner{Folder: f}
	for _, id := range []string{"0001-x", "0002-x"} {
		if _, err := r.Run(t.Context(), testTask("panic", id, time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Run(t.Context(), testTask("ok", "0003-x", time.Minute)); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(f.Path("tmp", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "0002-x" {
		t.Errorf("left are %v, %v", left, err)
	}
}
