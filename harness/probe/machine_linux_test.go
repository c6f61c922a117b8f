package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"benchrun/harness/result"
)

func TestDescribe(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"proc/cpuinfo":              "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\n",
		"proc/meminfo":              "MemTotal:       1024 kB\nMemFree: 1 kB\n",
		"proc/sys/kernel/osrelease": "6.1.0\n",
		"proc/loadavg":              "0.25 0.1 0.1 1/100 7\n",
		"sys/fs/cgroup/cpu.max":     "150000 100000\n",
		"sys/fs/cgroup/memory.max":  "max\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var m result.Machine
	describe(&m, root)
	if m.CPUModel != "Fast CPU @ 3 GHz" || m.MemoryBytes != 1<<20 || m.Kernel != "6.1.0" || *m.Load1 != 0.25 || m.CgroupCPUs != 1.5 || m.CgroupMemoryBytes != 0 || m.Governor != "" {
		t.Errorf("%+v", m)
	}
}

func TestDescribeNothing(t *testing.T) {
	var m result.Machine
	describe(&m, t.TempDir())
	if m.Load1 != nil || m.CPUModel != "" || m.CgroupCPUs != 0 {
		t.Errorf("%+v", m)
	}
}

func TestSame(t *testing.T) {
	a := Machine()
	load := 9.0
	b := a
	b.Load1 = &load
	if why, ok := Same(a, b); !ok {
		t.Errorf("the load makes another machine: %s", why)
	}
	b.Cores++
	if _, ok := Same(a, b); ok {
		t.Error("more cores make no other machine")
	}
}

// TestCgroups: the tightest limit around the process counts, in both versions.
func TestCgroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		cpus   float64
		memory int64
	}{
		{"none", nil, 0, 0},
		{"version 2, nested", map[string]string{
			"proc/self/cgroup":                             "0::/lab.slice/run.scope\n",
			"sys/fs/cgroup/lab.slice/cpu.max":              "200000 100000\n",
			"sys/fs/cgroup/lab.slice/memory.max":           "1073741824\n",
			"sys/fs/cgroup/lab.slice/run.scope/cpu.max":    "max 100000\n",
			"sys/fs/cgroup/lab.slice/run.scope/memory.max": "536870912\n",
		}, 2, 1 << 29},
		{"version 2, in a container", map[string]string{
			"proc/self/cgroup":         "0::/../outside\n",
			"sys/fs/cgroup/cpu.max":    "50000 100000\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 0.5, 0},
		{"version 1", map[string]string{
			"proc/self/cgroup":                               "4:cpu,cpuacct:/job\n5:memory:/job\n",
			"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us":         "300000\n",
			"sys/fs/cgroup/cpu/job/cpu.cfs_period_us":        "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2147483648\n",
		}, 3, 2 << 30},
		{"version 1, no limit", map[string]string{
			"proc/self/cgroup":                           "4:cpu,cpuacct:/\n5:memory:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m result.Machine
			cgroup(&m, func(name string) string { return strings.TrimSpace(c.files[name]) })
			if m.CgroupCPUs != c.cpus || m.CgroupMemoryBytes != c.memory {
				t.Errorf("%v CPUs, %d bytes; want %v, %d", m.CgroupCPUs, m.CgroupMemoryBytes, c.cpus, c.memory)
			}
		})
	}
}
