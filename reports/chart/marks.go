package chart

import (
	"cmp"
	"slices"
)

// Mark is a moment with a name. A fault is drawn strongly.
type Mark struct {
	T     float64
	Text  string
	Fault bool
}

// placed is a mark with the place of its text.
type placed struct {
	Mark
	x     float64
	row   int
	after bool // the text stands right of the line
	mute  bool // no room for the text: hovering tells
}

// markRows bounds the rows of texts above a timeline of many faults; markRow is the
// height of one, px.
const (
	markRows = 5
	markRow  = 15.0
)

// Distances of a text from its own line and from those of other marks, px.
const (
	textGap = 4.0
	lineGap = 2.0
)

// place finds rows for the texts of marks so that none overlap and no line runs
// through one: in the order of time, and if that leaves a fault without its name,
// faults before the others.
func (l *layout) place(marks []Mark) {
	order := slices.Clone(marks)
	slices.SortStableFunc(order, func(a, b Mark) int { return cmp.Compare(a.T, b.T) })
	l.settle(order)
	if slices.ContainsFunc(l.marks, func(p placed) bool { return p.Fault && p.mute }) {
		slices.SortStableFunc(order, func(a, b Mark) int {
			switch {
			case a.Fault == b.Fault:
				return 0
			case a.Fault:
				return -1
			}
			return 1
		})
		l.settle(order)
	}
}

// settle gives marks their places, one after the other. A line begins beside its
// text and ends at the bottom, so it crosses the rows below. What finds no place
// has a line below all texts, and hovering tells.
func (l *layout) settle(order []Mark) {
	l.marks, l.rows = nil, 0
	for _, m := range order {
		if m.T < l.scale.min || m.T > l.scale.max {
			continue
		}
		p := placed{Mark: m, x: l.x(m.T), mute: true}
		for _, after := range []bool{true, false} {
			for row := 0; row < markRows && p.mute; row++ {
				p.after, p.row = after, row
				p.mute = !l.fits(&p)
			}
		}
		if !p.mute {
			l.rows = max(l.rows, p.row+1)
		}
		l.marks = append(l.marks, p)
	}
	for i := range l.marks {
		if l.marks[i].mute {
			l.marks[i].row = l.rows
		}
	}
}

// stretch is where the text of a mark stands in its row.
func (p *placed) stretch() (from, to float64) {
	w := textWidth(p.Text)
	if p.after {
		return p.x + textGap, p.x + textGap + w
	}
	return p.x - textGap - w, p.x - textGap
}

// fits tells whether the text of a mark lies inside the picture, touches no other
// and no line, and is not below one that its own line would cross.
func (l *layout) fits(p *placed) bool {
	from, to := p.stretch()
	if from < 0 || to > l.left+l.width+20 {
		return false
	}
	for i := range l.marks {
		o := &l.marks[i]
		if o.mute {
			continue // its line is below
		}
		a, b := o.stretch()
		switch {
		case o.row == p.row && from < b+12 && to > a-12,
			o.row < p.row && o.x > from-lineGap && o.x < to+lineGap,
			o.row > p.row && p.x > a-lineGap && p.x < b+lineGap:
			return false
		}
	}
	return true
}

// drawMarks draws the lines of marks, and their texts over all lines.
func (l *layout) drawMarks(s surface) {
	for _, m := range l.marks {
		class := "mark"
		if m.Fault {
			class = "fault"
		}
		s.poly(class, [][2]float64{{m.x, float64(m.row)*markRow + 2}, {m.x, l.bottom}}, false, m.Text)
	}
	for _, m := range l.marks {
		text := "marktext"
		if m.Fault {
			text = "faulttext"
		}
		y := float64(m.row)*markRow + 11
		if m.mute {
			continue
		}
		if m.after {
			s.text(text, "start", m.x+textGap, y, m.Text)
		} else {
			s.text(text, "end", m.x-textGap, y, m.Text)
		}
	}
}
