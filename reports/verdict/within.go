package verdict

import (
	"slices"

	"benchrun/harness/result"
)

// Comparisons are what the columns of one run say of each other, judged as a
// gate judges them in one look: primary metrics at the gate's error divided by
// their number, the others as discoveries among themselves.
type Comparisons struct {
	Builds   []Judged  // every build against the base build, cell by cell
	Cells    []Judged  // every cell against the reference cell, within its build; Cell is the name of the column
	Controls *Controls // nil: no cells are alike by their options
}

// Within compares the columns of a run. Without thresholds every metric has its
// default.
func Within(l *result.Loaded, thresholds Thresholds) *Comparisons {
	columns := Columns(l)
	return &Comparisons{
		Builds:   pairs(l, buildDuels(&l.Run, columns), thresholds),
		Cells:    pairs(l, cellDuels(&l.Run, columns), thresholds),
		Controls: controls(l, thresholds),
	}
}

// Find is what was judged on a metric of a cell; nil: nothing.
func Find(all []Judged, workload, cell, metric string) *Judged {
	i := slices.IndexFunc(all, func(j Judged) bool { return j.Workload == workload && j.Cell == cell && j.Metric == metric })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// pairs judges duels: the primary metrics, and then the others.
func pairs(l *result.Loaded, duels []duel, thresholds Thresholds) []Judged {
	g := &gate{head: l, rules: Rules{Thresholds: thresholds}, d: &Decision{Mode: Interleaved}}
	duels = slices.DeleteFunc(duels, func(x duel) bool { return x.head.Planned == 0 || unsupported(x.head) || unsupported(x.base) })
	primaries := 0
	for _, x := range duels {
		if x.primary != "" {
			primaries++
		}
	}
	for _, x := range duels {
		if x.primary != "" {
			g.d.Judged = append(g.d.Judged, g.compare(x, x.primary, share(primaries, false)))
		}
	}
	g.advise(duels)
	return append(g.d.Judged, g.d.Advisory...)
}

// buildDuels are the columns of a run with those of its base build.
func buildDuels(r *result.Run, columns []Column) []duel {
	base, ok := BaseBuild(r)
	if !ok {
		return nil
	}
	several := len(Builds(r)) > 2
	at := index(columns)
	var out []duel
	for i := range columns {
		c := &columns[i]
		b := at[[3]string{c.Workload, c.Cell, base}]
		if c.Build == base || b == nil {
			continue
		}
		name := c.Cell
		if several {
			name = c.Name
		}
		out = append(out, duel{name: name, primary: findWorkload(r, c.Workload).Primary, head: c, base: b})
	}
	return out
}

// cellDuels are the columns of a run with those of the reference cell.
func cellDuels(r *result.Run, columns []Column) []duel {
	at := index(columns)
	var out []duel
	for i := range columns {
		c := &columns[i]
		reference := Reference(r, c.Workload)
		b := at[[3]string{c.Workload, reference, c.Build}]
		if c.Cell != reference && b != nil {
			out = append(out, duel{name: c.Name, primary: findWorkload(r, c.Workload).Primary, head: c, base: b})
		}
	}
	return out
}

// controls compares cells that the options' own rules make alike, each for
// itself.
func controls(l *result.Loaded, thresholds Thresholds) *Controls {
	columns := Columns(l)
	at := index(columns)
	c := &Controls{Cells: []Judged{}}
	for _, w := range l.Run.Workloads {
		for _, group := range w.Inert {
			for _, build := range Builds(&l.Run) {
				var first *Column
				for _, cell := range group {
					x := at[[3]string{w.Name, cell, build}]
					if x == nil || w.Primary == "" || len(x.Samples(w.Primary)) == 0 {
						continue
					}
					if first == nil {
						first = x
						continue
					}
					j := Against(&l.Run, x, first, w.Primary, thresholds, 1)
					j.Alarm = j.Verdict == Faster || j.Verdict == Slower
					c.add(j)
				}
			}
		}
	}
	if c.Pairs == 0 {
		return nil
	}
	return c
}

// Against judges one metric of a column against another one, as one of so many
// comparisons that share the error of a call.
func Against(r *result.Run, x, first *Column, metric string, thresholds Thresholds, of int) Judged {
	m := describe(metric)
	j := Judged{
		Workload: x.Workload, Cell: x.Name + " against " + first.Name, Build: x.Build, Metric: metric, Unit: m.Unit, Better: m.Better,
		Planned: min(x.Planned, first.Planned), HeadFailed: x.Failed, BaseFailed: first.Failed, Threshold: threshold(thresholds, x.Workload, metric, m),
		HeadMedian: medianPtr(x.Samples(metric)), BaseMedian: medianPtr(first.Samples(metric)),
	}
	j.judgePairs(pairUp(x, first, metric), share(of, false), seed(r.Seed, x.Workload, x.Name, first.Name, metric))
	return j
}

func (c *Controls) add(j Judged) {
	c.Cells = append(c.Cells, j)
	c.Pairs++
	if j.Alarm {
		c.Alarms++
	}
}
