package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"image"
	"image/draw"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func render(t *testing.T, f fixture) (dir, text string) {
	t.Helper()
	dir = f.write(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	return dir, read(t, dir, "report.html")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	notNumbers = regexp.MustCompile(`(?i)[>\s("'\x60](NaN|[+-]?Inf|Infinity|undefined|<nil>|&lt;nil&gt;|%!)[<\s)"',]`)
	fromNet    = regexp.MustCompile(`(?i)<(script|link|img|image|use|iframe|source|video|object|embed)\b[^>]*?(src|href|data)\s*=|url\(\s*["']?(https?:)?//`)
	drawing    = regexp.MustCompile(`(?s)<svg.*?</svg>`)
	anchors    = regexp.MustCompile(`href="#([^"]*)"`)
	classNames = regexp.MustCompile(`class="([^"]*)"`)
	ids        = regexp.MustCompile(`\sid="([^"]*)"`)
)

// check holds a rendered folder to what is true of every report.
func check(t *testing.T, dir string) {
	t.Helper()
	checkTexts(t, dir, "report.html", "summary.md", "junit.xml", "summary.json")
	checkPage(t, dir, "report.html")
	if err := wellFormed(read(t, dir, "junit.xml")); err != nil {
		t.Errorf("junit.xml: %v", err)
	}
	var s result.Summary
	if err := json.Unmarshal([]byte(read(t, dir, "summary.json")), &s); err != nil {
		t.Errorf("summary.json: %v", err)
	}
	checkPNGs(t, dir)
}

// checkTexts looks for numbers that are none.
func checkTexts(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if m := notNumbers.FindString(read(t, dir, name)); m != "" {
			t.Errorf("%s shows %q", name, m)
		}
	}
}

// checkPage holds a page to what is true of every page.
func checkPage(t *testing.T, dir, name string) {
	t.Helper()
	text := read(t, dir, name)
	if m := fromNet.FindString(text); m != "" {
		t.Errorf("%s loads from the network: %q", name, m)
	}
	if strings.Contains(text, "<script") || strings.Contains(text, "ZgotmplZ") {
		t.Errorf("%s has a script, or a value that the template refused", name)
	}
	seen := map[string]bool{}
	for _, m := range ids.FindAllStringSubmatch(text, -1) {
		if seen[m[1]] {
			t.Errorf("%s: the id %q is there twice", name, m[1])
		}
		seen[m[1]] = true
	}
	for _, m := range anchors.FindAllStringSubmatch(text, -1) {
		if !seen[m[1]] {
			t.Errorf("%s: the link #%s leads nowhere", name, m[1])
		}
	}
	for _, s := range drawing.FindAllString(text, -1) {
		if err := wellFormed(s); err != nil {
			t.Errorf("%s: an SVG is not well-formed: %v", name, err)
		}
		if !strings.Contains(s, `aria-label="`) || !strings.Contains(s, "<desc>") {
			t.Errorf("%s: an SVG has no name or no description", name)
		}
	}
	for _, class := range classes(text) {
		if !styled(t, class) {
			t.Errorf("%s: the style sheet does not know the class %q of a chart", name, class)
		}
	}
}

