package probe

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"benchrun/harness/result"
)

// Status is how a finding bears on measuring.
type Status string

// Statuses, from good to bad. Impossible means that no trial could run.
const (
	StatusOK         Status = "ok"
	StatusNotice     Status = "notice"
	StatusBad        Status = "bad"
	StatusImpossible Status = "impossible"
)

// Finding is one line of a diagnosis.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Value  string `json:"value"`            // with its unit
	Limit  string `json:"limit,omitempty"`  // what would be good
	Advice string `json:"advice,omitempty"` // what to do, if it is not
}

// Diagnosis says whether a host is fit to measure on.
type Diagnosis struct {
	Schema     int                `json:"schema"`
	Fit        bool               `json:"fit"`      // nothing is bad
	Possible   bool               `json:"possible"` // trials can run
	Findings   []Finding          `json:"findings"`
	Machine    result.Machine     `json:"machine"`
	Probes     map[string]float64 `json:"probes"`
	NoiseFloor *NoiseFloor        `json:"noise_floor,omitempty"`
}

// NoiseFloor is what the mini run of equal work says about comparisons. Trials
// are noisier than this.
type NoiseFloor struct {
	Floor
	ChangeWith8  float64 `json:"change_with_8_pairs"`  // smallest relative change that shows
	ChangeWith15 float64 `json:"change_with_15_pairs"` // the same
}

const (
	gib = 1 << 30
	mib = 1 << 20
)

// Diagnose judges facts. It is pure: the same facts give the same findings.
func Diagnose(f *Facts) *Diagnosis {
	d := &Diagnosis{Schema: 1, Machine: f.Machine, Probes: f.Noise}
	d.cpu(f)
	d.memory(f)
	d.disk(f)
	d.network(f)
	d.clock(f)
	d.limits(f)
	d.noise(f)
	for _, t := range tools {
		path := f.Tools[t.name]
		if path == "" {
			path = "not found; needed for " + t.need
		}
		d.add(t.name, StatusOK, path, "", "")
	}
	d.Fit = !slices.ContainsFunc(d.Findings, func(x Finding) bool { return x.Status == StatusBad || x.Status == StatusImpossible })
	d.Possible = !slices.ContainsFunc(d.Findings, func(x Finding) bool { return x.Status == StatusImpossible })
	return d
}

func (d *Diagnosis) add(check string, s Status, value, limit, advice string) {
	if s == StatusOK {
		advice = ""
	}
	d.Findings = append(d.Findings, Finding{check, s, value, limit, advice})
}

// above is the status of a figure of which less is better.
func above[T int | uint64 | float64](v, notice, bad T) Status {
	switch {
	case v > bad:
		return StatusBad
	case v > notice:
		return StatusNotice
	}
	return StatusOK
}

// below is the status of a figure of which more is better.
func below[T int | uint64 | float64](v, notice, bad T) Status {
	switch {
	case v < bad:
		return StatusBad
	case v < notice:
		return StatusNotice
	}
	return StatusOK
}

func (d *Diagnosis) cpu(f *Facts) {
	m := &f.Machine
	cores := float64(max(m.Cores, 1))
	model := m.CPUModel
	if model == "" {
		model = "model unknown"
	}
	d.add("cores", below(m.Cores, 2, 1), fmt.Sprintf("%d (%s)", m.Cores, model), "at least 2", "workers, sources and the lab share one core: use a machine with more")
	if v, ok := f.Noise[ProbeALU]; ok {
		d.add("CPU speed", StatusOK, fmt.Sprintf("a fixed loop takes %.2f ms", v), "", "")
	}
	if v, ok := f.Noise[ProbeALUSpread]; ok {
		d.add("CPU evenness", above(v, 1.15, 2), fmt.Sprintf("slowest round %.2f times the fastest", v), "at most 1.15", "stop other work, switch turbo off, or pin the machine's clock")
	}
	if s := f.Host.Steal; s != nil {
		d.add("CPU stolen", above(*s/cores, 0.02, 0.1), fmt.Sprintf("%.1f %% of the cores", *s/cores*100), "at most 2 %", "the hypervisor gives the cores to others: use a dedicated machine")
	}
	if o := f.Host.Others; o != nil {
		d.add("CPU of others", above(*o/cores, 0.1, 0.4), fmt.Sprintf("%.2f of %d cores", *o, m.Cores), "at most 10 %", "stop what else runs here")
	}
	if l := m.Load1; l != nil {
		d.add("load", above(*l/cores, 0.5, 1.5), fmt.Sprintf("%.2f", *l), fmt.Sprintf("at most %.1f", cores/2), "wait until the machine is idle")
	}
	switch m.Governor {
	case "":
		d.add("CPU governor", StatusOK, "not to be seen here", "", "")
	case "performance":
		d.add("CPU governor", StatusOK, m.Governor, "performance", "")
	default:
		d.add("CPU governor", StatusNotice, m.Governor, "performance", "cpupower frequency-set -g performance")
	}
	if m.CgroupCPUs > 0 {
		d.add("CPU limit", below(m.CgroupCPUs, cores, 1), fmt.Sprintf("%.2f of %d cores", m.CgroupCPUs, m.Cores), "none", "trials are throttled when they reach the control group's limit: raise it")
	} else {
		d.add("CPU limit", StatusOK, "none", "", "")
	}
	if f.Isolation != "" {
		d.add("isolation", StatusOK, f.Isolation, "", "")
	}
}

