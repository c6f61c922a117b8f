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
	boxes(class string, boxes [][4]float64, title string) // x, y, width, height
	poly(class string, points [][2]float64, closed bool, title string)
	text(class, anchor string, x, y float64, text string)
	label(class, anchor string, x, y, width float64, text string)
}

// boxes draws many boxes as one element.
func (s *svg) boxes(class string, boxes [][4]float64, title string) {
	var d strings.Builder
	for _, b := range boxes {
		fmt.Fprintf(&d, "M%s %sh%sv%sh-%sz", px(b[0]), px(b[1]), px(b[2]), px(b[3]), px(b[2]))
	}
	s.path(class, d.String(), title)
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

// pt turns the page's px into points of the PNG, so that both have the same
// proportions.
func pt(px float64) vg.Length { return vg.Length(px * 0.75) }

const pngDPI = 144

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

func (p *paper) boxes(class string, boxes [][4]float64, _ string) {
	for _, b := range boxes {
		p.rect(class, b[0], b[1], b[2], b[3], "")
	}
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

// legendHeight is the room for the legend of a picture.
const legendHeight = 24.0

// Margins of a picture, px.
const (
	paperSide   = 22.0
	paperTop    = 14.0
	paperBottom = 16.0
	titleHeight = 34.0
)

var encoder = png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: new(buffers)}

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
			switch {
			case g.class == "ckcross":
				(&Checkpoint{Outcome: Failed}).end(p, x+6, 7, 5)
			case g.round:
				p.circle(g.class, x+6, 7, 5, "")
			default:
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
