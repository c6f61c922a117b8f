package result

import (
	"fmt"
	"strings"
)

// memorySlack is how much the memory that a system reports may differ on one
// machine: kernels reserve more or less of it.
const memorySlack = 0.02

// Differences tells in words what makes b another machine than a. Only what
// stays the same from night to night is compared: the system and architecture,
// the processor, the memory and the limits of the control group, but not load,
// clock rate or kernel. What one side does not know is not compared. The host's
// name counts where the hardware is not known; else it is a doubt, see Doubts.
func (a Machine) Differences(b Machine) []string {
	var out []string
	say := func(what string, x, y any) { out = append(out, fmt.Sprintf("%s: %v, not %v", what, y, x)) }
	text := func(what, x, y string) {
		if x != y && x != "" && y != "" {
			say(what, x, y)
		}
	}
	text("operating system", a.OS, b.OS)
	text("architecture", a.Arch, b.Arch)
	text("CPU model", a.CPUModel, b.CPUModel)
	if a.Cores != b.Cores && a.Cores != 0 && b.Cores != 0 {
		say("cores", a.Cores, b.Cores)
	}
	if x, y := float64(a.MemoryBytes), float64(b.MemoryBytes); x > 0 && y > 0 && max(x, y)/min(x, y) > 1+memorySlack {
		say("memory", size(a.MemoryBytes), size(b.MemoryBytes))
	}
	known := a.CPUModel != "" && b.CPUModel != "" && a.Cores != 0 && b.Cores != 0 && a.MemoryBytes != 0 && b.MemoryBytes != 0
	if !known {
		text("host", a.Hostname, b.Hostname)
	}
	// No limit is 0, and that is known.
	if a.CgroupCPUs != b.CgroupCPUs {
		say("CPUs of the control group", limit(a.CgroupCPUs != 0, a.CgroupCPUs), limit(b.CgroupCPUs != 0, b.CgroupCPUs))
	}
	if a.CgroupMemoryBytes != b.CgroupMemoryBytes {
		say("memory of the control group", limit(a.CgroupMemoryBytes != 0, size(a.CgroupMemoryBytes)), limit(b.CgroupMemoryBytes != 0, size(b.CgroupMemoryBytes)))
	}
	return out
}

// Doubts tells in words what may make b another machine than a although their
// hardware is alike: the host's name, which a container has anew each time.
func (a Machine) Doubts(b Machine) []string {
	if a.Hostname == b.Hostname || a.Hostname == "" || b.Hostname == "" || len(a.Differences(b)) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("host: %s, not %s", b.Hostname, a.Hostname)}
}

// Known tells whether there is enough to tell a machine from another.
func (a Machine) Known() bool { return a.CPUModel != "" || a.Hostname != "" || a.Cores > 0 }

// KernelSeries is the kernel's version without its patch level: 6.12 of
// 6.12.8-amd64.
func (a Machine) KernelSeries() string {
	parts := strings.SplitN(a.Kernel, ".", 3)
	if len(parts) < 2 {
		return a.Kernel
	}
	return parts[0] + "." + parts[1]
}

func limit(is bool, value any) string {
	if !is {
		return "unlimited"
	}
	return fmt.Sprint(value)
}

func size(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
