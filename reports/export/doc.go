// Package export writes the raw samples of runs in the formats of other tools:
// one JSON document, CSV in long form, and the Go benchmark format that
// benchstat reads.
//
// Only trials that are ok have values. The others are there with their outcome
// (JSON, CSV) or as a comment (Go benchmark format), never as a number.
//
//	json      {"schema", "runs": [{"run", "trials", "missing", "summary", "warnings"}]}
//	csv       a line a trial and metric, RFC 4180; a trial without metrics has
//	          one line with an empty metric. A cell that a spreadsheet could take
//	          for a formula begins with an apostrophe
//	benchfmt  a line a trial: Benchmark<Workload>/<name=value>/... 1 <value> <metric>-<unit> ...;
//	          run, build and machine as configuration; warm-ups left out
//
// The same samples give the same bytes.
package export
