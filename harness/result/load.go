package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Loaded is a run as it lies on disk.
type Loaded struct {
	Dir      string
	Run      Run
	Trials   []Trial // the line that counts of each planned trial, in file order
	Lines    []Trial // all lines, with those that a later one of the same trial replaced
	Warnings []string
	// Missing lists the planned trials that have no line, in plan order.
	// Interrupted ones count as missing.
	Missing []Slot
}

// Load reads the run.json and trials.jsonl of a run folder. A half-written
// last line and lines that the plan does not name give warnings.
func Load(dir string) (*Loaded, error) {
	l := &Loaded{Dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	if err := json.Unmarshal(b, &l.Run); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "run.json"), err)
	}
	if l.Run.Schema > Schema {
		return nil, fmt.Errorf("%s has schema %d; this version reads up to %d", filepath.Join(dir, "run.json"), l.Run.Schema, Schema)
	}
	b, err = os.ReadFile(filepath.Join(dir, "trials.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("trials.jsonl: %w", err)
	}
	l.readTrials(b)
	l.match()
	return l, nil
}

func (l *Loaded) readTrials(b []byte) {
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t Trial
		if err := json.Unmarshal(line, &t); err != nil {
			if !whole {
				l.warn("trials.jsonl:%d: the last line is half-written; it is skipped", n)
			} else {
				l.warn("trials.jsonl:%d: %v; the line is skipped", n, err)
			}
			continue
		}
		l.Lines = append(l.Lines, t)
	}
}

func (l *Loaded) match() {
	planned := make(map[Slot]bool, len(l.Run.Plan.Order))
	for _, s := range l.Run.Plan.Order {
		planned[s] = true
	}
	last := map[Slot]int{}
	for i, t := range l.Lines {
		last[t.Key()] = i
	}
	done := map[Slot]bool{}
	for i, t := range l.Lines {
		if !planned[t.Key()] {
			l.warn("trial %s: the plan does not name %s block %d of %s (build %s)", t.Trial, t.Cell, t.Block, t.Workload, t.Build)
			continue
		}
		if last[t.Key()] != i {
			if t.Outcome == OK {
				l.warn("trial %s: %s block %d of %s was measured again; the later line counts", t.Trial, t.Cell, t.Block, t.Workload)
			}
			continue
		}
		l.Trials = append(l.Trials, t)
		if t.Outcome != TrialInterrupted {
			done[t.Key()] = true
		}
	}
	for _, s := range l.Run.Plan.Order {
		if !done[s] {
			l.Missing = append(l.Missing, s)
		}
	}
}

func (l *Loaded) warn(format string, args ...any) {
	l.Warnings = append(l.Warnings, fmt.Sprintf(format, args...))
}

// LoadEvents reads the timeline of a trial. The error wraps fs.ErrNotExist if
// the trial has none.
func LoadEvents(dir, trial string) ([]Event, error) {
	path := filepath.Join(dir, "events", trial+".jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	var events []Event
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			if !whole {
				break // the trial was cut off while it wrote
			}
			return events, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		events = append(events, e)
	}
	return events, nil
}
