package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

func ptr(v float64) *float64 { return &v }

// judged is a metric of a cell with a ratio and a half-width of its interval.
func judged(workload, cell string, v verdict.Verdict, ratio, half, base float64) verdict.Judged {
	why := map[verdict.Verdict]string{
		verdict.Slower:       "the interval excludes no change and the median is beyond the threshold of ±10 %",
		verdict.Faster:       "the interval excludes no change and the median is beyond the threshold of ±10 %",
		verdict.Same:         "the whole interval lies inside ±10 %",
		verdict.Inconclusive: "the interval includes no change and reaches beyond ±10 %",
	}[v]
	return verdict.Judged{
		Workload: workload, Cell: cell, Metric: "time_to_first_checkpoint_s", Unit: "s", Better: result.Lower, N: 8, Planned: 8,
		BaseMedian: ptr(base), HeadMedian: ptr(base * ratio), Ratio: ptr(ratio), CILow: ptr(ratio / (1 + half)), CIHigh: ptr(ratio * (1 + half)), Level: 0.9875,
		Shift: ptr(ratio * 1.01), P: ptr(0.0078), Noise: ptr(half), Threshold: verdict.Threshold{Band: verdict.Band{Relative: 0.10, Absolute: 2e-6}, Source: "results/baselines/thresholds.toml:12"},
		Verdict: v, Why: why,
	}
}

// slowed is a gate that found one slow-down of three cells.
func slowed() *verdict.Decision {
	d := &verdict.Decision{
		Schema: 1, Run: "20260304T050607Z-quickstart-0a1b2c3d", Mode: verdict.Interleaved, Base: "base", Head: "head", Exit: result.ExitRegression, Outcome: "slower",
		Judged: []verdict.Judged{
			judged("quickstart", "R=false,D=false", verdict.Same, 1.01, 0.03, 2.1),
			judged("quickstart", "R=true,D=false", verdict.Inconclusive, 1.08, 0.14, 1.7),
			judged("quickstart", "R=true,D=true", verdict.Slower, 1.22, 0.05, 0.13),
			judged("chain", "default", verdict.Faster, 0.7, 0.05, 4),
		},
		Reasons:  []string{"quickstart, R+D, first checkpoint: slower"},
		Warnings: []string{"the machine was busy during 2 of 64 trials"},
	}
	a := judged("quickstart", "R=true,D=true", verdict.Slower, 1.3, 0.05, 0.03)
	a.Metric = "time_to_running_s"
	d.Advisory = []verdict.Judged{a}
	d.Controls = &verdict.Controls{Pairs: 1, Cells: []verdict.Judged{judged("quickstart", "D=true", verdict.Same, 1.0, 0.04, 2)}}
	return d
}

// tenNights have one slow-down, in the seventh.
func tenNights() *verdict.Trend {
	t := &verdict.Trend{Schema: 1}
	s := verdict.Series{Workload: "quickstart", Cell: "R=true,D=true", Metric: "time_to_first_checkpoint_s", Unit: "ratio", Better: "lower"}
	for i := range 10 {
		n := verdict.Night{Run: fmt.Sprintf("202603%02dT020000Z-nightly-%08x", i+1, i), Date: time.Date(2026, 3, i+1, 2, 0, 0, 0, time.UTC), Revision: fmt.Sprintf("%x%033x", 0xabc1230+i*0x1101, i), Reference: "v1.0", Machine: "Some CPU, 8 cores"}
		if i == 3 {
			n.Note = "kernel 6.1 → 6.2"
		}
		t.Nights = append(t.Nights, n)
		v := 1 + 0.01*float64(i%3)
		if i >= 6 {
			v += 0.2
		}
		s.Points = append(s.Points, verdict.Point{Night: i, Value: v, Low: ptr(v * 0.96), High: ptr(v * 1.05), N: 8})
	}
	s.Changes = []verdict.Change{{Night: 6, Date: t.Nights[6].Date, Before: 1.01, After: 1.21, Size: 0.198, P: 0.002, Verdict: verdict.Slower, From: t.Nights[5].Revision, To: t.Nights[6].Revision}}
	t.Series = []verdict.Series{s}
	return t
}

