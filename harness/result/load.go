package result

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of reading a run folder, beside those of the file system.
var (
	ErrSchema  = errors.New("the schema is not one that this version reads")
	ErrNoRun   = errors.New("this is not the run.json of a run")
	ErrEdited  = errors.New("the text of a workload is not what the run recorded")
	ErrSameRun = errors.New("two folders hold the same run")
)

// Loaded is a run as it lies on disk.
type Loaded struct {
	Dir      string
	Run      Run
	Trials   []Trial // the line that counts of each planned trial, in file order
	Lines    []Trial // all lines, with those that a later one of the same trial replaced
	Warnings []string
	// Missing lists the planned trials that have no line, in plan order.
	// Interrupted ones count as missing, and those with an unusable line.
	Missing []Slot
	// Unusable lists lines that no writer of runs leaves. They are no samples.
	Unusable []Unusable
	// Edited lists workloads whose text is not the one with the recorded hash.
	Edited []string
}

// Unusable is a line of trials.jsonl that is not used, and why.
type Unusable struct {
	Line   int    `json:"line"`            // from 1
	Trial  string `json:"trial,omitempty"` // as far as it is known
	Metric string `json:"metric,omitempty"`
	Why    string `json:"why"`

	slot *Slot // nil: not known
}

// String is one line for a person.
func (u Unusable) String() string {
	where := fmt.Sprintf("trials.jsonl:%d: ", u.Line)
	if u.Trial != "" {
		where += "trial " + u.Trial + ": "
	}
	if u.Metric != "" {
		where += u.Metric + ": "
	}
	return where + u.Why
}

// vital are the keys without which run.json is none; the others are
// provenance, whose absence is a warning.
var (
	vital      = []string{"schema", "run", "state", "workloads", "plan"}
	provenance = []string{"tool", "builds", "command", "overrides", "seed", "machine", "targets", "started"}
)

// Load reads the run.json and trials.jsonl of a run folder. It refuses what is
// no run and what a newer version wrote (ErrNoRun, ErrSchema); everything else
// that is odd gives a warning, and lines that cannot be true are no samples.
// The folder's name may differ from the run's: folders are copied.
func Load(dir string) (*Loaded, error) {
	run, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	trials, err := os.ReadFile(filepath.Join(dir, "trials.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("trials.jsonl: %w", err)
	}
	return parse(dir, run, trials)
}

// parse reads the texts of both files.
func parse(dir string, run, trials []byte) (*Loaded, error) {
	l := &Loaded{Dir: dir}
	if err := l.readRun(run); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "run.json"), err)
	}
	l.match(l.readTrials(trials))
	return l, nil
}

// LoadAll is Load of several folders. Two that hold the same run are refused
// (ErrSameRun): a sample must not count twice.
func LoadAll(dirs ...string) ([]*Loaded, error) {
	var all []*Loaded
	at := map[string]string{}
	for _, dir := range dirs {
		l, err := Load(dir)
		if err != nil {
			return nil, err
		}
		if first, twice := at[l.Run.Run]; twice && l.Run.Run != "" {
			return nil, fmt.Errorf("%s and %s: %w, %s", first, dir, ErrSameRun, l.Run.Run)
		}
		at[l.Run.Run] = dir
		all = append(all, l)
	}
	return all, nil
}

