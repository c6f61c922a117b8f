package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Forest shows ratios to a reference with their intervals, a row a cell, the
// smallest ratio first.
type Forest struct {
	Title     string
	Reference string // what ratios are to, in words
	Band      string // what the bands of rows are, in words; empty: the threshold
	Groups    []ForestGroup
}

// ForestGroup is the rows of one metric.
type ForestGroup struct {
	Name   string // empty: no heading
	Better string // "lower", "higher", else neither
	Rows   []Effect
}

// Effect is one ratio. Without a ratio, Why says what is missing.
type Effect struct {
	Label      string
	Ratio      *float64
	Low, High  *float64 // interval
	Band       float64  // relative threshold; 0: none
	N, Planned int      // pairs
	Verdict    string   // faster, slower, same, inconclusive
	Why        string
}

func (e *Effect) drawn() bool { return e.Ratio != nil && finite(*e.Ratio) && *e.Ratio > 0 }

const (
	effectHeight = 30.0
	groupHead    = 30.0
	forestTop    = 22.0  // heads of columns
	forestRight  = 360.0 // ratio, pairs, verdict
)

// sorted is a group's rows by effect, those without one at the end.
func (g *ForestGroup) sorted() []Effect {
	rows := slices.Clone(g.Rows)
	slices.SortStableFunc(rows, func(a, b Effect) int {
		switch {
		case a.drawn() != b.drawn():
			return b2i(b.drawn()) - b2i(a.drawn())
		case !a.drawn() || *a.Ratio == *b.Ratio:
			return 0
		case *a.Ratio < *b.Ratio:
			return -1
		}
		return 1
	})
	return rows
}

// leastReach is what an axis shows at least to either side of 1: below it, ratios
// are the same to any eye.
const leastReach = 0.01

// ciReach limits how far an interval widens the axis beyond the ratios.
const ciReach = 4

// scale covers all ratios, their bands and 1. It is logarithmic where ratios
// differ by much; over a narrow range a linear one looks the same and has
// better ticks.
func (f *Forest) scale() scale {
	low, high := 1/(1+leastReach), 1+leastReach
	for _, g := range f.Groups {
		for _, e := range g.Rows {
			if e.Band > 0 && finite(e.Band) {
				low, high = min(low, 1/(1+e.Band)), max(high, 1+e.Band)
			}
			if e.drawn() && *e.Ratio < absurdSpan && *e.Ratio > 1/absurdSpan {
				low, high = min(low, *e.Ratio), max(high, *e.Ratio)
			}
		}
	}
	inner, outer := low, high
	for _, g := range f.Groups {
		for _, e := range g.Rows {
			if e.drawn() && e.Low != nil && e.High != nil && finite(*e.Low) && finite(*e.High) {
				low, high = min(low, max(*e.Low, inner/ciReach)), max(high, min(*e.High, outer*ciReach))
			}
		}
	}
	if high/low < 3 {
		pad := (high - low) * 0.06
		return linear(low-pad, high+pad)
	}
	return logarithmic(low/1.15, high*1.15)
}

func (f *Forest) height() float64 {
	h := forestTop + axisHeight
	for _, g := range f.Groups {
		h += float64(len(g.Rows)) * effectHeight
		if g.Name != "" {
			h += groupHead
		}
	}
	return h
}

// ratioWords writes a ratio with its interval.
func (e *Effect) ratioWords() string {
	if !e.drawn() {
		return "no ratio"
	}
	s := "×" + Number(*e.Ratio, "ratio")
	if e.Low != nil && e.High != nil {
		s += " [" + Number(*e.Low, "ratio") + " – " + Number(*e.High, "ratio") + "]"
	}
	return s
}

func (e *Effect) pairs() string {
	if e.Planned > 0 {
		return fmt.Sprintf("%d of %d", e.N, e.Planned)
	}
	return fmt.Sprint(e.N)
}

func (f *Forest) describe() string {
	var parts []string
	for _, g := range f.Groups {
		for _, e := range g.sorted() {
			s := e.Label + ": " + e.ratioWords() + ", " + e.pairs() + " pairs, " + e.Verdict
			if g.Name != "" {
				s = g.Name + ", " + s
			}
			parts = append(parts, s)
		}
	}
	return "Ratios to " + f.Reference + ". " + strings.Join(parts, "; ")
}

