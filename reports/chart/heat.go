package chart

import (
	"fmt"
	"image/color"
	"math"
	"strings"
)

// Heat shows one value for each pair of options, as a field of a matrix.
type Heat struct {
	Title         string
	Unit          string
	Row, Column   string // names of the axes
	Rows, Columns []string
	Fields        [][]Field // by row, then column
}

// Field is one cell of a matrix. Without a value, Why says what is missing.
type Field struct {
	Value *float64
	Sub   string // below the value
	Why   string
}

// heatInks go from low to high, in even steps of lightness of one hue: the
// order shows in any colour vision and in grey.
var heatInks = [...]color.NRGBA{
	{0xea, 0xf3, 0xfa, 0xff}, {0xcf, 0xe3, 0xf3, 0xff}, {0xae, 0xd0, 0xea, 0xff}, {0x86, 0xb8, 0xdf, 0xff}, {0x6a, 0xa7, 0xd6, 0xff},
	{0x2c, 0x72, 0xab, 0xff}, {0x1f, 0x5f, 0x98, 0xff}, {0x10, 0x48, 0x7e, 0xff}, {0x08, 0x30, 0x5c, 0xff},
}

// heatDark is the first step on which text is light: contrast is above 4.5
// on both sides of it.
const heatDark = 5

const (
	fieldHeight = 46.0
	columnHead  = 46.0
	heatLegend  = 62.0
	fieldMax    = 190.0
)

func (h *Heat) values() []float64 {
	var vs []float64
	for _, r := range h.Fields {
		for _, f := range r {
			if f.Value != nil && finite(*f.Value) {
				vs = append(vs, *f.Value)
			}
		}
	}
	return vs
}

// span is the range of colours, logarithmic where values span decades.
func (h *Heat) span() (low, high float64, log bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range h.values() {
		low, high = min(low, v), max(high, v)
	}
	return low, high, low > 0 && high/low >= logSpan
}

// step is the colour of a value. Equal values share the middle one.
func step(v, low, high float64, log bool) int {
	if !(high > low) {
		return len(heatInks) / 2
	}
	p := (v - low) / (high - low)
	if log {
		p = math.Log(v/low) / math.Log(high/low)
	}
	return min(max(int(p*float64(len(heatInks))), 0), len(heatInks)-1)
}

func (h *Heat) height() float64 {
	return columnHead + float64(len(h.Rows))*fieldHeight + heatLegend
}

func (h *Heat) describe() string {
	var parts []string
	for i, r := range h.Rows {
		for j, c := range h.Columns {
			if f := h.field(i, j); f.Value != nil {
				parts = append(parts, r+", "+c+": "+Quantity(*f.Value, h.Unit))
			} else {
				parts = append(parts, r+", "+c+": none, "+f.Why)
			}
		}
	}
	return strings.Join(parts, "; ")
}

func (h *Heat) field(i, j int) Field {
	if i < len(h.Fields) && j < len(h.Fields[i]) {
		f := h.Fields[i][j]
		if f.Value != nil && !finite(*f.Value) {
			f.Value, f.Why = nil, "not a number"
		}
		return f
	}
	return Field{Why: "not in the plan"}
}

// SVG draws the chart for the page.
func (h *Heat) SVG() string {
	var s svg
	s.begin(chartWidth, h.height(), h.Title, h.describe())
	h.draw(&s)
	return s.end()
}

// PNG draws the chart as a picture.
func (h *Heat) PNG() ([]byte, error) { return onPaper(h.Title, nil, h.height(), h.draw) }

func (h *Heat) draw(s surface) {
	left := labelWidth(append([]string{h.Row}, h.Rows...))
	width := min((chartWidth-left)/float64(max(len(h.Columns), 1)), fieldMax)
	low, high, log := h.span()
	s.label("dim", "end", left-labelMargin, 34, left-labelMargin, h.Row)
	s.text("dim", "start", left, 12, fit(h.Column, chartWidth-left))
	for j, c := range h.Columns {
		s.label("lab strong", "middle", left+(float64(j)+0.5)*width, 34, width-6, c)
	}
	for i, r := range h.Rows {
		y := columnHead + float64(i)*fieldHeight
		s.label("lab strong", "end", left-labelMargin, y+fieldHeight/2+4, left-labelMargin, r)
		for j, c := range h.Columns {
			x, f := left+float64(j)*width, h.field(i, j)
			name := r + ", " + c
			if f.Value == nil {
				missing(s, x+1, y+1, width-2, fieldHeight-2, name+": "+f.Why)
				s.label("marktext", "middle", x+width/2, y+fieldHeight/2+4, width-10, f.Why)
				continue
			}
			k := step(*f.Value, low, high, log)
			note := name + ": " + Quantity(*f.Value, h.Unit)
			if f.Sub != "" {
				note += ", " + f.Sub
			}
			s.rect(fmt.Sprintf("h%d", k), x+1, y+1, width-2, fieldHeight-2, note)
			text := "hl"
			if k >= heatDark {
				text = "hd"
			}
			mid := y + fieldHeight/2 + 4
			if f.Sub != "" {
				mid -= 7
				s.text(text+"s", "middle", x+width/2, mid+15, fit(f.Sub, width-8))
			}
			s.text(text+" strong", "middle", x+width/2, mid, Quantity(*f.Value, h.Unit))
		}
	}
	h.legend(s, left, columnHead+float64(len(h.Rows))*fieldHeight+16, low, high, log)
}

// missing is a hatched field.
func missing(s surface, x, y, w, h float64, title string) {
	s.rect("bed", x, y, w, h, title)
	for d := 10.0; d < w+h; d += 10 {
		x1, y1, x2, y2 := x+d, y, x, y+d
		if d > w {
			x1, y1 = x+w, y+d-w
		}
		if d > h {
			x2, y2 = x+d-h, y+h
		}
		s.line("hatch", x1, y1, x2, y2)
	}
}

func (h *Heat) legend(s surface, left, y, low, high float64, log bool) {
	const stepWidth = 34.0
	if len(h.values()) == 0 {
		return
	}
	at := left
	if high > low {
		for k := range heatInks {
			s.rect(fmt.Sprintf("h%d", k), left+float64(k)*stepWidth, y, stepWidth, 14, "")
		}
		at += stepWidth * float64(len(heatInks))
		s.text("tick", "start", left, y+30, Quantity(low, h.Unit))
		s.text("tick", "end", at, y+30, Quantity(high, h.Unit))
		if log {
			s.text("dim", "middle", (left+at)/2, y+30, "logarithmic")
		}
	} else {
		s.rect(fmt.Sprintf("h%d", len(heatInks)/2), left, y, stepWidth, 14, "")
		at += stepWidth
		s.text("tick", "start", left, y+30, "all equal: "+Quantity(low, h.Unit))
	}
	missing(s, at+30, y, stepWidth, 14, "")
	s.text("tick", "start", at+30+stepWidth+8, y+11, "no value, with the reason")
}
