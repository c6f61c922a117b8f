//go:build unix

package spec

import "syscall"

// openFileLimit is how many files and sockets this process may have open. It
// is a variable so that a test can stand in for the system.
var openFileLimit = func() (limit uint64, known bool) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil
}
