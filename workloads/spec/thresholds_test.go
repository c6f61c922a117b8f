package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestThresholdFiles runs the scripts of testdata/thresholds: the input is a
// file, the output what it holds, or its problems.
func TestThresholdFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/thresholds", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "thresholds" {
				t.Fatalf("unknown command %s", d.Cmd)
			}
			th, err := ParseThresholds("thresholds.toml", []byte(d.Input))
			var b strings.Builder
			if ps, ok := errors.AsType[Problems](err); ok {
				for i := range ps {
					b.WriteString(ps[i].Text())
				}
				return b.String()
			} else if err != nil {
				t.Fatal(err)
			}
			for _, a := range d.CmdArgs {
				workload, metric, _ := strings.Cut(a.Key, "/")
				relative, absolute, source, ok := th.Find(workload, metric)
				if !ok {
					fmt.Fprintf(&b, "%s: none\n", a.Key)
					continue
				}
				fmt.Fprintf(&b, "%s: %v, %v (%s)\n", a.Key, relative, absolute, source)
			}
			return b.String()
		})
	})
}

// TestCommittedThresholds: the file that the gate uses reads, and has an entry
// for every metric.
func TestCommittedThresholds(t *testing.T) {
	th, err := LoadThresholds(filepath.FromSlash("../../results/baselines/thresholds.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Metrics() {
		relative, _, source, ok := th.Find("any", m)
		if !ok || relative <= 0 || !strings.Contains(source, "thresholds.toml:") {
			t.Errorf("%s: %v from %q, %v", m, relative, source, ok)
		}
	}
	if _, err := LoadThresholds(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestB37ThresholdNeedsUnit: "100x" was once read as a time and meant 100
// iterations. A figure without its unit, or with another metric's, is refused.
//
// Fails if percent takes a bare number.
func TestB37ThresholdNeedsUnit(t *testing.T) {
	for _, entry := range []string{
		`{ relative = 10 }`, `{ relative = 0.1 }`, `{ relative = "10" }`, `{ relative = "100x" }`, `{ relative = "-5 %" }`, `{ relative = "0 %" }`,
		`{ relative = "nan %" }`, `{ relative = "10 %", absolute = 50 }`, `{ relative = "10 %", absolute = "50" }`, `{ relative = "10 %", absolute = "1 MiB" }`,
		`{ absolute = "50 ms" }`, `"10 %"`, `{}`,
	} {
		text := "schema = 1\n[default]\ntime_to_running_s = " + entry + "\n"
		_, err := ParseThresholds("t.toml", []byte(text))
		ps, ok := errors.AsType[Problems](err)
		if !ok || len(ps) != 1 || ps[0].Line != 3 || ps[0].Hint+ps[0].Message == "" {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

// TestB23ThresholdErrorHasPlace: a metric that does not exist is told with
// file, line, column, key and value, not as "parsing failed".
//
// Fails if read leaves the position of an unknown metric out.
func TestB23ThresholdErrorHasPlace(t *testing.T) {
	_, err := ParseThresholds("dir/t.toml", []byte("schema = 1\n\n[workload.w]\n  time_to_runing_s = { relative = \"10 %\" }\n"))
	want := `dir/t.toml:4:3: workload.w.time_to_runing_s: unknown metric (did you mean "time_to_running_s"?)`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	// The same for an absolute limit of a workload file.
	_, err = Parse("dir/w.toml", "/dir", []byte("schema = 1\nname = \"w\"\n[thresholds]\n\"*\" = [\"median(time_to_runing_s) < 5 s\"]\n"), nil)
	want = `dir/w.toml:4:8: thresholds."*" = "median(time_to_runing_s) < 5 s": there is no metric "time_to_runing_s" (did you mean "time_to_running_s"?)`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}
