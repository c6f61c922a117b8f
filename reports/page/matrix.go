package page

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// axis is one axis of a workload's matrix with the values that its cells have.
type axis struct {
	name   string
	values []string
}

// axes reads the matrix out of the cells' ids. Ids that do not all have the
// same axes give none.
func axes(cells []string) []axis {
	var out []axis
	for i, c := range cells {
		parts := strings.Split(c, ",")
		if i > 0 && len(parts) != len(out) {
			return nil
		}
		for k, p := range parts {
			name, value, ok := strings.Cut(p, "=")
			switch {
			case !ok:
				return nil
			case i == 0:
				out = append(out, axis{name: name})
			case out[k].name != name:
				return nil
			}
			if !slices.Contains(out[k].values, value) {
				out[k].values = append(out[k].values, value)
			}
		}
	}
	return out
}

var number = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$`)

// numeric tells whether all values of an axis are numbers of one unit, and
// sorts them.
func (a *axis) numeric() bool {
	unit := ""
	size := map[string]float64{}
	for i, v := range a.values {
		m := number.FindStringSubmatch(v)
		if m == nil || i > 0 && m[2] != unit {
			return false
		}
		unit = m[2]
		size[v], _ = strconv.ParseFloat(m[1], 64)
	}
	slices.SortStableFunc(a.values, func(x, y string) int {
		switch {
		case size[x] < size[y]:
			return -1
		case size[x] > size[y]:
			return 1
		}
		return 0
	})
	return true
}

// Limits of a heat map that can still be read.
const (
	heatRows    = 24
	heatColumns = 8
)

// heat draws the matrix of the primary metric if it has two axes or more: one
// axis, a numeric one if there is one, down, all others across.
func (w *workloadView) heat() {
	if w.twinned() && len(w.spec.ScenarioAxes) > 0 {
		return // cells in which nothing happens are no place of such a matrix
	}
	var cells []string
	builds := verdict.Builds(w.run)
	build := builds[len(builds)-1]
	at := map[string]int{}
	for i, c := range w.columns {
		if c.Build == build {
			cells = append(cells, c.Cell)
			at[c.Cell] = i
		}
	}
	all := axes(cells)
	down := -1
	numeric := false
	several := 0
	for i := range all {
		if len(all[i].values) < 2 {
			continue
		}
		several++
		n := all[i].numeric()
		if down < 0 || n && !numeric || n == numeric && len(all[i].values) > len(all[down].values) {
			down, numeric = i, n
		}
	}
	if several < 2 || !w.has(w.spec.Primary) {
		return
	}
	var across []string // cells without the axis that goes down
	rest := func(cell string) string {
		parts := strings.Split(cell, ",")
		return strings.Join(slices.Delete(parts, down, down+1), ",")
	}
	for _, c := range cells {
		if r := rest(c); !slices.Contains(across, r) {
			across = append(across, r)
		}
	}
	if len(all[down].values) > heatRows || len(across) > heatColumns {
		return
	}
	m := metricOf(w.spec.Primary)
	h := &chart.Heat{Title: w.Name + ": median " + short(w.spec.Primary), Unit: m.Unit, Row: all[down].name, Column: "options"}
	if len(all) == 2 {
		h.Column = all[1-down].name
	}
	for _, r := range across {
		text := label(r)
		if len(all) == 2 {
			_, text, _ = strings.Cut(r, "=")
			text = unescape(text)
		}
		h.Columns = append(h.Columns, text)
	}
	for _, v := range all[down].values {
		h.Rows = append(h.Rows, unescape(v))
		var fields []chart.Field
		for _, r := range across {
			parts := slices.Insert(strings.Split(r, ","), down, all[down].name+"="+v)
			i, ok := at[strings.Join(parts, ",")]
			if !ok {
				fields = append(fields, chart.Field{Why: "not in the matrix"})
				continue
			}
			fields = append(fields, w.heatField(i))
		}
		h.Fields = append(h.Fields, fields)
	}
	title := "The matrix: median " + short(w.spec.Primary)
	if len(builds) > 1 {
		title += " of " + build
	}
	note := w.spec.Primary
	if m.Better != result.Neutral {
		note += ", " + string(m.Better) + " is better"
	}
	w.Heats = append(w.Heats, figure{ID: w.ID + "-matrix", Title: title, Note: note, File: plotName(w.Name, "matrix"), SVG: template.HTML(h.SVG()), picture: h})
}

func unescape(v string) string {
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}

// heatField is one cell's median, or why there is none.
func (w *workloadView) heatField(i int) chart.Field {
	c := &w.columns[i]
	s, ok := w.stat(i, w.spec.Primary)
	if ok {
		f := chart.Field{Value: &s.Median, Sub: fmt.Sprintf("%d of %d", s.N, s.Planned)}
		if s.Failed > 0 {
			f.Sub += fmt.Sprintf(", %d failed", s.Failed)
		}
		return f
	}
	unsupported := 0
	for _, t := range c.Trials {
		if t.Outcome == result.Unsupported {
			unsupported++
		}
	}
	switch {
	case unsupported > 0:
		return chart.Field{Why: "not supported"}
	case c.Failed > 0:
		return chart.Field{Why: fmt.Sprintf("%d failed", c.Failed)}
	case len(c.Trials) == 0:
		return chart.Field{Why: "not run"}
	}
	return chart.Field{Why: "not reached"}
}
