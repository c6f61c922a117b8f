// Package page renders the report of a run: one HTML file that opens from disk
// without a network, the same plots as PNG, a Markdown summary, JUnit XML, and
// summary.json.
//
// Render needs the run folder alone and never measures. Everything is computed
// from run.json, trials.jsonl and the timelines under events/; a run that was
// interrupted, whose last line is half-written, or in which nothing succeeded
// still gets a report that says so. Missing numbers are a dash with a reason,
// never 0 and never NaN.
//
// The same raw files give the same bytes: no clock, no order of maps, no
// random number without a seed.
//
// The page has no scripts. Its style follows the reader's light or dark
// setting and prints. Names of cells, steps and files come from users:
// html/template escapes them, and the charts escape what they draw.
package page
