package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colours of the PNGs: those of the page's light setting.
var (
	ink      = color.NRGBA{0x1f, 0x24, 0x2b, 0xff}
	dim      = color.NRGBA{0x66, 0x6e, 0x79, 0xff}
	gridInk  = color.NRGBA{0xe3, 0xe6, 0xea, 0xff}
	bed      = color.NRGBA{0xf3, 0xf4, 0xf6, 0xff}
	pointInk = color.NRGBA{0x00, 0x72, 0xb2, 0xb8}
	bandInk  = color.NRGBA{0x00, 0x72, 0xb2, 0x2c}
	faultInk = color.NRGBA{0xc4, 0x3e, 0x00, 0xff}
	doneInk  = color.NRGBA{0x00, 0x7a, 0x5a, 0xff}
	series   = []color.NRGBA{{0x00, 0x72, 0xb2, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff}}
	taskInks = [states]color.NRGBA{{0x9a, 0xa1, 0xab, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x8f, 0xc9, 0xee, 0xff}, {0x00, 0x72, 0xb2, 0xff}}
)

// pt turns the page's px into points of the PNG, so that both have the same
// proportions.
func pt(px float64) vg.Length { return vg.Length(px * 0.75) }

const pngDPI = 144

// newPlot is an empty plot in the style of the page.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = plain(title)
	p.Title.Padding = pt(14)
	style := func(s *draw.TextStyle, px float64, c color.Color) {
		s.Font.Typeface, s.Font.Variant, s.Font.Size, s.Color = "Liberation", "Sans", pt(px), c
	}
	style(&p.Title.TextStyle, 15, ink)
	style(&p.X.Label.TextStyle, 12, dim)
	style(&p.X.Tick.Label, 12, ink)
	style(&p.Y.Tick.Label, 12, ink)
	style(&p.Legend.TextStyle, 12, ink)
	p.X.LineStyle.Color, p.X.Tick.LineStyle.Color = dim, dim
	p.X.Label.Padding = pt(6)
	p.Y.LineStyle.Width = 0
	p.Y.Tick.LineStyle.Width = 0
	p.Y.Tick.Length = 0
	p.Y.Padding = pt(4)
	return p
}

// plain drops characters that the embedded fonts have no picture of; they
// would vanish without a word.
func plain(s string) string {
	out := []rune(s)
	for i, r := range out {
		switch {
		case r == '−':
			out[i] = '-'
		case r > 0x24f && !(r >= 0x370 && r <= 0x3ff) && r != '–' && r != '…' && r != '→' && r != '≤' && r != '≥':
			out[i] = '?'
		}
	}
	return string(out)
}

// ticker puts a scale's ticks on an axis.
func (s scale) ticker() plot.Ticker {
	var ts plot.ConstantTicks
	for _, t := range s.ticks {
		ts = append(ts, plot.Tick{Value: t.value, Label: t.label})
	}
	return ts
}

// on puts the scale on the X axis. It must follow the adding of plotters, which
// widen the range.
func (s scale) on(p *plot.Plot) {
	p.X.Min, p.X.Max = s.min, s.max
	p.X.Tick.Marker = s.ticker()
	if s.log {
		p.X.Scale = plot.LogScale{}
	}
}

// rowTicks names rows, which count from the top.
func rowTicks(p *plot.Plot, labels []string) {
	var ts plot.ConstantTicks
	for i, l := range labels {
		ts = append(ts, plot.Tick{Value: float64(len(labels) - 1 - i), Label: plain(strings.Join(wrap(l, labelMax), "\n"))})
	}
	p.Y.Tick.Marker = ts
	p.Y.Min, p.Y.Max = -0.5, float64(len(labels))-0.5
}

// encode draws a plot on a white canvas with margins: gonum lets what lies at
// the edges be cut.
func encode(p *plot.Plot, height float64) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(pt(chartWidth), pt(height)), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.White))
	area := draw.Crop(draw.New(c), pt(14), -pt(30), pt(12), -pt(12))
	p.BackgroundColor = nil
	p.Draw(area)
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("chart %s: %w", p.Title.Text, err)
	}
	return b.Bytes(), nil
}

// grid draws a vertical line at each labelled tick.
type grid struct{ scale scale }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, t := range g.scale.ticks {
		if t.label != "" {
			at := x(t.value)
			c.StrokeLine2(draw.LineStyle{Color: gridInk, Width: pt(1)}, at, c.Min.Y, at, c.Max.Y)
		}
	}
}

