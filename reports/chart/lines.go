package chart

import (
	"fmt"
	"math"
	"strings"
)

// Lines shows how one value went from night to night, with the points in time
// at which it moved.
type Lines struct {
	Title   string
	Unit    string // "ratio", or of a metric
	Dates   []string
	Points  []NightPoint // in the order of nights
	Changes []Step
	Notes   []NightNote
	Unity   bool // a line at 1
}

// NightPoint is one night's value.
type NightPoint struct {
	Night     int // index into Dates
	Value     float64
	Low, High *float64
	Note      string // for hovering
}

// Step is a move of the level.
type Step struct {
	Night         int // the first at the new level
	Before, After float64
	Verdict       string // faster or slower
	Text          string // date and size
}

// NightNote is what else changed in a night.
type NightNote struct {
	Night int
	Text  string
}

const (
	linesPlot   = 240.0
	linesRight  = 30.0
	dateHeight  = 50.0
	maxNights   = 100_000 // beyond it nothing could be told apart
	dateSpacing = 92.0
)

func (l *Lines) lay() (sc scale, div float64, unit string) {
	values := []float64{}
	for _, p := range l.Points {
		values = append(values, p.Value)
	}
	div, unit = readable(values, l.Unit)
	low, high := math.Inf(1), math.Inf(-1)
	see := func(v float64) {
		if finite(v) {
			low, high = min(low, v/div), max(high, v/div)
		}
	}
	for _, p := range l.Points {
		see(p.Value)
	}
	inner, outer := low, high
	for _, p := range l.Points {
		if p.Low != nil && p.High != nil && finite(*p.Low) && finite(*p.High) && outer >= inner {
			room := max(2*(outer-inner), outer*0.5)
			see(max(*p.Low, (inner-room)*div))
			see(min(*p.High, (outer+room)*div))
		}
	}
	for _, c := range l.Changes {
		see(c.Before)
		see(c.After)
	}
	if l.Unity {
		see(div)
	}
	if high < low {
		return linear(0, 1), div, unit
	}
	if low > 0 && high/low >= logSpan && high/low < absurdSpan {
		return logarithmic(low/1.15, high*1.15), div, unit
	}
	pad := max((high-low)*0.08, math.Abs(high)*0.02)
	return linear(low-pad, high+pad), div, unit
}

// heads are the rows of texts above the plot.
func (l *Lines) heads() []placed {
	out := layout{left: linesLeft, width: chartWidth - linesLeft - linesRight, scale: l.nights()}
	var marks []Mark
	for _, c := range l.Changes {
		marks = append(marks, Mark{T: float64(c.Night), Text: c.Text, Fault: true})
	}
	for _, n := range l.Notes {
		marks = append(marks, Mark{T: float64(n.Night), Text: fit(n.Text, 320)})
	}
	out.place(marks)
	return out.marks
}

const linesLeft = 74.0

// nights is the axis of time: the nights in even steps, each with its date.
func (l *Lines) nights() scale {
	n := float64(max(len(l.Dates), 1))
	return scale{min: -0.5, max: n - 0.5}
}

func (l *Lines) top() float64 {
	rows := 0
	for _, m := range l.heads() {
		if !m.mute {
			rows = max(rows, m.row+1)
		}
	}
	return float64(rows)*markRow + 10
}

func (l *Lines) height() float64 { return l.top() + linesPlot + dateHeight }

func (l *Lines) describe() string {
	var parts []string
	if n := len(l.Points); n > 0 {
		parts = append(parts, fmt.Sprintf("%d nights, the last at %s", n, Quantity(l.Points[n-1].Value, l.Unit)))
	} else {
		parts = append(parts, "no nights")
	}
	for _, c := range l.Changes {
		parts = append(parts, c.Text+", "+c.Verdict)
	}
	for _, n := range l.Notes {
		parts = append(parts, n.Text)
	}
	return strings.Join(parts, "; ")
}

