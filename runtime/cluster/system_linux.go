package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// clockMonotonic is CLOCK_MONOTONIC, the clock of package time, which is one
// for all processes of the machine.
const clockMonotonic = 1

func systemClock() (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}

// isolate gives a process a group of its own and has the kernel kill it when
// the thread that starts it is gone.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// runningImage is the file that this process runs, also when another one has
// taken its name.
func runningImage(string) string { return "/proc/self/exe" }

// diskBytes is what a process has read from and written to disk so far.
func diskBytes(pid int) (read, written *int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return nil, nil // gone, or not readable in some containers
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		n, err := strconv.ParseInt(string(value), 10, 64)
		switch {
		case err != nil:
		case string(name) == "read_bytes":
			read = &n
		case string(name) == "write_bytes":
			written = &n
		}
	}
	return read, written
}

// maxRSS is in kilobytes on Linux.
const maxRSSUnit = 1024
