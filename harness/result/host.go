package result

import (
	"fmt"
	"strings"
)

// HostProbe is how the host did fixed pieces of work in a moment around a
// trial. What could not be read is absent.
type HostProbe struct {
	ALUMs            float64  `json:"alu_ms"`                   // the loop of the machine's probe of that name, scaled to its length: median round
	DelayUs          float64  `json:"delay_us"`                 // by how much the worst of some short sleeps was late
	Load             *float64 `json:"load1,omitempty"`          // mean of the last minute, the trial before this one in it
	CPUBusyElsewhere *float64 `json:"busy_elsewhere,omitempty"` // other tasks that ran or wanted to, on average
}

// Limits of a quiet host. They are wide: a mark says that a trial stands out,
// the verdict's intervals deal with the rest.
const (
	busySlowdown     = 1.25  // the loop, against the run's start
	busySlowdownMost = 1.6   // however uneven the machine was at the run's start
	busyDelayUs      = 10000 // beyond a scheduler's slice
	busyElsewhere    = 0.25  // of the cores
	busyElsewhereLow = 0.75  // tasks, whatever the cores: the kernel's own come and go
)

// Busy tells whether the host was busy around a trial, and how that showed.
// The load is not judged: it still has the trial before in it.
func Busy(before, after *HostProbe, m *Machine) (bool, string) {
	var reasons []string
	for _, p := range []struct {
		when  string
		probe *HostProbe
	}{{"before", before}, {"after", after}} {
		if p.probe == nil {
			continue
		}
		for _, why := range p.probe.busy(m) {
			reasons = append(reasons, p.when+" the trial "+why)
		}
	}
	if len(reasons) == 0 && before != nil && after != nil && alu(m) == 0 {
		if before.ALUMs > 0 && after.ALUMs > 0 {
			ratio := max(before.ALUMs/after.ALUMs, after.ALUMs/before.ALUMs)
			if ratio > busySlowdown {
				reasons = append(reasons, fmt.Sprintf("a fixed loop took %.2f ms before the trial and %.2f ms after it", before.ALUMs, after.ALUMs))
			}
		}
	}
	return len(reasons) > 0, strings.Join(reasons, "; ")
}

func (p *HostProbe) busy(m *Machine) []string {
	var why []string
	if usual := alu(m); usual > 0 {
		limit := min(max(busySlowdown, m.Probes["alu_spread_ratio"]), busySlowdownMost)
		if ratio := p.ALUMs / usual; ratio > limit {
			why = append(why, fmt.Sprintf("a fixed loop took %.2f times as long as when the run began", ratio))
		}
	}
	if p.DelayUs > busyDelayUs {
		why = append(why, fmt.Sprintf("a sleep ended %.0f ms late", p.DelayUs/1e3))
	}
	if p.CPUBusyElsewhere != nil {
		cores := float64(max(m.cores(), 1))
		if *p.CPUBusyElsewhere > max(busyElsewhere*cores, busyElsewhereLow) {
			why = append(why, fmt.Sprintf("%.1f other tasks wanted the %.0f cores", *p.CPUBusyElsewhere, cores))
		}
	}
	return why
}

func alu(m *Machine) float64 {
	if m == nil {
		return 0
	}
	return m.Probes["alu_ms"]
}

func (m *Machine) cores() int {
	if m == nil {
		return 0
	}
	return m.Cores
}
