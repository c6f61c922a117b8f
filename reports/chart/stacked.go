package chart

import (
	"fmt"
	"strings"
)

// Stacked shows sums with their parts: a bar a row, from 0, cut into parts.
type Stacked struct {
	Title  string
	Unit   string
	Series []string // names of the parts, in their order; at most five
	Rows   []Sum
}

// Sum is one bar. Parts are by series; nil: there is none. Without any part Why
// says what is missing.
type Sum struct {
	Label string
	Parts []*float64
	Text  string // behind the bar; empty: the sum
	Note  string // for hovering
	Why   string
}

// words are what stands behind the bar.
func (r *Sum) words(total float64, unit string) string {
	if r.Text != "" {
		return r.Text
	}
	return Quantity(total, unit)
}

// maxParts is how many series the style tells apart.
const maxParts = 5

func (r *Sum) total() (sum float64, ok bool) {
	for _, p := range r.Parts {
		if p != nil && finite(*p) && *p >= 0 {
			sum += *p
			ok = true
		}
	}
	return sum, ok && finite(sum)
}

const (
	sumHeight = 34.0
	sumBar    = 18.0
)

func (b *Stacked) scale() (sc scale, div float64, unit string) {
	var totals []float64
	high, room := 0.0, 0.0
	for i := range b.Rows {
		if t, ok := b.Rows[i].total(); ok {
			totals = append(totals, t)
			high = max(high, t)
			room = max(room, textWidth(b.Rows[i].words(t, b.Unit)))
		}
	}
	div, unit = readable(totals, b.Unit)
	// Room for the words behind the bar, of which the right margin has some.
	return linear(0, high/div*(1+max(0.05, (room-rightMargin)/500))), div, unit
}

func (b *Stacked) height() float64 { return float64(len(b.Rows))*sumHeight + axisHeight }

func (b *Stacked) describe() string {
	var rows []string
	for i := range b.Rows {
		r := &b.Rows[i]
		t, ok := r.total()
		if !ok {
			rows = append(rows, r.Label+": "+b.missing(r))
			continue
		}
		var parts []string
		for j, p := range r.Parts {
			if p != nil && j < len(b.Series) {
				parts = append(parts, b.Series[j]+" "+Quantity(*p, b.Unit))
			}
		}
		rows = append(rows, fmt.Sprintf("%s: %s (%s)", r.Label, r.words(t, b.Unit), strings.Join(parts, ", ")))
	}
	return strings.Join(rows, "; ")
}

func (b *Stacked) missing(r *Sum) string {
	if r.Why != "" {
		return r.Why
	}
	return "no samples"
}

// SVG draws the chart for the page.
func (b *Stacked) SVG() string {
	var s svg
	s.begin(chartWidth, b.height(), b.Title, b.describe())
	b.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (b *Stacked) PNG() ([]byte, error) {
	var signs []sign
	for i, name := range b.Series {
		signs = append(signs, sign{class: seriesClass(i), text: name})
	}
	return onPaper(b.Title, signs, b.height(), b.draw)
}

func (b *Stacked) draw(s surface) {
	sc, div, unit := b.scale()
	var labels []string
	for _, r := range b.Rows {
		labels = append(labels, r.Label)
	}
	left := strongWidth(labels)
	width := chartWidth - left - rightMargin
	bottom := float64(len(b.Rows)) * sumHeight
	axis(s, sc, left, width, 0, bottom, axisTitle(unit, false))
	for i := range b.Rows {
		r := &b.Rows[i]
		top := float64(i) * sumHeight
		if i > 0 {
			s.line("row", 0, top, chartWidth, top)
		}
		s.label("lab strong", "end", left-labelMargin, top+sumHeight/2+4, labelMax, r.Label)
		y := top + (sumHeight-sumBar)/2
		total, ok := r.total()
		if !ok {
			s.text("dim small", "start", left+6, y+sumBar-5, b.missing(r))
			continue
		}
		at := 0.0
		for j, p := range r.Parts {
			if p == nil || !finite(*p) || *p <= 0 || j >= maxParts {
				continue
			}
			from, to := sc.at(at/div)*width, sc.at((at+*p)/div)*width
			at += *p
			note := Quantity(*p, b.Unit)
			if j < len(b.Series) {
				note = b.Series[j] + ": " + note
			}
			if r.Note != "" {
				note += ", " + r.Note
			}
			s.rect(seriesClass(j), left+from, y, to-from, sumBar, note)
		}
		s.text("val", "start", left+sc.at(total/div)*width+6, y+sumBar-5, r.words(total, b.Unit))
	}
}
