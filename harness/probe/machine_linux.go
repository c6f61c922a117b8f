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

// cgroup reads the limits of version 2, else of version 1. No limit is 0.
func cgroup(m *result.Machine, read func(string) string) {
	if f := strings.Fields(read("sys/fs/cgroup/cpu.max")); len(f) == 2 && f[0] != "max" {
		m.CgroupCPUs = ratio(f[0], f[1])
	} else if quota := read("sys/fs/cgroup/cpu/cpu.cfs_quota_us"); quota != "" && quota != "-1" {
		m.CgroupCPUs = ratio(quota, read("sys/fs/cgroup/cpu/cpu.cfs_period_us"))
	}
	limit := read("sys/fs/cgroup/memory.max")
	if limit == "" {
		limit = read("sys/fs/cgroup/memory/memory.limit_in_bytes")
	}
	// Version 1 writes "no limit" as a number beyond all memory.
	if n, err := strconv.ParseInt(limit, 10, 64); err == nil && n < 1<<60 {
		m.CgroupMemoryBytes = n
	}
}

func ratio(a, b string) float64 {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil || y <= 0 {
		return 0
	}
	return x / y
}
