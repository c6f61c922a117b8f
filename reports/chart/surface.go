package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"strings"
	"sync"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// surface is what a chart draws on: the page's SVG, or the paper of a PNG. A
// class says what an element looks like; coordinates are px from the upper left.
type surface interface {
	line(class string, x1, y1, x2, y2 float64)
	rect(class string, x, y, w, h float64, title string)
	circle(class string, x, y, r float64, title string)
	poly(class string, points [][2]float64, closed bool, title string)
	text(class, anchor string, x, y float64, text string)
	label(class, anchor string, x, y, width float64, text string)
}

// poly draws a line through points, or an area.
func (s *svg) poly(class string, points [][2]float64, closed bool, title string) {
	var d strings.Builder
	for i, p := range points {
		d.WriteString([...]string{"L", "M"}[b2i(i == 0)] + px(p[0]) + " " + px(p[1]))
	}
	if closed {
		d.WriteString("z")
	}
	s.path(class, d.String(), title)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// look is what a class means on paper; the page's style sheet says the same of
// the light setting.
type look struct {
	fill, stroke color.NRGBA
	width        float64 // of the stroke, px
	dashes       []float64
	size         float64 // of text, px; 0: 12
	bold         bool
}

var looks = map[string]look{
	"lab": {fill: ink}, "val": {fill: ink}, "dim": {fill: dim}, "tick": {fill: dim}, "strong": {fill: ink, bold: true}, "small": {fill: dim, size: 11},
	"good": {fill: goodInk}, "bad": {fill: faultInk},
	"grid": {stroke: gridInk, width: 1}, "row": {stroke: gridInk, width: 1}, "axis": {stroke: dim, width: 1}, "unity": {stroke: ink, width: 1.2},
	"range": {fill: rangeInk}, "bed": {fill: bed}, "hatch": {stroke: dim, width: 1}, "frame": {stroke: dim, width: 1},
	"whisker": {stroke: ink, width: 2}, "thread": {stroke: dim, width: 1.2}, "level": {stroke: pointSolid, width: 2.4},
	"faster": {fill: goodInk}, "slower": {fill: faultInk}, "same": {fill: ink}, "unsure": {fill: paperInk, stroke: ink, width: 1.8},
	"wfaster": {stroke: goodInk, width: 2.4}, "wslower": {stroke: faultInk, width: 2.4}, "wsame": {stroke: ink, width: 2.4}, "wunsure": {stroke: dim, width: 1.6},
	"dot": {fill: pointSolid}, "med": {fill: ink}, "rate": {stroke: ink, width: 1.5}, "under": {fill: bandInk},
	"fault": {stroke: faultInk, width: 2}, "faulttext": {fill: faultInk, bold: true}, "mark": {stroke: ink, width: 1.2, dashes: []float64{3, 3}}, "marktext": {fill: ink},
	"chslower": {stroke: faultInk, width: 1.6}, "chfaster": {stroke: goodInk, width: 1.6}, "slowertext": {fill: faultInk, bold: true}, "fastertext": {fill: goodInk, bold: true},
	"t0": {fill: taskInks[0]}, "t1": {fill: taskInks[1]}, "t2": {fill: taskInks[2]}, "t3": {fill: taskInks[3]},
	"ckok": {fill: pale(doneInk)}, "ckfail": {fill: pale(faultInk)}, "ckpending": {fill: pale(dim)}, "ckdone": {fill: doneInk}, "ckcross": {stroke: faultInk, width: 2},
	"hd": {fill: paperInk}, "hl": {fill: ink}, "hds": {fill: paperInk, size: 11}, "hls": {fill: ink, size: 11},
}

func init() {
	for i, c := range heatInks {
		looks[fmt.Sprintf("h%d", i)] = look{fill: c}
	}
}

var (
	goodInk    = color.NRGBA{0x00, 0x70, 0x4f, 0xff}
	rangeInk   = color.NRGBA{0x66, 0x6e, 0x79, 0x26}
	pointSolid = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	paperInk   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
)

func pale(c color.NRGBA) color.NRGBA {
	c.A = 0x73
	return c
}

// lookOf adds up the classes of an element.
func lookOf(class string) look {
	var out look
	for i, name := range strings.Fields(class) {
		l := looks[name]
		if i == 0 {
			out = l
			continue
		}
		if l.size != 0 {
			out.size = l.size
		}
		out.bold = out.bold || l.bold
	}
	return out
}

// paper draws a chart through gonum's canvas.
type paper struct {
	c      draw.Canvas
	height float64 // px
	dx, dy float64
}

func (p *paper) at(x, y float64) vg.Point {
	return vg.Point{X: pt(x + p.dx), Y: pt(p.height - y - p.dy)}
}

func (p *paper) shape(class string, points []vg.Point, closed bool) {
	l := lookOf(class)
	if closed && l.fill.A > 0 {
		p.c.FillPolygon(l.fill, points)
	}
	if l.stroke.A > 0 {
		style := draw.LineStyle{Color: l.stroke, Width: pt(l.width)}
		for _, d := range l.dashes {
			style.Dashes = append(style.Dashes, pt(d))
		}
		if closed {
			points = append(points, points[0])
		}
		p.c.StrokeLines(style, points)
	}
}

func (p *paper) line(class string, x1, y1, x2, y2 float64) {
	p.shape(class, []vg.Point{p.at(x1, y1), p.at(x2, y2)}, false)
}

func (p *paper) rect(class string, x, y, w, h float64, _ string) {
	p.shape(class, []vg.Point{p.at(x, y), p.at(x+w, y), p.at(x+w, y+h), p.at(x, y+h)}, true)
}

func (p *paper) circle(class string, x, y, r float64, _ string) {
	l := lookOf(class)
	if l.stroke.A > 0 { // a ring: the outer disc, then the inner
		p.c.DrawGlyph(draw.GlyphStyle{Color: l.stroke, Radius: pt(r + l.width/2), Shape: draw.CircleGlyph{}}, p.at(x, y))
		r -= l.width / 2
	}
	p.c.DrawGlyph(draw.GlyphStyle{Color: l.fill, Radius: pt(r), Shape: draw.CircleGlyph{}}, p.at(x, y))
}

func (p *paper) poly(class string, points [][2]float64, closed bool, _ string) {
	if len(points) < 2 {
		return
	}
	var out []vg.Point
	for _, q := range points {
		out = append(out, p.at(q[0], q[1]))
	}
	p.shape(class, out, closed)
}

// textStyle is that of a class on paper.
func textStyle(class, anchor string) draw.TextStyle {
	l := lookOf(class)
	size := l.size
	if size == 0 {
		size = 12
	}
	s := draw.TextStyle{Color: l.fill, Handler: plot.DefaultTextHandler, YAlign: draw.YBottom}
	s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: pt(size)}
	if l.bold {
		s.Font.Weight = xfont.WeightBold
	}
	s.XAlign = map[string]draw.XAlignment{"start": draw.XLeft, "middle": draw.XCenter, "end": draw.XRight}[anchor]
	return s
}

