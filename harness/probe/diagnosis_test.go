package probe

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

// quiet are the facts of a good machine.
func quiet() *Facts {
	num := func(v float64) *float64 { return &v }
	big := func(v uint64) *uint64 { return &v }
	ports := 28232
	f := &Facts{
		Machine: result.Machine{Cores: 8, CPUModel: "Fast CPU", Governor: "performance", Load1: num(0.1), Kernel: "6.1"},
		Noise:   map[string]float64{ProbeALU: 7, ProbeALUSpread: 1.01, ProbeCopy: 10, ProbeSync: 0.5, ProbeSyncWorst: 1, ProbeLoop: 20, ProbeLoopWorst: 50},
		Host:    Sample{Steal: num(0), Others: num(0.05)}, ClockResolution: 30 * time.Nanosecond, ClockSource: "tsc",
		MemoryAvailable: big(8 * gib), SwapUsed: big(0), DiskFree: big(100 * gib), OpenFiles: big(65536), Ports: &ports, Tools: map[string]string{"git": "/usr/bin/git"},
	}
	for i := range 40 {
		f.Rounds = append(f.Rounds, 20*time.Millisecond+time.Duration(i%3)*100*time.Microsecond)
	}
	return f
}

// TestDiagnose changes one fact of a good machine at a time.
//
// Fails if a limit is turned round, or Fit does not look at what is impossible.
func TestDiagnose(t *testing.T) {
	num := func(v float64) *float64 { return &v }
	big := func(v uint64) *uint64 { return &v }
	for _, c := range []struct {
		name   string
		change func(*Facts)
		check  string
		status Status
		value  string
	}{
		{"quiet", func(*Facts) {}, "load", StatusOK, "0.10"},
		{"one core", func(f *Facts) { f.Machine.Cores = 1 }, "cores", StatusNotice, "1 (Fast CPU)"},
		{"uneven", func(f *Facts) { f.Noise[ProbeALUSpread] = 1.3 }, "CPU evenness", StatusNotice, "1.30 times"},
		{"very uneven", func(f *Facts) { f.Noise[ProbeALUSpread] = 3 }, "CPU evenness", StatusBad, "3.00 times"},
		{"stolen", func(f *Facts) { f.Host.Steal = num(1) }, "CPU stolen", StatusBad, "12.5 %"},
		{"others", func(f *Facts) { f.Host.Others = num(2) }, "CPU of others", StatusNotice, "2.00 of 8"},
		{"load", func(f *Facts) { f.Machine.Load1 = num(20) }, "load", StatusBad, "20.00"},
		{"governor", func(f *Facts) { f.Machine.Governor = "powersave" }, "CPU governor", StatusNotice, "powersave"},
		{"throttled", func(f *Facts) { f.Machine.CgroupCPUs = 1.5 }, "CPU limit", StatusNotice, "1.50 of 8"},
		{"little memory", func(f *Facts) { f.MemoryAvailable = big(200 * mib) }, "free memory", StatusBad, "200 MiB"},
		{"no memory", func(f *Facts) { f.MemoryAvailable = big(8 * mib) }, "free memory", StatusImpossible, "8 MiB"},
		{"memory limit", func(f *Facts) { f.Machine.CgroupMemoryBytes = 512 * mib }, "memory limit", StatusNotice, "512 MiB"},
		{"swap", func(f *Facts) { f.SwapUsed = big(gib) }, "swap", StatusNotice, "1.0 GiB in use"},
		{"disk", func(f *Facts) { f.DiskFree = big(gib) }, "free disk", StatusNotice, "1.0 GiB"},
		{"read-only", func(f *Facts) { f.WriteError = errors.New("read-only file system") }, "results", StatusImpossible, "read-only"},
		{"slow disk", func(f *Facts) { f.Noise[ProbeSync] = 50 }, "fsync", StatusNotice, "50.00 ms"},
		{"disk in use", func(f *Facts) { f.Noise[ProbeSyncWorst] = 90 }, "fsync, worst", StatusNotice, "90.00 ms"},
		{"no loopback", func(f *Facts) { f.LoopbackError = true }, "loopback", StatusImpossible, "no connection"},
		{"slow loopback", func(f *Facts) { f.Noise[ProbeLoop] = 500 }, "loopback", StatusNotice, "500 us"},
		{"few ports", func(f *Facts) { n := 500; f.Ports = &n }, "ephemeral ports", StatusBad, "500"},
		{"coarse clock", func(f *Facts) { f.ClockResolution = 15 * time.Millisecond }, "clock resolution", StatusBad, "15ms"},
		{"clock step", func(f *Facts) { f.Host.ClockStep = -time.Second }, "clock steps", StatusNotice, "1s"},
		{"slow clock", func(f *Facts) { f.ClockSource = "hpet" }, "clock source", StatusNotice, "hpet"},
		{"few files", func(f *Facts) { f.OpenFiles = big(1024) }, "open files", StatusNotice, "1024"},
		{"too few files", func(f *Facts) { f.OpenFiles = big(64) }, "open files", StatusBad, "64"},
		{"too few rounds", func(f *Facts) { f.Rounds = f.Rounds[:4] }, "noise floor", StatusBad, "only 4 rounds"},
		{"noisy rounds", func(f *Facts) {
			for i := range f.Rounds {
				f.Rounds[i] += time.Duration(i*i%7) * 4 * time.Millisecond
			}
		}, "noise floor", StatusBad, "at best"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := quiet()
			c.change(f)
			d := Diagnose(f)
			i := slices.IndexFunc(d.Findings, func(x Finding) bool { return x.Check == c.check })
			if i < 0 {
				t.Fatalf("no %q in %+v", c.check, d.Findings)
			}
			x := d.Findings[i]
			if x.Status != c.status || !strings.Contains(x.Value, c.value) || (x.Status == StatusOK) != (x.Advice == "") {
				t.Errorf("%+v", x)
			}
			for _, other := range d.Findings {
				if other.Check != c.check && other.Status != StatusOK {
					t.Errorf("also %+v", other)
				}
			}
			if fit := c.status == StatusOK || c.status == StatusNotice; d.Fit != fit || d.Possible == (c.status == StatusImpossible) {
				t.Errorf("fit %v, possible %v", d.Fit, d.Possible)
			}
		})
	}
}

