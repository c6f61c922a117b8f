package spec

import (
	"os"
	"strings"
	"testing"
)

// A trial of a batch job must have its makespan, and the recovery of the master
// where it alone dies and the scenario waits for the next one.
//
// Fails if any fault counts as the loss of the master, or a wait in front of it.
func TestExpectedOfBatch(t *testing.T) {
	base, err := os.ReadFile("testdata/batch.toml")
	if err != nil {
		t.Fatal(err)
	}
	for sets, want := range map[string]string{
		"":                                  "makespan_s control_recovery_s",
		"scenario.step.kill.do=kill-worker": "makespan_s",
		"scenario.step.kill.repeat=0":       "makespan_s",
		"scenario.step.step-3.wait.running=false": "makespan_s",
	} {
		list := []string{}
		if sets != "" {
			list = append(list, sets)
		}
		f, err := Parse("w.toml", "/", base, list)
		if err != nil {
			t.Fatalf("%q: %v", sets, err)
		}
		w, err := f.Resolve("default")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.Expected(), " "); got != want {
			t.Errorf("%q: expects %q, want %q", sets, got, want)
		}
		if f.Run.Primary != "makespan_s" || f.Mode != Batch {
			t.Errorf("primary %q, mode %q", f.Run.Primary, f.Mode)
		}
	}
	// Another fault before it takes its window.
	f, err := Parse("w.toml", "/", []byte(strings.Replace(string(base), "[[scenario.step]]\nname = \"kill\"", "[[scenario.step]]\ndo = \"kill-worker\"\nreplace-after = \"1s\"\n[[scenario.step]]\nname = \"kill\"", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := f.Resolve("default"); err != nil || strings.Join(w.Expected(), " ") != "makespan_s" {
		t.Errorf("%v, %v", w.Expected(), err)
	}
}

// Fails if an axis of the cluster or of an option counts as one of the scenario.
func TestAxesOfTheScenario(t *testing.T) {
	base, err := os.ReadFile("testdata/batch.toml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(base), "# HERE", "[matrix]\n\"cluster.workers\" = [2, 3]\n\"scenario.step.half.wait.progress\" = [0.2, 0.4]\n\"execution.batch.speculative.enabled\" = [false, true]", 1)
	f, err := Parse("w.toml", "/", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var of []string
	for _, a := range f.Axes {
		if a.OfScenario() {
			of = append(of, a.Short)
		}
	}
	if strings.Join(of, " ") != "progress" {
		t.Errorf("axes of the scenario: %q", of)
	}
}
