package chart

import (
	"fmt"
	"strings"
)

// Bars compares medians of several metrics, a group of bars a cell.
type Bars struct {
	Title  string
	Unit   string
	Series []string // names, in the order of the bars; at most four
	Groups []Group
}

// Group is one cell of Bars. Values are by series; nil: no samples.
type Group struct {
	Label  string
	Values []*float64
	Notes  []string // of the values, for hovering
	// Intervals of the values, by series; nil: none is known.
	Low, High []*float64
}

// interval is that of a value, if it is known.
func (g *Group) interval(series int) (low, high float64, ok bool) {
	if series >= len(g.Low) || series >= len(g.High) || g.Low[series] == nil || g.High[series] == nil {
		return 0, 0, false
	}
	low, high = *g.Low[series], *g.High[series]
	return low, high, finite(low) && finite(high) && high >= low
}

func (b *Bars) values() []float64 {
	var vs []float64
	for _, g := range b.Groups {
		for _, v := range g.Values {
			if v != nil && finite(*v) {
				vs = append(vs, *v)
			}
		}
		for i := range g.Values {
			if _, high, ok := g.interval(i); ok {
				vs = append(vs, high)
			}
		}
	}
	return vs
}

// scale of bars always begins at 0, as their length is what is seen.
func (b *Bars) scale() (sc scale, div float64, unit string) {
	div, unit = readable(b.values(), b.Unit)
	high := 0.0
	for _, v := range b.values() {
		high = max(high, v/div)
	}
	return linear(0, high*1.02), div, unit
}

const (
	barHeight = 15.0
	barGap    = 2.0
	groupGap  = 18.0
)

func (b *Bars) groupHeight() float64 {
	return float64(len(b.Series))*(barHeight+barGap) + groupGap
}

func (b *Bars) describe() string {
	var parts []string
	for _, g := range b.Groups {
		var vs []string
		for i, v := range g.Values {
			if v != nil {
				s := b.Series[i] + " " + Quantity(*v, b.Unit)
				if low, high, ok := g.interval(i); ok {
					s += " [" + Number(low, b.Unit) + " – " + Number(high, b.Unit) + "]"
				}
				vs = append(vs, s)
			}
		}
		if len(vs) == 0 {
			vs = []string{"no samples"}
		}
		parts = append(parts, g.Label+": "+strings.Join(vs, ", "))
	}
	return strings.Join(parts, "; ")
}

func (b *Bars) height() float64 { return float64(len(b.Groups))*b.groupHeight() + axisHeight }

// SVG draws the chart for the page.
func (b *Bars) SVG() string {
	var s svg
	s.begin(chartWidth, b.height(), b.Title, b.describe())
	b.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (b *Bars) PNG() ([]byte, error) {
	var signs []sign
	for i, name := range b.Series {
		signs = append(signs, sign{class: seriesClass(i), text: name})
	}
	return onPaper(b.Title, signs, b.height(), b.draw)
}

func seriesClass(i int) string { return fmt.Sprintf("s%d", i+1) }

func (b *Bars) draw(s surface) {
	sc, div, unit := b.scale()
	var labels []string
	for _, g := range b.Groups {
		labels = append(labels, g.Label)
	}
	left := strongWidth(labels)
	width := chartWidth - left - rightMargin
	bottom := float64(len(b.Groups)) * b.groupHeight()
	axis(s, sc, left, width, 0, bottom, axisTitle(unit, false))
	for i, g := range b.Groups {
		top := float64(i) * b.groupHeight()
		if i > 0 {
			s.line("row", 0, top, chartWidth, top)
		}
		s.label("lab strong", "end", left-labelMargin, top+b.groupHeight()/2+4, labelMax, g.Label)
		for j, v := range g.Values {
			y := top + groupGap/2 + float64(j)*(barHeight+barGap)
			if v == nil {
				s.text("dim small", "start", left+6, y+barHeight-3.5, "no samples: "+b.Series[j])
				continue
			}
			w := sc.at(*v/div) * width
			note := b.Series[j] + ": " + Quantity(*v, b.Unit)
			if j < len(g.Notes) && g.Notes[j] != "" {
				note += ", " + g.Notes[j]
			}
			s.rect(seriesClass(j), left, y, max(w, 1.5), barHeight, note)
			end := left + max(w, 1.5)
			if low, high, ok := g.interval(j); ok {
				from, to := left+sc.at(low/div)*width, left+sc.at(high/div)*width
				s.line("whisker", from, y+barHeight/2, to, y+barHeight/2)
				for _, x := range []float64{from, to} {
					s.line("whisker", x, y+3, x, y+barHeight-3)
				}
				end = max(end, to)
			}
			s.text("val", "start", end+6, y+barHeight-3.5, Quantity(*v, b.Unit))
		}
	}
}
