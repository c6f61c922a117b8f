package page

import (
	"bytes"
	"encoding/xml"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// Each test here is a complaint that users made in public about another tool,
// by its number in the list of complaints that this lab is held to.

// B2: a run that was cut off yields no file. Fails if Render refuses a run that
// is not complete.
func TestB02ReportOfPartialRun(t *testing.T) {
	f := standard()
	f.state, f.tail = result.Interrupted, `{"trial":"0009-quickst`
	f.outcome = func(cell string, block int) result.Outcome {
		if block > 0 || cell == "R=true,D=true" {
			return ""
		}
		return result.OK
	}
	dir, text := render(t, f)
	for _, want := range []string{"interrupted, not complete", "7 of 9 planned trials are missing (quickstart R+D: 3;", "half-written", "0 of 3"} {
		if !strings.Contains(html.UnescapeString(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if md := read(t, dir, "summary.md"); !strings.Contains(md, "**The run is not complete (interrupted).**") {
		t.Error("the summary does not say that the run is not complete")
	}
}

// B4: equal samples, or one, give NaN and break the plots. Fails if Describe's
// interval of equal samples is taken for a spread (no "all equal" in
// medianCell).
func TestB04EqualSamplesAreDrawn(t *testing.T) {
	for _, blocks := range []int{1, 2, 8} {
		f := standard()
		f.blocks = blocks
		f.shape = func(string, int) way { return way{0.5, 2, 1} }
		_, text := render(t, f)
		want := "all equal, no spread"
		if blocks == 1 {
			want = "one sample"
		}
		if !strings.Contains(text, want) {
			t.Errorf("%d blocks: the page does not say %q", blocks, want)
		}
		if n := strings.Count(text, `class="pt"`); n < 9*blocks {
			t.Errorf("%d blocks: %d points are drawn", blocks, n)
		}
	}
}

// B5: "NaN %" and "+inf %" are printed. Fails if finiteDecision or finiteTrend
// returns what it got.
func TestB05NoNaNInPages(t *testing.T) {
	f := standard()
	f.blocks = 6
	f.shape = func(cell string, _ int) way { // the reference is 0: no ratio exists
		if cell == "R=false,D=false" {
			return way{}
		}
		return way{1, 2, 3}
	}
	render(t, f)

	d := slowed()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i := range d.Judged {
			j := &d.Judged[i]
			j.Ratio, j.CILow, j.CIHigh, j.BaseMedian, j.Noise, j.P, j.Shift = &bad, &bad, &bad, &bad, &bad, &bad, &bad
		}
		dir := t.TempDir()
		if err := RenderDecision(dir, d); err != nil {
			t.Fatal(err)
		}
		checkTexts(t, dir, "gate.html", "gate.md", "gate-junit.xml", "gate.json")
		checkPage(t, dir, "gate.html")
	}

	n := tenNights()
	s := &n.Series[0]
	s.Points[2].Value = math.NaN()
	s.Points[3].Low = ptr(math.Inf(-1))
	s.Changes[0].Size = math.Inf(1)
	dir := t.TempDir()
	if err := RenderTrend(dir, n); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, dir, "trend.html", "trend.md", "trend.json")
}

// B24: a summary says that a threshold holds that is broken. Fails if limits
// tells kept and broken the other way round.
func TestB24BrokenLimitIsSaidEverywhere(t *testing.T) {
	f := standard()
	f.mangle = func(r *result.Run) {
		r.Workloads[0].Thresholds = map[string][]string{"R=false": {"median(time_to_first_checkpoint_s) < 1 s"}, "R=true,D=true": {"median(time_to_first_checkpoint_s) < 1 s"}}
	}
	dir, text := render(t, f)
	for name, s := range map[string]string{"report.html": text, "summary.md": read(t, dir, "summary.md")} {
		if strings.Count(s, "✗ broken") != 1 || strings.Count(s, "✓ kept") != 1 {
			t.Errorf("%s: %d broken, %d kept; want one of each", name, strings.Count(s, "✗ broken"), strings.Count(s, "✓ kept"))
		}
	}
	for line := range strings.Lines(read(t, dir, "summary.md")) {
		if strings.Contains(line, "✗ broken") && !strings.HasPrefix(line, "| no option |") || strings.Contains(line, "✓ kept") && !strings.HasPrefix(line, "| R+D |") {
			t.Errorf("the wrong cell: %s", line)
		}
	}
	s := suites(t, []byte(read(t, dir, "junit.xml")))
	if s.Failures != 1 || s.Errors != 0 {
		t.Errorf("junit.xml: %d failures, %d errors; want 1, 0", s.Failures, s.Errors)
	}
	for _, c := range s.Suites[0].Cases {
		if c.Failure != nil && !strings.HasPrefix(c.Name, "R=false,") {
			t.Errorf("junit.xml: the wrong case fails: %s", c.Name)
		}
	}
}

// B26: without a single metric a table of figures is printed all the same.
// Fails if headline goes on without a trial that is ok, or if conclude does.
func TestB26NothingMeasuredShowsNoFigures(t *testing.T) {
	f := standard()
	f.outcome = func(string, int) result.Outcome { return result.Failed }
	dir, text := render(t, f)
	if !strings.Contains(text, "Nothing was measured") {
		t.Error("the page does not say that nothing was measured")
	}
	for _, no := range []string{"What to conclude<", "forest-", "0.000", `class="pt"`, `class="med"`} {
		if strings.Contains(text, no) {
			t.Errorf("the page shows %q", no)
		}
	}
	if s := suites(t, []byte(read(t, dir, "junit.xml"))); s.Errors != 3 || s.Failures != 0 || s.Skipped != 0 {
		t.Errorf("junit.xml: %+v", s)
	}
}

// B36: a large but noisy change is hidden. Fails if judgedTable or
// markdownJudged leaves out what is inconclusive.
func TestB36NoisyChangeIsShown(t *testing.T) {
	d := slowed()
	d.Judged = []verdict.Judged{judged("quickstart", "R=true,D=true", verdict.Inconclusive, 1.8, 0.9, 1)}
	dir := t.TempDir()
	if err := RenderDecision(dir, d); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gate.html", "gate.md"} {
		text := read(t, dir, name)
		for _, want := range []string{"○ inconclusive", "×1.80", "includes no change"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", name, want)
			}
		}
	}
	s := suites(t, []byte(read(t, dir, "gate-junit.xml")))
	if s.Skipped != 1 || s.Failures != 0 || s.Errors != 0 {
		t.Errorf("junit: %+v", s)
	}
}

