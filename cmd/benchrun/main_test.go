package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/harness/target/targettest"
	"benchrun/harness/trial"
	"benchrun/reports/verdict"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary a benchrun whose targets play their jobs.
// The script's variable FAKE says how.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"benchrun": fakeMain})
}

func fakeMain() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(trial.ErrInterrupted)
	}()
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	a := &app{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, self: self, targets: fakeTargets(self), judge: fakeJudge(), terminal: os.Getenv("FAKE_TERMINAL") != ""}
	if os.Getenv("FAKE_RENDER") != "" {
		a.render = func(dir string) error {
			if os.Getenv("FAKE_RENDER") == "fails" {
				return errors.New("no fonts")
			}
			return os.WriteFile(filepath.Join(dir, "report.html"), []byte("<html>"), 0o666)
		}
	}
	os.Exit(int(a.main(ctx)))
}

// fakeJudge is the comparison, or one that is broken.
func fakeJudge() judge {
	verdictOf := func(v verdict.Verdict, code result.Exit) judge {
		return func(head *result.Loaded, base func(string) *result.Loaded, rules verdict.Rules) *verdict.Decision {
			d := verdict.Decide(head, base, rules)
			d.Exit, d.Outcome = code, verdict.Outcome(code)
			for i := range d.Judged {
				d.Judged[i].Verdict, d.Judged[i].Alarm = v, false
			}
			return d
		}
	}
	switch os.Getenv("FAKE_JUDGE") {
	case "blind": // never looks at the samples
		return verdictOf(verdict.Same, result.ExitOK)
	case "alarmist":
		return verdictOf(verdict.Slower, result.ExitRegression)
	case "wary": // wants every cell to be run again, and is sure of none
		return func(head *result.Loaded, base func(string) *result.Loaded, rules verdict.Rules) *verdict.Decision {
			d := verdict.Decide(head, base, rules)
			if d.Exit == result.ExitOK || d.Exit == result.ExitRegression {
				d.Exit = result.ExitInconclusive
			}
			for i := range d.Judged {
				d.Judged[i].Alarm = rules.Screen
			}
			return d
		}
	}
	return verdict.Decide
}

func fakeTargets(self string) trial.Targets {
	f := &targettest.Target{Bytes: 1 << 20, Drain: 30 * time.Millisecond, Path: "downstream", Batch: targettest.Batch{TaskTime: 30 * time.Millisecond}}
	switch os.Getenv("FAKE") {
	case "wrong":
		f.Output = &target.Output{Proved: true, Expected: 10, Received: 9, Lost: 1, Digest: "a", ExpectedDigest: "b"}
	case "unproved":
		f.Output = &target.Output{}
	case "broken":
		f.Startup = errors.New("no sockets")
	case "unsupported":
		f.Startup = target.ErrUnsupported
	case "mute":
		f.Mute = true
	case "real":
		return targets(self)
	case "damage":
		return damaging(targets(self))
	case "none":
		return trial.Targets{}
	}
	return trial.Targets{"embedded": func() target.Target { return f }}
}

// TestScripts runs the command lines of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GOROOT", "/goroot")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode,
			"torn":     torn,
			"forget":   forget,
			"oneof":    oneOf,
			"measured": measured,
			"nights":   nights,
		},
	})
}

// exitCode runs a command and checks its exit code: exitcode 4 benchrun ....
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// torn cuts the last bytes of the one trials.jsonl below a folder.
func torn(ts *testscript.TestScript, _ bool, args []string) {
	path := oneRun(ts, args[0], "trials.jsonl")
	b, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.WriteFile(path, b[:len(b)-20], 0o666))
}

// forget removes the last line of the one trials.jsonl below a folder.
func forget(ts *testscript.TestScript, _ bool, args []string) {
	path := oneRun(ts, args[0], "trials.jsonl")
	b, err := os.ReadFile(path)
	ts.Check(err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
	ts.Check(os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-1], "")), 0o666))
}

// oneOf sets the variable RUN to the one run folder below a folder.
func oneOf(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv("RUN", filepath.Dir(oneRun(ts, args[0], "run.json")))
}

func oneRun(ts *testscript.TestScript, dir, name string) string {
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(dir), "*", name))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d runs below %s", len(found), dir)
	}
	return found[0]
}

// TestSamples: what init prints is a good workload.
func TestSamples(t *testing.T) {
	for _, kind := range sampleKinds {
		b, err := samples.ReadFile("samples/" + kind + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		f, err := spec.Parse(kind, "/", b, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s: %v", kind, f.Warnings)
		}
	}
}

// TestConfigs: the workloads that are shipped are good, and their names differ.
func TestConfigs(t *testing.T) {
	paths, err := spec.Find([]string{"../../configs"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, p := range paths {
		f, err := spec.Load(p, nil)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s: %v", p, f.Warnings)
		}
		if other, ok := names[f.Name]; ok {
			t.Errorf("%s and %s are both named %s", other, p, f.Name)
		}
		names[f.Name] = p
	}
}

// TestExplainKnowsAll: every word that the lab uses is explained.
func TestExplainKnowsAll(t *testing.T) {
	for _, w := range allWords() {
		if x, ok := lookup(w); !ok || x.Help == "" {
			t.Errorf("%q is not explained", w)
		}
	}
	for _, o := range []result.Outcome{result.OK, result.Timeout, result.Failed, result.Incorrect, result.Misconfigured, result.Unsupported, result.TrialInterrupted} {
		if _, ok := lookup(string(o)); !ok {
			t.Errorf("the outcome %q is not explained", o)
		}
	}
	for _, i := range options.All() {
		if x, ok := lookup(options.Short(i.Key, nil)); !ok || x.Kind == "" {
			t.Errorf("the short name of %s is not explained", i.Key)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		metric string
		v      float64
		want   string
	}{
		{"time_to_running_s", 0.1234, "0.123 s"},
		{"restored_bytes", 64 << 20, "64.0 MiB"},
		{"restored_bytes", 100, "100B"},
		{"inflight_inflation", 1.25, "1.25"},
		{"throughput_records_per_s", 1e6, "1000000 records/s"},
		{"unknown", 3, "3"},
	} {
		if got := quantity(c.metric, c.v); got != c.want {
			t.Errorf("quantity(%s, %v) = %q, want %q", c.metric, c.v, got, c.want)
		}
	}
}
