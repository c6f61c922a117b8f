// Benchtable prints what benchmarks measured beside what was aimed at.
//
//	go test -run '^$' -bench . -benchtime 1x ./runtime/... | go run ./scripts/benchtable
//
// A benchmark reports a figure as the metric X and its aim as X-target. Rates
// (a unit that ends in "/s") aim at that much or more, everything else at that
// much or less. A benchmark without any aim is only named: one iteration says
// nothing about it.
//
// An aim named X-target+writing grows by the time that the bytes it has to make
// durable take on this disk: the benchmark's metric MB-first over the metric
// MB/s-synced, which some benchmark of the same run reports.
//
// A missed aim does not fail the program, since a slow machine is no error; a
// failed benchmark does.
package main
