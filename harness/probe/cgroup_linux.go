package probe

import (
	"path"
	"strconv"
	"strings"

	"benchrun/harness/result"
)

// cgroup reads the limits of this process's control group and of those around
// it, of version 2, else of version 1; the tightest counts. No limit is 0.
func cgroup(m *result.Machine, read func(string) string) {
	own := map[string]string{} // controller -> group; "" is version 2
	for line := range strings.Lines(read("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			own[c] = f[2]
		}
	}
	tighten := func(limit *float64, v float64) {
		if v > 0 && (*limit == 0 || v < *limit) {
			*limit = v
		}
	}
	var cpus, memory float64
	for _, dir := range upwards(own[""]) {
		if f := strings.Fields(read(path.Join("sys/fs/cgroup", dir, "cpu.max"))); len(f) == 2 && f[0] != "max" {
			tighten(&cpus, ratio(f[0], f[1]))
		}
		tighten(&memory, bytesLimit(read(path.Join("sys/fs/cgroup", dir, "memory.max"))))
	}
	for _, dir := range upwards(own["cpu"]) {
		quota := read(path.Join("sys/fs/cgroup/cpu", dir, "cpu.cfs_quota_us"))
		if quota != "" && quota != "-1" {
			tighten(&cpus, ratio(quota, read(path.Join("sys/fs/cgroup/cpu", dir, "cpu.cfs_period_us"))))
		}
	}
	for _, dir := range upwards(own["memory"]) {
		tighten(&memory, bytesLimit(read(path.Join("sys/fs/cgroup/memory", dir, "memory.limit_in_bytes"))))
	}
	m.CgroupCPUs, m.CgroupMemoryBytes = cpus, int64(memory)
}

// upwards lists a group and those around it. In a container the group's own
// path may not exist below the mount; the root then is the group.
func upwards(group string) []string {
	out := []string{"."}
	for dir := path.Clean("/" + group); dir != "/"; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	return out
}

// bytesLimit reads a limit; "max", and the number beyond all memory by which
// version 1 says so, are none.
func bytesLimit(s string) float64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n >= 1<<60 {
		return 0
	}
	return float64(n)
}

func ratio(a, b string) float64 {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil || x <= 0 || y <= 0 {
		return 0
	}
	return x / y
}
