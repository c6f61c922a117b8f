package trial

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"benchrun/harness/plan"
	"benchrun/harness/probe"
	"benchrun/harness/result"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// ErrRefused means that a run cannot be begun or resumed as it was asked for;
// the error says why and what would help.
var ErrRefused = errors.New("refused")

// Build is one executable that is to run trials.
type Build struct {
	Name, Path string
	// Delays slows fault points of the engine down in this build's trials.
	Delays map[string]time.Duration
}

// Session is what a new run is made from.
type Session struct {
	Out       string // results folder
	Plan      *plan.Plan
	Builds    []Build // of --build; empty: Self
	Self      string  // this executable
	Command   []string
	Sets      []string // of --set
	Settings  result.Settings
	Reference string
	Tool      result.Tool
	Sweep     Sweeper
}

// Overrides puts the settings of a run and its --set into the order in which
// they win: --quick before --set before flags.
func Overrides(s result.Settings, sets []string) []string {
	var out []string
	if s.Quick {
		out = append(out, "run.repeats=1", "run.warmup=0")
	}
	out = append(out, sets...)
	if s.Repeats != nil {
		out = append(out, fmt.Sprintf("run.repeats=%d", *s.Repeats))
	}
	if s.Warmup != nil {
		out = append(out, fmt.Sprintf("run.warmup=%d", *s.Warmup))
	}
	if s.Seed != nil {
		out = append(out, fmt.Sprintf("run.seed=%d", *s.Seed))
	}
	if s.Target != "" {
		out = append(out, fmt.Sprintf("cluster.target=%q", s.Target))
	}
	return out
}

// Begin creates the run folder and the campaign of all its trials. The caller
// closes the campaign's folder.
func (s Session) Begin(now time.Time) (*Campaign, error) {
	builds, exes, err := s.builds()
	if err != nil {
		return nil, err
	}
	if s.Reference != "" && !slices.ContainsFunc(s.Plan.Cells, func(c result.Cell) bool { return c.Cell == s.Reference }) {
		var cells []string
		for _, c := range s.Plan.Cells {
			cells = append(cells, c.Cell)
		}
		hint := "benchrun plan lists them"
		if near := options.Nearest(s.Reference, cells); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("%w: --reference %q is no cell of the plan; %s", ErrRefused, s.Reference, hint)
	}
	label := "set"
	if len(s.Plan.Files) == 1 {
		label = s.Plan.Files[0].Name
	}
	run := &result.Run{
		Schema: result.Schema, State: result.Running, Tool: s.Tool, Builds: builds, Command: s.Command, Overrides: s.Sets, Reference: s.Reference,
		Settings: s.Settings, Seed: s.Plan.Files[0].Run.Seed, Plan: s.Plan.Result(), Machine: probe.Machine(), Targets: map[string]string{}, Started: now.UTC(),
	}
	if run.Overrides == nil {
		run.Overrides = []string{}
	}
	if len(s.Builds) > 0 {
		run.BaseBuild = s.Builds[0].Name
	}
	files := map[string]*spec.File{}
	for _, f := range s.Plan.Files {
		files[f.Name] = f
		w, err := describe(s.Plan, f)
		if err != nil {
			return nil, err
		}
		run.Workloads = append(run.Workloads, w)
	}
	folder, err := result.Create(s.Out, label, now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	run.Run = filepath.Base(folder.Dir())
	run.Machine.Probes = probe.Noise(folder.Dir())
	if err := folder.WriteRun(run); err != nil {
		folder.Close()
		return nil, err
	}
	return &Campaign{Folder: folder, Run: run, Files: files, Exe: exes, Slots: s.Plan.Order, Sweep: s.Sweep}, nil
}

func describe(p *plan.Plan, f *spec.File) (result.Workload, error) {
	out := result.Workload{
		Name: f.Name, Description: f.Description, Tags: f.Tags, Primary: f.Run.Primary, File: f.Path, Dir: f.Dir, SHA256: f.SHA256(), Text: string(f.Text), Inert: p.Alike(f),
	}
	for i, c := range f.Cells() {
		w, err := f.Resolve(c.ID)
		if err != nil {
			return out, err
		}
		mine := w.Expected()
		if i == 0 {
			out.Expected = mine
			continue
		}
		// A cell whose scenario leaves the fault out has no metrics of it.
		out.Expected = slices.DeleteFunc(out.Expected, func(m string) bool { return !slices.Contains(mine, m) })
	}
	if f.Mode != spec.Streaming {
		out.Mode = f.Mode
	}
	for _, a := range f.Axes {
		if a.OfScenario() {
			out.ScenarioAxes = append(out.ScenarioAxes, a.Short)
		}
	}
	for _, t := range f.Thresholds {
		if out.Thresholds == nil {
			out.Thresholds = map[string][]string{}
		}
		out.Thresholds[t.Cells] = append(out.Thresholds[t.Cells], t.Text)
	}
	return out, nil
}

// builds hashes the executables.
func (s Session) builds() (map[string]result.Build, map[string]string, error) {
	list := s.Builds
	if len(list) == 0 {
		list = []Build{{Name: plan.DefaultBuild, Path: s.Self}}
	}
	builds, exes := map[string]result.Build{}, map[string]string{}
	for _, b := range list {
		path, err := filepath.Abs(b.Path)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: build %s: %w", ErrRefused, b.Name, err)
		}
		sum, err := HashFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: build %s: %w", ErrRefused, b.Name, err)
		}
		if _, twice := builds[b.Name]; twice {
			return nil, nil, fmt.Errorf("%w: two builds are named %q", ErrRefused, b.Name)
		}
		builds[b.Name] = result.Build{Path: path, SHA256: sum, DelaysUs: microseconds(b.Delays)}
		exes[b.Name] = path
	}
	return builds, exes, nil
}

func microseconds(delays map[string]time.Duration) map[string]int64 {
	if len(delays) == 0 {
		return nil
	}
	out := map[string]int64{}
	for point, d := range delays {
		out[point] = d.Microseconds()
	}
	return out
}

// EqualBuilds names two builds that cannot differ, if there are.
func EqualBuilds(builds map[string]result.Build) (a, b string, equal bool) {
	names := slices.Sorted(maps.Keys(builds))
	for i, a := range names {
		for _, b := range names[i+1:] {
			if result.SameBuild(builds[a], builds[b]) {
				return a, b, true
			}
		}
	}
	return "", "", false
}

// HashFile is the SHA-256 of a file, in hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
