package probe

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"benchrun/harness/result"
)

// describe reads /proc and /sys below a root.
func describe(m *result.Machine, root string) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	for line := range strings.Lines(read("proc/cpuinfo")) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == "model name" {
			m.CPUModel = strings.TrimSpace(value)
			break
		}
	}
	for line := range strings.Lines(read("proc/meminfo")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				m.MemoryBytes = n << 10
			}
		}
	}
	m.Kernel = read("proc/sys/kernel/osrelease")
	m.Governor = read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	if f := strings.Fields(read("proc/loadavg")); len(f) > 0 {
		if load, err := strconv.ParseFloat(f[0], 64); err == nil {
			m.Load1 = &load
		}
	}
	cgroup(m, read)
}
