package page

import (
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// trendPlots begins the names of a trend's plots.
const trendPlots = "trend-line-"

// trendView is all that the page of a trend shows.
type trendView struct {
	PageTitle, Title string
	Subtitle         []string
	Headline         []string
	Warnings         []string
	Changes, Nights  *table
	Series           []seriesView
	Downloads        []download
}

// seriesView is one series: its plot and its numbers.
type seriesView struct {
	Figure figure
	Values *table
}

// RenderTrend writes the pages of a trend into a folder: trend.html, trend.md,
// trend.json and plots/trend-line-*.png.
func RenderTrend(dir string, t *verdict.Trend) error {
	t = finiteTrend(t)
	document, err := indented(t)
	if err != nil {
		return fmt.Errorf("trend: trend.json: %w", err)
	}
	v := newTrend(t)
	add, err := embedded("trend.json", "nights, series, changes", "application/json", document)
	if err != nil {
		return fmt.Errorf("trend: %w", err)
	}
	v.Downloads = []download{add}
	html, err := execute("trend.html", v)
	if err != nil {
		return fmt.Errorf("trend: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("trend: %w", err)
	}
	var plots []plotFile
	for _, s := range v.Series {
		plots = append(plots, plotFile{s.Figure.File, s.Figure.picture})
	}
	if err := writePlots(dir, trendPlots, plots); err != nil {
		return fmt.Errorf("trend: %w", err)
	}
	return writeFiles(dir, "trend", []file{{"trend.html", html}, {"trend.md", []byte(v.markdown())}, {"trend.json", document}})
}

// finiteTrend is the trend without points that are no numbers or of no night.
func finiteTrend(t *verdict.Trend) *verdict.Trend {
	out := *t
	out.Series = slices.Clone(t.Series)
	for i := range out.Series {
		s := &out.Series[i]
		s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p verdict.Point) bool {
			return !finite(p.Value) || p.Night < 0 || p.Night >= len(t.Nights)
		})
		for k := range s.Points {
			p := &s.Points[k]
			if p.Low == nil || p.High == nil || !finite(*p.Low) || !finite(*p.High) {
				p.Low, p.High = nil, nil
			}
		}
		s.Changes = slices.DeleteFunc(slices.Clone(s.Changes), func(c verdict.Change) bool {
			return !finite(c.Before) || !finite(c.After) || !finite(c.Size) || !finite(c.P) || c.Night < 0 || c.Night >= len(t.Nights)
		})
	}
	return &out
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

func newTrend(t *verdict.Trend) *trendView {
	v := &trendView{Title: "Trend", Warnings: t.Warnings}
	var names []string
	for _, s := range t.Series {
		if !slices.Contains(names, s.Workload) {
			names = append(names, s.Workload)
		}
	}
	if len(names) > 0 && len(names) <= 3 {
		v.Title = strings.Join(names, ", ")
	}
	v.PageTitle = v.Title + " – trend"
	v.Subtitle = append(v.Subtitle, count(len(t.Nights), "night", "nights"), count(len(t.Series), "series", "series"))
	if n := len(t.Nights); n > 0 {
		v.Subtitle = append(v.Subtitle, day(t.Nights[0].Date)+" to "+day(t.Nights[n-1].Date))
	}
	v.changes(t)
	for i := range t.Series {
		v.Series = append(v.Series, newSeries(t, &t.Series[i]))
	}
	v.nights(t)
	return v
}

// seriesName names a series as a reader would.
func seriesName(s *verdict.Series) string {
	return s.Workload + ", " + label(s.Cell) + ", " + short(s.Metric)
}

// changeWords write the size of a move.
func changeWords(size float64) string { return fmt.Sprintf("%+.0f %%", size*100) }

// revisions write the range in which a change lies.
func revisions(c *verdict.Change) string {
	switch {
	case c.From == "" && c.To == "":
		return ""
	case c.From == "":
		return brief(c.To)
	}
	return brief(c.From) + ".." + brief(c.To)
}

// brief shortens the hash of a revision, as version control does.
func brief(revision string) string {
	hash := strings.TrimSuffix(revision, "-dirty")
	if len(hash) == 40 && strings.Trim(hash, "0123456789abcdef") == "" {
		return hash[:12] + revision[40:]
	}
	return revision
}

type located struct {
	series *verdict.Series
	change *verdict.Change
}

// changes lists the moves of all series, the newest first.
func (v *trendView) changes(t *verdict.Trend) {
	var all []located
	for i := range t.Series {
		for k := range t.Series[i].Changes {
			all = append(all, located{&t.Series[i], &t.Series[i].Changes[k]})
		}
	}
	slices.SortStableFunc(all, func(a, b located) int { return b.change.Night - a.change.Night })
	if len(all) == 0 {
		v.Headline = []string{fmt.Sprintf("No lasting change in %s.", count(len(t.Nights), "night", "nights"))}
		return
	}
	v.Changes = &table{ID: "changes-table", Caption: "Lasting changes, the newest first", Head: []column{{Text: "series", Left: true}, {Text: "size"}, {Text: "before"}, {Text: "after"}, {Text: "p", Title: "of the permutation test"}, {Text: "revisions"}, {Text: "verdict", Left: true}}}
	for _, x := range all {
		s, c := x.series, x.change
		v.Changes.Rows = append(v.Changes.Rows, row{Label: day(c.Date), Cells: []cell{
			{Text: seriesName(s), Title: s.Cell + ", " + s.Metric, Class: "wrap", Link: "#" + seriesID(s)}, {Text: changeWords(c.Size), Title: fmt.Sprint(c.Size)},
			{Text: chart.Quantity(c.Before, s.Unit)}, {Text: chart.Quantity(c.After, s.Unit)}, {Text: chart.Number(c.P, "1")}, {Text: revisions(c), Title: c.From + ".." + c.To}, verdictCell(c.Verdict, ""),
		}})
	}
	lead := all[0]
	for _, x := range all { // what got worse comes first
		if x.change.Verdict == verdict.Slower {
			lead = x
			break
		}
	}
	c := lead.change
	text := fmt.Sprintf("Since %s %s is %s: %s", day(c.Date), seriesName(lead.series), string(c.Verdict), changeWords(c.Size))
	if r := revisions(c); r != "" {
		text += ", between the revisions " + strings.Replace(r, "..", " and ", 1)
	}
	v.Headline = []string{text + "."}
	slower := 0
	for _, x := range all {
		slower += map[bool]int{true: 1}[x.change.Verdict == verdict.Slower]
	}
	v.Headline = append(v.Headline, fmt.Sprintf("%s in %s: %d slower, %d faster.", capital(count(len(all), "lasting change", "lasting changes")), count(len(t.Nights), "night", "nights"), slower, len(all)-slower))
}

func seriesID(s *verdict.Series) string {
	id := "s-" + slug(s.Workload) + "-" + slug(s.Cell) + "-" + slug(s.Metric)
	if s.Unit != "ratio" { // nights without a reference build are a series of their own
		id += "-raw"
	}
	return id
}

func newSeries(t *verdict.Trend, s *verdict.Series) seriesView {
	l := &chart.Lines{Title: seriesName(s), Unit: s.Unit, Unity: s.Unit == "ratio"}
	v := seriesView{Values: &table{ID: seriesID(s) + "-values", Caption: seriesName(s), Head: []column{{Text: "value", Sub: unitWord(s.Unit)}, {Text: "interval"}, {Text: "n"}, {Text: "revision"}, {Text: "run"}}}}
	for i, n := range t.Nights {
		l.Dates = append(l.Dates, day(n.Date))
		if n.Note != "" {
			l.Notes = append(l.Notes, chart.NightNote{Night: i, Text: n.Note})
		}
	}
	for _, p := range s.Points {
		n := t.Nights[p.Night]
		if p.Cut != "" {
			v.Values.Rows = append(v.Values.Rows, row{Group: "The series is cut here: " + p.Cut})
		}
		l.Points = append(l.Points, chart.NightPoint{Night: p.Night, Value: p.Value, Low: p.Low, High: p.High, Note: fmt.Sprintf("n %d, revision %s", p.N, brief(n.Revision))})
		interval := cell{Text: "–", Class: "dim", Title: "too few samples"}
		if p.Low != nil {
			interval = cell{Text: chart.Number(*p.Low, s.Unit) + " – " + chart.Number(*p.High, s.Unit)}
		}
		v.Values.Rows = append(v.Values.Rows, row{Label: day(n.Date), Cells: []cell{
			{Text: chart.Quantity(p.Value, s.Unit), Title: fmt.Sprint(p.Value)}, interval, {Text: fmt.Sprint(p.N)}, {Text: brief(n.Revision), Title: n.Revision}, {Text: n.Run},
		}})
	}
	for _, c := range s.Changes {
		text := day(c.Date) + ": " + changeWords(c.Size)
		if r := revisions(&c); r != "" {
			text += " (" + r + ")"
		}
		l.Changes = append(l.Changes, chart.Step{Night: c.Night, Before: c.Before, After: c.After, Verdict: string(c.Verdict), Text: text})
	}
	note := s.Metric
	if s.Unit == "ratio" {
		note += ", ratio to the reference build"
	}
	if s.Better != "" && s.Better != string(result.Neutral) {
		note += ", " + s.Better + " is better"
	}
	v.Figure = figure{ID: seriesID(s), Title: seriesName(s), Note: note, File: plotName(trendPlots + strings.TrimPrefix(seriesID(s), "s-")), SVG: template.HTML(l.SVG()), picture: l}
	return v
}

func (v *trendView) nights(t *verdict.Trend) {
	if len(t.Nights) == 0 {
		return
	}
	v.Nights = &table{ID: "nights-table", Caption: "Nights", Head: []column{{Text: "run"}, {Text: "revision"}, {Text: "reference"}, {Text: "machine", Left: true}, {Text: "what else changed", Left: true}}}
	for _, n := range t.Nights {
		reference := cell{Text: brief(n.Reference), Title: n.Reference}
		if n.Reference == "" {
			reference = cell{Text: "none: raw medians", Class: "dim"}
		}
		v.Nights.Rows = append(v.Nights.Rows, row{Label: day(n.Date), Title: n.Date.UTC().Format(time.RFC3339), Cells: []cell{{Text: n.Run}, {Text: brief(n.Revision), Title: n.Revision}, reference, {Text: n.Machine, Class: "wrap"}, {Text: n.Note, Class: "wrap"}}})
	}
}

// markdown is the trend for job pages.
func (v *trendView) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", escapeMarkdown("Trend: "+v.Title), escapeMarkdown(strings.Join(v.Subtitle, " · ")))
	for _, h := range v.Headline {
		fmt.Fprintf(&b, "%s ", escapeMarkdown(h))
	}
	b.WriteString("\n\n")
	bullets(&b, v.Warnings)
	if v.Changes != nil {
		markdownTable(&b, v.Changes, "night")
	}
	if v.Nights != nil {
		markdownTable(&b, v.Nights, "night")
	}
	return limited(b.String())
}
