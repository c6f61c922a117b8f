//go:build unix && !linux

package trial

import (
	"os/exec"
	"syscall"
)

// isolate gives the child a process group of its own, so that Ctrl-C reaches
// the run alone. That the run has died, the child learns from its stdin.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
