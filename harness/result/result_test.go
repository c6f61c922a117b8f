package result

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func newRun(order ...Slot) *Run {
	r := &Run{Schema: Schema, State: Running, Builds: map[string]Build{}, Targets: map[string]string{}, Plan: Plan{Order: order, Trials: len(order)}}
	seen := map[string]bool{}
	for _, s := range order {
		if !seen[s.Workload+"/"+s.Cell] {
			seen[s.Workload+"/"+s.Cell] = true
			r.Plan.Cells = append(r.Plan.Cells, Cell{Workload: s.Workload, Cell: s.Cell})
		}
	}
	return r
}

func slot(cell string, block int) Slot {
	return Slot{Workload: "w", Cell: cell, Build: "this", Block: block}
}

func line(id string, s Slot, o Outcome, metrics map[string]float64) *Trial {
	return &Trial{Trial: id, Workload: s.Workload, Cell: s.Cell, Flags: map[string]any{}, Build: s.Build, Block: s.Block, Warmup: s.Warmup, Outcome: o, Reason: "because", Metrics: metrics, Options: map[string]any{}}
}

func create(t *testing.T, run *Run) *Folder {
	t.Helper()
	f, err := Create(t.TempDir(), "w", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteRun(run); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFolder(t *testing.T) {
	a, b := slot("a", 0), slot("a", 1)
	f := create(t, newRun(a, b))
	if name := filepath.Base(f.Dir()); !strings.HasPrefix(name, "20260102T030405Z-w-") {
		t.Errorf("the folder is named %s", name)
	}
	if err := f.AppendTrial(line("1", a, OK, map[string]float64{"time_to_running_s": 0.25})); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.Dir()); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	f.Close()
	// A machine that lost power in the middle of a line.
	path := filepath.Join(f.Dir(), "trials.jsonl")
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	half.WriteString(`{"trial":"2","work`)
	half.Close()
	l, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Trials) != 1 || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "trials.jsonl:2: the last line is half-written") {
		t.Errorf("trials %d, warnings %q", len(l.Trials), l.Warnings)
	}
	if len(l.Missing) != 1 || l.Missing[0] != b {
		t.Errorf("missing %v", l.Missing)
	}
	f, err = Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.AppendTrial(line("2", b, OK, nil)); err != nil {
		t.Fatal(err)
	}
	l, err = Load(f.Dir())
	if err != nil || len(l.Trials) != 2 || len(l.Warnings) != 0 || len(l.Missing) != 0 {
		t.Errorf("after the repair: %d trials, %q, missing %v, %v", len(l.Trials), l.Warnings, l.Missing, err)
	}
}

func TestCreateIsExclusive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(file, "w", time.Now()); err == nil {
		t.Error("no error for a results folder that is a file")
	}
	now := time.Now()
	a, err := Create(dir, "w", now)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Create(dir, "w", now)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if a.Dir() == b.Dir() {
		t.Error("two runs share a folder")
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is no run folder") {
		t.Errorf("opening a folder that is none: %v", err)
	}
	if err := a.AppendTrial(line("1", slot("a", 0), OK, map[string]float64{"x": math.NaN()})); err == nil {
		t.Error("NaN was written")
	}
}

