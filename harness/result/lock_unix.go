//go:build unix

package result

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process; it ends with the file's closing, also
// when the process dies.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
