package page

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// Gaps says what the report of a run lacks because files of its trials are gone.
func Gaps(l *result.Loaded) (out []string) {
	gone := func(folder, ext string) (n int) {
		for _, t := range l.Trials {
			if _, err := os.Stat(filepath.Join(l.Dir, folder, baseName(t.Trial)+ext)); errors.Is(err, fs.ErrNotExist) {
				n++
			}
		}
		return n
	}
	of := len(l.Trials)
	if n := gone("events", ".jsonl"); n > 0 {
		out = append(out, fmt.Sprintf("%d of %d trials have no timeline under events/. Where it is one that would be drawn, the pictures of what happened (tasks, checkpoints and throughput; of batch jobs the useful work) are missing, and what the host did is not known.", n, of))
	}
	if n := gone("logs", ".txt"); n > 0 {
		out = append(out, fmt.Sprintf("%d of %d trials have no log under logs/. The links to them lead nowhere.", n, of))
	}
	return out
}

// runWarnings are those that concern the run as a whole.
func runWarnings(l *result.Loaded) []string {
	out := append(slices.Clone(l.Warnings), Gaps(l)...)
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case l.Run.State == result.Running:
		say("The run has not ended, or was killed: this report shows what is there so far.")
	case l.Run.State == result.Interrupted:
		say("The run was interrupted; it can go on with: benchrun run --resume .../%s", l.Run.Run)
	}
	if n := len(l.Missing); n > 0 {
		cells := map[string]int{}
		var names []string
		for _, s := range l.Missing {
			name := s.Workload + " " + label(s.Cell)
			if cells[name] == 0 {
				names = append(names, name)
			}
			cells[name]++
		}
		for i, name := range names {
			names[i] = fmt.Sprintf("%s: %d", name, cells[name])
		}
		say("%d of %d planned trials are missing (%s).", n, l.Run.Plan.Trials, strings.Join(names, "; "))
	}
	if m := l.Run.Machine; m.Load1 != nil && m.Cores > 0 && *m.Load1 > 0.5*float64(m.Cores) {
		say("The machine was busy when the run began: load %.1f on %s.", *m.Load1, count(m.Cores, "core", "cores"))
	}
	if g := l.Run.Machine.Governor; g == "powersave" {
		say("The CPU governor is powersave: times depend on how the clock happened to be.")
	}
	if steps := l.ClockSteps(); len(steps) > 0 {
		say("The wall clock went back by %s before trial %s. Times are of the monotonic clock and not affected; dates are.", steps[0].By.Round(time.Millisecond), steps[0].Trial)
	}
	if _, ok := verdict.BaseBuild(&l.Run); !ok && len(l.Run.Builds) > 1 {
		say("The run does not say which of its builds is the base build (base_build is %q): builds are not compared.", l.Run.BaseBuild)
	}
	names := verdict.Builds(&l.Run)
	for i, a := range names {
		for _, b := range names[i+1:] {
			if result.SameBuild(l.Run.Builds[a], l.Run.Builds[b]) {
				say("The builds %s and %s are the same file: their differences are noise.", a, b)
			}
		}
	}
	return out
}

// warnings are those of one workload.
func (w *workloadView) warnings() {
	say := func(format string, args ...any) { w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...)) }
	w.fewSamples(say)
	for i := range w.columns {
		c := &w.columns[i]
		failures(w.labels[i], c.Trials, say)
		remarks(w.labels[i], c.Trials, say)
		w.shape(i, say)
		w.paths(i, say)
	}
	w.hostWarnings(w.run.Machine.Cores, say)
}

// failures lists trials that ended badly, those of one reason together.
func failures(label string, trials []result.Trial, say func(string, ...any)) {
	inBlocks(label, trials, func(t *result.Trial) []string {
		if t.Outcome == result.OK || t.Outcome == result.TrialInterrupted {
			return nil
		}
		return []string{strings.TrimSpace(string(t.Outcome) + " " + reason(t))}
	}, say)
}

// remarks are what trials that are ok say of themselves, and why numbers are absent.
func remarks(label string, trials []result.Trial, say func(string, ...any)) {
	inBlocks(label, trials, func(t *result.Trial) []string {
		if t.Outcome != result.OK {
			return nil
		}
		told := slices.Clone(t.Notes)
		for _, m := range slices.Sorted(maps.Keys(t.Absent)) {
			told = append(told, "no "+short(m)+": "+t.Absent[m])
		}
		return told
	}, say)
}

// inBlocks says what trials of a cell tell, with the blocks of all that tell the same.
func inBlocks(label string, trials []result.Trial, tell func(*result.Trial) []string, say func(string, ...any)) {
	blocks := map[string][]string{}
	var told []string
	for i := range trials {
		for _, what := range tell(&trials[i]) {
			if blocks[what] == nil {
				told = append(told, what)
			}
			blocks[what] = append(blocks[what], strconv.Itoa(trials[i].Block))
		}
	}
	for _, why := range told {
		b := blocks[why]
		word := "block"
		if len(b) > 1 {
			word = "blocks"
		}
		say("%s, %s %s: %s", label, word, list(b), why)
	}
}

// fewSamples says once what the number of samples does not allow.
func (w *workloadView) fewSamples(say func(string, ...any)) {
	least := -1
	for i := range w.columns {
		if s, ok := w.stat(i, w.spec.Primary); ok && (least < 0 || s.N < least) {
			least = s.N
		}
	}
	switch {
	case least < 0:
	case least < verdict.MinPairs:
		say("%s a cell: too few for an interval of the median (6) and for a verdict (%d). Run with --repeats 8 before you conclude anything from small differences.", count(least, "sample", "samples"), verdict.MinPairs)
	case least < 6:
		say("%d samples a cell: too few for an interval of the median, which takes 6.", least)
	}
}

// shape looks at samples that one number does not describe.
func (w *workloadView) shape(i int, say func(string, ...any)) {
	metrics := slices.Clone(together)
	if !slices.Contains(metrics, w.spec.Primary) {
		metrics = append(metrics, w.spec.Primary)
	}
	for _, m := range metrics {
		xs := w.columns[i].Samples(m)
		unit := metricOf(m).Unit
		if low, high, two := stats.Humps(xs); two {
			say("%s, %s: the samples fall into two groups, around %s and %s; the median describes neither.", w.labels[i], short(m), chart.Quantity(low, unit), chart.Quantity(high, unit))
		}
		if change, drifts := stats.Drift(xs); drifts {
			say("%s, %s: the samples drift by %+.0f %% through the run.", w.labels[i], short(m), change*100)
		}
	}
}

// paths warns of a cell that took another path in some of its trials.
func (w *workloadView) paths(i int, say func(string, ...any)) {
	seen := map[string]int{}
	for _, t := range w.columns[i].Trials {
		if t.Outcome == result.OK && t.RecoveryPath != "" {
			seen[t.RecoveryPath]++
		}
	}
	if len(seen) < 2 {
		return
	}
	var parts []string
	for p, n := range seen {
		parts = append(parts, fmt.Sprintf("%s in %d", p, n))
	}
	slices.Sort(parts)
	say("%s: the trials took different recovery paths (%s).", w.labels[i], strings.Join(parts, ", "))
}
