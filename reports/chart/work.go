package chart

import (
	"fmt"
	"math"
	"strings"
)

// Work shows how far batch jobs got with time: a row a trial, its useful work as
// a share of all that there is to do. What is lost makes the curve fall.
type Work struct {
	Title string
	To    float64 // seconds from submission
	Rows  []Progress
}

// Progress is one trial.
type Progress struct {
	Label   string
	Steps   []WorkStep // in the order of time; the share holds until the next
	Outages []Outage
	Faults  []Mark
	End     *float64 // the job's end
	Ended   string   // outcome of a trial that is not ok
}

// WorkStep is a moment at which the share of useful work changes.
type WorkStep struct{ T, Share float64 }

// Outage is a stretch in which nobody led the job, or nothing of it ran.
type Outage struct{ From, To float64 }

const (
	workRow  = 86.0
	workPlot = 58.0
	workTop  = 22.0 // of a row: texts of faults
)

func (w *Work) height() float64 { return float64(len(w.Rows))*workRow + axisHeight }

func (w *Work) describe() string {
	var rows []string
	for _, r := range w.Rows {
		s := r.Label + ": "
		switch {
		case r.Ended != "":
			s += r.Ended
		case r.End != nil:
			s += "done after " + Quantity(*r.End, "s")
		default:
			s += "not done"
		}
		for _, f := range r.Faults {
			s += fmt.Sprintf(", %s after %s at %s", f.Text, Quantity(f.T, "s"), shareText(r.at(f.T)))
		}
		for _, o := range r.Outages {
			s += ", outage of " + Quantity(o.To-o.From, "s")
		}
		rows = append(rows, s)
	}
	return strings.Join(rows, "; ")
}

// at is the share just before a moment.
func (r *Progress) at(t float64) (share float64) {
	for _, s := range r.Steps {
		if s.T >= t {
			break
		}
		share = s.Share
	}
	return share
}

func shareText(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// SVG draws the chart for the page.
func (w *Work) SVG() string {
	var s svg
	s.begin(chartWidth, w.height(), w.Title, w.describe())
	w.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (w *Work) PNG() ([]byte, error) {
	return onPaper(w.Title, []sign{{"under", false, "useful work"}, {"range", false, "outage"}}, w.height(), w.draw)
}

func (w *Work) draw(s surface) {
	sc := seconds(0, w.To)
	var labels []string
	for _, r := range w.Rows {
		labels = append(labels, r.Label)
	}
	left := strongWidth(labels) + 34
	width := chartWidth - left - 24
	bottom := w.height() - axisHeight
	x := func(t float64) float64 { return left + sc.at(t)*width }
	axis(s, sc, left, width, 0, bottom, "seconds from submission; height: useful work, shaded: outage")
	for i := range w.Rows {
		w.row(s, &w.Rows[i], float64(i)*workRow, left, x, sc)
	}
}

func (w *Work) row(s surface, r *Progress, y, left float64, x func(float64) float64, sc scale) {
	if y > 0 {
		s.line("row", 0, y, chartWidth, y)
	}
	base := y + workTop + workPlot
	up := func(share float64) float64 { return base - min(max(share, 0), 1)*workPlot }
	s.label("lab strong", "end", left-labelMargin-34, y+workTop+workPlot/2+4, labelMax, r.Label)
	for _, share := range []float64{0, 0.5, 1} {
		s.text("tick", "end", left-6, up(share)+4, shareText(share))
		s.line("grid", left, up(share), x(sc.max), up(share))
	}
	for _, o := range r.Outages {
		if finite(o.From) && finite(o.To) && o.To > o.From && o.From < sc.max {
			s.rect("range", x(o.From), y+workTop, x(o.To)-x(o.From), workPlot, "outage: "+Quantity(o.To-o.From, "s"))
		}
	}
	w.curve(s, r, base, up, x, sc)
	strikes := r.strikes(sc, x)
	for _, f := range strikes {
		s.poly("fault", [][2]float64{{x(f.T), y + 8}, {x(f.T), base}}, false, f.Text+" at "+shareText(r.at(f.T)))
	}
	for _, f := range named(strikes, x) {
		anchor, at := "start", x(f.T)+4
		if at+textWidth(f.Text) > chartWidth {
			anchor, at = "end", x(f.T)-4
		}
		s.text("faulttext", anchor, at, y+17, f.Text)
	}
	switch {
	case r.Ended != "":
		s.text("faulttext", "end", x(sc.max)-4, y+workTop+14, r.Ended)
	case r.End != nil && finite(*r.End) && *r.End <= sc.max:
		s.line("axis", x(*r.End), y+workTop-4, x(*r.End), base)
		s.text("val", "end", x(*r.End)-4, base-6, Quantity(*r.End, "s"))
	}
}

// strikes are the faults that are to be seen; those that fall together share a
// mark.
func (r *Progress) strikes(sc scale, x func(float64) float64) (out []Mark) {
	for _, f := range r.Faults {
		if !finite(f.T) || f.T < sc.min || f.T > sc.max {
			continue
		}
		if n := len(out); n > 0 && x(f.T)-x(out[n-1].T) < 6 {
			out[n-1].Text += ", " + f.Text
			continue
		}
		out = append(out, f)
	}
	return out
}

// named are the names of faults, where they stand: one for which there is no room
// stands behind the one before.
func named(faults []Mark, x func(float64) float64) (out []Mark) {
	edge := math.Inf(-1)
	for _, f := range faults {
		if x(f.T)+4 < edge {
			out[len(out)-1].Text += ", " + f.Text
		} else {
			out = append(out, f)
		}
		last := out[len(out)-1]
		edge = x(last.T) + textWidth(last.Text) + 10
	}
	return out
}

// curve draws the share as steps.
func (w *Work) curve(s surface, r *Progress, base float64, up func(float64) float64, x func(float64) float64, sc scale) {
	line := [][2]float64{{x(0), base}}
	last := up(0)
	for _, p := range r.Steps {
		if !finite(p.T) || !finite(p.Share) || p.T < 0 || p.T > sc.max {
			continue
		}
		line = append(line, [2]float64{x(p.T), last}, [2]float64{x(p.T), up(p.Share)})
		last = up(p.Share)
	}
	end := sc.max
	if r.End != nil && finite(*r.End) {
		end = math.Min(*r.End, sc.max)
	}
	if x(end) > line[len(line)-1][0] {
		line = append(line, [2]float64{x(end), last})
	}
	if len(line) < 2 {
		return
	}
	area := append(append([][2]float64{}, line...), [2]float64{line[len(line)-1][0], base})
	s.poly("under", area, true, r.Label+": useful work")
	s.poly("rate", line, false, "")
}