func (p *paper) text(class, anchor string, x, y float64, text string) {
	text = plain(text)
	style := textStyle(class, anchor)
	at := p.at(x, y)
	if strings.HasSuffix(strings.Fields(class)[0], "text") { // as the page: legible over lines
		w, h := style.Width(text), pt(13)
		left := at.X + vg.Length(style.XAlign)*w
		c := vg.Point{X: left - pt(2), Y: at.Y - pt(3)}
		p.c.FillPolygon(paperInk, []vg.Point{c, {X: c.X + w + pt(4), Y: c.Y}, {X: c.X + w + pt(4), Y: c.Y + h}, {X: c.X, Y: c.Y + h}})
	}
	// The base line is where SVG puts text; gonum's bottom is the descent below.
	at.Y -= style.FontExtents().Descent
	p.c.FillText(style, at, text)
}

func (p *paper) label(class, anchor string, x, y, width float64, text string) {
	lines := wrap(text, width)
	y -= lineHeight / 2 * float64(len(lines)-1)
	for _, l := range lines {
		p.text(class, anchor, x, y, l)
		y += lineHeight
	}
}

// sign is an entry of a legend: a mark of a class with its word.
type sign struct {
	class string
	round bool
	text  string
}

// Margins of a picture, px.
const (
	paperSide   = 22.0
	paperTop    = 14.0
	paperBottom = 16.0
	titleHeight = 34.0
)

var encoder = png.Encoder{CompressionLevel: png.DefaultCompression, BufferPool: new(buffers)}

// buffers lets encoders share their memory.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() *png.EncoderBuffer {
	e, _ := b.pool.Get().(*png.EncoderBuffer)
	return e
}

func (b *buffers) Put(e *png.EncoderBuffer) { b.pool.Put(e) }

// onPaper draws a chart with a title, a legend and margins.
func onPaper(title string, signs []sign, height float64, draws func(surface)) ([]byte, error) {
	total := height + titleHeight + paperTop + paperBottom
	if len(signs) > 0 {
		total += legendHeight
	}
	c := vgimg.NewWith(vgimg.UseWH(pt(chartWidth+2*paperSide), pt(total)), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(color.White))
	p := &paper{c: draw.New(c), height: total, dx: paperSide, dy: paperTop}
	style := textStyle("strong", "start")
	style.Font.Size = pt(15)
	text := plain(title)
	for style.Width(text) > pt(chartWidth) && len(text) > 8 {
		r := []rune(text)
		text = string(r[:len(r)-4]) + "…"
	}
	p.c.FillText(style, p.at(0, 20), text)
	p.dy += titleHeight
	if len(signs) > 0 {
		x := 0.0
		for _, g := range signs {
			if g.round {
				p.circle(g.class, x+6, 7, 5, "")
			} else {
				p.rect(g.class, x, 1, 12, 12, "")
			}
			p.text("lab", "start", x+18, 11, g.text)
			x += 36 + float64(textStyle("lab", "start").Width(g.text)/pt(1))
		}
		p.dy += legendHeight
	}
	draws(p)
	var b bytes.Buffer
	if err := encoder.Encode(&b, c.Image()); err != nil {
		return nil, fmt.Errorf("chart %s: %w", title, err)
	}
	return b.Bytes(), nil
}
