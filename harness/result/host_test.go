package result

import (
	"strings"
	"testing"
)

// TestBusy: what marks a trial's host as busy, and what does not.
//
// Fails if the loop is held against the other probe while the run's start is
// known, if one of the two probes is not looked at, or if the load counts.
func TestBusy(t *testing.T) {
	num := func(v float64) *float64 { return &v }
	quiet := HostProbe{ALUMs: 7, DelayUs: 150, Load: num(0.2), CPUBusyElsewhere: num(0)}
	with := func(change func(*HostProbe)) *HostProbe {
		p := quiet
		change(&p)
		return &p
	}
	machine := Machine{Cores: 4, Probes: map[string]float64{"alu_ms": 7, "alu_spread_ratio": 1.02}}
	uneven := Machine{Cores: 4, Probes: map[string]float64{"alu_ms": 7, "alu_spread_ratio": 1.4}}
	broken := Machine{Cores: 4, Probes: map[string]float64{"alu_ms": 7, "alu_spread_ratio": 9}}
	for _, c := range []struct {
		name          string
		before, after *HostProbe
		machine       *Machine
		want          string // empty: not busy
	}{
		{"quiet", &quiet, &quiet, &machine, ""},
		{"nothing known", nil, nil, nil, ""},
		{"one probe", &quiet, nil, &machine, ""},
		{"slow loop before", with(func(p *HostProbe) { p.ALUMs = 9.1 }), &quiet, &machine, "before the trial a fixed loop took 1.30 times"},
		{"slow loop after", &quiet, with(func(p *HostProbe) { p.ALUMs = 9.1 }), &machine, "after the trial a fixed loop took 1.30 times"},
		{"slow loop on both sides", with(func(p *HostProbe) { p.ALUMs = 14 }), with(func(p *HostProbe) { p.ALUMs = 14 }), &machine, "2.00 times as long as when the run began; after"},
		{"an uneven machine is allowed more", with(func(p *HostProbe) { p.ALUMs = 9.1 }), &quiet, &uneven, ""},
		{"but not everything", with(func(p *HostProbe) { p.ALUMs = 14 }), &quiet, &broken, "2.00 times"},
		{"faster than at the start", with(func(p *HostProbe) { p.ALUMs = 4 }), with(func(p *HostProbe) { p.ALUMs = 4 }), &machine, ""},
		{"start unknown, alike", with(func(p *HostProbe) { p.ALUMs = 14 }), with(func(p *HostProbe) { p.ALUMs = 14 }), nil, ""},
		{"start unknown, unlike", with(func(p *HostProbe) { p.ALUMs = 10 }), &quiet, &Machine{}, "10.00 ms before the trial and 7.00 ms after"},
		{"late", &quiet, with(func(p *HostProbe) { p.DelayUs = 25000 }), &machine, "after the trial a sleep ended 25 ms late"},
		{"others", with(func(p *HostProbe) { p.CPUBusyElsewhere = num(1.5) }), &quiet, &machine, "1.5 other tasks wanted the 4 cores"},
		{"others, few", with(func(p *HostProbe) { p.CPUBusyElsewhere = num(0.9) }), &quiet, &machine, ""},
		{"others, machine unknown", with(func(p *HostProbe) { p.CPUBusyElsewhere = num(0.9) }), &quiet, nil, "0.9 other tasks"},
		{"a high load is the trial before", with(func(p *HostProbe) { p.Load = num(40) }), &quiet, &machine, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			busy, why := Busy(c.before, c.after, c.machine)
			if busy != (c.want != "") || !strings.Contains(why, c.want) || !busy && why != "" {
				t.Errorf("%v %q, want %q", busy, why, c.want)
			}
		})
	}
}
