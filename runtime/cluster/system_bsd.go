//go:build unix && !linux

package cluster

import (
	"os/exec"
	"syscall"
	"time"
)

// systemClock: there is none that all processes are known to share.
func systemClock() (time.Duration, bool) { return 0, false }

// isolate gives a process a group of its own. That its parent has died, it
// learns from the end of its stdin.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func runningImage(exe string) string { return exe }

func diskBytes(int) (read, written *int64) { return nil, nil }

// maxRSS is in bytes on macOS.
const maxRSSUnit = 1