func TestLoadMatchesThePlan(t *testing.T) {
	a, b, c := slot("a", 0), slot("b", 0), slot("c", 0)
	f := create(t, newRun(a, b, c))
	defer f.Close()
	for _, x := range []*Trial{
		line("1", a, Failed, nil), line("2", b, TrialInterrupted, nil), line("3", slot("stray", 0), OK, nil), line("4", a, OK, nil), line("5", b, OK, nil), line("6", b, OK, nil),
	} {
		if err := f.AppendTrial(x); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, x := range l.Trials {
		ids = append(ids, x.Trial)
	}
	if got := strings.Join(ids, " "); got != "4 6" || len(l.Lines) != 6 {
		t.Errorf("the lines that count are %s of %d", got, len(l.Lines))
	}
	if len(l.Warnings) != 2 || !strings.Contains(l.Warnings[0], "the plan does not name stray") || !strings.Contains(l.Warnings[1], "trial 5") {
		t.Errorf("warnings %q", l.Warnings)
	}
	if len(l.Missing) != 1 || l.Missing[0] != c {
		t.Errorf("missing %v", l.Missing)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	f := create(t, &Run{Schema: 99})
	defer f.Close()
	if _, err := Load(f.Dir()); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("error %v", err)
	}
}

func TestExit(t *testing.T) {
	a, b := slot("a", 0), slot("b", 0)
	running := map[string]float64{"time_to_running_s": 1}
	for _, c := range []struct {
		name  string
		lines []*Trial
		want  Exit
	}{
		{"all good", []*Trial{line("1", a, OK, running), line("2", b, OK, running)}, ExitOK},
		{"expected metric absent", []*Trial{line("1", a, OK, running), line("2", b, OK, nil)}, ExitFailed},
		{"failed", []*Trial{line("1", a, OK, running), line("2", b, Timeout, nil)}, ExitFailed},
		{"wrong beats failed", []*Trial{line("1", a, Incorrect, nil), line("2", b, Failed, nil)}, ExitWrong},
		{"missing", []*Trial{line("1", a, OK, running)}, ExitInterrupted},
		{"interrupted beats wrong", []*Trial{line("1", a, Incorrect, nil), line("2", b, TrialInterrupted, nil)}, ExitInterrupted},
		{"one unsupported", []*Trial{line("1", a, OK, running), line("2", b, Unsupported, nil)}, ExitOK},
		{"all unsupported", []*Trial{line("1", a, Unsupported, nil), line("2", b, Unsupported, nil)}, ExitFailed},
	} {
		run := newRun(a, b)
		run.Workloads = []Workload{{Name: "w", Expected: []string{"time_to_running_s"}}}
		f := create(t, run)
		for _, x := range c.lines {
			if err := f.AppendTrial(x); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
		l, err := Load(f.Dir())
		if err != nil {
			t.Fatal(err)
		}
		got, reasons := l.Exit(ExitInterrupted)
		if got != c.want || (got != ExitOK) != (len(reasons) > 0) {
			t.Errorf("%s: %d %q, want %d", c.name, got, reasons, c.want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []Exit{130, 2, 6, 4, 5, 1, 3, 0}
	for i, a := range order {
		for _, b := range order[i:] {
			if Worse(a, b) != a || Worse(b, a) != a {
				t.Errorf("%d is worse than %d", a, b)
			}
		}
	}
}

func TestEventLine(t *testing.T) {
	for _, c := range []struct {
		e    Event
		want string
	}{
		{Event{TUs: 5, Kind: "fault", Subtask: None, Attempt: None, Checkpoint: None, Bytes: None, Records: None, LagUs: None, Detail: "kill"}, `{"t_us":5,"kind":"fault","detail":"kill"}`},
		{Event{TUs: 6, Kind: "task-state", Vertex: "v", State: "RUNNING", Checkpoint: None, Bytes: None, Records: None, LagUs: None}, `{"t_us":6,"kind":"task-state","vertex":"v","subtask":0,"attempt":0,"state":"RUNNING"}`},
		{Event{TUs: 7, Kind: "throughput", Vertex: "v", Subtask: None, Attempt: None, Checkpoint: None, Bytes: 0, Records: 9, LagUs: 0}, `{"t_us":7,"kind":"throughput","vertex":"v","bytes":0,"records":9,"lag_us":0}`},
	} {
		b, err := json.Marshal(c.e)
		if err != nil || string(b) != c.want {
			t.Errorf("got %s, %v; want %s", b, err, c.want)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, c.e) {
			t.Errorf("read back %+v, %v", back, err)
		}
	}
}

func TestLoadEventsToleratesACutTail(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "events"), 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "events", "x.jsonl")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"t_us\":1,\"kind\":\"fault\"}\n{\"t_us\":2,\"ki")
	if es, err := LoadEvents(dir, "x"); err != nil || len(es) != 1 {
		t.Errorf("%v, %v", es, err)
	}
	write("{\"t_us\":1,\"ki\n{\"t_us\":2,\"kind\":\"fault\"}\n")
	if _, err := LoadEvents(dir, "x"); err == nil || !strings.Contains(err.Error(), "x.jsonl:1") {
		t.Errorf("error %v", err)
	}
}

func TestLimits(t *testing.T) {
	a, b := slot("R=true,D=true", 0), slot("R=true,D=true", 1)
	a2 := slot("R=false,D=false", 0)
	run := newRun(a, b, a2)
	run.Workloads = []Workload{{Name: "w", Thresholds: map[string][]string{
		"*":               {"max(time_to_running_s) < 500 ms"},
		"D=true":          {"median(time_to_running_s) <= 0.35 s", "p90(second.time_to_running_s) > 2 s", "mean(spilled_bytes) < 1 KiB"},
		"R=true, D=false": {"min(time_to_running_s) > 1"},
	}}}
	f := create(t, run)
	defer f.Close()
	second := []Fault{{Name: "first"}, {Name: "second", Metrics: map[string]float64{"time_to_running_s": 3}}}
	x, y := line("1", a, OK, map[string]float64{"time_to_running_s": 0.2}), line("2", b, OK, map[string]float64{"time_to_running_s": 0.4})
	x.Faults, y.Faults = second, second
	for _, l := range []*Trial{x, y, line("3", a2, OK, map[string]float64{"time_to_running_s": 0.6})} {
		if err := f.AppendTrial(l); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	limits, err := l.Limits()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range limits {
		verdict := "kept"
		if x.N == 0 {
			verdict = "no data"
		} else if x.Broken {
			verdict = "broken"
		}
		got = append(got, x.Cell+" "+x.Text+": "+verdict)
	}
	want := []string{
		"R=true,D=true max(time_to_running_s) < 500 ms: kept",
		"R=false,D=false max(time_to_running_s) < 500 ms: broken",
		"R=true,D=true median(time_to_running_s) <= 0.35 s: kept",
		"R=true,D=true p90(second.time_to_running_s) > 2 s: kept",
		"R=true,D=true mean(spilled_bytes) < 1 KiB: no data",
		"R=true, D=false min(time_to_running_s) > 1: no data",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLimitsOfEachBuild: a limit that one build breaks is broken, and cells that
// the budget left out are told, not missed.
//
// Fails if the builds' samples are pooled (the median of both keeps the limit), or
// if Limits asks for a cell of Plan.LeftOut.
func TestLimitsOfEachBuild(t *testing.T) {
	run := newRun()
	run.Builds, run.BaseBuild = map[string]Build{"head": {}, "main": {}}, "main"
	run.Plan.Cells = []Cell{{Workload: "w", Cell: "D=true"}, {Workload: "w", Cell: "D=false"}}
	run.Plan.LeftOut = []LeftOut{{Workload: "w", Cell: "D=false", Reason: "no room"}}
	run.Workloads = []Workload{{Name: "w", Thresholds: map[string][]string{"*": {"median(detect_s) < 1 s"}, "D=false": {"max(detect_s) < 2 s"}}}}
	l := &Loaded{Run: *run}
	for block := range 3 {
		for build, v := range map[string]float64{"main": 0.5, "head": 1.2} {
			s := Slot{Workload: "w", Cell: "D=true", Build: build, Block: block}
			l.Trials = append(l.Trials, *line("x", s, OK, map[string]float64{"detect_s": v}))
		}
	}
	limits, err := l.Limits()
	if err != nil {
		t.Fatal(err)
	}
	if len(limits) != 2 || limits[0].Cell != "D=true@main" || limits[0].Broken || limits[0].N != 3 || limits[1].Cell != "D=true@head" || !limits[1].Broken || limits[1].N != 3 {
		t.Errorf("%+v", limits)
	}
	if got := l.LeftOutLimits(); !reflect.DeepEqual(got, []string{"w D=false was left out (no room), and so were its limits: max(detect_s) < 2 s; median(detect_s) < 1 s"}) {
		t.Errorf("%q", got)
	}
}

func TestLookupMetric(t *testing.T) {
	if m, ok := LookupMetric("kill#2.time_to_running_s"); !ok || m.Name != "time_to_running_s" {
		t.Errorf("%+v %t", m, ok)
	}
	if _, ok := LookupMetric("nothing"); ok {
		t.Error("nothing is a metric")
	}
	for _, m := range Metrics() {
		if m.Unit == "" || m.Help == "" || m.Resolution <= 0 || (m.Better != Lower && m.Better != Higher && m.Better != Neutral) {
			t.Errorf("%+v is incomplete", m)
		}
	}
}