// TestDecisionPages renders what a gate can find, and holds every file to it.
func TestDecisionPages(t *testing.T) {
	none := func(d *verdict.Decision) {
		d.Judged, d.Advisory, d.Controls, d.Reasons, d.Warnings = nil, nil, nil, nil, nil
	}
	for _, c := range []struct {
		name                      string
		change                    func(*verdict.Decision)
		page, md                  []string // what they say
		failures, errors, skipped int
	}{
		{"slower", func(*verdict.Decision) {}, []string{"Slower: a primary metric got worse", "Recovery got slower in 1 of 4: most in quickstart, R+D, first checkpoint – 22 % longer (0.159 s, before 0.130 s).", "1 pair of cells", "0 false alarms", "Why exit code 1", "thresholds.toml:12", "interleaved, block by block"},
			[]string{"Exit code 1", "▲ slower", "● faster", "■ same", "○ inconclusive", "thresholds.toml:12"}, 1, 0, 1},
		{"all the same", func(d *verdict.Decision) {
			d.Judged = d.Judged[:1]
			d.Exit, d.Outcome, d.Reasons = result.ExitOK, "ok", nil
		}, []string{"Passed: nothing got slower", "Recovery is as fast as before"}, []string{"Passed", "Exit code 0"}, 0, 0, 0},
		{"faster", func(d *verdict.Decision) {
			d.Judged = d.Judged[3:]
			d.Exit, d.Outcome = result.ExitOK, "ok"
		}, []string{"Recovery got faster in 1 of 1, slower in none: most in chain, default, first checkpoint – 30 % shorter"}, nil, 0, 0, 0},
		{"inconclusive", func(d *verdict.Decision) {
			d.Judged = d.Judged[1:2]
			d.Exit, d.Outcome = result.ExitInconclusive, "inconclusive"
		}, []string{"No verdict: the samples do not tell", "Whether recovery changed cannot be said", "above the threshold"}, []string{"Exit code 3"}, 0, 0, 1},
		{"nothing judged", func(d *verdict.Decision) {
			none(d)
			d.Exit, d.Outcome, d.Reasons = result.ExitFailed, "failed", []string{"every trial failed"}
		}, []string{"Nothing was judged", "every trial failed", "No metric was judged", "None was used"}, []string{"Exit code 4", "every trial failed"}, 0, 1, 0},
		{"not comparable", func(d *verdict.Decision) {
			none(d)
			d.Exit, d.Outcome, d.Reasons, d.Mode, d.Baseline = result.ExitBaseline, "not comparable", []string{"another machine: 8 cores, not 4"}, verdict.Sequential, "20260303T010101Z-quickstart-ffff"
		}, []string{"Not compared", "another machine", "sequential: two runs of different times", "baseline 20260303T010101Z-quickstart-ffff", "widened by that offset"}, []string{"Exit code 5"}, 0, 1, 0},
		{"failed trials", func(d *verdict.Decision) {
			d.Judged = d.Judged[:1]
			j := &d.Judged[0]
			j.N, j.HeadFailed, j.Ratio, j.CILow, j.CIHigh, j.HeadMedian, j.Verdict, j.Why = 0, 8, nil, nil, nil, nil, verdict.Inconclusive, "all trials of the head failed"
			d.Exit, d.Outcome = result.ExitFailed, "failed"
		}, []string{"failed: 0 before, 8 after", "Failed trials, and pairs that are missing", "all trials of the head failed"}, []string{"0 of 8"}, 0, 2, 0},
		{"cleared and alarmed", func(d *verdict.Decision) {
			d.Judged[0].Cleared, d.Judged[2].Alarm = true, true
		}, []string{"cleared by the second: quickstart, no option, first checkpoint.", "1 cell alarmed and will be run again", "alarm: to be run again"}, []string{"cleared by the second"}, 1, 0, 1},
		{"workloads in turn", func(d *verdict.Decision) { d.Judged[1], d.Judged[3] = d.Judged[3], d.Judged[1] }, []string{"quickstart", "chain"}, nil, 1, 0, 1},
		{"a false alarm", func(d *verdict.Decision) { d.Controls.Alarms = 1 }, []string{"1 false alarm.", "makes differences that nobody asked for"}, []string{"1 false alarm"}, 1, 0, 1},
		{"hostile names", func(d *verdict.Decision) {
			j := &d.Judged[2]
			j.Workload, j.Cell, j.Why, j.Threshold.Source = `<script>alert(1)</script>`, `x=<img src=//evil>`, `"><svg onload=1> | pipe`, "a|b"
			d.Base, d.Head = `<b>`, `"&'`
		}, []string{"<script>alert(1)</script>"}, []string{`a\|b`, `\| pipe`}, 1, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := slowed()
			c.change(d)
			dir := filepath.Join(t.TempDir(), "new")
			if err := RenderDecision(dir, d); err != nil {
				t.Fatal(err)
			}
			checkTexts(t, dir, "gate.html", "gate.md", "gate-junit.xml", "gate.json")
			checkPage(t, dir, "gate.html")
			if len(d.Judged) > 0 {
				checkPNGs(t, dir)
			}
			page, md := html.UnescapeString(read(t, dir, "gate.html")), read(t, dir, "gate.md")
			for _, w := range c.page {
				if !strings.Contains(page, w) {
					t.Errorf("the page does not say %q", w)
				}
			}
			for _, w := range c.md {
				if !strings.Contains(md, w) {
					t.Errorf("gate.md does not say %q in\n%s", w, md)
				}
			}
			if s := suites(t, []byte(read(t, dir, "gate-junit.xml"))); s.Failures != c.failures || s.Errors != c.errors || s.Skipped != c.skipped {
				t.Errorf("junit: %d failures, %d errors, %d skipped; want %d, %d, %d", s.Failures, s.Errors, s.Skipped, c.failures, c.errors, c.skipped)
			}
			var back verdict.Decision
			if err := json.Unmarshal([]byte(read(t, dir, "gate.json")), &back); err != nil || !reflect.DeepEqual(back, *d) {
				t.Errorf("gate.json is not the decision: %v", err)
			}
			if !bytes.Equal(unpack(t, read(t, dir, "gate.html"), downloadName(dir, t)), []byte(read(t, dir, "gate.json"))) {
				t.Error("the page holds another decision")
			}
		})
	}
}

