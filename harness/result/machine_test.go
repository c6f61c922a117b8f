package result

import (
	"slices"
	"testing"
)

// TestMachineDifferences fails if a field is not compared, or if load, kernel
// or clock rate make another machine.
func TestMachineDifferences(t *testing.T) {
	load := 3.5
	a := Machine{Hostname: "lab", OS: "linux", Arch: "amd64", CPUModel: "cpu", Cores: 4, MemoryBytes: 16 << 30, Kernel: "6.12.8-amd64", Governor: "performance"}
	for _, c := range []struct {
		name   string
		change func(*Machine)
		want   []string
	}{
		{"nothing", func(*Machine) {}, nil},
		{"tonight", func(m *Machine) {
			m.Load1, m.Kernel, m.Governor, m.Probes = &load, "6.13.1", "powersave", map[string]float64{"cpu": 1}
		}, nil},
		{"a little memory", func(m *Machine) { m.MemoryBytes -= 100 << 20 }, nil},
		{"not known", func(m *Machine) { m.CPUModel, m.Cores, m.MemoryBytes = "", 0, 0 }, nil},
		{"other", func(m *Machine) { m.CPUModel, m.Hostname = "other", "desk" }, []string{"CPU model: other, not cpu"}},
		{"the name alone", func(m *Machine) { m.Hostname = "desk" }, nil},
		{"a name and no hardware", func(m *Machine) { m.Hostname, m.MemoryBytes = "desk", 0 }, []string{"host: desk, not lab"}},
		{"system", func(m *Machine) { m.OS, m.Arch = "darwin", "arm64" }, []string{"operating system: darwin, not linux", "architecture: arm64, not amd64"}},
		{"sizes", func(m *Machine) { m.Cores, m.MemoryBytes = 8, 8<<30 }, []string{"cores: 8, not 4", "memory: 8.0 GiB, not 16.0 GiB"}},
		{"limits", func(m *Machine) { m.CgroupCPUs, m.CgroupMemoryBytes = 2, 4<<30 }, []string{"CPUs of the control group: 2, not unlimited", "memory of the control group: 4.0 GiB, not unlimited"}},
	} {
		b := a
		c.change(&b)
		if got := a.Differences(b); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := b.Differences(a); len(got) != len(c.want) {
			t.Errorf("%s, the other way: %q", c.name, got)
		}
	}
	// A container has another name each time: fails if Doubts says nothing of it.
	b := a
	b.Hostname = "desk"
	if got := a.Doubts(b); !slices.Equal(got, []string{"host: desk, not lab"}) || len(a.Doubts(a)) > 0 {
		t.Errorf("doubts %q", got)
	}
	if b.MemoryBytes = 0; len(a.Doubts(b)) > 0 {
		t.Error("what makes another machine is a doubt as well")
	}
	if (Machine{OS: "linux"}).Known() || !a.Known() {
		t.Error("a machine that says nothing is known, or one that does is not")
	}
	for kernel, want := range map[string]string{"6.12.8-amd64": "6.12", "6.12": "6.12", "": "", "7": "7"} {
		if got := (Machine{Kernel: kernel}).KernelSeries(); got != want {
			t.Errorf("%q: %q, want %q", kernel, got, want)
		}
	}
}
