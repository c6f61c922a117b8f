package probe

import (
	"os"
	"runtime"

	"benchrun/harness/result"
)

// Machine describes this host as it is now.
func Machine() result.Machine {
	m := result.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	if name, err := os.Hostname(); err == nil {
		m.Hostname = name
	}
	describe(&m, "/")
	return m
}

// Same tells whether two descriptions are of one machine, and else what
// differs. Only what stays the same from hour to hour is compared.
func Same(a, b result.Machine) (differs string, same bool) {
	switch {
	case a.CPUModel != b.CPUModel:
		return "the CPU model is " + b.CPUModel + ", not " + a.CPUModel, false
	case a.Cores != b.Cores:
		return "the number of cores", false
	case a.Hostname != b.Hostname:
		return "the host is " + b.Hostname + ", not " + a.Hostname, false
	case a.CgroupCPUs != b.CgroupCPUs || a.CgroupMemoryBytes != b.CgroupMemoryBytes:
		return "the limits of the control group", false
	}
	return "", true
}
