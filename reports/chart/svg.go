package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// svg collects the elements of a picture. Colours are classes, so that the
// page's style decides on light and dark.
type svg struct {
	b strings.Builder
}

// px writes a coordinate with one decimal at most.
func px(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func (s *svg) begin(width, height float64, title, description string) {
	fmt.Fprintf(&s.b, `<svg class="chart" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`,
		px(width), px(height), px(width), px(height), html.EscapeString(title+". "+description))
}

func (s *svg) end() string {
	s.b.WriteString("</svg>")
	return s.b.String()
}

func (s *svg) open(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&s.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x1), px(y1), px(x2), px(y2))
}

func (s *svg) rect(class string, x, y, w, h float64, title string) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, px(x), px(y), px(max(w, 0.1)), px(max(h, 0.1)))
	s.titled("rect", title)
}

func (s *svg) circle(class string, x, y, r float64, title string) {
	fmt.Fprintf(&s.b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, class, px(x), px(y), px(r))
	s.titled("circle", title)
}

func (s *svg) path(class, d, title string) {
	fmt.Fprintf(&s.b, `<path class="%s" d="%s"`, class, d)
	s.titled("path", title)
}

// titled closes an element; a title shows on hovering.
func (s *svg) titled(element, title string) {
	if title == "" {
		s.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&s.b, `><title>%s</title></%s>`, html.EscapeString(title), element)
}

// text writes a line; anchor is start, middle or end.
func (s *svg) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, px(x), px(y), html.EscapeString(text))
}

// label writes a line that is shortened to a width; the whole shows on
// hovering.
func (s *svg) label(class, anchor string, x, y, width float64, text string) {
	short := fit(text, width)
	if short == text {
		s.text(class, anchor, x, y, text)
		return
	}
	fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s<title>%s</title></text>`, class, anchor, px(x), px(y), html.EscapeString(short), html.EscapeString(text))
}

// charWidth is a cautious width of a character at the charts' 12 px: that of
// the widest of the usual system fonts.
const charWidth = 7.4

// textWidth estimates the width of a line.
func textWidth(text string) float64 { return charWidth * float64(utf8.RuneCountInString(text)) }

// fit shortens a text in its middle, so that what tells neighbours apart at
// either end stays.
func fit(text string, width float64) string {
	n := int(width / charWidth)
	r := []rune(text)
	if len(r) <= n || n < 4 {
		return text
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
