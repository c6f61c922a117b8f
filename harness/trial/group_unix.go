//go:build unix

package trial

import (
	"os/exec"
	"syscall"
)

// killGroup ends the child and whatever it started. The child is not reaped
// yet, so its process group is still its own.
func killGroup(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
