//go:build !unix

package probe

// openFiles is not limited in a way that could be read.
func openFiles() *uint64 { return nil }
