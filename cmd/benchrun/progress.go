package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/trial"
	"benchrun/reports/page"
	"benchrun/runtime/options"
)

// reporter is told how a run goes on and ends.
type reporter interface {
	trial.Watcher
	start()
	finish(l *result.Loaded, code result.Exit, reasons []string, report string)
}

func (a *app) reporter(f *runFlags, c *trial.Campaign) reporter {
	if f.json {
		return &jsonReporter{out: json.NewEncoder(a.stdout), stderr: a.stderr, dir: c.Folder.Dir(), trials: len(c.Slots)}
	}
	t := &textReporter{stdout: a.stdout, stderr: a.stderr, c: c, bar: a.terminal, quiet: f.quiet, primary: map[string]string{}, samples: map[string][]float64{}}
	for _, w := range c.Run.Workloads {
		t.primary[w.Name] = w.Primary
	}
	return t
}

// jsonReporter writes one event a line.
type jsonReporter struct {
	out    *json.Encoder
	stderr io.Writer
	dir    string
	trials int
	slot   result.Slot
	trial  string
}

func (r *jsonReporter) send(kind string, fields map[string]any) {
	fields["kind"] = kind
	r.out.Encode(fields) // a reader that is gone must not end the run
}

func (r *jsonReporter) start() {
	r.send("start", map[string]any{"path": r.dir, "trials": r.trials})
}

func (r *jsonReporter) Begin(s result.Slot, id string, n, of int) {
	r.slot, r.trial = s, id
	r.send("trial-begin", map[string]any{"trial": id, "n": n, "of": of, "workload": s.Workload, "cell": s.Cell, "build": s.Build, "block": s.Block, "warmup": s.Warmup})
}

func (r *jsonReporter) Phase(step string) {
	r.send("phase", map[string]any{"trial": r.trial, "step": step})
}

func (r *jsonReporter) End(t *result.Trial) { r.send("trial", map[string]any{"line": t}) }

func (r *jsonReporter) LeftOut(cells []result.LeftOut, of int) {
	r.send("left-out", map[string]any{"cells": cells, "trials": of})
}

func (r *jsonReporter) finish(l *result.Loaded, code result.Exit, reasons []string, report string) {
	for _, w := range l.Warnings {
		fmt.Fprintln(r.stderr, "warning:", w)
	}
	if reasons == nil {
		reasons = []string{}
	}
	fields := map[string]any{"path": r.dir, "state": l.Run.State, "exit": code, "reasons": reasons}
	if report != "" {
		fields["report"] = report
	}
	r.send("run", fields)
}

// textReporter speaks to a person: progress on stderr, a table on stdout.
type textReporter struct {
	stdout, stderr io.Writer
	c              *trial.Campaign
	bar            bool
	quiet          bool
	primary        map[string]string // by workload

	slot    result.Slot
	step    string
	n, of   int
	done    int
	wall    time.Duration
	samples map[string][]float64 // workload/cell@build -> primary metric
	width   int                  // of the bar on screen
}

func (r *textReporter) start() {
	if r.quiet {
		return
	}
	if a, b, equal := trial.EqualBuilds(r.c.Run.Builds); equal {
		fmt.Fprintf(r.stderr, "warning: the builds %s and %s are the same file\n", a, b)
	}
	fmt.Fprintf(r.stderr, "%d trials into %s\n", len(r.c.Slots), relative(r.c.Folder.Dir()))
}

func (r *textReporter) Begin(s result.Slot, _ string, n, of int) {
	r.slot, r.n, r.of, r.step = s, n, of, "start"
	r.draw()
}

func (r *textReporter) Phase(step string) {
	r.step = step
	r.draw()
}

func (r *textReporter) LeftOut(cells []result.LeftOut, of int) {
	if r.quiet {
		return
	}
	r.clear()
	for _, c := range cells {
		fmt.Fprintf(r.stderr, "left out: %s %s: %s\n", c.Workload, c.Cell, c.Reason)
	}
	r.of = of
}

