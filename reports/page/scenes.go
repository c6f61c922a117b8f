package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// recoveryFlag is the name in flags of the option that keeps a batch job's
// progress. A cell with it has a twin: the same without it.
const recoveryFlag = "J"

// batchLabels name the cells of a batch workload by what happens in them: one in
// which nothing does by that, and axes of the scenario that are the same in all
// others not at all. scenes are these names without the option.
func (w *workloadView) batchLabels() {
	w.scenes = make([]string, len(w.columns))
	if w.spec.Mode != "batch" {
		return
	}
	values := map[string]map[string]bool{}
	for i := range w.columns {
		c := &w.columns[i]
		if w.faultOf(i) == "" {
			continue
		}
		for _, axis := range w.spec.ScenarioAxes {
			if values[axis] == nil {
				values[axis] = map[string]bool{}
			}
			values[axis][fmt.Sprint(c.Flags[axis])] = true
		}
	}
	several := w.severalFaults()
	quiets := make([]bool, len(w.columns)) // nothing happened in them
	for i := range w.columns {
		quiets[i] = len(values) > 0 && w.faultOf(i) == "" && slices.ContainsFunc(w.columns[i].Trials, func(t result.Trial) bool { return t.Outcome == result.OK })
	}
	for i, quiet := range quiets {
		c := &w.columns[i]
		var rest, where []string
		for pair := range strings.SplitSeq(c.Cell, ",") {
			name, value, _ := strings.Cut(pair, "=")
			scenario := slices.Contains(w.spec.ScenarioAxes, name)
			switch place, err := strconv.ParseFloat(value, 64); {
			case name == recoveryFlag, scenario && (quiet || len(values[name]) == 1), several && (name == "repeat" || strings.HasSuffix(name, ".repeat")):
			case scenario && name == "progress" && err == nil:
				where = append(where, "at "+strconv.FormatFloat(100*place, 'g', 4, 64)+" %")
			case c.Cell != "default":
				rest = append(rest, pair)
			}
		}
		var scene []string
		if len(rest) > 0 {
			scene = append(scene, label(strings.Join(rest, ",")))
		}
		if several && !quiet {
			scene = append(scene, w.faultNames(i)...)
		}
		scene = append(scene, where...)
		switch {
		case quiet:
			scene = append(scene, "no fault")
		case len(scene) == 0 && slices.Contains(quiets, true) && w.faultOf(i) != "":
			scene = append(scene, "fault")
		}
		w.scenes[i] = strings.Join(scene, ", ")
		name := scene
		if on, has := c.Flags[recoveryFlag].(bool); has {
			name = append([]string{map[bool]string{true: recoveryFlag, false: "no " + recoveryFlag}[on]}, scene...)
		}
		if len(name) == 0 {
			continue // as it was
		}
		text := strings.Join(name, ", ")
		if c.Name != c.Cell {
			text += " @ " + c.Build
		}
		if !slices.Contains(w.labels[:i], text) {
			w.labels[i] = text
		}
	}
}

// faultNames are the steps that disturbed the good trials of a column.
func (w *workloadView) faultNames(i int) (names []string) {
	for _, t := range w.columns[i].Trials {
		for _, f := range t.Faults {
			if t.Outcome == result.OK && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// severalFaults tells whether columns were disturbed by different steps.
func (w *workloadView) severalFaults() bool {
	seen := map[string]bool{}
	for i := range w.columns {
		if names := w.faultNames(i); len(names) > 0 {
			seen[strings.Join(names, ", ")] = true
		}
	}
	return len(seen) > 1
}

// faultOf is the kind of the first fault of a column's trials; empty: none.
func (w *workloadView) faultOf(i int) string {
	for _, t := range w.columns[i].Trials {
		if t.Outcome == result.OK && len(t.Faults) > 0 {
			return t.Faults[0].Kind
		}
	}
	return ""
}

// lossOf names what a trial of a column lost, and how often if more than once;
// empty: nothing. Of trials that differ it is the most.
func (w *workloadView) lossOf(i int) string {
	const one = "the loss of "
	var names []string
	most := map[string]int{}
	for _, t := range w.columns[i].Trials {
		times := map[string]int{}
		for _, f := range t.Faults {
			if n := noun(f.Kind); t.Outcome == result.OK && strings.HasPrefix(n, one) {
				times[n]++
				if most[n] == 0 {
					names = append(names, n)
				}
				most[n] = max(most[n], times[n])
			}
		}
	}
	for k, n := range names {
		if often := most[n]; often > 1 {
			names[k] = numeral(often) + " losses of " + strings.TrimPrefix(n, one)
		}
	}
	text := list(names)
	if strings.HasPrefix(text, one) && !strings.Contains(text, "losses") {
		text = strings.ReplaceAll(text, " and "+one, " and of ")
	}
	return text
}

// twin is the column that is like another one but without job recovery; -1: none.
func (w *workloadView) twin(i int) int {
	c := &w.columns[i]
	if c.Flags[recoveryFlag] != true {
		return -1
	}
	return slices.IndexFunc(w.columns, func(x verdict.Column) bool {
		same := x.Build == c.Build && x.Flags[recoveryFlag] == false && len(x.Flags) == len(c.Flags)
		for name, v := range c.Flags {
			same = same && (name == recoveryFlag || x.Flags[name] == v)
		}
		return same
	})
}

// twinned tells whether cells with job recovery stand beside the same without it.
// Then they are compared with those: the first cell of a matrix has another fault
// than most.
func (w *workloadView) twinned() bool {
	return w.spec.Mode == "batch" && slices.ContainsFunc(w.twins(), func(k int) bool { return k >= 0 })
}

func (w *workloadView) twins() []int {
	out := make([]int, len(w.columns))
	for i := range w.columns {
		out[i] = w.twin(i)
	}
	return out
}

// againstTwins compares every cell with job recovery with the same without.
func (w *workloadView) againstTwins(metric string) (out []comparison) {
	twins := w.twins()
	of := 0
	for _, k := range twins {
		of += min(1, k+1)
	}
	for i, k := range twins {
		if k < 0 {
			continue
		}
		c, x := &w.columns[i], &w.columns[k]
		out = append(out, comparison{
			name: w.labels[i], cell: c.Name, metric: metric, planned: min(c.Planned, x.Planned), unit: metricOf(metric).Unit,
			judged: verdict.Against(w.run, c, x, metric, w.thresholds, of),
		})
	}
	return out
}
