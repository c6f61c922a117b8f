package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

//go:embed report.html style.css
var files embed.FS

var page = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"style": func() (template.CSS, error) {
		b, err := files.ReadFile("style.css")
		return template.CSS(b), err
	},
}).ParseFS(files, "report.html"))

// Render writes the report of a run folder into it: report.html, plots/*.png,
// summary.json, summary.md and junit.xml. Files are replaced one by one, each
// atomically. The error names the file; what was rendered before it stays.
func Render(runDir string) error {
	l, err := result.Load(runDir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	s := verdict.Summarize(l)
	if err := result.WriteJSON(filepath.Join(runDir, "summary.json"), s); err != nil {
		return fmt.Errorf("report: summary.json: %w", err)
	}
	v, err := newView(l, s)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := writePlots(runDir, v.plots()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var html bytes.Buffer
	if err := page.Execute(&html, v); err != nil {
		return fmt.Errorf("report: report.html: %w", err)
	}
	unit, err := junit(l, v)
	if err != nil {
		return fmt.Errorf("report: junit.xml: %w", err)
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"report.html", html.Bytes()},
		{"summary.md", []byte(markdown(v))},
		{"junit.xml", unit},
	} {
		if err := result.WriteFile(filepath.Join(runDir, f.name), f.content); err != nil {
			return fmt.Errorf("report: %s: %w", f.name, err)
		}
	}
	return nil
}

// picture is a chart that draws itself as PNG.
type picture interface{ PNG() ([]byte, error) }

// plotFile is one file under plots/.
type plotFile struct {
	name    string
	picture picture
}

// writePlots writes the pictures and removes those of an earlier rendering
// that are no more.
func writePlots(runDir string, plots []plotFile) error {
	dir := filepath.Join(runDir, "plots")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	current := map[string]bool{}
	for _, p := range plots {
		b, err := p.picture.PNG()
		if err != nil {
			return fmt.Errorf("plots/%s: %w", p.name, err)
		}
		if err := result.WriteFile(filepath.Join(dir, p.name), b); err != nil {
			return fmt.Errorf("plots/%s: %w", p.name, err)
		}
		current[p.name] = true
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	for _, path := range old {
		if !current[filepath.Base(path)] {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("plots: %w", err)
			}
		}
	}
	return nil
}

// slug makes a name fit for a file and an anchor.
func slug(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			b.WriteRune(r)
		case r == '=', r == ',', r == '@', r == '/', r == ' ', r == '#', r == ':', r == '%':
			b.WriteByte('-')
		default:
			fmt.Fprintf(&b, "u%x", r)
		}
	}
	return b.String()
}

// indented is the form of the JSON files.
func indented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
