package trial

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"benchrun/harness/result"
)

// ownResources is what this process has used so far.
func ownResources() *result.Resources {
	r := &result.Resources{}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		cpu := (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
		rss := u.Maxrss * 1024
		r.CPUS, r.MaxRSSBytes = &cpu, &rss
	}
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return r // not readable in some containers
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			continue
		}
		switch string(name) {
		case "read_bytes":
			r.ReadBytes = &n
		case "write_bytes":
			r.WrittenBytes = &n
		}
	}
	return r
}
