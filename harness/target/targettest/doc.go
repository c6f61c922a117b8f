// Package targettest has two things for tests of what uses or implements
// package target.
//
// Target plays a job without running one: it writes the events that a real
// target would write, on the clock of the test, so that scenarios run in
// virtual time; batch jobs, too (Batch). Conformance is the suite that every target that runs jobs for
// real must pass.
package targettest
