package probe

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"

	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/mem"
)

// Facts are what an examination of the host found out. What could not be read
// is nil, empty or absent.
type Facts struct {
	Machine result.Machine
	Noise   map[string]float64 // of Noise
	Host    Sample             // over the whole examination

	ClockResolution time.Duration // smallest step of the monotonic clock that was seen
	ClockSource     string

	MemoryAvailable *uint64 // bytes
	SwapUsed        *uint64
	DiskFree        *uint64 // where results go
	WriteError      error   // results cannot be written
	LoopbackError   bool    // no connection to this host itself

	OpenFiles *uint64 // limit of this process
	Ports     *int    // ephemeral ports
	Isolation string  // container or virtual machine, as far as it shows

	Tools map[string]string // path of each auxiliary tool; empty: not found
	// Rounds are the times of equal pieces of work, in order: an A/A run.
	Rounds []time.Duration
}

// Sizes of an examination.
const (
	mostRounds = 64
	roundTime  = 6 * time.Second // for all rounds together
	clockReads = 20000
)

// tools are looked for under any of their names.
var tools = []struct {
	name  string
	names []string
	need  string
}{
	{"java", []string{"java"}, "target flink"},
	{"maven", []string{"mvn"}, "building the jobs of target flink"},
	{"flink", []string{"flink"}, "target flink, unless it runs elsewhere"},
	{"chromium", []string{"chromium", "chromium-browser", "google-chrome", "chrome"}, "the browser tests of reports"},
	{"git", []string{"git"}, "nightly comparisons of revisions"},
}

// Examine looks at the host for about seven seconds; dir is where results will
// go.
func Examine(dir string) *Facts {
	sampler := NewSampler()
	f := &Facts{Machine: Machine(), Tools: map[string]string{}}
	at := existing(dir)
	f.WriteError = writable(at)
	f.Noise = Noise(at)
	f.LoopbackError = f.Noise[ProbeLoop] == 0
	f.ClockResolution = resolution()
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	f.ClockSource = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	f.Ports = ports(read("/proc/sys/net/ipv4/ip_local_port_range"))
	if m, err := mem.VirtualMemory(); err == nil {
		f.MemoryAvailable = &m.Available
	}
	if s, err := mem.SwapMemory(); err == nil {
		f.SwapUsed = &s.Used
	}
	if u, err := disk.Usage(at); err == nil {
		f.DiskFree = &u.Free
	}
	f.OpenFiles = openFiles()
	f.Isolation = isolation(read)
	for _, t := range tools {
		f.Tools[t.name] = ""
		for _, name := range t.names {
			if path, err := exec.LookPath(name); err == nil {
				f.Tools[t.name] = path
				break
			}
		}
	}
	if home := os.Getenv("FLINK_HOME"); f.Tools["flink"] == "" && home != "" {
		if _, err := os.Stat(filepath.Join(home, "bin", "flink")); err == nil {
			f.Tools["flink"] = filepath.Join(home, "bin", "flink")
		}
	}
	f.Rounds = rounds(at, mostRounds, roundTime)
	f.Host = sampler.Sample()
	return f
}

// existing is the folder, or the nearest one above it that is there.
func existing(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "."
	}
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// resolution reads the clock until it moves.
func resolution() time.Duration {
	least := time.Duration(math.MaxInt64)
	last := time.Now()
	for range clockReads {
		now := time.Now()
		if d := now.Sub(last); d > 0 {
			least = min(least, d)
		}
		last = now
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

func ports(text string) *int {
	f := strings.Fields(text)
	if len(f) != 2 {
		return nil
	}
	low, err1 := strconv.Atoi(f[0])
	high, err2 := strconv.Atoi(f[1])
	if err1 != nil || err2 != nil || high < low {
		return nil
	}
	n := high - low + 1
	return &n
}

// isolation names the signs of a container or a virtual machine.
func isolation(read func(string) string) string {
	var signs []string
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(name); err == nil {
			signs = append(signs, "container ("+name+")")
		}
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		signs = append(signs, "pod of Kubernetes")
	}
	if slices.Contains(strings.Fields(read("/proc/cpuinfo")), "hypervisor") {
		signs = append(signs, "virtual machine")
	}
	return strings.Join(signs, ", ")
}

// rounds does equal pieces of work of the kinds that trials are made of: CPU,
// memory, loopback, disk.
func rounds(dir string, most int, within time.Duration) []time.Duration {
	var out []time.Duration
	from, to := make([]byte, copyBytes/4), make([]byte, copyBytes/4)
	block := make([]byte, 4096)
	f, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		defer os.Remove(f.Name())
		defer f.Close()
	}
	echo := newEcho()
	if echo != nil {
		defer echo.close()
	}
	product := uint64(0)
	for began := time.Now(); len(out) < most && time.Since(began) < within; {
		start := time.Now()
		product += multiply(2 * aluSteps)
		copy(to, from)
		if echo != nil {
			for range 20 {
				if !echo.turn() {
					break
				}
			}
		}
		if err == nil {
			f.Write(block)
			f.Sync()
		}
		out = append(out, time.Since(start))
	}
	if product == 0 {
		return nil
	}
	return out
}

// Floor is the noise of an A/A run: neighbouring rounds as pairs. Spread is the
// standard deviation of their log ratios, robustly; Change(n) is what a
// comparison of n pairs can see at best.
type Floor struct {
	Pairs  int     `json:"pairs"`
	Spread float64 `json:"spread"`
}

// FloorOf pairs the rounds.
func FloorOf(rounds []time.Duration) (Floor, bool) {
	var logs []float64
	for i := 0; i+1 < len(rounds); i += 2 {
		if rounds[i] > 0 && rounds[i+1] > 0 {
			logs = append(logs, math.Log(float64(rounds[i+1])/float64(rounds[i])))
		}
	}
	if len(logs) < 5 {
		return Floor{}, false
	}
	middle := median(logs)
	for i, x := range logs {
		logs[i] = math.Abs(x - middle)
	}
	// 1.4826 makes the median deviation of normal noise its standard deviation.
	return Floor{Pairs: len(logs), Spread: 1.4826 * median(logs)}, true
}

// Change is the smallest relative change that n pairs show four times out of
// five, by the interval of their median: 2.8 standard errors.
func (f Floor) Change(n int) float64 {
	const power, ofMedian = 2.8, 1.2533
	return math.Expm1(power * ofMedian * f.Spread / math.Sqrt(float64(n)))
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
