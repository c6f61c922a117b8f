package verdict

import (
	"maps"
	"math"
	"slices"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

// recoveryFlag is the name in flags of the option that keeps a batch job's
// progress when its master is lost.
const recoveryFlag = "J"

// Derivation is a metric of one column that takes trials of several, a value a
// block.
type Derivation struct {
	Metric string
	Values []float64
	Base   string // name of the column that the others of its blocks are of
}

// Derive computes what the blocks of a batch workload say together: what job
// recovery costs where nothing happens, and what it saves where the master dies.
// It is by column, in the order of columns; what cannot be known is left out.
func Derive(w *result.Workload, columns []Column) map[string][]Derivation {
	out := map[string][]Derivation{}
	for i := range columns {
		c := &columns[i]
		if c.Flags[recoveryFlag] != true {
			continue
		}
		off := partner(columns, c, func(name string) bool { return name == recoveryFlag })
		if off == nil {
			continue
		}
		if faultless(c) && faultless(off) {
			add(out, c, off, "steady_overhead_ratio", overhead(c, off))
			continue
		}
		ideal := partner(columns, c, func(name string) bool { return name == recoveryFlag || slices.Contains(w.ScenarioAxes, name) })
		if ideal != nil && faultless(ideal) && faulty(c) && faulty(off) {
			add(out, c, ideal, "recovery_efficiency", efficiency(c, off, ideal))
		}
	}
	return out
}

func add(to map[string][]Derivation, c, base *Column, metric string, values []float64) {
	if len(values) > 0 {
		to[c.Name] = append(to[c.Name], Derivation{metric, values, base.Name})
	}
}

// partner finds the column that a column's blocks are held against: without job
// recovery, and else with the same flags but those that may differ. Where the
// scenario may differ it is one without a fault.
func partner(columns []Column, c *Column, differ func(flag string) bool) *Column {
	scenario := false
	for name := range c.Flags {
		scenario = scenario || name != recoveryFlag && differ(name)
	}
	for i := range columns {
		x := &columns[i]
		same := x.Build == c.Build && x.Flags[recoveryFlag] == false && len(x.Flags) == len(c.Flags)
		for name, v := range c.Flags {
			same = same && (differ(name) || x.Flags[name] == v)
		}
		if same && (!scenario || faultless(x)) {
			return x
		}
	}
	return nil
}

// faultless and faulty tell whether all good trials of a column went without a
// fault, or with one. A column without a good trial is neither.
func faultless(c *Column) bool {
	return each(c, func(t *result.Trial) bool { return len(t.Faults) == 0 })
}
func faulty(c *Column) bool { return each(c, func(t *result.Trial) bool { return len(t.Faults) > 0 }) }

func each(c *Column, is func(*result.Trial) bool) bool {
	some := false
	for i := range c.Trials {
		if t := &c.Trials[i]; t.Outcome == result.OK {
			if !is(t) {
				return false
			}
			some = true
		}
	}
	return some
}

// makespans are those of a column's good trials, by block.
func makespans(c *Column) map[int]float64 {
	out := map[int]float64{}
	for i := range c.Trials {
		if v, ok := sample(&c.Trials[i], "makespan_s"); ok && v > 0 {
			out[c.Trials[i].Block] = v
		}
	}
	return out
}

func overhead(on, off *Column) (ratios []float64) {
	base := makespans(off)
	mine := makespans(on)
	for _, block := range slices.Sorted(maps.Keys(mine)) {
		if b, ok := base[block]; ok {
			ratios = append(ratios, mine[block]/b)
		}
	}
	return ratios
}

// littleToSave is the part of the undisturbed makespan below which what a restart
// costs beyond the outage is noise, and a share of it says nothing.
const littleToSave = 0.05

// efficiency is (T_restart - T_fail) / (T_restart - T_ideal) of each block that
// has the three; T_ideal is the time without fault and the outage. A restart that
// took hardly longer than the ideal says nothing.
func efficiency(on, off, ideal *Column) (values []float64) {
	restart, free := makespans(off), makespans(ideal)
	for i := range on.Trials {
		t := &on.Trials[i]
		fail, ok := sample(t, "makespan_s")
		r, okRestart := restart[t.Block]
		f, okFree := free[t.Block]
		if !ok || !okRestart || !okFree {
			continue
		}
		down, known := outage(t)
		if room := r - f - down; known && room > littleToSave*f {
			values = append(values, (r-fail)/room)
		}
	}
	return values
}

// outage is how long no master led in a trial: from each death of one until the next
// led, or died before it did. Not known: another fault came between.
func outage(t *result.Trial) (sum float64, known bool) {
	for i, f := range t.Faults {
		if f.Kind != result.KillMaster {
			continue
		}
		elect, led := f.Metrics["recovery_elect_s"]
		control, ran := f.Metrics["control_recovery_s"]
		switch {
		case led:
			sum += f.Metrics["detect_s"] + elect
		case ran: // nobody noticed the loss before the next one led
			sum += control - f.Metrics["recovery_replay_s"] - f.Metrics["recovery_wait_s"] - f.Metrics["recovery_schedule_s"]
		case i+1 < len(t.Faults) && t.Faults[i+1].Kind == result.KillMaster:
			sum += float64(t.Faults[i+1].T0Us-f.T0Us) / 1e6
		default:
			return 0, false
		}
	}
	return sum, true
}

// derived are the medians of what Derive finds, as summary.json has them.
func derived(w *result.Workload, columns []Column) map[string]map[string]float64 {
	var out map[string]map[string]float64
	for column, list := range Derive(w, columns) {
		for _, d := range list {
			m, ok := stats.Median(d.Values)
			if !ok {
				continue
			}
			if out == nil {
				out = map[string]map[string]float64{}
			}
			if out[column] == nil {
				out[column] = map[string]float64{}
			}
			out[column][d.Metric] = m
		}
	}
	return out
}

// NoiseFloor is how far the median of so many ratios of makespans is from 1 by
// chance, at the level of intervals: as the ratios of each two neighbouring
// blocks of one column say, between which nothing changed. Below it no overhead
// can be seen.
func NoiseFloor(c *Column, pairs int) (ratio float64, ok bool) {
	spans := makespans(c)
	blocks := slices.Sorted(maps.Keys(spans))
	var logs []float64
	for i := range blocks[min(1, len(blocks)):] {
		logs = append(logs, math.Log(spans[blocks[i+1]]/spans[blocks[i]]))
	}
	if len(logs) < 3 || pairs < 1 {
		return 0, false
	}
	e, ok := stats.MedianError(logs)
	if !ok {
		return 0, false
	}
	// The error is that of a median of len(logs) ratios.
	return math.Exp(stats.NormalQuantile((1-stats.Confidence)/2) * e * math.Sqrt(float64(len(logs))/float64(pairs))), true
}
