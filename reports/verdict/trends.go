package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/stats"
)

const (
	// trendP is the significance of a change point. Of ten nights it finds a
	// clean step that leaves three or more on either side, and of a quiet series one
	// in fifty has a change: advice, no gate.
	trendP = 0.02
	// trendSize is the change below which nobody looks.
	trendSize = 0.05
	// trendNights is how far back change points are looked for.
	trendNights = 50
)

// Trends lays runs side by side in the order of their dates. Where a run has a
// base build, the value of a night is the ratio to it, block by block, so that
// what the machine did to both cancels; else it is the median of the one build.
// Of runs with the same id the first counts.
func Trends(runs []*result.Loaded) *Trend {
	t := &Trend{Schema: result.Schema, Nights: []Night{}, Series: []Series{}}
	nights := slices.Clone(runs)
	for i, l := range nights {
		nights[i] = l.Settled()
	}
	slices.SortStableFunc(nights, func(a, b *result.Loaded) int {
		if c := a.Run.Started.Compare(b.Run.Started); c != 0 {
			return c
		}
		return strings.Compare(a.Run.Run, b.Run.Run)
	})
	seen := map[string]bool{}
	nights = slices.DeleteFunc(nights, func(l *result.Loaded) bool {
		if seen[l.Run.Run] {
			t.warn("the run %s is there twice; one counts", l.Run.Run)
			return true
		}
		seen[l.Run.Run] = true
		return false
	})
	s := &serieses{at: map[[4]string]int{}, last: map[int]*result.Loaded{}}
	for i, l := range nights {
		n := night(l)
		if i > 0 {
			n.Note = note(nights[i-1], l)
		}
		t.Nights = append(t.Nights, n)
		s.add(t, i, l)
	}
	t.Series = append(t.Series, s.all...)
	for i := range t.Series {
		t.changes(&t.Series[i])
	}
	t.doubts(nights)
	return t
}

func (t *Trend) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(t.Warnings, w) {
		t.Warnings = append(t.Warnings, w)
	}
}

func night(l *result.Loaded) Night {
	n := Night{Run: l.Run.Run, Date: l.Run.Started, Machine: machineWords(l.Run.Machine), Revision: l.Run.Tool.Revision}
	builds := Builds(&l.Run)
	if _, ok := BaseBuild(&l.Run); ok && len(builds) > 1 {
		n.Reference = revision(&l.Run, builds[0])
		n.Revision = revision(&l.Run, builds[1])
	} else if len(builds) == 1 && l.Run.Builds[builds[0]].Revision != "" {
		n.Revision = l.Run.Builds[builds[0]].Revision
	}
	return n
}

// revision names a build: by its revision, else by the hash of the file.
func revision(r *result.Run, build string) string {
	b := r.Builds[build]
	if b.Revision != "" {
		return b.Revision
	}
	if len(b.SHA256) > 12 {
		return b.SHA256[:12]
	}
	return build
}

func machineWords(m result.Machine) string {
	var out []string
	for _, s := range []string{m.Hostname, m.CPUModel} {
		if s != "" {
			out = append(out, s)
		}
	}
	if m.Cores > 0 {
		out = append(out, fmt.Sprintf("%d cores", m.Cores))
	}
	if m.Kernel != "" {
		out = append(out, m.Kernel)
	}
	return strings.Join(out, ", ")
}