// downloadName is what the page calls its decision: compressed if it is large.
func downloadName(dir string, t *testing.T) string {
	if len(read(t, dir, "gate.json")) >= gzipFrom {
		return "gate.json.gz"
	}
	return "gate.json"
}

// TestTrendPages names the night, the size and the revisions of a change, and
// what else changed. Fails if newSeries takes a change's night for a place
// among the points.
func TestTrendPages(t *testing.T) {
	n := tenNights()
	n.Series[0].Points = slices.Delete(n.Series[0].Points, 1, 3) // two nights failed
	n.Series = append(n.Series, verdict.Series{Workload: "raw", Cell: "default", Metric: "makespan_s", Unit: "s", Better: "lower", Points: []verdict.Point{{Night: 0, Value: 3, N: 1}, {Night: 9, Value: 4, N: 1}}})
	n.Warnings = []string{"two nights are missing <&>"}
	dir := t.TempDir()
	if err := RenderTrend(dir, n); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, dir, "trend.html", "trend.md", "trend.json")
	checkPage(t, dir, "trend.html")
	checkPNGs(t, dir)
	page := html.UnescapeString(read(t, dir, "trend.html"))
	for _, w := range []string{
		"Since 2026-03-07 quickstart, R+D, first checkpoint is slower: +20 %, between the revisions", "kernel 6.1 → 6.2", "two nights are missing <&>", "2026-03-07: +20 %", "raw, default, makespan", "1 lasting change in 10 nights: 1 slower, 0 faster.",
	} {
		if !strings.Contains(page, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
	change := regexp.MustCompile(`class="chslower" d="M([0-9.]+) `).FindStringSubmatch(page)
	dot := regexp.MustCompile(`class="dot" cx="([0-9.]+)"[^>]*><title>2026-03-07:`).FindStringSubmatch(page)
	if change == nil || dot == nil || change[1] != dot[1] {
		t.Errorf("the change is drawn at %v, its night at %v", change, dot)
	}
	if md := read(t, dir, "trend.md"); !strings.Contains(md, "| 2026-03-07 | quickstart, R+D, first checkpoint | +20 % |") {
		t.Errorf("trend.md does not name the change:\n%s", md)
	}
	if err := RenderTrend(dir, &verdict.Trend{}); err != nil {
		t.Fatal(err)
	}
	checkPage(t, dir, "trend.html")
	if page := read(t, dir, "trend.html"); !strings.Contains(page, "No lasting change in 0 nights") {
		t.Error("a trend without nights does not say so")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "plots", "*.png")); err != nil || len(left) > 0 {
		t.Errorf("plots of the trend before are left: %v %v", left, err)
	}
}

