package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/stats"
	"benchrun/reports/verdict"
)

// batchHeadline says what job recovery gave after the loss of a master, what that
// took, and what it costs where nothing happens. It tells whether there is any
// of that to be said.
func (w *workloadView) batchHeadline() bool {
	if !w.twinned() {
		return w.losses()
	}
	said := w.gain()
	return w.cost() || said
}

// between writes the smallest and the largest of some values.
func between(values []float64, write func(float64) string) string {
	a, b := write(slices.Min(values)), write(slices.Max(values))
	if a == b {
		return a
	}
	return a + " to " + b
}

// gain is what the loss of a master costs with and without job recovery.
func (w *workloadView) gain() bool {
	var with, without, free, saved, control, outage, again []float64
	var lost []string                                         // what, one entry a kind of cell
	losses, recovered := map[string]bool{}, map[string]bool{} // of a master, by step
	for i, k := range w.twins() {
		if k < 0 {
			continue
		}
		a, b := w.median(i, "makespan_s"), w.median(k, "makespan_s")
		if w.faultOf(i) == "" && w.faultOf(k) == "" {
			if b != nil {
				free = append(free, *b)
			}
			continue
		}
		if a == nil || b == nil || *b <= 0 || w.lossOf(i) == "" {
			continue
		}
		if loss := w.lossOf(i); !slices.Contains(lost, loss) {
			lost = append(lost, loss)
		}
		with, without, saved = append(with, *a), append(without, *b), append(saved, 1 - *a / *b)
		for _, f := range w.faults {
			if f.kind == result.KillMaster && w.befell(i, f.name) {
				losses[f.name] = true
			}
			if v := w.median(i, f.prefix+"control_recovery_s"); v != nil {
				control, recovered[f.name] = append(control, *v), true
				detect, elect := w.median(i, f.prefix+"detect_s"), w.median(i, f.prefix+"recovery_elect_s")
				if detect != nil && elect != nil {
					outage = append(outage, *detect+*elect)
				}
				if v := w.median(i, f.prefix+"avoidable_reexecuted_fraction"); v != nil {
					again = append(again, *v)
				}
			}
		}
	}
	if len(saved) == 0 {
		return false
	}
	seconds := func(v float64) string { return rough(v, "s") }
	text := fmt.Sprintf("After %s the job took %s with job recovery (%s) and %s without", strings.Join(lost, " or "), between(with, seconds), recoveryFlag, between(without, seconds))
	switch {
	case slices.Min(saved) >= 0.005:
		text += ": " + between(saved, percentOf) + " less"
	case slices.Max(saved) < 0.005:
		text += ": nothing was saved"
	}
	text += "."
	if len(free) > 0 {
		text += fmt.Sprintf(" Undisturbed it takes %s.", between(free, seconds))
	}
	w.Headline = append(w.Headline, text)
	if len(control) > 0 {
		loss := "the loss"
		if len(losses) > 1 {
			loss = "its predecessor was lost (" + list(slices.Sorted(maps.Keys(recovered))) + ")"
		}
		text := fmt.Sprintf("With job recovery the next master had a task running %s after %s", between(control, seconds), loss)
		if len(outage) == len(control) {
			text += ", of which nobody led for " + between(outage, seconds)
		}
		switch {
		case len(again) == 0:
		case slices.Max(again) == 0:
			text += "; nothing was done again whose output was still there"
		default:
			text += "; of the finished work " + between(again, share) + " was done again although its output was still there"
		}
		w.Headline = append(w.Headline, text+".")
		for _, f := range w.faults {
			if losses[f.name] && !recovered[f.name] {
				w.Headline = append(w.Headline, fmt.Sprintf("After %s another fault came before a task ran.", f.title()))
			}
		}
	}
	return true
}

// losses say what each fault did to a job that stands beside itself undisturbed.
func (w *workloadView) losses() bool {
	var free []float64
	var parts []string
	for i := range w.columns {
		v := w.median(i, "makespan_s")
		if w.spec.Mode != "batch" || v == nil {
			continue
		}
		if w.faultOf(i) == "" {
			free = append(free, *v)
			continue
		}
		text := rough(*v, "s") + " with " + w.labels[i]
		if loss := w.lossOf(i); loss != "" {
			text = fmt.Sprintf("%s after %s", rough(*v, "s"), loss)
			if w.labels[i] != "fault" {
				text += " (" + w.labels[i] + ")"
			}
		}
		if again, avoidable := w.median(i, "reexecuted_fraction"), w.median(i, "avoidable_reexecuted_fraction"); again != nil && avoidable != nil {
			text += ", which made it do " + percentOf(*again) + " of the finished work again"
			switch {
			case *again == 0:
			case *avoidable == 0:
				text += ", none of it avoidably"
			default:
				text += ", " + percentOf(*avoidable) + " avoidably"
			}
		}
		parts = append(parts, text)
	}
	if len(free) == 0 || len(parts) == 0 || len(parts) > 4 {
		return false
	}
	lead := fmt.Sprintf("Undisturbed the job takes %s.", between(free, func(v float64) string { return rough(v, "s") }))
	w.Headline = append(w.Headline, lead+" It took "+parts[0]+".")
	for _, p := range parts[1:] {
		w.Headline = append(w.Headline, "It took "+p+".")
	}
	return true
}

// percentOf writes a share for a sentence.
func percentOf(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// cost is what job recovery takes where nothing happens, and whether that can be
// told from chance.
func (w *workloadView) cost() bool {
	derived := verdict.Derive(w.spec, w.columns)
	for i := range w.columns {
		for _, d := range derived[w.columns[i].Name] {
			x, ok := stats.Describe(d.Values)
			if !ok || d.Metric != "steady_overhead_ratio" {
				continue
			}
			text := fmt.Sprintf("Where nothing happened job recovery changed the makespan by %s (%s", changed(x.Median), count(len(d.Values), "pair", "pairs"))
			if x.CI != nil {
				text += fmt.Sprintf(", 95 %% interval %s to %s", changed(x.CI.Low), changed(x.CI.High))
			}
			floor, known := w.floor(d)
			switch {
			case !known:
				text += ", too few to tell that from noise)"
			case max(x.Median, 1/x.Median) <= floor:
				text += "), which is within the noise floor of ±" + share(floor-1)
			default:
				text += "), more than the noise floor of ±" + share(floor-1)
			}
			if v := w.median(i, "recording_overhead"); v != nil {
				text += "; writing down what finished took " + share(*v) + " of the machine"
			}
			w.Headline = append(w.Headline, text+".")
			return true
		}
	}
	return false
}

// floor is the noise that an overhead is seen against, as a ratio.
func (w *workloadView) floor(d verdict.Derivation) (float64, bool) {
	base := slices.IndexFunc(w.columns, func(x verdict.Column) bool { return x.Name == d.Base })
	if base < 0 {
		return 0, false
	}
	return verdict.NoiseFloor(&w.columns[base], len(d.Values))
}

// changed writes a ratio near 1 as a change with a decimal.
func changed(ratio float64) string {
	p := 100 * (ratio - 1)
	switch {
	case ratio >= 3:
		return "×" + chart.Number(ratio, "ratio")
	case p > -0.05 && p < 0.05:
		return "0 %"
	case p < 0:
		return fmt.Sprintf("−%.1f %%", -p)
	}
	return fmt.Sprintf("+%.1f %%", p)
}
