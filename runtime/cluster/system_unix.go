//go:build unix

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// lockExclusive takes a lock that ends with the process; false: another
// process has it.
func lockExclusive(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Signals to the whole group of a process that is not reaped yet.
func killGroup(cmd *exec.Cmd) error   { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
func stopGroup(cmd *exec.Cmd) error   { return syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP) }
func resumeGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT) }

// peakMemory is the largest resident size of a process that has ended.
func peakMemory(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) * maxRSSUnit
	}
	return 0
}
