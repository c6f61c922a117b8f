//go:build unix

package probe

import "syscall"

// openFiles is the limit of open files of this process, sockets included. The
// runtime of Go has raised it to what the system allows.
func openFiles() *uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return nil
	}
	n := uint64(l.Cur)
	return &n
}
