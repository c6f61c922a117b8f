package probe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/process"
)

// SampleEvery is how often a trial looks at its host.
const SampleEvery = 500 * time.Millisecond

// Sample is what the host did between two looks. Cores are counted as in
// "1.5 cores were busy". What could not be read is nil.
type Sample struct {
	Busy      *float64 // cores busy, whoever used them
	Own       *float64 // cores that this process used
	Others    *float64 // cores that others used
	Steal     *float64 // cores that the hypervisor kept back
	Load1     *float64
	Available *uint64 // bytes of memory
	// ClockStep is by how much the wall clock went another way than the
	// monotonic one.
	ClockStep time.Duration
}

// String writes a sample as key=value pairs, as it stands in an event.
func (s Sample) String() string {
	var parts []string
	cores := func(name string, v *float64) {
		if v != nil {
			parts = append(parts, fmt.Sprintf("%s=%.2f", name, *v))
		}
	}
	cores("busy", s.Busy)
	cores("own", s.Own)
	cores("others", s.Others)
	cores("steal", s.Steal)
	cores("load1", s.Load1)
	if s.Available != nil {
		parts = append(parts, fmt.Sprintf("available=%d", *s.Available))
	}
	if step := s.ClockStep.Round(time.Millisecond); step != 0 {
		parts = append(parts, fmt.Sprintf("clock_step_ms=%d", step.Milliseconds()))
	}
	return strings.Join(parts, " ")
}

// clockSlack is how far the two clocks may drift apart between two looks, by
// gentle correction and by rounding, without a step being told.
const clockSlack = 20 * time.Millisecond

// counters are the host's running totals at one moment.
type counters struct {
	at    time.Time // monotonic
	wall  time.Time // the wall clock alone
	host  cpu.TimesStat
	own   cpu.TimesStat
	hosts bool // host is known
	owns  bool // own is
}

// Sampler turns running totals into samples. It is for one goroutine.
type Sampler struct {
	self  *process.Process
	cores float64
	last  counters
}

// NewSampler begins to look; the first sample is of the time from here.
func NewSampler() *Sampler {
	s := &Sampler{cores: float64(runtime.NumCPU())}
	if p, err := process.NewProcess(int32(os.Getpid())); err == nil {
		s.self = p
	}
	s.last = s.read()
	return s
}

func (s *Sampler) read() counters {
	now := time.Now()
	c := counters{at: now, wall: now.Round(0)} // Round strips the monotonic reading
	if t, err := cpu.Times(false); err == nil && len(t) > 0 {
		c.host, c.hosts = t[0], true
	}
	if s.self != nil {
		if t, err := s.self.Times(); err == nil {
			c.own, c.owns = *t, true
		}
	}
	return c
}

// Sample tells what happened since the last call.
func (s *Sampler) Sample() Sample {
	now := s.read()
	out := between(s.last, now, s.cores)
	s.last = now
	if l, err := load.Avg(); err == nil {
		out.Load1 = &l.Load1
	}
	if m, err := mem.VirtualMemory(); err == nil {
		out.Available = &m.Available
	}
	return out
}

// between computes the rates of two readings. Counters have the kernel's
// coarse ticks, so shares are kept within what is possible.
func between(a, b counters, cores float64) Sample {
	var out Sample
	elapsed := b.at.Sub(a.at).Seconds()
	if step := b.wall.Sub(a.wall) - b.at.Sub(a.at); step.Abs() > clockSlack {
		out.ClockStep = step
	}
	if elapsed <= 0 {
		return out
	}
	within := func(v float64) *float64 {
		v = min(max(v, 0), cores)
		return &v
	}
	if a.owns && b.owns {
		out.Own = within((b.own.User + b.own.System - a.own.User - a.own.System) / elapsed)
	}
	if a.hosts && b.hosts {
		if total := all(b.host) - all(a.host); total > 0 {
			busy := working(b.host) - working(a.host)
			out.Busy = within(busy / total * cores)
			out.Steal = within((b.host.Steal - a.host.Steal) / total * cores)
		}
	}
	if out.Busy != nil && out.Own != nil {
		out.Others = within(*out.Busy - *out.Own)
	}
	return out
}

// working is the time in which cores did something. Guest time is part of user
// time.
func working(t cpu.TimesStat) float64 {
	return t.User + t.Nice + t.System + t.Irq + t.Softirq
}

func all(t cpu.TimesStat) float64 { return working(t) + t.Idle + t.Iowait + t.Steal }

// Watch samples at a rate until the context ends.
func Watch(ctx context.Context, every time.Duration, emit func(Sample)) {
	s := NewSampler()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			emit(s.Sample())
		}
	}
}
