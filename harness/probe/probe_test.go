package probe

import (
	"context"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
)

func TestNoise(t *testing.T) {
	n := Noise(t.TempDir())
	for _, name := range []string{ProbeALU, ProbeALUSpread, ProbeCopy, ProbeSync, ProbeSyncWorst, ProbeLoop, ProbeLoopWorst} {
		if v, ok := n[name]; !ok || !(v > 0) {
			t.Errorf("%s = %v", name, v)
		}
	}
	if n[ProbeALUSpread] < 1 || n[ProbeSyncWorst] < n[ProbeSync] || n[ProbeLoopWorst] < n[ProbeLoop] {
		t.Errorf("%v", n)
	}
}

func TestNoiseWithoutDisk(t *testing.T) {
	n := Noise("/nowhere/at/all")
	if _, ok := n[ProbeSync]; ok {
		t.Error("a disk that is not there has a speed")
	}
	if _, ok := n[ProbeALU]; !ok {
		t.Error("the other probes are gone, too")
	}
}

func TestBetween(t *testing.T) {
	start := time.Now()
	reading := func(after time.Duration, host, own cpu.TimesStat) counters {
		return counters{at: start.Add(after), wall: start.Add(after).Round(0), host: host, own: own, hosts: true, owns: true}
	}
	a := reading(0, cpu.TimesStat{User: 100, Idle: 100}, cpu.TimesStat{User: 10})
	// Two cores, one second: 1.5 busy, of which 0.9 are ours; 0.1 stolen.
	b := reading(time.Second, cpu.TimesStat{User: 101, System: 0.5, Idle: 100.4, Steal: 0.1}, cpu.TimesStat{User: 10.6, System: 0.3})
	s := between(a, b, 2)
	if got := s.String(); got != "busy=1.50 own=0.90 others=0.60 steal=0.10" {
		t.Error(got)
	}
	// The kernel books in ticks: more own time than there was.
	b.own.User = 14
	if s := between(a, b, 2); *s.Own != 2 || *s.Others != 0 {
		t.Errorf("own %v, others %v", *s.Own, *s.Others)
	}
	b.owns = false
	if s := between(a, b, 2); s.Own != nil || s.Others != nil || s.Busy == nil {
		t.Errorf("%v", s)
	}
	if s := between(a, a, 2); s.Busy != nil || s.Own != nil {
		t.Errorf("a moment has rates: %v", s)
	}
}

func TestClockStep(t *testing.T) {
	now := time.Now()
	for step, want := range map[time.Duration]string{
		0: "", 5 * time.Millisecond: "", // drift and rounding
		-2 * time.Second: "clock_step_ms=-2000", time.Hour: "clock_step_ms=3600000",
	} {
		a := counters{at: now, wall: now.Round(0)}
		b := counters{at: now.Add(time.Second), wall: now.Round(0).Add(time.Second + step)}
		if got := between(a, b, 1).String(); got != want {
			t.Errorf("a step of %v: %q", step, got)
		}
	}
}

func TestSampler(t *testing.T) {
	s := NewSampler()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		runtime.KeepAlive(multiply(1 << 16))
	}
	got := s.Sample().String()
	if !regexp.MustCompile(`^busy=\d\S* own=\d\S* others=\d\S* steal=\d\S* load1=\d\S* available=\d+`).MatchString(got) {
		t.Error(got)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 2200*time.Millisecond)
		defer cancel()
		n := 0
		Watch(ctx, SampleEvery, func(Sample) { n++ })
		if n != 4 {
			t.Errorf("%d samples in 2.2 s", n)
		}
	})
}