// bar is the glyph of a median.
type bar struct{ height vg.Length }

// DrawGlyph implements draw.GlyphDrawer.
func (b bar) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(draw.LineStyle{Color: s.Color, Width: s.Radius}, at.X, at.Y-b.height/2, at.X, at.Y+b.height/2)
}

// PNG draws the chart as a picture.
func (p *Points) PNG() ([]byte, error) {
	div, unit := readable(p.values(), p.Unit)
	var scaled, labels = []float64{}, []string{}
	for _, v := range p.values() {
		scaled = append(scaled, v/div)
	}
	sc := newScale(scaled)
	pl := newPlot(p.Title)
	pl.X.Label.Text = plain(axisTitle(unit, sc.log))
	pl.Add(grid{sc})
	for i, r := range p.Rows {
		labels = append(labels, r.Label+"  ("+r.count()+")")
		y := float64(len(p.Rows) - 1 - i)
		if err := addRow(pl, &r, y, div, p.Unit); err != nil {
			return nil, fmt.Errorf("chart %s: %w", p.Title, err)
		}
	}
	sc.on(pl)
	rowTicks(pl, labels)
	return encode(pl, float64(len(p.Rows))*rowHeight*1.5+axisHeight+70)
}

func addRow(pl *plot.Plot, r *Row, y, div float64, unit string) error {
	if r.Low != nil && r.High != nil && *r.High >= *r.Low {
		band, err := plotter.NewPolygon(plotter.XYs{{X: *r.Low / div, Y: y - 0.3}, {X: *r.High / div, Y: y - 0.3}, {X: *r.High / div, Y: y + 0.3}, {X: *r.Low / div, Y: y + 0.3}})
		if err != nil {
			return err
		}
		band.Color, band.LineStyle.Width = bandInk, 0
		pl.Add(band)
	}
	var points plotter.XYs
	for j, v := range r.Values {
		if finite(v.V) {
			points = append(points, plotter.XY{X: v.V / div, Y: y - jitter(j, len(r.Values))*0.45})
		}
	}
	if len(points) > 0 {
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: pointInk, Radius: pt(4.2), Shape: draw.CircleGlyph{}}
		pl.Add(s)
	}
	if r.Median == nil {
		return nil
	}
	m, err := plotter.NewScatter(plotter.XYs{{X: *r.Median / div, Y: y}})
	if err != nil {
		return err
	}
	m.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: pt(2.4), Shape: bar{pt(rowHeight * 0.75)}}
	pl.Add(m, note{*r.Median / div, y + 0.47, "median " + Quantity(*r.Median, unit)})
	return nil
}

// note writes a small text beside a point, on the side that has room.
type note struct {
	x, y float64
	text string
}

// Plot implements plot.Plotter.
func (n note) Plot(c draw.Canvas, p *plot.Plot) {
	fx, fy := p.Transforms(&c)
	style := p.X.Label.TextStyle
	style.Font.Size = pt(10.5)
	style.Rotation = 0
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	x := fx(n.x)
	half := style.Width(n.text) / 2
	x = min(max(x, c.Min.X+half), c.Max.X-half)
	c.FillText(style, vg.Point{X: x, Y: fy(n.y)}, plain(n.text))
}

// PNG draws the chart as a picture.
func (b *Bars) PNG() ([]byte, error) {
	sc, div, unit := b.scale()
	pl := newPlot(b.Title)
	pl.X.Label.Text = plain(axisTitle(unit, false))
	pl.Add(grid{sc})
	var labels []string
	n := float64(len(b.Series))
	thick := 0.8 / max(n, 1)
	for i, g := range b.Groups {
		labels = append(labels, g.Label)
		for j, v := range g.Values {
			y := float64(len(b.Groups)-1-i) + 0.4 - thick*(float64(j)+0.5)
			pl.Add(rod{b, v, div, y, thick * 0.86, series[j%len(series)], b.Series[j]})
		}
	}
	var k key
	for j, name := range b.Series {
		k = append(k, keyEntry{name, series[j%len(series)], nil})
	}
	pl.Add(k)
	sc.on(pl)
	pl.X.Max *= 1.12 // room for the numbers
	rowTicks(pl, labels)
	height := b.groupHeight() + 6
	pl.Y.Max += legendHeight / height
	return encode(pl, float64(len(b.Groups))*height+legendHeight+axisHeight+62)
}

// key is a legend in one line along the upper edge of a plot.
type key []keyEntry