// TestPlotsOfOtherPagesStay: the report and the gate of one folder leave each
// other's pictures alone. Fails if own is empty.
func TestPlotsOfOtherPagesStay(t *testing.T) {
	dir := standard().write(t)
	for range 2 {
		if err := RenderDecision(dir, slowed()); err != nil {
			t.Fatal(err)
		}
		if err := Render(dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{gatePlots + "quickstart.png", "quickstart-overview.png"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestIndex lists runs, the newest first, and tells damaged folders from
// folders that are none. Fails if, for instance, an unreadable run.json is
// passed over.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, f fixture) string {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(f.write(t), to); err != nil {
			t.Fatal(err)
		}
		return to
	}
	f := standard()
	older := put("older", f)
	f.mangle = func(r *result.Run) { r.Started = r.Started.AddDate(0, 0, 1); r.Run = "newer <run>" }
	newer := put("deep/er/new er", f)
	f.mangle = func(r *result.Run) { r.Run = "cut off"; r.Started = r.Started.AddDate(0, 0, -1) }
	f.outcome = func(string, int) result.Outcome { return "" }
	f.state = result.Interrupted
	put("cut", f)
	for name, content := range map[string]string{"damaged/run.json": "{", "empty/run.json": "{}", "lonely/trials.jsonl": "", "notes/readme.txt": "x", ".hidden/run.json": "{"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := Render(newer, nil); err != nil {
		t.Fatal(err)
	}
	if err := RenderDecision(older, slowed()); err != nil {
		t.Fatal(err)
	}
	if err := RenderTrend(dir, tenNights()); err != nil {
		t.Fatal(err)
	}
	if err := RenderIndex(dir); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, dir, "index.html")
	checkPage(t, dir, "index.html")
	page := html.UnescapeString(read(t, dir, "index.html"))
	for _, w := range []string{"3 runs", "3 damaged", `href="./deep/er/new%20er/report.html"`, `href="./older/gate.html"`, `href="./trend.html"`, "gate: slower", "not finished", "first checkpoint 0.13 s with R+D, 2.7 s with no option", "damaged", "empty", "lonely", "9 of 9 trials missing"} {
		if !strings.Contains(page, w) {
			t.Errorf("the index does not say %q", w)
		}
	}
	for _, no := range []string{"notes", ".hidden/", dir} {
		if strings.Contains(page, no) {
			t.Errorf("the index says %q", no)
		}
	}
	if a, b, c := strings.Index(page, "2026-03-05"), strings.Index(page, "2026-03-04"), strings.Index(page, "2026-03-03"); a < 0 || b < a || c < b {
		t.Errorf("the order of runs is wrong: %d, %d, %d", a, b, c)
	}
	if err := RenderIndex(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("an index of a folder that is not there is no error")
	}
}

// TestOtherPagesSameBytes renders the pages of one decision and one trend
// twice.
func TestOtherPagesSameBytes(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := RenderDecision(dir, slowed()); err != nil {
			t.Fatal(err)
		}
		if err := RenderTrend(dir, tenNights()); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err := filepath.WalkDir(first, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		name, err := filepath.Rel(first, path)
		if err == nil && read(t, first, name) != read(t, second, name) {
			t.Errorf("%s differs", name)
		}
		return err
	})
	if err != nil || n < 10 {
		t.Errorf("%d files, %v", n, err)
	}
}

// TestMeaninglessRuns: a run.json that says nothing is an error, not an empty
// page. Fails if meaningful returns nil.
func TestMeaninglessRuns(t *testing.T) {
	for _, content := range []string{
		"", "[", `"x"`, "{}", "null", `{"schema":1}`, `{"schema":1,"run":"x","state":"complete","workloads":[{"name":"w"}]}`,
		`{"schema":1,"run":"x","state":"complete","workloads":[],"plan":{"cells":[],"order":[]}}`,
		`{"schema":1,"run":"x","state":"complete","workloads":[{"name":"w"}],"plan":{"cells":[],"order":[]}}`,
		`{"schema":1,"run":"x","state":"complete","workloads":[{"name":"w"}],"plan":{"cells":[{"workload":"w","cell":"default"}],"order":[]}}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Render(dir, nil); err == nil || !strings.Contains(err.Error(), "run.json") {
			t.Errorf("%s: %v", content, err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(left) != 1 {
			t.Errorf("%s: %v %v", content, left, err)
		}
	}
	empty := &result.Loaded{Run: result.Run{Schema: 1, Run: "x", Workloads: []result.Workload{{Name: "w"}}}}
	if _, err := Markdown(empty, nil); !errors.Is(err, ErrNoContent) {
		t.Errorf("Markdown: %v", err)
	}
	if _, err := JUnit(empty, nil); !errors.Is(err, ErrNoContent) {
		t.Errorf("JUnit: %v", err)
	}
}

// TestExportedTexts: what export prints is what lies beside the report.
func TestExportedTexts(t *testing.T) {
	dir, _ := render(t, standard())
	l, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	md, err := Markdown(l, nil)
	if err != nil || md != read(t, dir, "summary.md") {
		t.Errorf("Markdown differs from summary.md: %v", err)
	}
	unit, err := JUnit(l, nil)
	if err != nil || string(unit) != read(t, dir, "junit.xml") {
		t.Errorf("JUnit differs from junit.xml: %v", err)
	}
}

// TestSummaryLimit: what does not fit into a step summary is cut at a line,
// with a word. Fails if limited returns its argument.
func TestSummaryLimit(t *testing.T) {
	d := slowed()
	for len(d.Judged) < 20_000 {
		d.Judged = append(d.Judged, d.Judged[0])
	}
	md := DecisionMarkdown(d)
	if len(md) > 1<<20 || len(md) < 1<<19 {
		t.Errorf("%d bytes", len(md))
	}
	if !strings.HasSuffix(md, "The page has all of it.**\n") || !utf8.ValidString(md) {
		t.Errorf("it ends in %q", md[len(md)-80:])
	}
}
