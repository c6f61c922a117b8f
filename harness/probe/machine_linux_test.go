package probe

import (
	"os"
	"path/filepath"
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
