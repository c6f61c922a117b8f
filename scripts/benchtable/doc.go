// Benchtable prints what benchmarks measured beside what was aimed at.
//
//	go test -run '^$' -bench . -benchtime 1x ./runtime/... | go run ./scripts/benchtable
//
// A benchmark reports a figure as the metric X and its aim as X-target. What
// follows "-target" in the name, as in s-checkpoint-target+writing, is printed
// as a note: the aim grows by that much, and the reader has to add it. Rates
// (a unit that ends in "/s") aim at that much or more, everything else at that
// much or less. A missed aim does not fail the program, since a slow machine is no
// error; a failed benchmark does.
package main
