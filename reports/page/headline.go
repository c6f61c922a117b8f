package page

import (
	"fmt"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// deeds say what a metric means for the job, before the time.
var deeds = map[string]string{
	"time_to_first_checkpoint_s": "the job was safe again %s after %s",
	"time_to_running_s":          "all tasks were running again %s after %s",
	"time_to_drained_s":          "the restored backlog was worked off %s after %s",
	"time_to_caught_up_s":        "the sources were on time again %s after %s",
	"time_to_first_output_s":     "the first output came %s after %s",
	"detect_s":                   "the master knew %s after %s",
	"control_recovery_s":         "the new master had a task running %s after %s",
	"time_to_parity_s":           "as much work was done as before %s after %s",
	"makespan_s":                 "the job took %s with %s",
}

// headline says in words what the workload showed.
func (w *workloadView) headline() {
	reference := verdict.Reference(w.run, w.Name)
	ok, all, failed := 0, 0, 0
	for _, c := range w.columns {
		all, failed = all+c.Planned, failed+c.Failed
		for _, t := range c.Trials {
			if t.Outcome == result.OK {
				ok++
			}
		}
	}
	if ok == 0 {
		w.Headline = []string{"Nothing was measured: no trial of this workload ended well."}
		return
	}
	if safe := "time_to_first_checkpoint_s"; w.spec.Primary != safe && w.has(safe) {
		w.compareBest(reference, safe) // how long until safe again comes first, whatever is judged
	}
	if !w.batchHeadline() {
		w.compareBest(reference, w.spec.Primary)
	}
	w.buildSentence()
	w.laterSentences()
	w.drainedSentence()
	w.outputSentence(ok, all)
}

// buildSentence sets the other builds against the base build, cell by cell.
func (w *workloadView) buildSentence() {
	builds := verdict.Builds(w.run)
	if len(builds) < 2 || len(w.summary.BuildPairs) == 0 {
		return
	}
	for _, b := range builds[1:] {
		var parts []string
		for i := range w.columns {
			c := &w.columns[i]
			if c.Build != b {
				continue
			}
			name := c.Cell
			if len(builds) > 2 {
				name = c.Name
			}
			p, ok := w.summary.BuildPairs[name][w.spec.Primary]
			if !ok || p.Ratio == nil {
				continue
			}
			word := p.Verdict
			if word == string(verdict.Inconclusive) {
				word = "no verdict"
			}
			parts = append(parts, fmt.Sprintf("%s %s (%s)", label(c.Cell), ratioText(*p.Ratio), word))
		}
		if len(parts) > 0 && len(parts) <= 8 {
			w.Headline = append(w.Headline, fmt.Sprintf("%s, %s against %s: %s.", capital(short(w.spec.Primary)), b, builds[0], list(parts)))
		}
	}
}

// compareBest sets the best cell against the reference.
func (w *workloadView) compareBest(reference, primary string) {
	m := metricOf(primary)
	best, ref := -1, -1
	median := make(map[int]float64)
	builds := verdict.Builds(w.run)
	for i, c := range w.columns {
		s, ok := w.stat(i, primary)
		if !ok || len(builds) > 1 && c.Build != builds[0] {
			continue // options and builds are not mixed: see buildSentence
		}
		median[i] = s.Median
		if c.Cell == reference && ref < 0 {
			ref = i
		}
		if best < 0 || m.Better != result.Higher && s.Median < median[best] || m.Better == result.Higher && s.Median > median[best] {
			best = i
		}
	}
	if best < 0 {
		w.Headline = append(w.Headline, fmt.Sprintf("No trial has the metric %s.", primary))
		return
	}
	value := func(i int) string { return quantityWords(median[i], m.Unit) }
	deed, known := deeds[primary]
	if !known {
		deed = short(primary) + " was %s with %s"
	}
	what := noun(w.faults[0].kind)
	if strings.HasSuffix(deed, "with %s") {
		what = w.labels[best]
	}
	first := fmt.Sprintf("With %s "+deed, w.labels[best], value(best), what)
	if strings.HasSuffix(deed, "with %s") {
		first = capital(fmt.Sprintf(deed, value(best), what))
	}
	switch {
	case ref < 0 || len(median) == 1:
		first += "."
	case best == ref:
		first += "; no other cell was better."
	case !clearly(median[best], median[ref]):
		first += fmt.Sprintf(", hardly better than with %s (%s).", w.labels[ref], value(ref))
	default:
		first += fmt.Sprintf(", against %s with %s", value(ref), w.labels[ref])
		if median[best] > 0 && median[ref] > 0 {
			if t := times(median[best]/median[ref], m.Better); t != "" {
				first += ": " + t
			}
		}
		first += "."
	}
	w.Headline = append(w.Headline, first)
	w.others(median, best, ref, value)
}

// clearly tells whether two medians differ enough to be set against each other
// in a sentence. It is no verdict.
func clearly(a, b float64) bool { return min(a, b) <= 0 || max(a, b)/min(a, b) >= 1.05 }

// others says where the rest lies: each, if they are few.
func (w *workloadView) others(median map[int]float64, best, ref int, value func(int) string) {
	var rest []int
	between := ref >= 0
	for i := range w.columns {
		if v, ok := median[i]; ok && i != best && i != ref {
			rest = append(rest, i)
			between = between && (v-median[best])*(v-median[ref]) <= 0
		}
	}
	if len(rest) == 0 {
		return
	}
	if len(rest) > 4 {
		low, high := rest[0], rest[0]
		for _, i := range rest {
			if median[i] < median[low] {
				low = i
			}
			if median[i] > median[high] {
				high = i
			}
		}
		w.Headline = append(w.Headline, fmt.Sprintf("The other %d cells lie between %s (%s) and %s (%s).", len(rest), value(low), w.labels[low], value(high), w.labels[high]))
		return
	}
	var names []string
	for _, i := range rest {
		names = append(names, value(i)+" with "+w.labels[i])
	}
	if between {
		w.Headline = append(w.Headline, "In between: "+list(names)+".")
	} else {
		w.Headline = append(w.Headline, "The others: "+list(names)+".")
	}
}

// laterSentences say what the primary metric was after the later faults, if
// they are few.
func (w *workloadView) laterSentences() {
	if len(w.faults) > 5 {
		return
	}
	for _, f := range w.faults[1:] {
		if f.prefix == "" {
			continue // it was the first of its cell
		}
		var parts []string
		for i := range w.columns {
			if s, ok := w.stat(i, f.prefix+w.spec.Primary); ok {
				parts = append(parts, quantityWords(s.Median, s.Unit)+" with "+w.labels[i])
			}
		}
		if len(parts) > 0 {
			w.Headline = append(w.Headline, fmt.Sprintf("After %s: %s.", f.title(), list(parts)))
		}
	}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// drainedSentence tells whether the options changed when the backlog was worked
// off, or only when the job was safe.
func (w *workloadView) drainedSentence() {
	if w.spec.Primary == "time_to_drained_s" {
		return
	}
	var medians []float64
	for i := range w.columns {
		if s, ok := w.stat(i, "time_to_drained_s"); ok {
			medians = append(medians, s.Median)
		}
	}
	if len(medians) < 2 {
		return
	}
	low, high := slices.Min(medians), slices.Max(medians)
	switch {
	case high == 0:
	case low > 0 && high/low < 1.25:
		w.Headline = append(w.Headline, fmt.Sprintf("The backlog itself was worked off at about the same time everywhere (%s): the options change when the job is safe and running, not how long the work takes.", fromTo(low, high)))
	default:
		w.Headline = append(w.Headline, fmt.Sprintf("The restored backlog was worked off after %s.", fromTo(low, high)))
	}
}

func fromTo(low, high float64) string {
	a, b := rough(low, "s"), rough(high, "s")
	if a == b {
		return a
	}
	return a + " to " + b
}

func (w *workloadView) outputSentence(ok, all int) {
	proved, wrong := 0, 0
	for _, c := range w.columns {
		for _, t := range c.Trials {
			switch {
			case t.Outcome == result.Incorrect:
				wrong++
			case t.Outcome == result.OK && t.Correctness != nil:
				proved++
			}
		}
	}
	switch {
	case wrong > 0:
		w.Headline = append(w.Headline, fmt.Sprintf("%s gave wrong output; no speed makes up for that.", capital(count(wrong, "trial", "trials"))))
	case ok < all:
		w.Headline = append(w.Headline, fmt.Sprintf("%d of %d trials ended well.", ok, all))
	case proved == all:
		w.Headline = append(w.Headline, fmt.Sprintf("In all %s every record is accounted for: none lost, none duplicated.", count(all, "trial", "trials")))
	}
}
