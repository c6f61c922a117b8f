// Package targettest has a target that plays a job without running one: it
// writes the events that a real target would write, on the clock of the test,
// so that scenarios run in virtual time.
package targettest
