package spec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// form is the shape of a node.
type form int

const (
	scalarForm form = iota
	tableForm
	listForm
)

// node is a value of a TOML document with its place.
type node struct {
	form  form
	at    span // the value
	keyAt span // the key, or the header, that names it; for list items the value

	scalar any // string, int64, float64, bool; other for dates
	keys   []string
	table  map[string]*node
	items  []*node

	inline   bool // written {...} or [...]: cannot be added to
	defined  bool // a header names it: another header may not
	implicit bool // made by a dotted key or a longer header
}

// other is a scalar that workload files do not use, such as a date.
type other string

func newTable(at span) *node {
	return &node{form: tableForm, at: at, keyAt: at, table: map[string]*node{}}
}

func (n *node) get(key string) *node {
	if n == nil || n.form != tableForm {
		return nil
	}
	return n.table[key]
}

func (n *node) set(key string, v *node) {
	if _, ok := n.table[key]; !ok {
		n.keys = append(n.keys, key)
	}
	n.table[key] = v
}

// clone copies the tables and lists of a tree; scalars are shared.
func (n *node) clone() *node {
	if n == nil || n.form == scalarForm {
		return n
	}
	c := *n
	c.keys = append([]string(nil), n.keys...)
	c.items = nil
	for _, i := range n.items {
		c.items = append(c.items, i.clone())
	}
	if n.table != nil {
		c.table = make(map[string]*node, len(n.table))
		for k, v := range n.table {
			c.table[k] = v.clone()
		}
	}
	return &c
}

// mostShown are the bytes of a value that a problem quotes.
const mostShown = 60

// show is a value as a problem quotes it.
func (n *node) show() string {
	if n.form != scalarForm {
		if text := n.at.text(); len(text) <= mostShown && !strings.Contains(text, "\n") && strings.IndexByte("[{", text[0]) >= 0 {
			return printable(text)
		}
		return map[form]string{tableForm: "{...}", listForm: "[...]"}[n.form]
	}
	if s, ok := n.scalar.(string); ok {
		if len(s) > mostShown {
			s = s[:mostShown] + "..."
		}
		return strconv.Quote(s)
	}
	return fmt.Sprint(n.scalar)
}

func (n *node) typeName() string {
	switch n.form {
	case tableForm:
		return "a table"
	case listForm:
		return "a list"
	}
	switch n.scalar.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a fraction"
	case bool:
		return "a bool"
	}
	return "a date"
}

// parseTree reads a document. Keys that are defined twice are problems and
// reading goes on; a problem of the grammar ends it, and ok is false.
func parseTree(src *source, r *reporter) (root *node, ok bool) {
	root = newTable(span{src: src})
	text := []byte(src.text)
	b := &builder{src: src, r: r, root: root, current: root, told: map[string]bool{}}
	b.parser.KeepComments = false
	b.parser.Reset(text)
	for b.parser.NextExpression() {
		b.expression(b.parser.Expression())
	}
	err := b.parser.Error()
	if err == nil && len(r.problems) == 0 {
		// The decoder knows the rest of the grammar: ranges of numbers, dates.
		var sink map[string]any
		err = toml.Unmarshal(text, &sink)
	}
	if err != nil {
		r.add(syntax(src, text, err))
	}
	return root, err == nil
}

func syntax(src *source, text []byte, err error) Problem {
	at := span{src: src}
	message := strings.TrimPrefix(err.Error(), "toml: ")
	var parse *unstable.ParserError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &parse):
		message = parse.Message
		if n := len(parse.Highlight); n <= cap(text) {
			at.offset, at.len = subslice(text, parse.Highlight), n
		}
	case errors.As(err, &decode):
		row, col := decode.Position()
		at.offset, at.len = offsetOf(src.text, row, col), 1
	}
	hint := ""
	if strings.Contains(message, "start of value") || strings.Contains(message, "expected newline") {
		hint = "strings, sizes and durations are written in quotes"
	}
	return at.problem("", "", printable(message), hint)
}

// subslice is the offset of part in whole, whose memory it shares, or the end.
func subslice(whole, part []byte) int {
	offset := cap(whole) - cap(part)
	if offset < 0 || offset > len(whole) {
		return len(whole)
	}
	return offset
}

func offsetOf(text string, row, col int) int {
	offset := 0
	for ; row > 1; row-- {
		i := strings.IndexByte(text[offset:], '\n')
		if i < 0 {
			return len(text)
		}
		offset += i + 1
	}
	return min(offset+col-1, len(text))
}

type builder struct {
	src           *source
	r             *reporter
	parser        unstable.Parser
	root, current *node
	skip          bool            // below a header that could not be placed
	told          map[string]bool // lists that are something else
}

func (b *builder) span(r unstable.Range) span {
	return span{src: b.src, offset: int(r.Offset), len: int(r.Length)}
}

func (b *builder) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		b.header(e, false)
	case unstable.ArrayTable:
		b.header(e, true)
	case unstable.KeyValue:
		if !b.skip {
			b.keyValue(b.current, e)
		}
	}
}

type keyPart struct {
	name string
	at   span
}

func (b *builder) key(it unstable.Iterator) []keyPart {
	var parts []keyPart
	for it.Next() {
		n := it.Node()
		parts = append(parts, keyPart{string(n.Data), b.span(n.Raw)})
	}
	return parts
}

func join(parts []keyPart) (string, span) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = quoteSegment(p.name)
	}
	at := parts[0].at
	last := parts[len(parts)-1].at
	at.len = last.offset + last.len - at.offset
	return strings.Join(names, "."), at
}

