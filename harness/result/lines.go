package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var outcomes = []Outcome{OK, Timeout, Failed, Incorrect, Misconfigured, Unsupported, TrialInterrupted}

// Outcomes lists how a trial can end.
func Outcomes() []Outcome { return slices.Clone(outcomes) }

// readTrials reads trials.jsonl and returns the indices, in Lines, of lines
// that are no samples.
func (l *Loaded) readTrials(b []byte) map[int]bool {
	unusable := map[int]bool{}
	first := map[string]int{} // trial -> line
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		line = bytes.TrimSpace(line) // also of a carriage return
		if len(line) == 0 {
			continue
		}
		var t Trial
		if err := json.Unmarshal(line, &t); err != nil {
			if !whole {
				l.warn("trials.jsonl:%d: the last line is half-written; it is skipped", n)
				continue
			}
			u := unreadable(line, t, err)
			u.Line = n
			l.skip(u)
			continue
		}
		u := Unusable{Line: n, Trial: t.Trial}
		at, twice := first[t.Trial]
		switch {
		case !plainName(t.Trial):
			u.Why = fmt.Sprintf("the trial id %q is none", t.Trial)
		case twice:
			u.Why = fmt.Sprintf("line %d is of that trial, too", at)
		case !slices.Contains(outcomes, t.Outcome):
			u.Why = fmt.Sprintf("the outcome %q is not known", t.Outcome)
		default:
			first[t.Trial] = n
			l.settle(&t)
			u.Metric, u.Why = t.implausible()
		}
		l.Lines = append(l.Lines, t)
		if u.Why != "" {
			slot := t.Key()
			u.slot = &slot
			unusable[len(l.Lines)-1] = true
			l.skip(u)
		}
	}
	return unusable
}

func (l *Loaded) skip(u Unusable) {
	l.Unusable = append(l.Unusable, u)
	l.warn("%s; the line is skipped", u)
}

var (
	trialKey = regexp.MustCompile(`"trial"\s*:\s*"([^"\\]*)"`)
	noNumber = regexp.MustCompile(`"([^"\\]*)"\s*:\s*([-+]?(?i:nan|infinity|inf))\b`)
	tooLarge = regexp.MustCompile(`number ([-+0-9.eE]+)$`)
)

// unreadable says of a line that is no JSON, or none of a trial, what it is
// and of which trial and metric, as far as that can be seen.
func unreadable(line []byte, t Trial, err error) Unusable {
	u := Unusable{Trial: t.Trial, Why: err.Error()}
	if m := trialKey.FindSubmatch(line); u.Trial == "" && m != nil {
		u.Trial = string(m[1])
	}
	if m := noNumber.FindSubmatch(line); m != nil {
		u.Metric, u.Why = string(m[1]), fmt.Sprintf("%s is no number", m[2])
		return u
	}
	if m := tooLarge.FindStringSubmatch(firstWords(err)); m != nil {
		if at := regexp.MustCompile(`"([^"\\]*)"\s*:\s*` + regexp.QuoteMeta(m[1])).FindSubmatch(line); at != nil {
			u.Metric, u.Why = string(at[1]), m[1]+" is out of range"
		}
	}
	return u
}

// firstWords is the part of a decoder's message that quotes the value: "json:
// cannot unmarshal number 1e999 into Go struct field ...".
func firstWords(err error) string {
	text, _, _ := strings.Cut(err.Error(), " into ")
	return text
}

// settle makes a line say one thing. A trial that is not ok has no metrics,
// and one whose own proof says that the output is wrong is not ok.
func (l *Loaded) settle(t *Trial) {
	if t.Outcome == OK && t.Correctness != nil && !t.Correctness.Right() {
		c := t.Correctness
		l.warn("trial %s: it is marked ok, but its proof says %d lost, %d duplicated, %d of %d received: it counts as incorrect", t.Trial, c.Lost, c.Duplicated, c.Received, c.Expected)
		t.Outcome = Incorrect
		if t.Reason == "" {
			t.Reason = "the proof of the output says that it is wrong"
		}
	}
	if t.Outcome != OK {
		dropped := len(t.Metrics) > 0
		t.Metrics = nil
		for i := range t.Faults {
			dropped = dropped || len(t.Faults[i].Metrics) > 0
			t.Faults[i].Metrics = nil
		}
		if dropped {
			l.warn("trial %s: its outcome is %s, so its metrics do not count", t.Trial, t.Outcome)
		}
		return
	}
	// Nothing moved while it was measured: that is no rate of a job that works.
	if v, ok := t.Metrics[throughputMetric]; ok && v == 0 {
		l.warn("trial %s: %s is 0, which is no measurement; it does not count", t.Trial, throughputMetric)
		delete(t.Metrics, throughputMetric)
	}
}

const throughputMetric = "throughput_records_per_s"

// Bounds of values, by unit. They are far beyond what a machine can do: what
// breaks them was not measured.
var bounds = map[string]float64{
	"s": 30 * 24 * 3600, "B": 1 << 53, "records": 1 << 53, "records/s": 1e12, "ratio": 1e9,
}

// wallSlack is how far a time may be above the trial's whole duration, which
// another clock measured.
const wallSlack = 1.0

// implausible finds a value that cannot be true.
func (t *Trial) implausible() (metric, why string) {
	if t.WallS < 0 {
		return "wall_s", fmt.Sprintf("%v is negative", t.WallS)
	}
	check := func(prefix string, metrics map[string]float64) bool {
		for _, name := range slices.Sorted(maps.Keys(metrics)) {
			if why = t.impossible(name, metrics[name]); why != "" {
				metric = prefix + name
				return true
			}
		}
		return false
	}
	if check("", t.Metrics) {
		return metric, why
	}
	for _, f := range t.Faults {
		if check(f.Name+".", f.Metrics) {
			return metric, why
		}
	}
	return "", ""
}

func (t *Trial) impossible(name string, v float64) string {
	m, known := LookupMetric(name)
	limit, bounded := bounds[m.Unit]
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "is no number"
	case v < 0:
		return fmt.Sprintf("%v is negative", v)
	case known && m.Unit == "s" && t.WallS > 0 && v > t.WallS*1.01+wallSlack:
		return fmt.Sprintf("%v s is longer than the whole trial, which took %v s", v, t.WallS)
	case known && bounded && v > limit:
		return fmt.Sprintf("%v %s cannot be", v, m.Unit)
	}
	return ""
}

// plainName tells whether an id can name a file of the run folder.
func plainName(id string) bool {
	return id != "" && filepath.IsLocal(id) && filepath.Base(id) == id && !strings.ContainsAny(id, `/\`) && id != "."
}

// ClockStep is a moment at which the wall clock went back.
type ClockStep struct {
	Trial string        // that began before the line ahead of it had ended
	By    time.Duration // at least
}

// clockStepSlack is what the dates of two lines may disagree by without a step.
const clockStepSlack = time.Second

// ClockSteps finds where the wall clock went back between two lines of a run.
// The times of trials are of a monotonic clock, so only dates suffer.
func (l *Loaded) ClockSteps() []ClockStep {
	var out []ClockStep
	for i := 1; i < len(l.Lines); i++ {
		before, t := &l.Lines[i-1], &l.Lines[i]
		if before.Started.IsZero() || t.Started.IsZero() {
			continue
		}
		end := before.Started.Add(time.Duration(min(max(before.WallS, 0), bounds["s"]) * float64(time.Second)))
		if by := end.Sub(t.Started); by > clockStepSlack {
			out = append(out, ClockStep{Trial: t.Trial, By: by})
		}
	}
	return out
}