func (l *Loaded) readRun(b []byte) error {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return fmt.Errorf("%w: it is empty", ErrNoRun)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		if json.Valid(b) {
			return fmt.Errorf("%w: it holds no object", ErrNoRun)
		}
		return fmt.Errorf("%w: %w", ErrNoRun, err)
	}
	// A newer version may have other types, so its number is looked at first.
	var schema int
	if raw, ok := keys["schema"]; ok {
		if err := json.Unmarshal(raw, &schema); err != nil {
			return fmt.Errorf("%w: schema is %s", ErrSchema, raw)
		}
		if schema > Schema || schema < 1 {
			return fmt.Errorf("%w: it has schema %d; this version reads up to %d", ErrSchema, schema, Schema)
		}
	}
	if lack := lacking(keys, vital); len(lack) > 0 {
		return fmt.Errorf("%w: it has no %s", ErrNoRun, strings.Join(lack, ", "))
	}
	var plan map[string]json.RawMessage
	if err := json.Unmarshal(keys["plan"], &plan); err == nil {
		if lack := lacking(plan, []string{"cells", "order"}); len(lack) > 0 {
			return fmt.Errorf("%w: its plan has no %s", ErrNoRun, strings.Join(lack, ", "))
		}
	}
	if err := json.Unmarshal(b, &l.Run); err != nil {
		return fmt.Errorf("%w: %w", ErrNoRun, err)
	}
	if !slices.Contains([]State{Running, Complete, Interrupted}, l.Run.State) {
		return fmt.Errorf("%w: its state is %q, which is none of %s, %s, %s", ErrNoRun, l.Run.State, Running, Complete, Interrupted)
	}
	if lack := lacking(keys, provenance); len(lack) > 0 {
		l.warn("run.json has no %s: where the run comes from is not fully known", strings.Join(lack, ", "))
	}
	l.checkRun()
	return nil
}

func lacking(have map[string]json.RawMessage, want []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(k string) bool { _, ok := have[k]; return ok })
}

// checkRun looks at what run.json says of itself.
func (l *Loaded) checkRun() {
	r := &l.Run
	if r.Plan.Trials != len(r.Plan.Order) {
		l.warn("run.json: plan.trials is %d, but plan.order has %d", r.Plan.Trials, len(r.Plan.Order))
	}
	if s := r.Plan.SecondLook; s != nil && (s.From < 1 || s.From >= len(r.Plan.Order)) {
		l.warn("run.json: the second look begins at trial %d of %d: there is none", s.From, len(r.Plan.Order))
		r.Plan.SecondLook = nil
	}
	cells := map[[2]string]bool{}
	for _, c := range r.Plan.Cells {
		cells[[2]string{c.Workload, c.Cell}] = true
	}
	twice := map[Slot]bool{}
	told := map[[2]string]bool{}
	for _, s := range r.Plan.Order {
		if key := [2]string{s.Workload, s.Cell}; !cells[key] && !told[key] {
			told[key] = true
			l.warn("run.json: plan.order names the cell %s of %s, plan.cells does not", s.Cell, s.Workload)
		}
		if twice[s] {
			l.warn("run.json: plan.order names %s block %d of %s (build %s) twice", s.Cell, s.Block, s.Workload, s.Build)
		}
		twice[s] = true
	}
	for _, text := range l.LeftOutLimits() {
		l.warn("%s", text)
	}
	for _, w := range r.Workloads {
		if (w.Text != "" || w.SHA256 != "") && !w.intact() {
			l.Edited = append(l.Edited, w.Name)
			l.warn("run.json: the text of the workload %s is not the one with the recorded SHA-256: it was changed after the run", w.Name)
		}
	}
}

func (w *Workload) intact() bool {
	sum := sha256.Sum256([]byte(w.Text))
	return w.SHA256 == hex.EncodeToString(sum[:])
}

// Intact returns an error (ErrEdited) if the text of a workload is not the one
// that the run was made with, or not there: then two runs cannot be shown to
// have measured the same thing.
func (l *Loaded) Intact() error {
	for i := range l.Run.Workloads {
		if w := &l.Run.Workloads[i]; !w.intact() {
			return fmt.Errorf("%s: workload %s: %w", l.Dir, w.Name, ErrEdited)
		}
	}
	return nil
}

// match holds the lines against the plan. Unusable ones, by their index, are as
// good as not there.
func (l *Loaded) match(unusable map[int]bool) {
	planned := make(map[Slot]bool, len(l.Run.Plan.Order))
	for _, s := range l.Run.Plan.Order {
		planned[s] = true
	}
	last := map[Slot]int{}
	for i := range l.Lines {
		if !unusable[i] {
			last[l.Lines[i].Key()] = i
		}
	}
	done := map[Slot]bool{}
	for i, t := range l.Lines {
		if unusable[i] {
			continue
		}
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
	if !plainName(trial) {
		return nil, fmt.Errorf("events: trial %q: %w", trial, fs.ErrNotExist)
	}
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