func (b *builder) header(e *unstable.Node, list bool) {
	parts := b.key(e.Key())
	full, at := join(parts)
	b.skip = true
	here := b.root
	for _, p := range parts[:len(parts)-1] {
		next := here.table[p.name]
		if next == nil {
			next = newTable(p.at)
			next.implicit = true
			here.set(p.name, next)
		}
		if next.form == listForm && !next.inline {
			next = next.items[len(next.items)-1]
		}
		if next.form != tableForm || next.inline {
			b.r.add(at.problem(full, "", fmt.Sprintf("%s is no table", p.name), ""))
			return
		}
		here = next
	}
	last := parts[len(parts)-1]
	old := here.table[last.name]
	if list {
		if old == nil {
			old = &node{form: listForm, at: at, keyAt: at}
			here.set(last.name, old)
		} else if old.form != listForm || old.inline {
			if !b.told[full] {
				b.r.add(at.problem(full, "", "is defined already, and not as a list of tables", "write [["+full+"]] everywhere"))
			}
			b.told[full] = true
			return
		}
		item := newTable(at)
		item.defined = true
		old.items = append(old.items, item)
		b.current, b.skip = item, false
		return
	}
	switch {
	case old == nil:
		old = newTable(at)
		here.set(last.name, old)
	case old.form == listForm:
		b.r.add(at.problem(full, "", "is a list of tables", "write [["+full+"]]"))
		return
	case old.form != tableForm || old.inline || old.defined || !old.implicit:
		b.r.add(at.problem(full, "", "is defined twice", "put both parts under one header"))
		return
	}
	old.defined, old.implicit, old.keyAt = true, false, at
	b.current, b.skip = old, false
}

func (b *builder) keyValue(into *node, e *unstable.Node) {
	parts := b.key(e.Key())
	full, at := join(parts)
	for _, p := range parts[:len(parts)-1] {
		next := into.table[p.name]
		if next == nil {
			next = newTable(p.at)
			into.set(p.name, next)
		}
		if next.form != tableForm || next.inline || next.defined {
			b.r.add(at.problem(full, "", fmt.Sprintf("%s is defined already", p.name), ""))
			return
		}
		into = next
	}
	last := parts[len(parts)-1]
	if old := into.table[last.name]; old != nil {
		first := old.keyAt.problem("", "", "", "")
		b.r.add(last.at.problem(full, "", "is defined twice", fmt.Sprintf("the first is on line %d", first.Line)))
		return
	}
	v := b.value(e.Value())
	v.keyAt = at
	if v.form != scalarForm {
		v.at = b.bracketed(at)
	}
	v.within(at)
	into.set(last.name, v)
}

// bracketed is the place of a list or an inline table behind its key, of which the
// parser does not tell it.
func (b *builder) bracketed(key span) span {
	text, from := b.src.text, key.offset+key.len
	for from < len(text) && strings.IndexByte(" \t=\"'", text[from]) >= 0 {
		from++ // the key's closing quote, too
	}
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return span{src: b.src, offset: from, len: i + 1 - from}
			}
		case '"', '\'':
			i = closing(text, i)
		case '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		}
	}
	return key
}

// closing is the offset of the last quote of the string that begins at an offset.
func closing(text string, i int) int {
	quote := text[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[i:], triple) {
		quote = triple
	}
	for j := i + len(quote); j < len(text); j++ {
		switch {
		case quote[0] == '"' && text[j] == '\\':
			j++
		case strings.HasPrefix(text[j:], quote):
			return j + len(quote) - 1
		}
	}
	return len(text)
}

// within gives what has no place of its own the one of what it is in.
func (n *node) within(at span) {
	if n.at.len == 0 {
		n.at, n.keyAt = at, at
	}
	for _, item := range n.items {
		item.within(n.at)
	}
}

func (b *builder) value(v *unstable.Node) *node {
	n := &node{at: b.span(v.Raw)}
	n.keyAt = n.at
	switch v.Kind {
	case unstable.String:
		n.scalar = string(v.Data)
	case unstable.Bool:
		n.scalar = string(v.Data) == "true"
	case unstable.Integer:
		text := strings.ReplaceAll(string(v.Data), "_", "")
		i, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			b.r.add(n.at.problem("", "", fmt.Sprintf("the number %s does not fit in 64 bits", v.Data), ""))
		}
		n.scalar = i
	case unstable.Float:
		f, err := strconv.ParseFloat(strings.ReplaceAll(string(v.Data), "_", ""), 64)
		if err != nil {
			b.r.add(n.at.problem("", "", fmt.Sprintf("the number %s is out of range", v.Data), ""))
		}
		n.scalar = f
	case unstable.Array:
		n.form, n.inline = listForm, true
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.Comment {
				n.items = append(n.items, b.value(it.Node()))
			}
		}
	case unstable.InlineTable:
		n.form, n.inline, n.table = tableForm, true, map[string]*node{}
		// Dotted keys inside may add to tables made inside, not to the table once closed.
		n.inline = false
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				b.keyValue(n, it.Node())
			}
		}
		n.inline = true
	default:
		n.scalar = other(v.Data)
	}
	return n
}

// quoteSegment writes one part of a dotted key, in quotes if it needs them.
func quoteSegment(s string) string {
	if s == "" {
		return `""`
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '#') {
			return strconv.Quote(s)
		}
	}
	return s
}