// classes are those of the elements of all drawings.
func classes(text string) []string {
	var out []string
	for _, s := range drawing.FindAllString(text, -1) {
		for _, m := range classNames.FindAllStringSubmatch(s, -1) {
			out = append(out, strings.Fields(m[1])...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// styled tells whether the style sheet names a class. Those of plain text need
// no rule of their own.
func styled(t *testing.T, class string) bool {
	b, err := files.ReadFile("style.css")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains([]string{"chart", "lab", "val", "marktext"}, class) || bytes.Contains(b, []byte(".chart ."+class+" ")) || bytes.Contains(b, []byte(".chart ."+class+","))
}

func checkPNGs(t *testing.T, dir string) {
	t.Helper()
	pngs, err := filepath.Glob(filepath.Join(dir, "plots", "*.png"))
	if err != nil || len(pngs) == 0 {
		t.Errorf("no PNG: %v", err)
	}
	for _, p := range pngs {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		checkPNG(t, filepath.Base(p), b)
	}
}

func wellFormed(s string) error {
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// checkPNG wants something drawn, and nothing at the very edge: there lies
// what was cut off.
func checkPNG(t *testing.T, name string, b []byte) {
	t.Helper()
	im, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	r := im.Bounds()
	plain := image.NewRGBA(r)
	draw.Draw(plain, r, im, r.Min, draw.Src)
	white := func(x, y int) bool {
		p := plain.Pix[plain.PixOffset(x, y):]
		return p[0] == 0xff && p[1] == 0xff && p[2] == 0xff
	}
	inner := image.Rect(r.Min.X+4, r.Min.Y+4, r.Max.X-4, r.Max.Y-4)
	drawn, edge := 0, 0
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if white(x, y) {
				continue
			}
			drawn++
			if x < inner.Min.X || y < inner.Min.Y || x >= inner.Max.X || y >= inner.Max.Y {
				edge++
			}
		}
	}
	if drawn < 200 || edge > 0 {
		t.Errorf("%s: %d points drawn, %d of them at the edge", name, drawn, edge)
	}
}

// TestGolden compares the texts of a small run with files.
func TestGolden(t *testing.T) {
	f := standard()
	f.blocks = 6
	f.outcome = func(cell string, block int) result.Outcome {
		if cell == "R=true,D=false" && block == 2 {
			return result.Timeout
		}
		return result.OK
	}
	dir, _ := render(t, f)
	for _, name := range []string{"summary.md", "junit.xml", "report.html"} {
		golden := filepath.Join("testdata", name)
		got := withoutGlossary(read(t, dir, name))
		if *rewrite {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want := read(t, "testdata", name)
		if got == want {
			continue
		}
		a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range max(len(a), len(b)) {
			x, y := "", ""
			if i < len(a) {
				x = a[i]
			}
			if i < len(b) {
				y = b[i]
			}
			if x != y {
				t.Errorf("%s:%d differs (run with -rewrite to take it over)\ngot  %.300s\nwant %.300s", golden, i+1, x, y)
				break
			}
		}
	}
}

// withoutGlossary leaves out what changes with every new metric.
func withoutGlossary(page string) string {
	before, rest, found := strings.Cut(page, `<dl class="glossary">`)
	_, after, _ := strings.Cut(rest, "</dl>")
	if !found {
		return page
	}
	return before + after
}

// TestSameBytes renders copies of a run: every file is the same each time.
func TestSameBytes(t *testing.T) {
	f := standard()
	f.steps = []string{"up", "down"}
	f.blocks, f.warmup = 6, 1
	first, _ := render(t, f)
	second, _ := render(t, f)
	again := func() {
		if err := Render(second, nil); err != nil {
			t.Fatal(err)
		}
	}
	again()
	err := filepath.WalkDir(first, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(first, path)
		if read(t, first, name) != read(t, second, name) {
			t.Errorf("%s differs", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOddRuns renders what goes wrong in a lab.
func TestOddRuns(t *testing.T) {
	all := func(o result.Outcome) func(string, int) result.Outcome {
		return func(string, int) result.Outcome { return o }
	}
	for _, c := range []struct {
		name  string
		run   func(*fixture)
		wants []string
	}{
		{"one sample", func(f *fixture) { f.blocks = 1 }, []string{"one sample", "1 sample a cell: too few"}},
		{"all failed", func(f *fixture) { f.outcome = all(result.Failed) }, []string{"Nothing was measured", "failed in recover", "3 failed", "no samples"}},
		{"all timed out", func(f *fixture) { f.outcome = all(result.Timeout) }, []string{"Nothing was measured", "timeout in recover: the step took longer than 60s &lt;&amp;&gt;"}},
		{"unsupported", func(f *fixture) { f.outcome = all(result.Unsupported) }, []string{"Nothing was measured"}},
		{"nothing ran", func(f *fixture) { f.outcome = all(""); f.state = result.Interrupted }, []string{"9 of 9 planned trials are missing", "interrupted, not complete"}},
		{"a cell is missing", func(f *fixture) {
			f.outcome = func(cell string, block int) result.Outcome {
				if cell == "R=true,D=false" {
					return ""
				}
				return result.OK
			}
		}, []string{"3 of 9 planned trials are missing (quickstart R: 3)", "0 of 3", "3 missing"}},
		{"interrupted", func(f *fixture) {
			f.state = result.Interrupted
			f.outcome = func(_ string, block int) result.Outcome {
				switch block {
				case 0:
					return result.OK
				case 1:
					return result.TrialInterrupted
				}
				return ""
			}
		}, []string{"The run was interrupted", "benchrun run --resume", "6 of 9 planned trials are missing"}},
		{"still running", func(f *fixture) { f.state = result.Running; f.tail = `{"trial":"x","workl` }, []string{"The run has not ended", "the last line is half-written"}},
		{"warm-ups only", func(f *fixture) { f.blocks, f.warmup = 0, 2 }, []string{"Nothing was measured", "0 of 0"}},
		{"wrong output", func(f *fixture) {
			f.outcome = func(cell string, block int) result.Outcome {
				if cell == "R=true,D=true" && block == 1 {
					return result.Incorrect
				}
				return result.OK
			}
		}, []string{"1 trial gave wrong output", "✗ wrong"}},
		{"unproved", func(f *fixture) { f.unproved = true }, []string{"unproved", "no trial of this cell has a proof"}},
		{"zeros", func(f *fixture) { f.shape = func(string, int) way { return way{} } }, []string{"0 s after the rescale"}},
		{"zeros and more", func(f *fixture) {
			f.shape = func(cell string, _ int) way {
				if cell == "R=true,D=true" {
					return way{}
				}
				return way{1, 3, 2}
			}
		}, []string{"0 s after the rescale", "3.0 s with no option"}},
		{"equal samples", func(f *fixture) { f.blocks = 8; f.shape = func(string, int) way { return way{0.5, 2, 1} } }, []string{"all equal, no spread", "same"}},
		{"later faults", func(f *fixture) { f.steps = []string{"up", "down", "up#2"} }, []string{"Medians after the rescale (step down)", "metrics down.*", "down.time_to_running_s", "up#2.time_to_first_checkpoint_s", "down: drained"}},
		{"no fault", func(f *fixture) { f.steps = nil; f.primary = "throughput_records_per_s" }, []string{"throughput"}},
		{"batch", func(f *fixture) {
			f.primary, f.more = "makespan_s", map[string]float64{"makespan_s": 2, "control_recovery_s": 0.4, "reexecuted_fraction": 0.25, "leftover_bytes": 0, "durability_gap_tasks": 2}
		}, []string{"What the recovery took and what was done again", "done again", "The job took 2.0 s with", "durability gap", "0.25"}},
		{"primary is never measured", func(f *fixture) { f.primary = "makespan_s" }, []string{"No trial has the metric makespan_s"}},
		{"no matrix", func(f *fixture) { f.cells = []string{"default"} }, []string{"With default the job was safe again"}},
		{"hostile names", func(f *fixture) {
			f.cells = []string{`x=<script>alert(1)</script>`, `x="'|%2C&`}
			f.steps = []string{`up"><img src=//evil>`}
		}, []string{"&lt;script&gt;"}},
		{"two builds", func(f *fixture) { f.builds = []string{"old", "new"}; f.blocks = 6 }, []string{"R+D @ new", "the base"}},
		{"two humps", func(f *fixture) {
			f.blocks = 8
			f.shape = func(_ string, b int) way { return way{1, 2 + 2*float64(b%2), 1} }
		}, []string{"fall into two groups, around 2.00 s and 4.00 s"}},
		{"drift", func(f *fixture) {
			f.blocks = 8
			f.shape = func(_ string, b int) way { return way{1, 2 + float64(b)/5, 1} }
		}, []string{"drift by +"}},
		{"busy machine", func(f *fixture) {
			f.mangle = func(r *result.Run) { load := 7.5; r.Machine.Load1 = &load }
		}, []string{"The machine was busy"}},
		{"busy trials", func(f *fixture) { f.others = 2.5 }, []string{"Other processes used the machine during 9 of 9 trials, up to 2.5 of 8 cores"}},
		{"inert cells that differ", func(f *fixture) {
			f.blocks = 8
			f.mangle = func(r *result.Run) { r.Workloads[0].Inert = [][]string{{"R=false,D=false", "R=true,D=true"}} }
		}, []string{"cannot differ by their options, but first checkpoint does"}},
		{"limits", func(f *fixture) {
			f.mangle = func(r *result.Run) {
				r.Workloads[0].Thresholds = map[string][]string{"*": {"median(time_to_first_checkpoint_s) < 1 s"}, "R=true": {"max(makespan_s) < 1 s"}}
			}
		}, []string{"✗ broken", "✓ kept", "no data"}},
		{"many subtasks", func(f *fixture) { f.parallelism = 160; f.blocks = 1 }, []string{"slow × 160"}},
		{"many cells", func(f *fixture) {
			f.cells = nil
			for i := range 12 {
				f.cells = append(f.cells, fmt.Sprintf("R=%v,D=%v,buffers-per-channel=%d,execution.checkpointing.aligned-checkpoint-timeout=%ds", i%2 == 0, i%3 == 0, i, i))
			}
		}, []string{"buffers-per-channel 11"}},
		{"nothing known of the machine", func(f *fixture) {
			f.mangle = func(r *result.Run) { r.Machine, r.Tool, r.Targets, r.Ended = result.Machine{}, result.Tool{}, nil, nil }
		}, []string{"Provenance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := standard()
			c.run(&f)
			_, text := render(t, f)
			for _, w := range c.wants {
				if !strings.Contains(text, w) && !strings.Contains(html.UnescapeString(text), w) {
					t.Errorf("the page does not say %q", w)
				}
			}
		})
	}
}

// TestSeveralWorkloads: with more than one, the answers stand together on top,
// and nothing of one gets into another's part.
func TestSeveralWorkloads(t *testing.T) {
	a, b, c := standard(), standard(), standard()
	b.workload, b.primary, b.builds = "throughput", "throughput_records_per_s", a.builds
	c.workload, c.cells, c.outcome = "chain", []string{"default"}, func(string, int) result.Outcome { return result.Failed }
	dir := writeRun(t, a, b, c)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	page := html.UnescapeString(read(t, dir, "report.html"))
	_, summary, _ := strings.Cut(page, `id="summary"`)
	summary, _, _ = strings.Cut(summary, "</section>")
	for _, w := range []string{"With R+D the job was safe again 0.1", `href="#w-throughput"`, "Nothing was measured: no trial of this workload ended well."} {
		if !strings.Contains(summary, w) {
			t.Errorf("the summary does not say %q:\n%s", w, summary)
		}
	}
	_, part, _ := strings.Cut(page, `id="w-throughput"`)
	part, _, _ = strings.Cut(part, `id="w-chain"`)
	if strings.Contains(part, "quickstart") || !strings.Contains(part, "records/s") {
		t.Error("the part on throughput shows another workload's, or not its own")
	}
}

// TestMatrix draws a matrix for two axes and more, not for one, and says why a
// field is empty. Fails if heat takes any axis down although one is numeric.
func TestMatrix(t *testing.T) {
	for _, c := range []struct {
		name  string
		cells []string
		want  []string // of the description; nil: no matrix
	}{
		{"one axis", []string{"p=4", "p=8"}, nil},
		{"an axis with one value", []string{"p=4,R=true", "p=8,R=true"}, nil},
		{"numeric axis down", []string{"R=false,p=16", "R=true,p=16", "R=false,p=4", "R=true,p=4"}, []string{`<desc>4, false: 2.`, "16, true: 2."}},
		{"flags together", []string{"R=false,D=false,p=4", "R=true,D=false,p=4", "R=true,D=true,p=4", "R=false,D=false,p=8"}, []string{"4, R+D: 0.1", "8, R: none, not in the matrix"}},
		{"units", []string{"R=false,i=10s", "R=true,i=10s", "R=false,i=2s", "R=true,i=2s"}, []string{"<desc>2s, false"}},
		{"words", []string{"a=x,b=y", "a=z,b=y", "a=x,b=w%2C"}, []string{"x, w,: 2.", "z, w,: none, not in the matrix"}},
		{"unlike cells", []string{"a=x,b=y", "a=x"}, nil},
	} {
		f := standard()
		f.blocks, f.cells = 1, c.cells
		_, text := render(t, f)
		_, part, found := strings.Cut(text, `id="w-quickstart-matrix"`)
		if found != (c.want != nil) {
			t.Errorf("%s: a matrix: %v", c.name, found)
			continue
		}
		part, _, _ = strings.Cut(part, "</figure>")
		for _, w := range c.want {
			if !strings.Contains(html.UnescapeString(part), w) {
				t.Errorf("%s: the matrix does not say %q", c.name, w)
			}
		}
	}
}

// Fails if files of trials that are gone are passed over in silence.
func TestNoTimelines(t *testing.T) {
	dir := standard().write(t)
	l, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if gaps := Gaps(l); len(gaps) > 0 {
		t.Errorf("nothing is gone, and yet: %q", gaps)
	}
	for _, sub := range []string{"events", "logs"} {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	if text := read(t, dir, "report.html"); !strings.Contains(text, "trials have no timeline under events/") || !strings.Contains(text, "trials have no log under logs/") {
		t.Error("the page does not say that timelines and logs are missing")
	}
}

func TestStalePlotsGo(t *testing.T) {
	dir := standard().write(t)
	old := filepath.Join(dir, "plots", "gone.png")
	if err := os.MkdirAll(filepath.Dir(old), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("a plot of an earlier rendering is still there: %v", err)
	}
}

func TestRenderNoRun(t *testing.T) {
	if err := Render(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is no run folder") {
		t.Error(err)
	}
}

func TestLabel(t *testing.T) {
	for cell, want := range map[string]string{
		"default":               "default",
		"R=false,D=false":       "no option",
		"R=true,D=false":        "R",
		"U=true,R=true,D=true":  "U+R+D",
		"interval=2s":           "interval 2s",
		"R=true,parallelism=6":  "R, parallelism 6",
		"R=false,parallelism=6": "no option, parallelism 6",
		"dir=a%2Fb%2Cc":         "dir a/b,c",
		"weird":                 "weird",
	} {
		if got := label(cell); got != want {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
}

func TestReproduce(t *testing.T) {
	n := 8
	seed := uint64(7)
	r := &result.Run{Overrides: []string{`options."execution.checkpointing.interval"=1s`}, Settings: result.Settings{Repeats: &n, Seed: &seed, Target: "embedded"}}
	got := Reproduce(r, &result.Workload{File: "my files/a.toml"}, "R=true,D=true")
	want := `benchrun run 'my files/a.toml' --only 'cell:R=true,D=true' --set 'options."execution.checkpointing.interval"=1s' --repeats 8 --seed 7 --target embedded`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSlugs(t *testing.T) {
	if got := slug(`R=true,D=false@new build/ä"`); got != `R-true-D-false-new-build-ue4u22` {
		t.Error(got)
	}
}

// TestPlotNames: however long names are, files can be written, and no two cells
// share one. Fails if plotName cuts without a checksum.
func TestPlotNames(t *testing.T) {
	long := strings.Repeat("long-", 60)
	a, b := plotName("w", "timeline", "x="+long+"1"), plotName("w", "timeline", "x="+long+"2")
	if a == b || len(a) > 200 || !strings.HasSuffix(a, ".png") {
		t.Errorf("%s\n%s", a, b)
	}
	if got := plotName(gatePlots+"w", "R=true"); got != "gate-forest-w-R-true.png" {
		t.Error(got)
	}
}

func TestLeastAdvanced(t *testing.T) {
	got := leastAdvanced([][]span{
		{{0, 10, 3}, {12, 20, 1}, {20, 30, 3}},
		{{0, 11, 3}, {12, 15, 0}, {15, 25, 2}, {25, 30, 3}},
		{{5, 8, 3}}, // rescaled away: counts no more after its end
	})
	want := []span{{0, 10, 3}, {12, 15, 0}, {15, 20, 1}, {20, 25, 2}, {25, 30, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestKilledTasksEnd: a worker that dies says nothing; its tasks end with the
// fault, not with their next attempt.
func TestKilledTasksEnd(t *testing.T) {
	state := func(at int64, attempt int, s string) result.Event {
		e := blank("task-state")
		e.TUs, e.Vertex, e.Subtask, e.Attempt, e.State = at, "v", 0, attempt, s
		return e
	}
	fault := blank("fault")
	fault.TUs = 100
	k := follow([]result.Event{state(1, 0, "RUNNING"), fault, state(500, 1, "DEPLOYING"), state(600, 1, "RUNNING"), state(900, 1, "FINISHED")})
	want := []span{{1, 100, 3}, {500, 600, 0}, {600, 900, 3}}
	if got := k.spans[task{"v", 0}]; !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestReadHost(t *testing.T) {
	h := readHost([]byte(`{"t_us":1,"kind":"throughput","records":5}
{"t_us":2,"kind":"host-sample","detail":"busy=1.50 own=1.00 others=0.50 steal=0.10 load1=2 available=1"}
{"t_us":3,"kind":"host-sample","detail":"busy=1.50 own=1.00 others=1.50 steal=NaN clock_step_ms=-2000"}
{"t_us":4,"kind":"host-sa`))
	if h.samples != 2 || h.others != 1 || h.steal != 0.05 || h.step != -2*time.Second {
		t.Errorf("%+v", h)
	}
}