func (r *textReporter) End(t *result.Trial) {
	r.done++
	r.wall += time.Duration(t.WallS * float64(time.Second))
	key := t.Workload + "/" + t.Cell + "@" + t.Build
	metric := r.primary[t.Workload]
	v, ok := t.Metrics[metric]
	if ok && !t.Warmup {
		r.samples[key] = append(r.samples[key], v)
	}
	if r.quiet {
		return
	}
	if r.bar && t.Outcome == result.OK {
		r.draw()
		if r.done == r.of {
			r.clear()
		}
		return
	}
	r.clear()
	line := fmt.Sprintf("[%d/%d] %s: %s in %.1f s", r.n, r.of, r.name(), t.Outcome, t.WallS)
	switch {
	case t.Outcome != result.OK:
		line += fmt.Sprintf(" (%s: %s)", t.Phase, t.Reason)
	case ok:
		line += fmt.Sprintf(", %s %s", metric, quantity(metric, v))
	}
	fmt.Fprintln(r.stderr, line)
}

func (r *textReporter) name() string {
	s := fmt.Sprintf("%s %s block %d", r.slot.Workload, r.slot.Cell, r.slot.Block)
	if len(r.c.Run.Builds) > 1 {
		s = fmt.Sprintf("%s %s@%s block %d", r.slot.Workload, r.slot.Cell, r.slot.Build, r.slot.Block)
	}
	if r.slot.Warmup {
		s += " (warm-up)"
	}
	return s
}

// barWidth is what fits on any terminal: a longer line wraps and scrolls.
const barWidth = 79

// draw shows the bar, the trial at work, the time left and the cell's median
// so far.
func (r *textReporter) draw() {
	if r.quiet || !r.bar {
		return
	}
	const cells = 20
	full := cells * r.done / max(1, r.of)
	line := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", cells-full), r.done, r.of)
	if r.done > 0 {
		left := r.wall / time.Duration(r.done) * time.Duration(r.of-r.done)
		line += " ETA " + options.FormatDuration(left.Round(time.Second))
	}
	line += "  " + r.name() + ": " + r.step
	if xs := r.samples[r.slot.Workload+"/"+r.slot.Cell+"@"+r.slot.Build]; len(xs) > 0 {
		metric := r.primary[r.slot.Workload]
		line += fmt.Sprintf("  median %s %s", metric, quantity(metric, median(xs)))
	}
	if runes := []rune(line); len(runes) > barWidth {
		line = string(runes[:barWidth])
	}
	fmt.Fprintf(r.stderr, "\r%s%s", line, strings.Repeat(" ", max(0, r.width-len(line))))
	r.width = len(line)
}

func (r *textReporter) clear() {
	if r.width > 0 {
		fmt.Fprintf(r.stderr, "\r%s\r", strings.Repeat(" ", r.width))
		r.width = 0
	}
}

func (r *textReporter) finish(l *result.Loaded, code result.Exit, reasons []string, report string) {
	r.clear()
	for _, w := range l.Warnings {
		fmt.Fprintln(r.stderr, "warning:", w)
	}
	writeTables(r.stdout, l)
	for i, reason := range reasons {
		if i == 20 {
			fmt.Fprintf(r.stdout, "... and %d more\n", len(reasons)-i)
			break
		}
		fmt.Fprintln(r.stdout, reason)
	}
	if len(reasons) > 0 {
		r.again(l)
	}
	if code == result.ExitInterrupted {
		fmt.Fprintf(r.stdout, "go on with: benchrun run --resume %s\n", relative(l.Dir))
	}
	if report != "" {
		fmt.Fprintf(r.stdout, "report: %s\n", relative(report))
	}
	fmt.Fprintf(r.stdout, "run: %s\n", relative(l.Dir))
}

// again names the command that reproduces the first trial that went wrong.
func (r *textReporter) again(l *result.Loaded) {
	i := slices.IndexFunc(l.Trials, func(t result.Trial) bool {
		return t.Outcome != result.OK && t.Outcome != result.TrialInterrupted && t.Outcome != result.Unsupported
	})
	if i < 0 {
		return
	}
	t := l.Trials[i]
	for _, w := range l.Run.Workloads {
		if w.Name == t.Workload {
			fmt.Fprintf(r.stdout, "its log: %s\nagain: %s\n", relative(r.c.Folder.Path("logs", t.Trial+".txt")), page.Reproduce(&l.Run, &w, t.Cell))
		}
	}
}
