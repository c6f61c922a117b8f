package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// TestThresholdsOnThePage: the report says which threshold its verdicts rest on
// and where that is from, and a wide one takes a verdict away. Fails if Render
// takes the default.
func TestThresholdsOnThePage(t *testing.T) {
	f := standard()
	f.blocks = 10
	dir := f.write(t)
	wide := func(string, string) verdict.Threshold {
		return verdict.Threshold{Band: verdict.Band{Relative: 99}, Source: "limits.toml:7"}
	}
	for _, c := range []struct {
		thresholds verdict.Thresholds
		want       string
		verdict    string
	}{{nil, "±10 %", "faster"}, {wide, "±9.9e+03 % (limits.toml:7)", "same"}} {
		if err := Render(dir, c.thresholds); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); !strings.Contains(strings.ReplaceAll(text, "&#43;", "+"), c.want) {
			t.Errorf("the page does not say %q", c.want)
		}
		var s result.Summary
		if b, err = os.ReadFile(filepath.Join(dir, "summary.json")); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		if p := s.Workloads["quickstart"].Pairs["R=true,D=true"]["time_to_first_checkpoint_s"]; p.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.want, p)
		}
	}
}

// TestBaseBuildUnknownOnThePage: builds of which none is the base are shown and
// not compared. Fails if the page takes the first by name.
func TestBaseBuildUnknownOnThePage(t *testing.T) {
	f := standard()
	f.builds, f.blocks = []string{"new", "old"}, 8
	f.mangle = func(r *result.Run) { r.BaseBuild = "" }
	dir := f.write(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); !strings.Contains(text, "does not say which of its builds is the base build") || strings.Contains(text, "the other builds against") {
		t.Error("no warning, or a comparison of builds")
	}
}

// TestReproduceSelfTest: its workload is built in, and no file. Fails if the
// command names selftest.toml.
func TestReproduceSelfTest(t *testing.T) {
	if got := Reproduce(&result.Run{}, &result.Workload{File: "selftest.toml", Tags: []string{"self-test"}}, "default"); got != "benchrun gate --self-test" {
		t.Error(got)
	}
}
