package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// baselines is the folder of what was accepted: thresholds, and a run a
// workload.
const baselines = "results/baselines"

// judge decides on a head run; a test can put a broken one in its place.
type judge func(head *result.Loaded, base func(workload string) *result.Loaded, rules verdict.Rules) *verdict.Decision

// thresholds reads the file of thresholds. Without a path it is the committed
// one, and its absence means the defaults.
func thresholds(path string) (verdict.Thresholds, error) {
	file, err := readThresholds(path)
	if err != nil {
		return nil, err
	}
	if file == nil {
		return func(_, metric string) verdict.Threshold {
			m, _ := result.LookupMetric(metric)
			return verdict.Threshold{Band: verdict.DefaultBand(m), Source: "default, for want of " + filepath.Join(baselines, "thresholds.toml")}
		}, nil
	}
	return func(workload, metric string) verdict.Threshold {
		if r, a, source, ok := file.Find(workload, metric); ok {
			return verdict.Threshold{Band: verdict.Band{Relative: r, Absolute: a}, Source: source}
		}
		m, _ := result.LookupMetric(metric)
		return verdict.Threshold{Band: verdict.DefaultBand(m), Source: "default"}
	}, nil
}

func readThresholds(path string) (*spec.Thresholds, error) {
	given := path != ""
	if !given {
		path = filepath.Join(baselines, "thresholds.toml")
	}
	file, err := spec.LoadThresholds(path)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return nil, nil
	}
	return file, err
}

// misnamed warns of thresholds that look as if they were meant for a workload of
// the run that has none.
func (a *app) misnamed(path string, l *result.Loaded) {
	file, err := readThresholds(path)
	if err != nil || file == nil {
		return // whoever needs the file tells
	}
	names := file.Workloads()
	for _, w := range l.Run.Workloads {
		if slices.Contains(names, w.Name) {
			continue
		}
		if near := options.Nearest(w.Name, names); near != "" {
			fmt.Fprintf(a.stderr, "warning: the thresholds have no [workload.%s]; [workload.%s] is for another one\n", w.Name, near)
		}
	}
}

// percentValue is a flag such as "10 %".
type percentValue float64

func (p *percentValue) String() string {
	if *p == 0 {
		return ""
	}
	return fmt.Sprintf("%g %%", 100*float64(*p))
}

func (p *percentValue) Type() string { return "percent" }

func (p *percentValue) Set(s string) error {
	number, found := strings.CutSuffix(strings.TrimSpace(s), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !found || err != nil || !(x >= 0 && x <= 100) {
		return fmt.Errorf("give a share with its unit, such as \"10 %%\"")
	}
	*p = percentValue(x / 100)
	return nil
}

// comparand finds what a run is compared with: the run of the path, else what
// was accepted for its workloads. A run with several builds needs none.
func comparand(l *result.Loaded, path, dir string) (func(workload string) *result.Loaded, error) {
	if path != "" {
		base, err := result.Load(path)
		if err != nil {
			return nil, exit(result.ExitBaseline, fmt.Errorf("the baseline cannot be read: %w", err))
		}
		return func(string) *result.Loaded { return base }, nil
	}
	if len(l.Run.Builds) > 1 {
		return nil, nil
	}
	found := map[string]*result.Loaded{}
	for _, w := range l.Run.Workloads {
		base, err := result.LoadBaseline(dir, w.Name)
		switch {
		case errors.Is(err, result.ErrNoBaseline):
		case err != nil:
			return nil, exit(result.ExitBaseline, fmt.Errorf("the baseline of %s cannot be read: %w", w.Name, err))
		default:
			found[w.Name] = base
		}
	}
	if len(found) == 0 {
		return nil, exit(result.ExitBaseline, fmt.Errorf("%w for %s in %s: give --baseline RUN, measure two builds in one run (run --build), or accept a run as baseline (gate RUN --accept)", result.ErrNoBaseline, l.Run.Run, dir))
	}
	return func(workload string) *result.Loaded { return found[workload] }, nil
}
