package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrNoBaseline means that nothing is stored to compare with.
var ErrNoBaseline = errors.New("there is no baseline")

// ErrBaselineRefused means that a run is not fit to be one; the error says why.
var ErrBaselineRefused = errors.New("not fit to be a baseline")

// A baseline is a run folder with one workload and nothing but run.json and
// trials.jsonl, in a folder named after the workload. Its run.json says where it
// comes from: machine, revision, text of the workload, date.

// LoadBaseline reads the baseline of a workload below dir.
func LoadBaseline(dir, workload string) (*Loaded, error) {
	l, err := Load(filepath.Join(dir, workload))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w of %s in %s", ErrNoBaseline, workload, dir)
	}
	return l, err
}

// SaveBaseline stores each workload of a run as the baseline below dir and
// returns their names. Only a complete run of one build in which every trial is
// ok is stored: what failed must not become the measure of things.
func SaveBaseline(dir string, l *Loaded) ([]string, error) {
	if len(l.Run.Builds) > 1 {
		return nil, fmt.Errorf("%w: %s has %d builds; make a run with one", ErrBaselineRefused, l.Run.Run, len(l.Run.Builds))
	}
	if code, reasons := l.Exit(ExitFailed); code != ExitOK {
		return nil, fmt.Errorf("%w: %s: %s", ErrBaselineRefused, l.Run.Run, reasons[0])
	}
	var names []string
	for _, w := range l.Run.Workloads {
		if err := saveBaseline(filepath.Join(dir, w.Name), l, w); err != nil {
			return names, fmt.Errorf("baseline of %s: %w", w.Name, err)
		}
		names = append(names, w.Name)
	}
	return names, nil
}

func saveBaseline(dir string, l *Loaded, w Workload) error {
	run := l.Run
	run.Workloads = []Workload{w}
	run.Plan.Cells = slices.DeleteFunc(slices.Clone(run.Plan.Cells), func(c Cell) bool { return c.Workload != w.Name })
	run.Plan.Order = slices.DeleteFunc(slices.Clone(run.Plan.Order), func(s Slot) bool { return s.Workload != w.Name })
	run.Plan.LeftOut = slices.DeleteFunc(slices.Clone(run.Plan.LeftOut), func(c LeftOut) bool { return c.Workload != w.Name })
	run.Plan.Trials, run.Plan.SecondLook = len(run.Plan.Order), nil
	var lines bytes.Buffer
	for _, t := range l.Trials {
		if t.Workload != w.Name {
			continue
		}
		b, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("trial %s: %w", t.Trial, err)
		}
		lines.Write(append(b, '\n'))
	}
	// The new one comes into being beside the old one: a crash leaves either.
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	next := dir + ".new"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Mkdir(next, 0o777); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(next, "trials.jsonl"), lines.Bytes()); err != nil {
		return err
	}
	if err := WriteJSON(filepath.Join(next, "run.json"), &run); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(next, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
