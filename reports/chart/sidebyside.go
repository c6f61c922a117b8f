package chart

import (
	"fmt"
	"strings"
)

// SideBySide shows one trial of each cell on one axis of time, each merged to
// a strip, so that the cells are compared at a glance.
type SideBySide struct {
	Title    string
	From, To float64 // seconds, the first fault at 0
	Faults   []Mark
	Rows     []Recovery
}

// Recovery is one trial: the least advanced state of all its tasks, its
// checkpoints, its throughput and what was reached when.
type Recovery struct {
	Label       string
	Sub         string
	Spans       []Span
	Checkpoints []Checkpoint
	Rates       []Rate
	Safe        *float64 // first checkpoint after the fault
	Drained     *float64
	Ended       string // outcome of a trial that is not ok
}

const (
	recoveryHeight = 78.0
	recoveryStrip  = 16.0
	recoveryTop    = 30.0
)

func (b *SideBySide) height() float64 {
	return recoveryTop + float64(len(b.Rows))*recoveryHeight + axisHeight
}

func (b *SideBySide) describe() string {
	var parts []string
	for _, r := range b.Rows {
		s := r.Label + ": "
		if r.Safe != nil {
			s += "first checkpoint after " + Quantity(*r.Safe, "s")
		} else {
			s += "no checkpoint after the fault"
		}
		if r.Drained != nil {
			s += ", drained after " + Quantity(*r.Drained, "s")
		}
		if r.Ended != "" {
			s += ", " + r.Ended
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// SVG draws the chart for the page.
func (b *SideBySide) SVG() string {
	var s svg
	s.begin(chartWidth, b.height(), b.Title, b.describe())
	b.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (b *SideBySide) PNG() ([]byte, error) {
	return onPaper(b.Title, stateSigns(sign{"under", false, "source records/s"}), b.height(), b.draw)
}

func (b *SideBySide) draw(s surface) {
	sc := seconds(b.From, b.To)
	var labels []string
	top := 0.0
	for _, r := range b.Rows {
		labels = append(labels, r.Label)
		t := Timeline{Rates: r.Rates}
		if len(r.Rates) > 0 {
			top = max(top, t.RateTop())
		}
	}
	left := labelWidth(labels)
	width := chartWidth - left - 24
	bottom := b.height() - axisHeight
	x := func(t float64) float64 { return left + sc.at(t)*width }
	title := "seconds from the fault"
	if len(b.Faults) > 1 {
		title = "seconds from the first fault"
	}
	if top > 0 {
		title += "; shaded: records that left the sources, up to " + rateLabel(top)
	}
	axis(s, sc, left, width, recoveryTop-4, bottom, title)
	for i, r := range b.Rows {
		b.row(s, &r, recoveryTop+float64(i)*recoveryHeight, left, x, sc, top)
	}
	edge := -1e9
	for _, f := range b.Faults {
		if f.T < sc.min || f.T > sc.max {
			continue
		}
		s.poly("fault", [][2]float64{{x(f.T), 14}, {x(f.T), bottom}}, false, f.Text)
		w := textWidth(f.Text)
		switch {
		case x(f.T)+4 < edge:
		case x(f.T)+w+4 > chartWidth:
			s.text("faulttext", "end", x(f.T)-4, 22, f.Text)
			edge = x(f.T)
		default:
			s.text("faulttext", "start", x(f.T)+4, 22, f.Text)
			edge = x(f.T) + w + 12
		}
	}
}

func (b *SideBySide) row(s surface, r *Recovery, y, left float64, x func(float64) float64, sc scale, rateTop float64) {
	if y > recoveryTop {
		s.line("row", 0, y-1, chartWidth, y-1)
	}
	s.label("lab strong", "end", left-labelMargin, y+34, left-labelMargin, r.Label)
	if r.Sub != "" {
		s.text("dim small", "end", left-labelMargin, y+56, fit(r.Sub, left-labelMargin))
	}
	b.rates(s, r, y+8, 34, x, sc, rateTop)
	strip := y + 46
	s.rect("bed", left, strip, x(sc.max)-left, recoveryStrip, "")
	for _, p := range r.Spans {
		if p.To < sc.min || p.From > sc.max || x(p.To)-x(p.From) < 0.1 {
			continue
		}
		s.rect(stateClass(p.State), x(p.From), strip, x(p.To)-x(p.From), recoveryStrip, fmt.Sprintf("%s: %s, %s to %s", r.Label, p.State, at(p.From), at(p.To)))
	}
	for _, c := range r.Checkpoints {
		if c.Outcome == Pending || c.To < sc.min || c.To > sc.max {
			continue
		}
		c.end(s, x(c.To), strip+recoveryStrip+6, 4)
	}
	b.reached(s, r, y, strip, x, sc)
}

// reached marks when the job was safe and when its backlog was gone.
func (b *SideBySide) reached(s surface, r *Recovery, y, strip float64, x func(float64) float64, sc scale) {
	type moment struct {
		t    float64
		text string
	}
	var all []moment
	switch {
	case r.Safe != nil && r.Drained != nil && x(*r.Drained)-x(*r.Safe) < 3 && x(*r.Safe)-x(*r.Drained) < 3:
		all = append(all, moment{*r.Safe, "safe, drained " + Quantity(*r.Safe, "s")})
	default:
		if r.Safe != nil {
			all = append(all, moment{*r.Safe, "safe " + Quantity(*r.Safe, "s")})
		}
		if r.Drained != nil {
			all = append(all, moment{*r.Drained, "drained " + Quantity(*r.Drained, "s")})
		}
	}
	if r.Ended != "" {
		s.text("faulttext", "end", x(sc.max)-4, y+20, r.Ended)
	}
	if len(all) == 2 && all[1].t < all[0].t {
		all[0], all[1] = all[1], all[0]
	}
	edge := -1e9
	for i, m := range all {
		if m.t > sc.max || m.t < sc.min {
			continue
		}
		s.poly("mark", [][2]float64{{x(m.t), y + 8}, {x(m.t), strip + recoveryStrip + 10}}, false, m.text)
		row, w := y+18, textWidth(m.text)
		next := chartWidth
		if i+1 < len(all) {
			next = x(all[i+1].t)
		}
		switch {
		case x(m.t)+w+8 > chartWidth || x(m.t)+w+8 > next && x(m.t)-w-8 > max(edge, x(0)):
			if x(m.t)-w-8 < edge {
				row += lineHeight
			}
			s.text("marktext", "end", x(m.t)-4, row, m.text)
		default:
			if x(m.t)+4 < edge {
				row += lineHeight
			}
			s.text("marktext", "start", x(m.t)+4, row, m.text)
			edge = x(m.t) + w + 8
		}
	}
}

// rates shades the throughput.
func (b *SideBySide) rates(s surface, r *Recovery, y, h float64, x func(float64) float64, sc scale, top float64) {
	base := y + h
	var line [][2]float64
	for _, p := range r.Rates {
		if p.T >= sc.min && p.T <= sc.max && finite(p.PerSecond) {
			line = append(line, [2]float64{x(p.T), base - min(max(p.PerSecond/top, 0), 1)*h})
		}
	}
	if len(line) < 2 {
		return
	}
	area := append([][2]float64{{line[0][0], base}}, line...)
	area = append(area, [2]float64{line[len(line)-1][0], base})
	s.poly("under", area, true, r.Label+": records that left the sources per second")
	s.poly("rate", line, false, "")
}
