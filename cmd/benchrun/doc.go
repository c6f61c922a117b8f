// Command benchrun measures how fast a stream job recovers, for every
// combination of the recovery options.
//
// The package parses, calls and prints. An app holds everything that a command
// touches outside itself, so that whole command lines are tested without it.
// Results and tables go to stdout, progress and warnings to stderr. An error
// that carries no exit code of its own (codedError) is one of usage, code 2.
package main
