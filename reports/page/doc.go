// Package page renders what a reader sees: HTML that opens from disk without a
// network, the same plots as PNG, Markdown, and JUnit XML.
//
//	Render          a run         report.html summary.md junit.xml summary.json
//	RenderDecision  a decision    gate.html gate.md gate-junit.xml gate.json
//	RenderComparison the same, for those who asked for no exit code
//	RenderTrend     many nights   trend.html trend.md trend.json
//	RenderIndex     many runs     index.html
//
// Pictures lie under plots/ of the same folder; each page removes those of its
// own that it no longer has and leaves those of other pages alone. Files are
// replaced one by one, each atomically.
//
// Nothing here measures or judges. A report comes from the run folder alone:
// run.json, trials.jsonl and the timelines under events/; a run that was
// interrupted, whose last line is half-written, or in which nothing succeeded
// still gets a report that says so, and a run.json that describes no run is an
// error (ErrNoContent). Decisions and trends come as values of package verdict.
// Missing numbers are a dash with a reason, never 0 and never NaN.
//
// The same input gives the same bytes: no clock, no order of maps, no random
// number without a seed. No other program is needed.
//
// The pages have no scripts. Their style follows the reader's light or dark
// setting, works on a narrow screen and on paper. Every picture has a name and a
// description in words and every table a caption; what scrolls can be reached by
// keyboard; a verdict is said by sign, word and colour. The raw data are in the
// page, compressed. Names of cells, steps and files come from users:
// html/template escapes them, and the charts escape what they draw.
//
// parts.html holds what the pages share. A table or figure is a value (view.go)
// that the page, the Markdown and, for figures, the PNG are made from.
package page