// B39: metrics that nobody wants judged fill the output with warnings. Fails if
// DecisionJUnit or DecisionMarkdown goes over d.Advisory too.
func TestB39AdvisoryMetricsAreSilent(t *testing.T) {
	with, without := slowed(), slowed()
	for range 50 {
		with.Advisory = append(with.Advisory, with.Advisory[0])
	}
	without.Advisory = nil
	if a, b := DecisionMarkdown(with), DecisionMarkdown(without); a != b {
		t.Error("advisory metrics change the summary")
	}
	a, err := DecisionJUnit(with)
	if err != nil {
		t.Fatal(err)
	}
	b, err := DecisionJUnit(without)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("advisory metrics change the test cases")
	}
	dir := t.TempDir()
	if err := RenderDecision(dir, with); err != nil {
		t.Fatal(err)
	}
	text := read(t, dir, "gate.html")
	_, folded, found := strings.Cut(text, `<details><summary>All other metrics (51)`)
	if !found || strings.Count(text, "time_to_running_s") != strings.Count(folded, "time_to_running_s") {
		t.Error("advisory metrics are shown outside their fold")
	}
}

// B41: milliseconds are printed as microseconds. Fails if small divides by
// another power of ten.
func TestB41Formatters(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{small(2e-6, "s"), "2 µs"}, {small(0.002, "s"), "2 ms"}, {small(2, "s"), "2.00 s"}, {small(4096, "B"), "4.00 KiB"},
		{thresholdWords(verdict.Threshold{Band: verdict.Band{Relative: 0.05, Absolute: 0.01}}, "s"), "±5.00 %, at least 10 ms"},
		{rough(0.0001, "s"), "less than a millisecond"}, {rough(0.0123, "s"), "0.012 s"}, {rough(0.5, "s"), "0.50 s"}, {rough(1.26, "s"), "1.3 s"}, {rough(61.7, "s"), "62 s"},
		{quantityWords(1<<20, "B"), "1.00 MiB"}, {quantityWords(0.25, "s"), "0.25 s"},
		{percent(1.2), "+20 %"}, {percent(0.8), "−20 %"}, {percent(1.004), "0 %"}, {percent(0.05), "−95.0 %"}, {percent(16), "×16.0"}, {changeWords(0.198), "+20 %"}, {changeWords(-0.5), "-50 %"},
		{change(1.22, "s"), "22 % longer"}, {change(0.7, "B"), "30 % less"}, {change(4, "s"), "4.00 times as much"}, {change(1, "s"), "unchanged"},
		{changeOf(0.028), "±2.8 %"}, {changeOf(0.5), "±50 %"}, {changeOf(3), "a factor of 4.00"},
		{brief(strings.Repeat("ab", 20)), "abababababab"}, {brief(strings.Repeat("ab", 20) + "-dirty"), "abababababab-dirty"}, {brief("v1.2.3-20260101-something"), "v1.2.3-20260101-something"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// B45: without an auxiliary program there is no report and no message. Fails if
// rendering starts a program or needs a home folder.
func TestB45NoAuxiliaryProgram(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("HOME", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir := standard().write(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	for _, name := range []string{"report.html", "summary.md", "junit.xml", "summary.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// suites reads test cases back.
func suites(t *testing.T, b []byte) junitSuites {
	t.Helper()
	var s junitSuites
	if err := xml.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, x := range s.Suites {
		n += len(x.Cases)
	}
	if n != s.Tests {
		t.Errorf("%d cases are counted as %d", n, s.Tests)
	}
	return s
}
