//go:build !linux

package probe

import (
	"benchrun/harness/result"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// describe asks the system; there are no control groups.
func describe(m *result.Machine, _ string) {
	if c, err := cpu.Info(); err == nil && len(c) > 0 {
		m.CPUModel = c[0].ModelName
	}
	if v, err := mem.VirtualMemory(); err == nil {
		m.MemoryBytes = int64(v.Total)
	}
	if k, err := host.KernelVersion(); err == nil {
		m.Kernel = k
	}
	if l, err := load.Avg(); err == nil {
		m.Load1 = &l.Load1
	}
}
