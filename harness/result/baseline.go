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
// comes from: machine, revision, text of the workload, date. Nothing else lies
// beside baselines.
//
// The new one is made under a hidden name; the old one then steps aside, and is
// removed once the new one stands. A crash in between leaves the old one aside,
// where LoadBaseline finds it. The folder of all baselines is locked meanwhile:
// of several at once the last wins.

func asidePath(dir, workload string) string { return filepath.Join(dir, "."+workload+".old") }

// LoadBaseline reads the baseline of a workload below dir.
func LoadBaseline(dir, workload string) (*Loaded, error) {
	if !plainName(workload) {
		return nil, fmt.Errorf("%w of %q in %s", ErrNoBaseline, workload, dir)
	}
	all, err := lockBaselines(dir, false)
	if err == nil {
		defer all.Close()
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w of %s in %s", ErrNoBaseline, workload, dir)
	} // where nothing can be locked, nobody writes
	l, err := Load(filepath.Join(dir, workload))
	if errors.Is(err, fs.ErrNotExist) {
		l, err = Load(asidePath(dir, workload))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w of %s in %s", ErrNoBaseline, workload, dir)
	}
	return l, err
}

// lockBaselines waits for the lock of a folder of baselines. It ends with the
// file's closing.
func lockBaselines(dir string, exclusive bool) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := lockWait(f, exclusive); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock of %s: %w", dir, err)
	}
	return f, nil
}

// SaveBaseline stores each workload of a run as the baseline below dir and
// returns their names. Only a complete run of one build in which every trial is
// ok, and whose workloads are those that it recorded, is stored: what failed or
// was edited must not become the measure of things.
func SaveBaseline(dir string, l *Loaded) ([]string, error) {
	if len(l.Run.Builds) > 1 {
		return nil, fmt.Errorf("%w: %s has %d builds; make a run with one", ErrBaselineRefused, l.Run.Run, len(l.Run.Builds))
	}
	if code, reasons := l.Exit(ExitFailed); code != ExitOK {
		return nil, fmt.Errorf("%w: %s: %s", ErrBaselineRefused, l.Run.Run, reasons[0])
	}
	if err := l.Intact(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBaselineRefused, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	all, err := lockBaselines(dir, true)
	if err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	defer all.Close()
	var names []string
	for _, w := range l.Run.Workloads {
		if err := saveBaseline(dir, l, w); err != nil {
			return names, fmt.Errorf("baseline of %s: %w", w.Name, err)
		}
		names = append(names, w.Name)
	}
	return names, nil
}

func saveBaseline(dir string, l *Loaded, w Workload) error {
	place := filepath.Join(dir, w.Name)
	if err := replaceable(place, w.Name); err != nil {
		return err
	}
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
	left, err := filepath.Glob(filepath.Join(dir, "."+w.Name+".new-*")) // of a crash: the lock is ours
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	next, err := os.MkdirTemp(dir, "."+w.Name+".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next) // nothing once it stands in its place
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	if err := WriteFile(filepath.Join(next, "trials.jsonl"), lines.Bytes()); err != nil {
		return err
	}
	if err := WriteJSON(filepath.Join(next, "run.json"), &run); err != nil {
		return err
	}
	return swap(next, place, asidePath(dir, w.Name))
}

// replaceable tells whether a baseline may take a place: that of none, or of
// another baseline.
func replaceable(place, workload string) error {
	if !plainName(workload) {
		return fmt.Errorf("%w: %q is no name for a folder", ErrBaselineRefused, workload)
	}
	info, err := os.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(place, "run.json")); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is there and is no baseline; it is not replaced", ErrBaselineRefused, place)
}

// swap puts a folder into the place of another. At every moment the old one or
// the new one is in its place, or the old one aside.
func swap(next, place, aside string) error {
	switch _, err := os.Lstat(place); {
	case err == nil:
		if err := os.RemoveAll(aside); err != nil {
			return err
		}
		if err := os.Rename(place, aside); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.Rename(next, place); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(place)); err != nil {
		return err
	}
	return os.RemoveAll(aside)
}