func (d *Diagnosis) memory(f *Facts) {
	if v, ok := f.Noise[ProbeCopy]; ok {
		d.add("memory copy", below(v, 1, 0.2), fmt.Sprintf("%.1f GiB/s", v), "at least 1 GiB/s", "the memory is busy or emulated")
	}
	if a := f.MemoryAvailable; a != nil {
		s := below(*a, 1*gib, 256*mib)
		if *a < 64*mib {
			s = StatusImpossible
		}
		d.add("free memory", s, bytesText(*a), "at least 1 GiB", "free memory, or lower cluster.network-memory")
	}
	if m := f.Machine.CgroupMemoryBytes; m > 0 {
		d.add("memory limit", below(uint64(m), 1*gib, 256*mib), bytesText(uint64(m)), "none, or at least 1 GiB", "raise the control group's limit: a trial above it is killed")
	}
	if s := f.SwapUsed; s != nil {
		d.add("swap", above(*s, 64*mib, 4*gib), bytesText(*s)+" in use", "none", "pages that come back from disk look like slow recovery: swapoff -a")
	}
}

func (d *Diagnosis) disk(f *Facts) {
	if f.WriteError != nil {
		d.add("results", StatusImpossible, f.WriteError.Error(), "writable", "name a folder with --out that can be written to")
		return
	}
	if v := f.DiskFree; v != nil {
		s := below(*v, 5*gib, 512*mib)
		if *v < 16*mib {
			s = StatusImpossible
		}
		d.add("free disk", s, bytesText(*v), "at least 5 GiB", "free space where results go, or name another folder with --out")
	}
	if v, ok := f.Noise[ProbeSync]; ok {
		d.add("fsync", above(v, 20, 100), fmt.Sprintf("median %.2f ms", v), "at most 20 ms", "checkpoints wait for the disk: put results on a faster one")
		if worst, ok := f.Noise[ProbeSyncWorst]; ok {
			d.add("fsync, worst", above(worst, max(10*v, 20), 500), fmt.Sprintf("%.2f ms", worst), "at most 10 times the median", "something else writes to this disk")
		}
	}
}

func (d *Diagnosis) network(f *Facts) {
	if f.LoopbackError {
		d.add("loopback", StatusImpossible, "no connection to 127.0.0.1", "", "workers of a job talk over it: bring the interface up")
		return
	}
	if v, ok := f.Noise[ProbeLoop]; ok {
		d.add("loopback", above(v, 200, 2000), fmt.Sprintf("median %.0f us there and back", v), "at most 200 us", "the machine is busy, or the network is emulated")
	}
	if p := f.Ports; p != nil {
		d.add("ephemeral ports", below(*p, 10000, 1000), fmt.Sprint(*p), "at least 10000", "sysctl net.ipv4.ip_local_port_range=\"32768 60999\"")
	}
}

func (d *Diagnosis) clock(f *Facts) {
	if f.ClockResolution > 0 {
		us := float64(f.ClockResolution.Nanoseconds()) / 1e3
		d.add("clock resolution", above(us, 1, 1000), f.ClockResolution.String(), "at most 1us", "times are in microseconds: choose a finer clock source")
	}
	if step := f.Host.ClockStep.Abs(); step > 0 {
		d.add("clock steps", StatusNotice, fmt.Sprintf("the wall clock moved by %s in these seconds", step.Round(time.Millisecond)), "none", "times do not suffer, dates do: let the clock be corrected gently")
	} else {
		d.add("clock steps", StatusOK, "none", "", "")
	}
	slow := []string{"acpi_pm", "hpet", "jiffies", "refined-jiffies", "pit"}
	if f.ClockSource != "" {
		s := StatusOK
		if slices.Contains(slow, f.ClockSource) {
			s = StatusNotice
		}
		d.add("clock source", s, f.ClockSource, "", "reading this clock is slow: boot with tsc if the machine has a stable one")
	}
}

func (d *Diagnosis) limits(f *Facts) {
	if n := f.OpenFiles; n != nil {
		value := fmt.Sprint(*n)
		if *n > 1<<40 {
			value = "unlimited"
		}
		d.add("open files", below(*n, 4096, 256), value, "at least 4096", "ulimit -n 65536: every channel between two workers takes part of a socket, every spill file one")
	}
	if runtime.GOOS == "linux" && f.Machine.Kernel != "" {
		d.add("kernel", StatusOK, f.Machine.Kernel, "", "")
	}
}

// noise tells what a comparison can see at best. Above 5 % with 15 pairs the
// default thresholds of ten percent have no room.
func (d *Diagnosis) noise(f *Facts) {
	floor, ok := FloorOf(f.Rounds)
	if !ok {
		d.add("noise floor", StatusBad, fmt.Sprintf("only %d rounds of equal work in %s", len(f.Rounds), roundTime), "at least 10", "the machine is far too slow or busy")
		return
	}
	d.NoiseFloor = &NoiseFloor{floor, floor.Change(8), floor.Change(15)}
	d.add("noise floor", above(d.NoiseFloor.ChangeWith8, 0.05, 0.2), fmt.Sprintf("%.1f %% between equal rounds; 8 pairs show a change of %.1f %%, 15 pairs of %.1f %% at best", floor.Spread*100, d.NoiseFloor.ChangeWith8*100, d.NoiseFloor.ChangeWith15*100),
		"8 pairs show 5 %", "thresholds below these figures give false alarms: raise them, run more blocks, or use a quieter machine")
}

func bytesText(n uint64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%.0f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%d B", n)
}
