package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"
)

// hostLoad is what the host did besides a trial, from its host-sample events.
type hostLoad struct {
	samples int
	others  float64 // cores that others used, on average
	steal   float64 // cores that the hypervisor kept back, on average
	step    time.Duration
}

// hostLoads reads the samples of all trials of a run. Trials without are
// absent.
func hostLoads(l *result.Loaded) map[string]hostLoad {
	out := map[string]hostLoad{}
	for _, t := range l.Trials {
		b, err := os.ReadFile(filepath.Join(l.Dir, "events", baseName(t.Trial)+".jsonl"))
		if err != nil {
			continue // timelines says so
		}
		if h := readHost(b); h.samples > 0 {
			out[t.Trial] = h
		}
	}
	return out
}

// readHost picks the host samples out of a timeline without reading all of it.
func readHost(timeline []byte) hostLoad {
	var h hostLoad
	for line := range bytes.Lines(timeline) {
		if !bytes.Contains(line, []byte(`"host-sample"`)) {
			continue
		}
		var e result.Event
		if json.Unmarshal(line, &e) != nil || e.Kind != "host-sample" {
			continue
		}
		h.samples++
		for pair := range strings.FieldsSeq(e.Detail) {
			name, value, _ := strings.Cut(pair, "=")
			v, err := strconv.ParseFloat(value, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			switch name {
			case "others":
				h.others += v
			case "steal":
				h.steal += v
			case "clock_step_ms":
				h.step += time.Duration(v * float64(time.Millisecond))
			}
		}
	}
	if h.samples > 0 {
		h.others /= float64(h.samples)
		h.steal /= float64(h.samples)
	}
	return h
}

// hostWarnings tell of trials that did not have the machine to themselves.
func (w *workloadView) hostWarnings(cores int, say func(string, ...any)) {
	busy := max(0.1*float64(cores), 0.2)
	var crowded, stolen, stepped int
	var worst, worstSteal, all float64
	where := ""
	for _, c := range w.columns {
		for _, t := range c.Trials {
			h, ok := w.hosts[t.Trial]
			if !ok {
				continue
			}
			all++
			if h.others > busy {
				crowded++
				if h.others > worst {
					worst, where = h.others, t.Trial
				}
			}
			if h.steal > busy/2 {
				stolen++
				worstSteal = max(worstSteal, h.steal)
			}
			if h.step != 0 {
				stepped++
			}
		}
	}
	if crowded > 0 {
		say("Other processes used the machine during %d of %.0f trials, up to %.1f of %s on average (trial %s).", crowded, all, worst, count(cores, "core", "cores"), where)
	}
	if stolen > 0 {
		say("The hypervisor kept up to %s cores back during %s.", fmt.Sprintf("%.1f", worstSteal), count(stolen, "trial", "trials"))
	}
	if stepped > 0 {
		say("The wall clock was set during %s. Times are of the monotonic clock and not affected.", count(stepped, "trial", "trials"))
	}
}