// TestNothingKnown: what cannot be read is left out and no reason to complain.
func TestNothingKnown(t *testing.T) {
	f := &Facts{Machine: result.Machine{Cores: 4}, Rounds: quiet().Rounds}
	d := Diagnose(f)
	for _, x := range d.Findings {
		if x.Status != StatusOK {
			t.Errorf("%+v", x)
		}
	}
	if !d.Fit || !d.Possible {
		t.Errorf("%+v", d)
	}
}

// TestB45ToolsAreNamed: an auxiliary tool that is not there is told beforehand,
// with what needs it.
//
// Fails if Diagnose leaves out tools that were not found.
func TestB45ToolsAreNamed(t *testing.T) {
	d := Diagnose(quiet())
	for _, tool := range tools {
		i := slices.IndexFunc(d.Findings, func(x Finding) bool { return x.Check == tool.name })
		if i < 0 || tool.name != "git" && !strings.Contains(d.Findings[i].Value, "not found; needed for "+tool.need) || tool.name == "git" && d.Findings[i].Value != "/usr/bin/git" {
			t.Errorf("%s: %+v", tool.name, d.Findings)
		}
	}
}

// TestFloor: the floor of log-normal noise is its standard deviation between
// pairs, an outlier does not move it, and more pairs see less.
func TestFloor(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var rounds []time.Duration
	for range 2000 {
		rounds = append(rounds, time.Duration(1e9*math.Exp(0.03*r.NormFloat64())))
	}
	rounds[10] *= 50
	f, ok := FloorOf(rounds)
	if want := 0.03 * math.Sqrt2; !ok || f.Pairs != 1000 || math.Abs(f.Spread/want-1) > 0.1 {
		t.Errorf("%+v, want about %.4f", f, want)
	}
	if f.Change(15) >= f.Change(8) || f.Change(8) < f.Spread {
		t.Errorf("%v with 8, %v with 15", f.Change(8), f.Change(15))
	}
	if _, ok := FloorOf(make([]time.Duration, 30)); ok {
		t.Error("rounds without a duration have a floor")
	}
}

func TestExistingFolder(t *testing.T) {
	dir := t.TempDir()
	if got := existing(filepath.Join(dir, "a", "b")); got != dir {
		t.Error(got)
	}
	if err := writable(dir); err != nil {
		t.Error(err)
	}
	if err := writable(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there is writable")
	}
}

func TestPorts(t *testing.T) {
	if n := ports("32768\t60999"); n == nil || *n != 28232 {
		t.Error(n)
	}
	for _, bad := range []string{"", "1", "9 1", "a b"} {
		if ports(bad) != nil {
			t.Errorf("%q has ports", bad)
		}
	}
}