type keyEntry struct {
	text  string
	color color.Color
	shape draw.GlyphDrawer // nil: a square
}

// Plot implements plot.Plotter.
func (k key) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Label.TextStyle
	style.Font.Size, style.Color, style.YAlign, style.XAlign = pt(11.5), ink, draw.YCenter, draw.XLeft
	at, mid, r := c.Min.X, c.Max.Y-pt(legendHeight*0.35), pt(5)
	for _, e := range k {
		shape := e.shape
		if shape == nil {
			shape = draw.BoxGlyph{}
		}
		c.DrawGlyph(draw.GlyphStyle{Color: e.color, Radius: r, Shape: shape}, vg.Point{X: at + r, Y: mid})
		at += 2*r + pt(5)
		c.FillText(style, vg.Point{X: at, Y: mid}, plain(e.text))
		at += style.Width(plain(e.text)) + pt(20)
	}
}

// cross is the glyph of what failed.
type cross struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (cross) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	line := draw.LineStyle{Color: s.Color, Width: pt(2)}
	r := s.Radius * 0.8
	c.StrokeLine2(line, at.X-r, at.Y-r, at.X+r, at.Y+r)
	c.StrokeLine2(line, at.X-r, at.Y+r, at.X+r, at.Y-r)
}

// rod is one bar with its number.
type rod struct {
	of       *Bars
	value    *float64
	div      float64
	y, thick float64
	color    color.Color
	name     string
}

// Plot implements plot.Plotter.
func (r rod) Plot(c draw.Canvas, p *plot.Plot) {
	fx, fy := p.Transforms(&c)
	style := p.X.Label.TextStyle
	style.Font.Size, style.Color = pt(11), ink
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	at := vg.Point{X: fx(0) + pt(6), Y: fy(r.y)}
	if r.value == nil {
		style.Color = dim
		c.FillText(style, at, plain(r.name+": no samples"))
		return
	}
	x := max(fx(*r.value/r.div), fx(0)+pt(1.5))
	low, high := fy(r.y-r.thick/2), fy(r.y+r.thick/2)
	c.FillPolygon(r.color, []vg.Point{{X: fx(0), Y: low}, {X: x, Y: low}, {X: x, Y: high}, {X: fx(0), Y: high}})
	c.FillText(style, vg.Point{X: x + pt(6), Y: at.Y}, Quantity(*r.value, r.of.Unit))
}

// PNG draws the timeline as a picture.
func (t *Timeline) PNG() ([]byte, error) {
	l := t.layout()
	pl := newPlot(t.Title)
	pl.X.Label.Text = t.axisTitle()
	pl.Add(gantt{t, l})
	l.scale.on(pl)
	var ts plot.ConstantTicks
	name := func(y float64, text string) {
		ts = append(ts, plot.Tick{Value: l.bottom - y, Label: plain(fit(text, labelMax))})
	}
	for i, lane := range t.Lanes {
		name(l.lanes[i]+max(l.strip[i]*float64(len(lane.Strips)), 12)/2, lane.Name)
	}
	name(l.checkpoints+checkpointLane/2, "checkpoints")
	if len(t.Rates) > 0 {
		name(l.rates+rateLane/2, "source records\n"+t.rateRange())
	}
	pl.Y.Tick.Marker = ts
	pl.Y.Min, pl.Y.Max = 0, l.bottom+legendHeight
	return encode(pl, l.bottom+legendHeight+axisHeight+62)
}

// legendHeight is the room for the legend above a timeline's picture; the page
// has it in words.
const legendHeight = 24.0

// gantt draws the inside of a timeline, from the layout of the page.
type gantt struct {
	t *Timeline
	l layout
}

