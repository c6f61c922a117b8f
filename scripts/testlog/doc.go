// Testlog makes `go test -json` readable: a line a package, the whole output
// of what fails, and at the end every test that was skipped with its reason.
//
//	go test -json ./... | go run ./scripts/testlog
//
// It ends with status 1 if anything failed, or if nothing ran.
package main
