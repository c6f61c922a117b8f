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

// begin names the picture and describes it in words, for those who do not see
// it. A title element would show wherever the pointer rests.
func (s *svg) begin(width, height float64, title, description string) {
	fmt.Fprintf(&s.b, `<svg class="chart" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s"><desc>%s</desc>`,
		px(width), px(height), px(width), px(height), html.EscapeString(title), html.EscapeString(description))
}

func (s *svg) end() string {
	s.b.WriteString("</svg>")
	return s.b.String()
}

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

// label writes a name on one or two lines, shortened to a width; the whole
// shows on hovering.
func (s *svg) label(class, anchor string, x, y, width float64, text string) {
	lines := wrap(text, width)
	y -= lineHeight / 2 * float64(len(lines)-1)
	for _, l := range lines {
		fmt.Fprintf(&s.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s`, class, anchor, px(x), px(y), html.EscapeString(l))
		if strings.Contains(l, "…") {
			fmt.Fprintf(&s.b, `<title>%s</title>`, html.EscapeString(text))
		}
		s.b.WriteString("</text>")
		y += lineHeight
	}
}

const lineHeight = 14.0

// wrap breaks a name into at most two lines of a width, at a space, and
// shortens what still does not fit.
func wrap(text string, width float64) []string {
	if textWidth(text) <= width {
		return []string{text}
	}
	cut := -1
	for i, r := range text {
		if r == ' ' && (cut < 0 || textWidth(text[:i]) <= width) {
			cut = i
		}
	}
	if cut < 0 {
		return []string{fit(text, width)}
	}
	return []string{fit(text[:cut], width), fit(text[cut+1:], width)}
}

// charWidth is a cautious width of a character at the charts' 12 px: that of
// the widest of the usual system fonts.
const charWidth = 7.4

// textWidth estimates the width of a line.
func textWidth(text string) float64 { return charWidth * float64(utf8.RuneCountInString(text)) }

// fit shortens a line in its middle, so that what tells neighbours apart at
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
