package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plannedRun is a run.json of two cells and two blocks, as JSON.
func plannedRun(t testing.TB) map[string]any {
	t.Helper()
	run := newRun(slot("a", 0), slot("b", 0), slot("a", 1), slot("b", 1))
	run.Run, run.State = "20260102T030405Z-w-00000001", Complete
	return jsonOf(t, run)
}

func jsonOf(t testing.TB, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// goodLines are the lines of that run.
func goodLines() []*Trial {
	var out []*Trial
	for i, s := range []Slot{slot("a", 0), slot("b", 0), slot("a", 1), slot("b", 1)} {
		t := line(fmt.Sprintf("%06d", i+1), s, OK, map[string]float64{"time_to_running_s": 0.5, "throughput_records_per_s": 100})
		t.WallS, t.Reason = 10, ""
		t.Started = time.Date(2026, 1, 2, 3, 4, 5+20*i, 0, time.UTC)
		t.Correctness = &Correctness{Expected: 5, Received: 5, Digest: "d", ExpectedDigest: "d"}
		t.Faults = []Fault{{Name: "rescale", Kind: "rescale", Metrics: map[string]float64{"time_to_running_s": 0.5}}}
		out = append(out, t)
	}
	return out
}

func encode(t testing.TB, lines ...*Trial) string {
	t.Helper()
	var b strings.Builder
	for _, x := range lines {
		j, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(j)
		b.WriteByte('\n')
	}
	return b.String()
}

func folder(t testing.TB, run []byte, trials string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"run.json": run, "trials.jsonl": []byte(trials)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLoadRefuses: what is no run is told by what is wrong with it, and with
// an error that a caller can tell apart.
//
// Fails if the schema is looked at after the types, or if an empty object is a run.
func TestLoadRefuses(t *testing.T) {
	without := func(keys ...string) []byte {
		m := plannedRun(t)
		for _, k := range keys {
			delete(m, k)
		}
		return marshal(t, m)
	}
	with := func(key string, v any) []byte {
		m := plannedRun(t)
		m[key] = v
		return marshal(t, m)
	}
	for _, c := range []struct {
		name string
		run  []byte
		is   error
		want string
	}{
		{"empty", nil, ErrNoRun, "it is empty"},
		{"blank", []byte(" \n"), ErrNoRun, "it is empty"},
		{"empty object", []byte("{}"), ErrNoRun, "it has no schema, run, state, workloads, plan"},
		{"something else", []byte(`{"name":"left-pad","version":"1.3.0"}`), ErrNoRun, "it has no schema, run"},
		{"a list", []byte(`[1,2]`), ErrNoRun, "it holds no object"},
		{"null", []byte(`null`), ErrNoRun, "it has no schema"},
		{"no JSON", []byte(`schema = 1`), ErrNoRun, "invalid character"},
		{"cut off", without()[:200], ErrNoRun, "unexpected end"},
		{"no plan", without("plan"), ErrNoRun, "it has no plan"},
		{"no order", with("plan", map[string]any{"cells": []any{}}), ErrNoRun, "its plan has no order"},
		{"no state", with("state", "bananas"), ErrNoRun, `its state is "bananas", which is none of running, complete, interrupted`},
		{"plan is a list", with("plan", []any{1}), ErrNoRun, "plan"},
		{"newer", with("schema", 2), ErrSchema, "it has schema 2; this version reads up to 1"},
		{"newer, with other types", []byte(`{"schema":7,"run":{"id":1},"plan":"elsewhere"}`), ErrSchema, "it has schema 7"},
		{"zero", with("schema", 0), ErrSchema, "it has schema 0"},
		{"no number", with("schema", "1"), ErrSchema, `schema is "1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(folder(t, c.run, ""))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "run.json") {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// TestLoadLines: each kind of damaged or impossible line, what is said of it,
// which trials count and which slots are missing.
func TestLoadLines(t *testing.T) {
	change := func(i int, f func(*Trial)) string {
		lines := goodLines()
		f(lines[i])
		return encode(t, lines...)
	}
	replace := func(old, new string) string {
		text := encode(t, goodLines()...)
		if !strings.Contains(text, old) {
			t.Fatalf("no %s in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	all := encode(t, goodLines()...)
	for _, c := range []struct {
		name    string
		text    string
		count   string // trials that count, their outcomes' first letter behind them if not ok
		missing int
		warn    string // in the only warning; empty: none
		exit    Exit
	}{
		{"whole", all, "1 2 3 4", 0, "", ExitOK},
		{"no end of the last line", strings.TrimSuffix(all, "\n"), "1 2 3 4", 0, "", ExitOK},
		{"Windows ends of lines", strings.ReplaceAll(all, "\n", "\r\n"), "1 2 3 4", 0, "", ExitOK},
		{"mark of byte order, empty lines", "\xef\xbb\xbf\n" + strings.ReplaceAll(all, "\n", "\n\n \n"), "1 2 3 4", 0, "", ExitOK},
		{"half a last line", all[:len(all)-40], "1 2 3", 1, "trials.jsonl:4: the last line is half-written", ExitInterrupted},
		{"half a line between", replace(`"revision":"","block":0,"warmup":false,`, "\n"), "2 3 4", 1, "", ExitInterrupted},
		{"no file", "", "", 4, "", ExitInterrupted},
		{"NaN", replace(`"time_to_running_s":0.5`, `"time_to_running_s":NaN`), "2 3 4", 1, "trials.jsonl:1: trial 000001: time_to_running_s: NaN is no number; the line is skipped", ExitFailed},
		{"infinity", replace(`"time_to_running_s":0.5`, `"time_to_running_s":-Infinity`), "2 3 4", 1, "trial 000001: time_to_running_s: -Infinity is no number", ExitFailed},
		{"out of range", replace(`"time_to_running_s":0.5`, `"time_to_running_s":1e999`), "2 3 4", 1, "trial 000001: time_to_running_s: 1e999 is out of range", ExitFailed},
		{"a number as text", replace(`"time_to_running_s":0.5`, `"time_to_running_s":"0.5"`), "2 3 4", 1, "trial 000001: ", ExitFailed},
		{"negative", change(1, func(x *Trial) { x.Metrics["time_to_running_s"] = -0.1 }), "1 3 4", 1, "trials.jsonl:2: trial 000002: time_to_running_s: -0.1 is negative", ExitFailed},
		{"negative, of a fault", change(1, func(x *Trial) { x.Faults[0].Metrics["detect_s"] = -1 }), "1 3 4", 1, "trial 000002: rescale.detect_s: -1 is negative", ExitFailed},
		{"negative, unknown metric", change(1, func(x *Trial) { x.Metrics["new_s"] = -1 }), "1 3 4", 1, "trial 000002: new_s", ExitFailed},
		{"longer than the trial", change(1, func(x *Trial) { x.Metrics["time_to_running_s"] = 12 }), "1 3 4", 1, "trial 000002: time_to_running_s: 12 s is longer than the whole trial, which took 10 s", ExitFailed},
		{"as long as the trial", change(1, func(x *Trial) { x.Metrics["time_to_running_s"] = 10.5 }), "1 2 3 4", 0, "", ExitOK},
		{"absurd", change(1, func(x *Trial) { x.Metrics["throughput_records_per_s"] = 1e13 }), "1 3 4", 1, "trial 000002: throughput_records_per_s: 1e+13 records/s cannot be", ExitFailed},
		{"negative duration", change(1, func(x *Trial) { x.WallS = -3 }), "1 3 4", 1, "trial 000002: wall_s: -3 is negative", ExitFailed},
		{"nothing moved", change(1, func(x *Trial) { x.Metrics["throughput_records_per_s"] = 0 }), "1 2 3 4", 0, "trial 000002: throughput_records_per_s is 0, which is no measurement", ExitOK},
		{"metrics of a failure", change(1, func(x *Trial) { x.Outcome = Failed }), "1 2f 3 4", 0, "trial 000002: its outcome is failed, so its metrics do not count", ExitFailed},
		{"ok with a wrong proof", change(1, func(x *Trial) { x.Correctness.Lost = 2 }), "1 2i 3 4", 0, "", ExitWrong},
		{"unknown outcome", change(1, func(x *Trial) { x.Outcome = "fine" }), "1 3 4", 1, `the outcome "fine" is not known`, ExitFailed},
		{"an id twice", change(1, func(x *Trial) { x.Trial = "000001" }), "1 3 4", 1, "trials.jsonl:2: trial 000001: line 1 is of that trial, too", ExitFailed},
		{"a line twice", all + encode(t, goodLines()[1]), "1 2 3 4", 0, "trials.jsonl:5: trial 000002: line 2 is of that trial, too", ExitOK},
		{"an id that is a path", change(1, func(x *Trial) { x.Trial = "../2" }), "1 3 4", 1, `the trial id "../2" is none`, ExitFailed},
		{"no id", change(1, func(x *Trial) { x.Trial = "" }), "1 3 4", 1, `the trial id "" is none`, ExitFailed},
		{"a slot twice", change(2, func(x *Trial) { x.Block = 0 }), "2 3 4", 1, "trial 000001: a block 0 of w was measured again; the later line counts", ExitInterrupted},
		{"another workload", change(1, func(x *Trial) { x.Workload = "v" }), "1 3 4", 1, "trial 000002: the plan does not name b block 0 of v (build this)", ExitInterrupted},
		{"another cell", change(1, func(x *Trial) { x.Cell = "c" }), "1 3 4", 1, "the plan does not name c block 0", ExitInterrupted},
		{"another build", change(1, func(x *Trial) { x.Build = "head" }), "1 3 4", 1, "(build head)", ExitInterrupted},
		{"warm-up or not", change(1, func(x *Trial) { x.Warmup = true }), "1 3 4", 1, "the plan does not name b block 0", ExitInterrupted},
		{"an impossible line, then a good one", func() string {
			lines := goodLines()
			again := *lines[1]
			again.Trial = "000005"
			lines[1].WallS = -1
			return encode(t, append(lines, &again)...)
		}(), "1 3 4 5", 0, "trial 000002: wall_s", ExitOK},
		{"a good line, then an impossible one", func() string {
			lines := goodLines()
			again := *lines[1]
			again.Trial, again.WallS = "000005", -1
			return encode(t, append(lines, &again)...)
		}(), "1 2 3 4", 0, "trial 000005: wall_s", ExitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Load(folder(t, marshal(t, plannedRun(t)), c.text))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, x := range l.Trials {
				id := strings.TrimLeft(x.Trial, "0")
				if x.Outcome != OK {
					id += string(x.Outcome[:1])
				}
				ids = append(ids, id)
			}
			if got := strings.Join(ids, " "); got != c.count || len(l.Missing) != c.missing {
				t.Errorf("counting %q, %d missing; want %q, %d. %q", got, len(l.Missing), c.count, c.missing, l.Warnings)
			}
			if c.warn != "" && (len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], c.warn)) || c.warn == "" && c.exit == ExitOK && len(l.Warnings) > 0 {
				t.Errorf("warnings %q, want one with %q", l.Warnings, c.warn)
			}
			if got, _ := l.Exit(ExitInterrupted); c.exit == ExitFailed && len(l.Missing) > 0 {
				// Missing and failed: the caller says what missing is.
				if got, _ = l.Exit(ExitOK); got != ExitFailed {
					t.Errorf("exit %d", got)
				}
			} else if got != c.exit {
				t.Errorf("exit %d, want %d", got, c.exit)
			}
			sound(t, l)
		})
	}
}

// sound holds what every loaded run keeps, however its files look.
func sound(t testing.TB, l *Loaded) {
	t.Helper()
	ids := map[string]bool{}
	slots := map[Slot]bool{}
	for _, x := range l.Trials {
		if ids[x.Trial] || slots[x.Key()] || !slices.Contains(l.Run.Plan.Order, x.Key()) {
			t.Errorf("trial %s of %+v", x.Trial, x.Key())
		}
		ids[x.Trial], slots[x.Key()] = true, true
		if x.Outcome != OK && (len(x.Metrics) > 0 || slices.ContainsFunc(x.Faults, func(f Fault) bool { return len(f.Metrics) > 0 })) {
			t.Errorf("trial %s: %s with metrics", x.Trial, x.Outcome)
		}
		for name, v := range x.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("trial %s: %s = %v", x.Trial, name, v)
			}
		}
	}
}

// TestB46PlausibilityBounds: zero throughput after hours was once a success.
// It is no measurement, and where the workload expects it the run has failed.
//
// Fails if settle leaves a rate of 0 in place.
func TestB46PlausibilityBounds(t *testing.T) {
	m := plannedRun(t)
	m["workloads"] = []any{map[string]any{"name": "w", "expected": []any{"throughput_records_per_s"}}}
	lines := goodLines()
	lines[3].Metrics["throughput_records_per_s"] = 0
	l, err := Load(folder(t, marshal(t, m), encode(t, lines...)))
	if err != nil {
		t.Fatal(err)
	}
	if code, why := l.Exit(ExitInterrupted); code != ExitFailed || len(why) != 1 || !strings.Contains(why[0], "throughput_records_per_s is absent") {
		t.Errorf("%d %q", code, why)
	}
}

// TestB43NoNumberIsNoSample: NaN in a file is told with trial and metric, and
// reaches no statistic.
//
// Fails if unreadable does not look for what is no number.
func TestB43NoNumberIsNoSample(t *testing.T) {
	for _, bad := range []string{"NaN", "nan", "Infinity", "-Inf"} {
		text := strings.Replace(encode(t, goodLines()...), `"time_to_running_s":0.5`, `"time_to_running_s": `+bad, 1)
		l, err := Load(folder(t, marshal(t, plannedRun(t)), text))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Trials) != 3 || len(l.Unusable) != 1 || l.Unusable[0].Trial != "000001" || l.Unusable[0].Metric != "time_to_running_s" || l.Unusable[0].Line != 1 {
			t.Errorf("%s: %d trials, %+v", bad, len(l.Trials), l.Unusable)
		}
	}
}

// TestB19UnknownProvenance: a run whose settings are not known is told loudly,
// and cannot be shown to be comparable.
//
// Fails if readRun does not look for the keys of provenance, or intact takes an empty hash.
func TestB19UnknownProvenance(t *testing.T) {
	m := plannedRun(t)
	delete(m, "machine")
	delete(m, "builds")
	m["workloads"] = []any{map[string]any{"name": "w"}}
	l, err := Load(folder(t, marshal(t, m), ""))
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "run.json has no builds, machine") {
		t.Fatalf("%v %q", err, l.Warnings)
	}
	if err := l.Intact(); !errors.Is(err, ErrEdited) || !strings.Contains(err.Error(), "workload w") {
		t.Errorf("%v", err)
	}
}

// TestEditedWorkload: the text in run.json must have the recorded hash.
func TestEditedWorkload(t *testing.T) {
	const text = "schema = 1\n"
	for _, c := range []struct {
		name, text, sum string
		edited          bool
	}{
		{"as it was", text, hashOf(text), false},
		{"edited text", "schema = 1 # faster\n", hashOf(text), true},
		{"edited hash", text, hashOf("other"), true},
		{"no hash", text, "", true},
		{"no text", "", hashOf(text), true},
	} {
		m := plannedRun(t)
		m["workloads"] = []any{map[string]any{"name": "w", "text": c.text, "sha256": c.sum}}
		l, err := Load(folder(t, marshal(t, m), encode(t, goodLines()...)))
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Equal(l.Edited, []string{"w"}); got != c.edited || errors.Is(l.Intact(), ErrEdited) != c.edited || (len(l.Warnings) == 1) != c.edited {
			t.Errorf("%s: %v %v %q", c.name, l.Edited, l.Intact(), l.Warnings)
		}
	}
}

// TestPlanThatContradictsItself gives warnings, not wrong counts.
func TestPlanThatContradictsItself(t *testing.T) {
	run := newRun(slot("a", 0), slot("a", 0), slot("b", 0))
	run.Plan.Trials = 7
	run.Plan.Cells = run.Plan.Cells[:1]
	l, err := Load(folder(t, marshal(t, run), encode(t, goodLines()[0])))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"plan.trials is 7, but plan.order has 3", "plan.order names a block 0 of w (build this) twice", "plan.order names the cell b of w, plan.cells does not"} {
		if len(l.Warnings) != 3 || !strings.Contains(l.Warnings[i], want) {
			t.Fatalf("%q, want %q", l.Warnings, want)
		}
	}
}

// TestB8SameRunTwice: a run counts once, under whatever name its folder goes.
//
// Fails if LoadAll compares folders instead of runs.
func TestB8SameRunTwice(t *testing.T) {
	run := marshal(t, plannedRun(t))
	a, b := folder(t, run, ""), folder(t, run, "")
	if _, err := LoadAll(a, b); !errors.Is(err, ErrSameRun) || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Errorf("%v", err)
	}
	m := plannedRun(t)
	m["run"] = "20260102T030405Z-w-00000002"
	all, err := LoadAll(a, folder(t, marshal(t, m), ""))
	if err != nil || len(all) != 2 || all[0].Run.Run == all[1].Run.Run {
		t.Errorf("%v", err)
	}
	if _, err := LoadAll(a, filepath.Join(a, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestB9RunsOfOneDay: two runs of one second never share or replace a folder.
//
// Fails if Create makes its folder with MkdirAll and no random part.
func TestB9RunsOfOneDay(t *testing.T) {
	parent := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	names := map[string]bool{}
	for range 20 {
		f, err := Create(parent, "w", now)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		names[f.Dir()] = true
	}
	if len(names) != 20 {
		t.Errorf("20 runs have %d folders", len(names))
	}
}

// TestB10ClockSteps: durations are of the monotonic clock, and dates that go
// back are told.
//
// Fails if ClockSteps compares the beginnings of two lines only.
func TestB10ClockSteps(t *testing.T) {
	lines := goodLines()
	lines[2].Started = lines[1].Started.Add(3 * time.Second) // while it ran for 10
	l, err := Load(folder(t, marshal(t, plannedRun(t)), encode(t, lines...)))
	if err != nil {
		t.Fatal(err)
	}
	if got := l.ClockSteps(); len(got) != 1 || got[0] != (ClockStep{"000003", 7 * time.Second}) {
		t.Errorf("%v", got)
	}
	l.Lines[1].Started, l.Lines[2].Started = time.Time{}, l.Lines[0].Started.Add(time.Hour)
	if got := l.ClockSteps(); len(got) != 1 || got[0].Trial != "000004" {
		t.Errorf("unknown dates: %v", got)
	}
}

// TestB32LastLine: the last line counts with and without its end.
//
// Fails if lines are read up to their newline only.
func TestB32LastLine(t *testing.T) {
	text := encode(t, goodLines()...)
	for _, end := range []string{"\n", "", "\r\n", "\n\n"} {
		l, err := Load(folder(t, marshal(t, plannedRun(t)), strings.TrimSuffix(text, "\n")+end))
		if err != nil || len(l.Trials) != 4 || len(l.Warnings) > 0 {
			t.Errorf("end %q: %d trials, %q, %v", end, len(l.Trials), l.Warnings, err)
		}
	}
}

// TestB42EveryFailureHasACode: an error once ended with exit code 0. Whatever
// ends a trial but ok, the run's code says so.
//
// Fails if Exit passes over an outcome.
func TestB42EveryFailureHasACode(t *testing.T) {
	for _, o := range Outcomes() {
		lines := goodLines()
		for _, x := range lines {
			x.Outcome, x.Metrics, x.Faults = o, nil, nil
		}
		l, err := Load(folder(t, marshal(t, plannedRun(t)), encode(t, lines...)))
		if err != nil {
			t.Fatal(err)
		}
		if code, why := l.Exit(ExitInterrupted); (code == ExitOK) != (o == OK) || (code == ExitOK) != (len(why) == 0) {
			t.Errorf("%s: exit %d, %q", o, code, why)
		}
	}
}

// TestEventsStayInside: an id is no way out of the folder.
func TestEventsStayInside(t *testing.T) {
	dir := folder(t, marshal(t, plannedRun(t)), "")
	if err := os.WriteFile(filepath.Join(dir, "secret.jsonl"), []byte("{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../secret", "", ".", "..", "/etc/passwd", `a\b`} {
		if _, err := LoadEvents(dir, id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzLoad: whatever the files hold, there is an error or a sound run, and the
// same bytes give the same run.
func FuzzLoad(f *testing.F) {
	run := marshal(f, plannedRun(f))
	f.Add(run, []byte(encode(f, goodLines()...)))
	f.Add([]byte(`{"schema":1,"run":"","state":"","workloads":[{}],"plan":{"cells":null,"order":[{"cell":"a"},{}]}}`), []byte(`{"trial":"1","outcome":"ok","metrics":{"x":-1e-9,"detect_s":1e300},"faults":[{}]}`))
	f.Add(bytes.ReplaceAll(run, []byte("1"), []byte("1e9")), []byte("{\"trial\":\"a\",\"outcome\":\"ok\",\"metrics\":{\"a\":nan}}\r\n\xef\xbb\xbf{"))
	f.Fuzz(func(t *testing.T, run, trials []byte) {
		l, err := parse("run", run, trials)
		if err != nil {
			return
		}
		sound(t, l)
		l.ClockSteps()
		l.Exit(ExitFailed)
		l.Limits()
		l.Intact()
		again, err := parse("run", run, trials)
		if err != nil || !slices.Equal(l.Warnings, again.Warnings) || len(l.Trials) != len(again.Trials) {
			t.Errorf("the second reading differs: %v", err)
		}
	})
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
