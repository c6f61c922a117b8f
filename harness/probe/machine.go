package probe

import (
	"os"
	"runtime"
	"strings"

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
	differences := a.Differences(b)
	return strings.Join(differences, "; "), len(differences) == 0
}