// note tells what changed between two nights beside the revision.
func note(before, after *result.Loaded) string {
	notes := slices.Concat(before.Run.Machine.Differences(after.Run.Machine), before.Run.Machine.Doubts(after.Run.Machine))
	if x, y := before.Run.Machine.Kernel, after.Run.Machine.Kernel; x != y {
		notes = append(notes, fmt.Sprintf("kernel: %s, not %s", orUnknown(y), orUnknown(x)))
	}
	for i := range after.Run.Workloads {
		w := &after.Run.Workloads[i]
		old := findWorkload(&before.Run, w.Name)
		switch {
		case old == nil:
			notes = append(notes, "new workload "+w.Name)
		case old.SHA256 != w.SHA256 || old.Text != w.Text:
			notes = append(notes, "another text of "+w.Name)
		case old.Primary != w.Primary:
			notes = append(notes, "another primary metric of "+w.Name)
		}
	}
	for i := range before.Run.Workloads {
		if name := before.Run.Workloads[i].Name; findWorkload(&after.Run, name) == nil {
			notes = append(notes, "without the workload "+name)
		}
	}
	for _, name := range sortedKeys(after.Run.Targets) {
		if x, ok := before.Run.Targets[name]; ok && x != after.Run.Targets[name] {
			notes = append(notes, fmt.Sprintf("target %s: %s, not %s", name, after.Run.Targets[name], x))
		}
	}
	if x, y := changes(before.Run.Overrides), changes(after.Run.Overrides); !slices.Equal(x, y) {
		notes = append(notes, fmt.Sprintf("overrides: %q, not %q", y, x))
	}
	if a, b := Builds(&before.Run), Builds(&after.Run); len(a) > 1 && len(b) > 1 {
		if x, y := revision(&before.Run, a[0]), revision(&after.Run, b[0]); x != y {
			notes = append(notes, fmt.Sprintf("another reference build: %s, not %s", y, x))
		}
	}
	return strings.Join(notes, "; ")
}

// cut tells why a series does not run on from one night to another: what was
// measured, what with or where was not the same, so that no change between them
// is one of the head.
func cut(before, after *result.Loaded, workload string) string {
	causes := before.Run.Machine.Differences(after.Run.Machine)
	if x, y := findWorkload(&before.Run, workload), findWorkload(&after.Run, workload); x.SHA256 != y.SHA256 || x.Text != y.Text {
		causes = append(causes, "another text of the workload: "+firstDifference(x.Text, y.Text))
	}
	if x, y := changes(before.Run.Overrides), changes(after.Run.Overrides); !slices.Equal(x, y) {
		causes = append(causes, fmt.Sprintf("overrides: %q, not %q", y, x))
	}
	x, y := Builds(&before.Run), Builds(&after.Run)
	if len(x) > 1 && len(y) > 1 {
		if a, b := before.Run.Builds[x[0]], after.Run.Builds[y[0]]; !sameReference(a, b) {
			causes = append(causes, fmt.Sprintf("another reference build: %s, not %s", revision(&after.Run, y[0]), revision(&before.Run, x[0])))
		}
	}
	return strings.Join(causes, "; ")
}

// sameReference tells whether a pinned build is still the same. Built anew from
// one revision it is another file, and the same program.
func sameReference(a, b result.Build) bool {
	if a.Revision != "" || b.Revision != "" {
		return a.Revision == b.Revision
	}
	return a.SHA256 == b.SHA256
}

// serieses are the series in the making, in the order of their first nights.
type serieses struct {
	all []Series
	at  map[[4]string]int
	// last is the run of a series' last point.
	last map[int]*result.Loaded
}

func (s *serieses) add(t *Trend, night int, l *result.Loaded) {
	columns := Columns(l)
	at := index(columns)
	builds := Builds(&l.Run)
	if _, ok := BaseBuild(&l.Run); !ok {
		t.warn("%s: it is not known which of the builds is the base build; the night has no value", l.Run.Run)
		return
	}
	for i := range columns {
		c := &columns[i]
		w := findWorkload(&l.Run, c.Workload)
		if w.Primary == "" || c.Planned == 0 || len(builds) > 1 && c.Build == builds[0] {
			continue
		}
		m := describe(w.Primary)
		name, unit := c.Cell, m.Unit
		var p Point
		var ok bool
		if len(builds) > 1 {
			unit = "ratio"
			if len(builds) > 2 {
				name = c.Name
			}
			p, ok = ratioPoint(c, at[[3]string{c.Workload, c.Cell, builds[0]}], w.Primary)
		} else {
			p, ok = medianPoint(c, w.Primary)
		}
		key := [4]string{c.Workload, name, w.Primary, unit}
		k, have := s.at[key]
		if !have {
			k = len(s.all)
			s.at[key] = k
			s.all = append(s.all, Series{Workload: c.Workload, Cell: name, Metric: w.Primary, Unit: unit, Better: string(m.Better), Points: []Point{}, Changes: []Change{}})
		}
		if !ok {
			t.warn("%s: %s %s has no value of %s", l.Run.Run, c.Workload, name, w.Primary)
			continue
		}
		p.Night = night
		if before := s.last[k]; before != nil {
			if p.Cut = cut(before, l, c.Workload); p.Cut != "" {
				t.warn("%s is cut before %s, %s: %s; changes are looked for on either side alone", c.Workload, l.Run.Started.UTC().Format("2006-01-02"), l.Run.Run, p.Cut)
			}
		}
		s.last[k] = l
		s.all[k].Points = append(s.all[k].Points, p)
	}
}

