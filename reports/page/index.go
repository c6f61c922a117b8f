package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// indexDepth is how far below the index run folders are looked for.
const indexDepth = 4

// indexView is all that the page over the runs shows.
type indexView struct {
	Title    string
	Subtitle []string
	Trends   []pageLink
	Rows     []indexRow
	Damaged  *table
}

type pageLink struct{ Text, Of, Link string }

type indexRow struct {
	ID, Run, Date   string
	Workloads       string
	Headline        string
	State, Outcome  string
	Class, Revision string
	Pages           []pageLink
	started         time.Time
}

// ErrNoRuns means that no run lies below a folder.
var ErrNoRuns = errors.New("there is no run")

// RenderIndex writes index.html into a folder: a row for each run folder below
// it, the newest first. Folders that are no runs are passed over; runs that
// cannot be read are listed as damaged. Without any the error is ErrNoRuns.
func RenderIndex(dir string) error {
	v := &indexView{Title: "Runs"}
	var damaged []row
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil:
			return fs.SkipDir // not ours to read
		case !d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if rel != "." && strings.HasPrefix(d.Name(), ".") || strings.Count(rel, "/") >= indexDepth {
			return fs.SkipDir
		}
		if exists(filepath.Join(path, "trend.html")) {
			name := "Trend"
			if rel != "." {
				name += " " + rel
			}
			v.Trends = append(v.Trends, pageLink{name, rel, link(rel, "trend.html")})
		}
		if !exists(filepath.Join(path, "run.json")) && !exists(filepath.Join(path, "trials.jsonl")) {
			return nil
		}
		l, err := result.Load(path)
		if err == nil {
			err = meaningful(l)
		}
		if err != nil {
			damaged = append(damaged, row{Label: rel, Cells: []cell{{Text: strings.ReplaceAll(err.Error(), dir, "."), Class: "wrap"}}})
		} else {
			v.Rows = append(v.Rows, newIndexRow(l.Settled(), rel))
		}
		return fs.SkipDir
	})
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if len(v.Rows) == 0 && len(damaged) == 0 {
		return fmt.Errorf("index: %w below %s", ErrNoRuns, dir)
	}
	slices.SortStableFunc(v.Rows, func(a, b indexRow) int {
		if c := b.started.Compare(a.started); c != 0 {
			return c
		}
		return strings.Compare(b.Run, a.Run)
	})
	for i := range v.Rows {
		v.Rows[i].ID = fmt.Sprintf("run-%s", slug(v.Rows[i].ID))
	}
	v.Subtitle = []string{count(len(v.Rows), "run", "runs")}
	if len(damaged) > 0 {
		v.Subtitle = append(v.Subtitle, fmt.Sprintf("%d damaged", len(damaged)))
		v.Damaged = &table{ID: "damaged-table", Caption: "Damaged runs", Head: []column{{Text: "what is wrong"}}, Rows: damaged}
	}
	html, err := execute("index.html", v)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return writeFiles(dir, "index", []file{{"index.html", html}})
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// link is a relative address below the index.
func link(rel, name string) string {
	var parts []string
	if rel != "." {
		for p := range strings.SplitSeq(rel, "/") {
			parts = append(parts, url.PathEscape(p))
		}
	}
	return "./" + strings.Join(append(parts, name), "/")
}

func newIndexRow(l *result.Loaded, rel string) indexRow {
	r := &l.Run
	row := indexRow{ID: rel, Run: r.Run, Date: r.Started.UTC().Format("2006-01-02 15:04"), State: string(r.State), started: r.Started}
	var names []string
	for _, w := range r.Workloads {
		names = append(names, w.Name)
	}
	row.Workloads = strings.Join(names, ", ")
	if len(names) > 4 {
		row.Workloads = count(len(names), "workload", "workloads")
	}
	row.Headline = runFigure(l)
	if n := len(l.Missing); n > 0 {
		row.State += fmt.Sprintf(", %d of %d trials missing", n, r.Plan.Trials)
	}
	row.Outcome, row.Class = runOutcome(l)
	row.Revision = brief(r.Tool.Revision)
	if len(r.Builds) > 1 {
		var revisions []string
		for _, b := range verdict.Builds(r) {
			revisions = append(revisions, b+" "+brief(r.Builds[b].Revision))
		}
		row.Revision = strings.Join(revisions, ", ")
	} else if r.Tool.Dirty {
		row.Revision += " with changes"
	}
	for _, p := range []struct{ name, text string }{{"report.html", "report"}, {"gate.html", "gate"}, {"trend.html", "trend"}} {
		if exists(filepath.Join(l.Dir, p.name)) {
			row.Pages = append(row.Pages, pageLink{p.text, r.Run, link(rel, p.name)})
		}
	}
	return row
}

// runFigure is the figure of a run that counts: the primary metric of the best
// cell of each workload beside that of the reference.
func runFigure(l *result.Loaded) string {
	columns := verdict.Columns(l)
	var parts []string
	for i := range l.Run.Workloads {
		w := &l.Run.Workloads[i]
		m := metricOf(w.Primary)
		reference := verdict.Reference(&l.Run, w.Name)
		best, at := -1, 0.0
		ref, have := 0.0, false
		for k := range columns {
			c := &columns[k]
			if c.Workload != w.Name {
				continue
			}
			median, ok := stats.Median(c.Samples(w.Primary))
			if !ok {
				continue
			}
			if c.Cell == reference && !have {
				ref, have = median, true
			}
			if best < 0 || m.Better != result.Higher && median < at || m.Better == result.Higher && median > at {
				best, at = k, median
			}
		}
		text := "nothing measured"
		if best >= 0 {
			text = short(w.Primary) + " " + quantityWords(at, m.Unit) + " with " + label(columns[best].Cell)
			if have && columns[best].Cell != reference {
				text += ", " + quantityWords(ref, m.Unit) + " with " + label(reference)
			}
		}
		if len(l.Run.Workloads) > 1 {
			text = w.Name + ": " + text
		}
		parts = append(parts, text)
		if len(parts) == 3 && len(l.Run.Workloads) > 4 {
			parts = append(parts, fmt.Sprintf("and %d more workloads", len(l.Run.Workloads)-3))
			break
		}
	}
	return strings.Join(parts, "; ")
}

// runOutcome is that of the gate if there was one, else what the lines say.
func runOutcome(l *result.Loaded) (text, class string) {
	var d struct {
		Exit    *result.Exit `json:"exit"`
		Outcome string       `json:"outcome"`
	}
	if b, err := os.ReadFile(filepath.Join(l.Dir, "gate.json")); err == nil && json.Unmarshal(b, &d) == nil && d.Exit != nil {
		if d.Outcome == "" {
			d.Outcome = exitText(*d.Exit)
		}
		return "gate: " + d.Outcome, map[bool]string{true: "good", false: "bad"}[*d.Exit == result.ExitOK]
	}
	code, _ := l.Exit(result.ExitInterrupted)
	switch code {
	case result.ExitOK:
		return "measured", "good"
	case result.ExitInterrupted:
		if l.Run.State == result.Running {
			return "running", "dim"
		}
		return "not finished", "bad"
	case result.ExitWrong:
		return "wrong output", "bad"
	}
	return "trials failed", "bad"
}
