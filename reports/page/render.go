package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

//go:embed *.html style.css
var files embed.FS

var pages = template.Must(template.New("pages").Funcs(template.FuncMap{
	"add": func(a, b int) int { return a + b },
	"style": func() (template.CSS, error) {
		b, err := files.ReadFile("style.css")
		return template.CSS(b), err
	},
}).ParseFS(files, "*.html"))

// execute fills a page.
func execute(name string, view any) ([]byte, error) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, view); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Render writes the report of a run folder into it: report.html, plots/*.png,
// summary.json, summary.md and junit.xml. Files are replaced one by one, each
// atomically. Verdicts rest on the thresholds; nil: the default of each metric.
// The error names the file; what was rendered before it stays.
func Render(runDir string, thresholds verdict.Thresholds) error {
	l, err := result.Load(runDir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	l = l.Settled()
	if err := meaningful(l); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	v, s, err := newView(l, thresholds)
	if s != nil {
		if err := result.WriteJSON(filepath.Join(runDir, "summary.json"), s); err != nil {
			return fmt.Errorf("report: summary.json: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := writePlots(runDir, "", v.plots()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	html, err := execute("report.html", v)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	unit, err := junit(l, v)
	if err != nil {
		return fmt.Errorf("report: junit.xml: %w", err)
	}
	return writeFiles(runDir, "report", []file{{"report.html", html}, {"summary.md", []byte(limited(markdown(v)))}, {"junit.xml", unit}})
}

// file is one that a page consists of.
type file struct {
	name    string
	content []byte
}

// writeFiles replaces files one by one.
func writeFiles(dir, what string, files []file) error {
	for _, f := range files {
		if err := result.WriteFile(filepath.Join(dir, f.name), f.content); err != nil {
			return fmt.Errorf("%s: %s: %w", what, f.name, err)
		}
	}
	return nil
}

// Markdown is the summary of a run for pull requests and job pages.
func Markdown(l *result.Loaded, thresholds verdict.Thresholds) (string, error) {
	v, err := load(l.Settled(), thresholds)
	if err != nil {
		return "", err
	}
	return limited(markdown(v)), nil
}

// JUnit is a run as test cases.
func JUnit(l *result.Loaded, thresholds verdict.Thresholds) ([]byte, error) {
	l = l.Settled()
	v, err := load(l, thresholds)
	if err != nil {
		return nil, err
	}
	return junit(l, v)
}

func load(l *result.Loaded, thresholds verdict.Thresholds) (*view, error) {
	if err := meaningful(l); err != nil {
		return nil, err
	}
	v, _, err := newView(l, thresholds)
	return v, err
}

// ErrNoContent means that a run.json describes no run: there is nothing to
// make a page of.
var ErrNoContent = errors.New("it describes no run")

// meaningful refuses a run.json that parses and says nothing.
func meaningful(l *result.Loaded) error {
	missing := ""
	switch r := &l.Run; {
	case r.Schema == 0:
		missing = "schema"
	case r.Run == "":
		missing = "run"
	case len(r.Workloads) == 0:
		missing = "workloads"
	case len(r.Plan.Cells) == 0 || len(r.Plan.Order) == 0:
		missing = "plan"
	default:
		return nil
	}
	return fmt.Errorf("%s: %w: %s is empty", filepath.Join(l.Dir, "run.json"), ErrNoContent, missing)
}

// picture is a chart that draws itself as PNG.
type picture interface{ PNG() ([]byte, error) }

// plotFile is one file under plots/.
type plotFile struct {
	name    string
	picture picture
}

// own are the beginnings of the names of plots that pages other than the
// report keep beside it.
var own = []string{gatePlots, trendPlots}

// writePlots writes pictures and removes those of an earlier rendering of the
// same page that are no more. prefix tells pages apart; the report has none.
func writePlots(dir, prefix string, plots []plotFile) error {
	folder := filepath.Join(dir, "plots")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	errs := make([]error, len(plots))
	current := map[string]bool{}
	seats := make(chan struct{}, painters)
	var group sync.WaitGroup
	for i, p := range plots {
		current[p.name] = true
		seats <- struct{}{}
		group.Go(func() {
			defer func() { <-seats }()
			b, err := p.picture.PNG()
			if err == nil {
				err = result.WriteFile(filepath.Join(folder, p.name), b)
			}
			if err != nil {
				errs[i] = fmt.Errorf("plots/%s: %w", p.name, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	for _, path := range old {
		name := filepath.Base(path)
		theirs := prefix == "" && slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(name, o) })
		if !current[name] && !theirs && strings.HasPrefix(name, prefix) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("plots: %w", err)
			}
		}
	}
	return nil
}

// painters is how many pictures are drawn at a time: each takes some megabytes.
const painters = 4

// slug makes a name fit for a file and an anchor.
func slug(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			b.WriteRune(r)
		case r == '=', r == ',', r == '@', r == '/', r == ' ':
			b.WriteByte('-')
		case r == '#':
			b.WriteByte('.')
		default:
			fmt.Fprintf(&b, "u%x", r)
		}
	}
	return b.String()
}

// plotNameMax keeps names of files far below what file systems take.
const plotNameMax = 150

// plotName is the name of a picture's file. Of one that is too long the end is
// a checksum, so that names that differ stay different.
func plotName(parts ...string) string {
	for i, p := range parts {
		parts[i] = slug(p)
	}
	name := strings.Join(parts, "-")
	if len(name) > plotNameMax {
		name = fmt.Sprintf("%s-%08x", name[:plotNameMax], crc32.ChecksumIEEE([]byte(name)))
	}
	return name + ".png"
}

// indented is the form of the JSON files.
func indented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