// Plot implements plot.Plotter.
func (g gantt) Plot(c draw.Canvas, p *plot.Plot) {
	fx, fy := p.Transforms(&c)
	x := func(t float64) vg.Length { return fx(min(max(t, g.l.scale.min), g.l.scale.max)) }
	y := func(px float64) vg.Length { return fy(g.l.bottom - px) }
	box := func(ink color.Color, x1, x2 vg.Length, top, height float64) {
		c.FillPolygon(ink, []vg.Point{{X: x1, Y: y(top)}, {X: x2, Y: y(top)}, {X: x2, Y: y(top + height)}, {X: x1, Y: y(top + height)}})
	}
	for i, lane := range g.t.Lanes {
		box(bed, c.Min.X, c.Max.X, g.l.lanes[i], g.l.strip[i]*float64(len(lane.Strips)))
	}
	box(bed, c.Min.X, c.Max.X, g.l.checkpoints, checkpointLane)
	grid{g.l.scale}.Plot(c, p)
	for i, lane := range g.t.Lanes {
		h := g.l.strip[i]
		for j, strip := range lane.Strips {
			for _, s := range strip {
				if s.To >= g.l.scale.min && s.From <= g.l.scale.max {
					box(taskInks[s.State], x(s.From), x(s.To), g.l.lanes[i]+float64(j)*h, gapped(h))
				}
			}
		}
	}
	for _, ck := range g.t.Checkpoints {
		g.checkpoint(c, x, y, box, ck)
	}
	g.rates(c, x, y)
	g.marks(c, p, x, y)
	var k key
	for state := range states {
		k = append(k, keyEntry{state.String(), taskInks[state], nil})
	}
	append(k, keyEntry{"checkpoint complete", doneInk, draw.CircleGlyph{}}, keyEntry{"failed", faultInk, cross{}}).Plot(c, p)
}

func (g gantt) checkpoint(c draw.Canvas, x func(float64) vg.Length, y func(float64) vg.Length, box func(color.Color, vg.Length, vg.Length, float64, float64), ck Checkpoint) {
	if ck.To < g.l.scale.min || ck.From > g.l.scale.max {
		return
	}
	ink := [...]color.NRGBA{dim, doneInk, faultInk}[ck.Outcome]
	pale := ink
	pale.A = 0x70
	box(pale, x(ck.From), max(x(ck.To), x(ck.From)+pt(1)), g.l.checkpoints+7, checkpointLane-14)
	if ck.To > g.l.scale.max {
		return
	}
	at := vg.Point{X: x(ck.To), Y: y(g.l.checkpoints + checkpointLane/2)}
	switch ck.Outcome {
	case Completed:
		c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: pt(5), Shape: draw.CircleGlyph{}}, at)
	case Failed:
		c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: pt(5), Shape: cross{}}, at)
	}
}

func (g gantt) rates(c draw.Canvas, x func(float64) vg.Length, y func(float64) vg.Length) {
	if len(g.t.Rates) == 0 {
		return
	}
	top := g.t.maxRate()
	zero := g.l.rates + rateLane - 4
	c.StrokeLine2(draw.LineStyle{Color: dim, Width: pt(0.8)}, c.Min.X, y(zero), c.Max.X, y(zero))
	var line []vg.Point
	for _, r := range g.t.Rates {
		if r.T >= g.l.scale.min && r.T <= g.l.scale.max && finite(r.PerSecond) {
			line = append(line, vg.Point{X: x(r.T), Y: y(zero - min(max(r.PerSecond/top, 0), 1)*(rateLane-4))})
		}
	}
	if len(line) > 1 {
		c.StrokeLines(draw.LineStyle{Color: ink, Width: pt(1.6)}, line)
	}
}

func (g gantt) marks(c draw.Canvas, p *plot.Plot, x func(float64) vg.Length, y func(float64) vg.Length) {
	style := p.X.Label.TextStyle
	style.Font.Size, style.YAlign = pt(12), draw.YCenter
	for _, m := range g.l.marks {
		line := draw.LineStyle{Color: ink, Width: pt(1.2), Dashes: []vg.Length{pt(3), pt(3)}}
		if m.Fault {
			line = draw.LineStyle{Color: faultInk, Width: pt(2)}
		}
		c.StrokeLine2(line, x(m.T), y(float64(m.row)*markRow+2), x(m.T), y(g.l.bottom))
	}
	for _, m := range g.l.marks { // over all lines
		if m.mute {
			continue
		}
		style.Color = ink
		if m.Fault {
			style.Color = faultInk
		}
		top := float64(m.row)*markRow + 7
		at := vg.Point{X: x(m.T) + pt(4), Y: y(top)}
		style.XAlign = draw.XLeft
		if !m.after {
			at.X, style.XAlign = x(m.T)-pt(4), draw.XRight
		}
		left, half := at.X, pt(markRow/2)
		if !m.after {
			left -= style.Width(plain(m.Text))
		}
		right := left + style.Width(plain(m.Text)) + pt(1)
		c.FillPolygon(color.White, []vg.Point{{X: left, Y: at.Y - half}, {X: right, Y: at.Y - half}, {X: right, Y: at.Y + half}, {X: left, Y: at.Y + half}})
		c.FillText(style, at, plain(m.Text))
	}
}
