//go:build !unix

package spec

// openFileLimit is not known here.
var openFileLimit = func() (limit uint64, known bool) { return 0, false }