// SVG draws the chart for the page.
func (f *Forest) SVG() string {
	var s svg
	s.begin(chartWidth, f.height(), f.Title, f.describe())
	f.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (f *Forest) PNG() ([]byte, error) {
	return onPaper(f.Title, nil, f.height(), f.draw)
}

func (f *Forest) draw(s surface) {
	sc := f.scale()
	var labels []string
	for _, g := range f.Groups {
		for _, e := range g.Rows {
			labels = append(labels, e.Label)
		}
	}
	left := min(labelWidth(labels), 260)
	width := chartWidth - left - forestRight
	bottom := f.height() - axisHeight
	x := func(v float64) float64 { return left + sc.at(v)*width }
	s.text("dim small", "start", left+width+18, 13, "ratio [interval]")
	s.text("dim small", "end", left+width+248, 13, "pairs")
	s.text("dim small", "start", left+width+266, 13, "verdict")
	s.text("dim small", "middle", x(1), 13, "no change")
	title := "ratio to " + f.Reference
	if sc.log {
		title += ", logarithmic scale"
	}
	if b := f.better(); b != "" {
		title += "; " + b + " is better"
	}
	if f.banded() {
		title += "; shaded: within the " + f.band()
	}
	middle := left + width/2
	title = fit(title, 2*min(middle, chartWidth-middle))
	y := forestTop
	for _, g := range f.Groups { // bands lie under the grid
		if g.Name != "" {
			y += groupHead
		}
		for _, e := range g.sorted() {
			if e.Band > 0 && finite(e.Band) {
				s.rect("range", x(1/(1+e.Band)), y, x(1+e.Band)-x(1/(1+e.Band)), effectHeight, f.bandNote(e.Band))
			}
			y += effectHeight
		}
	}
	axis(s, sc, left, width, forestTop, bottom, title)
	s.line("unity", x(1), forestTop-4, x(1), bottom)
	y = forestTop
	for _, g := range f.Groups {
		if g.Name != "" {
			s.line("row", 0, y, chartWidth, y)
			s.text("lab strong", "start", 0, y+20, fit(g.Name, left+width))
			y += groupHead
		}
		for _, e := range g.sorted() {
			f.effect(s, &e, y, left, width, sc)
			y += effectHeight
		}
	}
}

// better is the direction that all groups share, if it is one.
func (f *Forest) better() string {
	out := ""
	for i, g := range f.Groups {
		if g.Better != "lower" && g.Better != "higher" || i > 0 && g.Better != out {
			return ""
		}
		out = g.Better
	}
	return out
}

func (f *Forest) band() string {
	if f.Band == "" {
		return "threshold"
	}
	return f.Band
}

func (f *Forest) bandNote(relative float64) string {
	if f.Band == "" {
		return "threshold: within ±" + Number(relative*100, "%") + " % counts as the same"
	}
	return f.Band + ": ±" + Number(relative*100, "%") + " %"
}

func (f *Forest) banded() bool {
	for _, g := range f.Groups {
		for _, e := range g.Rows {
			if e.Band > 0 && finite(e.Band) {
				return true
			}
		}
	}
	return false
}

// verdictClass is the class of what a verdict is drawn in.
func verdictClass(v string) string {
	switch v {
	case "faster", "slower", "same":
		return v
	}
	return "unsure"
}

func (f *Forest) effect(s surface, e *Effect, y, left, width float64, sc scale) {
	mid := y + effectHeight/2
	s.label("lab", "end", left-labelMargin, mid+4, left-labelMargin, e.Label)
	right := left + width
	if !e.drawn() {
		why := e.Why
		if why == "" {
			why = "no ratio"
		}
		s.text("marktext", "start", left+8, mid+4, fit(why, width-12))
	} else {
		f.whisker(s, e, mid, left, width, sc)
		s.text("val", "start", right+18, mid+4, e.ratioWords())
	}
	s.text("dim", "end", right+248, mid+4, e.pairs())
	class := verdictClass(e.Verdict)
	s.text(map[string]string{"faster": "good", "slower": "bad", "same": "val", "unsure": "dim"}[class], "start", right+282, mid+4, e.Verdict)
	verdictSign(s, class, right+270, mid, 5, "")
}

// whisker draws a ratio with its interval; an end beyond the axis is an arrow.
func (f *Forest) whisker(s surface, e *Effect, mid, left, width float64, sc scale) {
	class := verdictClass(e.Verdict)
	x := func(v float64) float64 { return left + sc.at(v)*width }
	note := e.Label + ": " + e.ratioWords() + ", " + e.pairs() + " pairs, " + e.Verdict
	if e.Why != "" {
		note += ". " + e.Why
	}
	if e.Low != nil && e.High != nil && finite(*e.Low) && finite(*e.High) {
		low, high := x(*e.Low), x(*e.High)
		s.line("w"+class, low, mid, high, mid)
		for _, end := range []struct {
			at, dir float64
			beyond  bool
		}{{low, -1, *e.Low < sc.min}, {high, 1, *e.High > sc.max}} {
			if end.beyond {
				s.poly("w"+class, [][2]float64{{end.at - end.dir*6, mid - 5}, {end.at, mid}, {end.at - end.dir*6, mid + 5}}, false, "the interval goes on")
				continue
			}
			s.line("w"+class, end.at, mid-5, end.at, mid+5)
		}
	}
	verdictSign(s, class, x(*e.Ratio), mid, 6, note)
}

// verdictSign draws the sign of a verdict: a disc, a triangle that points up, a
// square, a ring.
func verdictSign(s surface, class string, x, y, r float64, title string) {
	switch class {
	case "slower":
		s.poly(class, [][2]float64{{x, y - r*1.2}, {x + r*1.15, y + r*0.9}, {x - r*1.15, y + r*0.9}}, true, title)
	case "same":
		s.rect(class, x-r*0.8, y-r*0.8, r*1.6, r*1.6, title)
	default:
		s.circle(class, x, y, math.Max(r-1, 1), title)
	}
}
