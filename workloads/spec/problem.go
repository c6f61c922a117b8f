package spec

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a workload file, or one warning.
type Problem struct {
	File    string `json:"file"`   // path, or "--set" for an override
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in characters
	Key     string `json:"key,omitempty"`
	Value   string `json:"value,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Source  string `json:"source,omitempty"` // the line of text
	Width   int    `json:"width,omitempty"`  // characters that the caret underlines
}

// Error is the problem on one line.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value != "" {
			b.WriteString(" = " + p.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Text is the problem as a person reads it: the line of Error, the source line
// and a caret.
func (p *Problem) Text() string {
	if strings.TrimSpace(p.Source) == "" {
		return p.Error() + "\n"
	}
	number := fmt.Sprintf("%5d", p.Line)
	var pad strings.Builder
	for i, r := range []rune(p.Source) {
		if i >= p.Column-1 {
			break
		}
		if r == '\t' {
			pad.WriteByte('\t') // keeps the caret below its place
		} else {
			pad.WriteByte(' ')
		}
	}
	return fmt.Sprintf("%s\n%s | %s\n%s | %s%s\n", p.Error(), number, p.Source, strings.Repeat(" ", len(number)), pad.String(), strings.Repeat("^", max(1, p.Width)))
}

// Problems is everything that is wrong with a file, in file order.
type Problems []Problem

// Error lists all problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i := range ps {
		lines[i] = ps[i].Error()
	}
	return strings.Join(lines, "\n")
}

// source is a text that nodes come from: the file, or one override.
type source struct {
	name string
	text string
}

// span is a range of bytes of a source. The zero span is its start.
type span struct {
	src         *source
	offset, len int
}

// text is what stands there, at least a blank.
func (s span) text() string {
	if s.src == nil || s.len <= 0 || s.offset < 0 || s.offset+s.len > len(s.src.text) {
		return " "
	}
	return s.src.text[s.offset : s.offset+s.len]
}

func (s span) problem(key, value, message, hint string) Problem {
	p := Problem{Key: key, Value: value, Message: message, Hint: hint, Line: 1, Column: 1}
	if s.src == nil {
		return p
	}
	p.File = s.src.name
	text := s.src.text
	offset := min(max(s.offset, 0), len(text))
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	p.Line = strings.Count(text[:offset], "\n") + 1
	p.Column = utf8.RuneCountInString(text[start:offset]) + 1
	p.Source = printable(strings.TrimRight(text[start:end], "\r"))
	p.Width = utf8.RuneCountInString(text[offset:min(offset+max(s.len, 1), end)])
	return p
}

// printable replaces what a terminal would not show, or would obey, one
// character for one.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\t' && !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// reporter collects problems and warnings. One place is reported once for each
// key, so that a file with many cells repeats nothing.
type reporter struct {
	src                *source // the file
	problems, warnings []Problem
	mistakes           int // problems found, those told before in it
	seen               map[string]bool
	frozen             map[string]bool // places that an earlier pass reported
	asked              func(*section)  // for tests: a section that was read
}

func newReporter(src *source) *reporter {
	return &reporter{src: src, seen: map[string]bool{}, frozen: map[string]bool{}}
}

func place(p Problem) string { return fmt.Sprintf("%s:%d:%d:%s", p.File, p.Line, p.Column, p.Key) }

func (r *reporter) add(p Problem) {
	r.mistakes++
	if r.frozen[place(p)] || r.seen[place(p)+p.Message] {
		return
	}
	r.seen[place(p)+p.Message] = true
	r.problems = append(r.problems, p)
}

func (r *reporter) warn(p Problem) {
	if r.seen["w"+place(p)+p.Message] {
		return
	}
	r.seen["w"+place(p)+p.Message] = true
	r.warnings = append(r.warnings, p)
}

// freeze ends a pass: later problems at the places reported so far are the
// same ones over again.
func (r *reporter) freeze() {
	for _, p := range r.problems {
		r.frozen[place(p)] = true
	}
}

func sorted(ps []Problem) Problems {
	out := append(Problems(nil), ps...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.File != b.File {
			return a.File != "--set" && (b.File == "--set" || a.File < b.File)
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return out
}
