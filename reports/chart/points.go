package chart

import (
	"fmt"
	"strings"
)

// Points shows every sample of one metric, a row a cell.
type Points struct {
	Title string
	Unit  string
	Rows  []Row
}

// Row is one cell of Points.
type Row struct {
	Label   string
	Values  []Value
	Planned int
	Failed  int
	Median  *float64
	Low     *float64 // interval of the median
	High    *float64
}

// Value is one sample.
type Value struct {
	V    float64
	Note string // which one it is
}

func (p *Points) values() []float64 {
	var vs []float64
	for _, r := range p.Rows {
		for _, v := range r.Values {
			if finite(v.V) {
				vs = append(vs, v.V)
			}
		}
	}
	return vs
}

// count says how many samples of how many trials a row has.
func (r *Row) count() string {
	s := fmt.Sprintf("%d of %d", len(r.Values), r.Planned)
	if r.Failed > 0 {
		s += fmt.Sprintf(", %d failed", r.Failed)
	}
	return s
}

// Sizes of the row charts in SVG, in px.
const (
	chartWidth  = 1040.0
	rowHeight   = 40.0
	axisHeight  = 44.0
	labelMax    = 300.0
	labelMargin = 14.0
	rightMargin = 118.0
)

// labelWidth is the width of the column of row labels.
func labelWidth(labels []string) float64 {
	w := 60.0
	for _, l := range labels {
		w = max(w, textWidth(l))
	}
	return min(w, labelMax) + labelMargin
}

// strongWidth is the room that labels in bold take.
func strongWidth(labels []string) float64 { return labelWidth(labels) + 10 }

// describe says in words what the points show.
func (p *Points) describe() string {
	var parts []string
	for _, r := range p.Rows {
		if r.Median == nil {
			parts = append(parts, r.Label+": no samples")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s: median %s, %s trials", r.Label, Quantity(*r.Median, p.Unit), r.count()))
	}
	return strings.Join(parts, "; ")
}

func (p *Points) height() float64 { return float64(len(p.Rows))*rowHeight + axisHeight }

// SVG draws the chart for the page.
func (p *Points) SVG() string {
	var s svg
	s.begin(chartWidth, p.height(), p.Title, p.describe())
	p.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (p *Points) PNG() ([]byte, error) { return onPaper(p.Title, nil, p.height(), p.draw) }

func (p *Points) draw(s surface) {
	div, unit := readable(p.values(), p.Unit)
	var scaled []float64
	for _, v := range p.values() {
		scaled = append(scaled, v/div)
	}
	sc := newScale(scaled)
	var labels []string
	for _, r := range p.Rows {
		labels = append(labels, r.Label)
	}
	left := labelWidth(labels)
	width := chartWidth - left - rightMargin
	bottom := float64(len(p.Rows)) * rowHeight
	axis(s, sc, left, width, 0, bottom, axisTitle(unit, sc.log))
	x := func(v float64) float64 { return left + sc.at(v/div)*width }
	for i, r := range p.Rows {
		top := float64(i) * rowHeight
		mid := top + rowHeight/2
		if i > 0 {
			s.line("row", 0, top, chartWidth, top)
		}
		s.label("lab", "end", left-labelMargin, mid+4, labelMax, r.Label)
		if r.Median != nil {
			s.text("val", "start", left+width+10, mid-3, Quantity(*r.Median, p.Unit))
			s.text("dim small", "start", left+width+10, mid+12, r.count())
		} else {
			s.text("dim small", "start", left+width+10, mid+4, r.count())
		}
		if r.Low != nil && r.High != nil {
			s.rect("ci", x(*r.Low), mid-11, x(*r.High)-x(*r.Low), 22, fmt.Sprintf("95 %% interval of the median: %s to %s", Quantity(*r.Low, p.Unit), Quantity(*r.High, p.Unit)))
		}
		for j, v := range r.Values {
			if finite(v.V) {
				s.circle("pt", x(v.V), mid+jitter(j, len(r.Values))*18, 4, Quantity(v.V, p.Unit)+" – "+v.Note)
			}
		}
		if r.Median != nil {
			s.rect("med", x(*r.Median)-1.25, mid-14, 2.5, 28, "median "+Quantity(*r.Median, p.Unit))
		} else {
			s.text("dim", "start", left+8, mid+4, "no samples")
		}
	}
}

// axisTitle names what an axis counts.
func axisTitle(unit string, log bool) string {
	if unit == "s" {
		unit = "seconds"
	}
	if log {
		return strings.TrimPrefix(unit+", logarithmic scale", ", ")
	}
	return unit
}

// axis draws grid lines and the horizontal axis below them.
func axis(s surface, sc scale, left, width, top, bottom float64, title string) {
	s.line("axis", left, bottom, left+width, bottom)
	edge := -1e9
	for _, t := range sc.ticks {
		x := left + sc.at(t.value)*width
		if t.label == "" {
			s.line("axis", x, bottom, x, bottom+3)
			continue
		}
		s.line("grid", x, top, x, bottom)
		if half := textWidth(t.label) / 2; x-half > edge+6 {
			s.text("tick", "middle", x, bottom+16, t.label)
			edge = x + half
		}
	}
	s.text("dim", "middle", left+width/2, bottom+36, title)
}
