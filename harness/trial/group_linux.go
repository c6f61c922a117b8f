package trial

import (
	"os/exec"
	"syscall"
)

// isolate gives the child a process group of its own, so that Ctrl-C reaches
// the run alone, and has the kernel kill it when the run dies.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