func ratioPoint(head, base *Column, metric string) (Point, bool) {
	a, b := Pair(head, base, metric)
	if 2*len(a) < min(head.Planned, base.Planned) {
		return Point{}, false
	}
	r, ok := stats.Ratios(a, b)
	if !ok {
		return Point{}, false
	}
	p := Point{Value: r.Ratio, N: r.N}
	if r.CI != nil && r.N >= MinPairs {
		p.Low, p.High = finitePtr(r.CI.Low), finitePtr(r.CI.High)
	}
	return p, true
}

func medianPoint(c *Column, metric string) (Point, bool) {
	d, ok := stats.Describe(c.Samples(metric))
	if !ok || 2*d.N < c.Planned {
		return Point{}, false
	}
	p := Point{Value: d.Median, N: d.N}
	if d.CI != nil {
		p.Low, p.High = &d.CI.Low, &d.CI.High
	}
	return p, true
}

// changes finds the change points of a series, within each stretch that no cut
// parts.
func (t *Trend) changes(s *Series) {
	points := s.Points[max(0, len(s.Points)-trendNights):]
	for len(points) > 0 {
		end := 1
		for end < len(points) && points[end].Cut == "" {
			end++
		}
		t.stretch(s, points[:end])
		points = points[end:]
	}
}

func (t *Trend) stretch(s *Series, points []Point) {
	values := make([]float64, len(points))
	for i, p := range points {
		if !(p.Value > 0) {
			return // no ratio, and no size of a change
		}
		values[i] = math.Log(p.Value)
	}
	found := stats.ChangePoints(values, trendP, seed(0, s.Workload, s.Cell, s.Metric))
	for len(found) > 0 {
		levels := stats.SegmentMedians(values, found)
		// A step too small to look at goes, and its parts become one.
		least := 0
		for i := range found {
			if math.Abs(levels[i+1]-levels[i]) < math.Abs(levels[least+1]-levels[least]) {
				least = i
			}
		}
		if math.Abs(levels[least+1]-levels[least]) < math.Log1p(trendSize) {
			found = slices.Delete(found, least, least+1)
			continue
		}
		for i, c := range found {
			s.Changes = append(s.Changes, t.change(s, points, c, levels[i], levels[i+1]))
		}
		return
	}
}

func (t *Trend) change(s *Series, points []Point, c stats.ChangePoint, before, after float64) Change {
	n := points[c.Index].Night
	out := Change{
		Night: n, Date: t.Nights[n].Date, Before: math.Exp(before), After: math.Exp(after), Size: math.Expm1(after - before), P: c.P,
		From: t.Nights[points[c.Index-1].Night].Revision, To: t.Nights[n].Revision, Verdict: Inconclusive,
	}
	if s.Better != string(result.Neutral) {
		out.Verdict = direction((after > before) == (s.Better == string(result.Higher)))
	}
	return out
}

// doubts warns of what makes a trend less than it seems.
func (t *Trend) doubts(nights []*result.Loaded) {
	switch len(nights) {
	case 0:
		t.warn("there is no night")
	case 1:
		t.warn("one night is no trend")
	}
	raw := 0
	for _, n := range t.Nights {
		if n.Reference == "" {
			raw++
		}
	}
	if raw > 0 {
		t.warn("%d of %d nights have no reference build: their medians hold what the machine did that night", raw, len(t.Nights))
	}
	if raw > 0 && raw < len(t.Nights) {
		t.warn("nights with and without a reference build are series of their own")
	}
	for _, s := range t.Series {
		if n := len(s.Points); n > 0 && n < len(t.Nights) {
			t.warn("%s %s %s: %d of %d nights have a value", s.Workload, s.Cell, s.Metric, n, len(t.Nights))
		}
	}
}