// SVG draws the chart for the page.
func (l *Lines) SVG() string {
	var s svg
	s.begin(chartWidth, l.height(), l.Title, l.describe())
	l.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (l *Lines) PNG() ([]byte, error) { return onPaper(l.Title, nil, l.height(), l.draw) }

func (l *Lines) draw(s surface) {
	sc, div, unit := l.lay()
	nights := l.nights()
	top := l.top()
	bottom := top + linesPlot
	width := chartWidth - linesLeft - linesRight
	x := func(night int) float64 { return linesLeft + nights.at(float64(night))*width }
	y := func(v float64) float64 { return bottom - sc.at(v/div)*linesPlot }
	for _, t := range sc.ticks {
		if t.label == "" {
			continue
		}
		at := bottom - sc.at(t.value)*linesPlot
		s.line("grid", linesLeft, at, linesLeft+width, at)
		s.text("tick", "end", linesLeft-8, at+4, t.label)
	}
	name := axisTitle(unit, sc.log)
	if l.Unit == "ratio" {
		name = strings.Replace(name, "ratio", "ratio to reference", 1)
	}
	s.line("axis", linesLeft, bottom, linesLeft+width, bottom)
	l.dates(s, x, bottom, width)
	s.text("dim", "middle", linesLeft+width/2, bottom+38, "night; vertical axis: "+name)
	if l.Unity && finite(div) {
		s.line("unity", linesLeft, y(1), linesLeft+width, y(1))
	}
	l.levels(s, x, y)
	l.heading(s, x, bottom)
	l.dots(s, sc, div, x, y)
}

func (l *Lines) dates(s surface, x func(int) float64, bottom, width float64) {
	n := len(l.Dates)
	if n == 0 || n > maxNights {
		return
	}
	every := max(1, int(math.Ceil(float64(n)*dateSpacing/width)))
	for i, d := range l.Dates {
		s.line("axis", x(i), bottom, x(i), bottom+3+3*float64(b2i(i%every == 0)))
		if i%every == 0 {
			s.text("tick", "middle", x(i), bottom+20, d)
		}
	}
}

// levels draws the level of each stretch between changes.
func (l *Lines) levels(s surface, x func(int) float64, y func(float64) float64) {
	if len(l.Changes) == 0 || len(l.Points) == 0 {
		return
	}
	from := float64(l.Points[0].Night)
	at := func(night float64) float64 { return x(0) + (x(1)-x(0))*night }
	for i, c := range l.Changes {
		until := float64(c.Night) - 0.5
		s.line("level", at(from-0.3*float64(b2i(i == 0))), y(c.Before), at(until), y(c.Before))
		from = until
	}
	last := l.Changes[len(l.Changes)-1]
	s.line("level", at(from), y(last.After), at(float64(l.Points[len(l.Points)-1].Night)+0.3), y(last.After))
}

func (l *Lines) heading(s surface, x func(int) float64, bottom float64) {
	verdicts := map[int]string{}
	for _, c := range l.Changes {
		verdicts[c.Night] = c.Verdict
	}
	// class is what a mark is drawn in: a change in the colour of its verdict.
	class := func(m placed) (line, text string) {
		v := verdicts[int(m.T)]
		if m.Fault && (v == "slower" || v == "faster") {
			return "ch" + v, v + "text"
		}
		return "mark", "marktext"
	}
	marks := l.heads()
	for _, m := range marks {
		line, _ := class(m)
		s.poly(line, [][2]float64{{m.x, float64(m.row)*markRow + 2}, {m.x, bottom}}, false, m.Text)
	}
	for _, m := range marks {
		if m.mute {
			continue
		}
		_, text := class(m)
		anchor, at := "start", m.x+4
		if !m.after {
			anchor, at = "end", m.x-4
		}
		s.text(text, anchor, at, float64(m.row)*markRow+11, m.Text)
	}
}

func (l *Lines) dots(s surface, sc scale, div float64, x func(int) float64, y func(float64) float64) {
	var thread [][2]float64
	for _, p := range l.Points {
		if finite(p.Value) {
			thread = append(thread, [2]float64{x(p.Night), y(p.Value)})
		}
	}
	if len(thread) > 1 {
		s.poly("thread", thread, false, "")
	}
	for _, p := range l.Points {
		if !finite(p.Value) {
			continue
		}
		note := Quantity(p.Value, l.Unit)
		if p.Low != nil && p.High != nil && finite(*p.Low) && finite(*p.High) {
			note += " [" + Number(*p.Low, l.Unit) + " – " + Number(*p.High, l.Unit) + "]"
			s.line("whisker", x(p.Night), y(*p.Low), x(p.Night), y(*p.High))
			for _, end := range []float64{*p.Low, *p.High} {
				if v := end / div; v >= sc.min && v <= sc.max {
					s.line("whisker", x(p.Night)-4, y(end), x(p.Night)+4, y(end))
				}
			}
		}
		if p.Note != "" {
			note += ", " + p.Note
		}
		if p.Night < len(l.Dates) && p.Night >= 0 {
			note = l.Dates[p.Night] + ": " + note
		}
		s.circle("dot", x(p.Night), y(p.Value), 4.5, note)
	}
}
