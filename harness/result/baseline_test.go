package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// acceptable is a run of one trial that may become a baseline.
func acceptable(t *testing.T, workload, id string) *Loaded {
	t.Helper()
	s := Slot{Workload: workload, Cell: "a", Build: "this"}
	run := newRun(s)
	run.Run, run.State = id, Complete
	run.Workloads = []Workload{{Name: workload, Text: "t", SHA256: hashOf("t")}}
	f := create(t, run)
	defer f.Close()
	if err := f.AppendTrial(line("1", s, OK, map[string]float64{"detect_s": 1})); err != nil {
		t.Fatal(err)
	}
	l, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func save(t *testing.T, dir string, l *Loaded) {
	t.Helper()
	if _, err := SaveBaseline(dir, l); err != nil {
		t.Fatal(err)
	}
}

func wantBaseline(t *testing.T, dir, workload, id string) {
	t.Helper()
	l, err := LoadBaseline(dir, workload)
	if err != nil {
		t.Fatal(err)
	}
	if l.Run.Run != id || len(l.Trials) != 1 || len(l.Missing) != 0 {
		t.Errorf("baseline %s with %d trials, want %s with one", l.Run.Run, len(l.Trials), id)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q in the folder, want %q", got, want)
	}
}

// TestBaseline: stored, found, replaced.
func TestBaseline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "baselines", "runs")
	if _, err := LoadBaseline(dir, "w"); !errors.Is(err, ErrNoBaseline) {
		t.Errorf("error %v", err)
	}
	save(t, dir, acceptable(t, "w", "first"))
	save(t, dir, acceptable(t, "v", "other"))
	wantBaseline(t, dir, "w", "first")
	save(t, dir, acceptable(t, "w", "second"))
	wantBaseline(t, dir, "w", "second")
	wantBaseline(t, dir, "v", "other")
	wantNames(t, dir, "v", "w")
	for _, name := range []string{"x", "../runs/w", "", "."} {
		if _, err := LoadBaseline(dir, name); !errors.Is(err, ErrNoBaseline) {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

// TestBaselineSurvivesACrash: wherever saving one is cut off, there is one.
//
// Fails if the old one is removed before the new one stands, if LoadBaseline
// does not look for one aside, or if what a crash left stays for ever.
func TestBaselineSurvivesACrash(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, acceptable(t, "w", "old"))
	// The last step fails: what was to be put into the place is not there.
	place, aside := filepath.Join(dir, "w"), asidePath(dir, "w")
	if err := swap(filepath.Join(dir, "absent"), place, aside); err == nil {
		t.Fatal("nothing was put into the place")
	}
	wantNames(t, dir, ".w.old")
	wantBaseline(t, dir, "w", "old")
	// The next one finds the old one aside, and the half of a third.
	if err := os.MkdirAll(filepath.Join(dir, ".w.new-123", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := swap(filepath.Join(dir, "absent"), place, aside); err == nil {
		t.Fatal("nothing was put into the place")
	}
	wantBaseline(t, dir, "w", "old")
	save(t, dir, acceptable(t, "w", "new"))
	wantBaseline(t, dir, "w", "new")
	wantNames(t, dir, "w")
}

// TestBaselinesAtOnce: of several at a time one wins, whole, and none fails.
//
// Fails without the lock: the folders that are swapped get in each other's way.
func TestBaselinesAtOnce(t *testing.T) {
	dir := t.TempDir()
	runs := []*Loaded{acceptable(t, "w", "a"), acceptable(t, "w", "b"), acceptable(t, "w", "c"), acceptable(t, "w", "d")}
	save(t, dir, runs[0])
	var wg sync.WaitGroup
	for _, l := range runs {
		wg.Go(func() {
			for range 10 {
				if _, err := SaveBaseline(dir, l); err != nil {
					t.Error(err)
				}
				if got, err := LoadBaseline(dir, "w"); err != nil || len(got.Trials) != 1 {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	wantNames(t, dir, "w")
}

// TestBaselineRefused: what is no measure, and what is no place for one.
//
// Fails if SaveBaseline does not ask Intact, or removes what it did not make.
func TestBaselineRefused(t *testing.T) {
	dir := t.TempDir()
	edited := acceptable(t, "w", "r")
	edited.Run.Workloads[0].Text = "t # faster"
	if _, err := SaveBaseline(dir, edited); !errors.Is(err, ErrBaselineRefused) || !errors.Is(err, ErrEdited) {
		t.Errorf("edited: %v", err)
	}
	builds := acceptable(t, "w", "r")
	builds.Run.Builds = map[string]Build{"a": {}, "b": {}}
	missing := acceptable(t, "w", "r")
	missing.Missing = missing.Run.Plan.Order
	named := acceptable(t, "w", "r")
	named.Run.Workloads[0].Name = "../w"
	for name, l := range map[string]*Loaded{"builds": builds, "missing": missing, "named": named} {
		if _, err := SaveBaseline(dir, l); !errors.Is(err, ErrBaselineRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, place := range []string{"thresholds.toml", "reference", "notes/readme"} {
		path := filepath.Join(dir, place)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
		workload, _, _ := strings.Cut(place, "/")
		_, err := SaveBaseline(dir, acceptable(t, workload, "r"))
		if b, rerr := os.ReadFile(path); !errors.Is(err, ErrBaselineRefused) || rerr != nil || string(b) != "mine" {
			t.Errorf("%s: error %v, content %q", place, err, b)
		}
	}
}
