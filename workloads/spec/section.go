package spec

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"benchrun/runtime/options"
)

// section reads the keys of one table. Every read marks its key as known and
// remembers it; close reports the keys that nobody asked for.
type section struct {
	r     *reporter
	n     *node // nil: the table is absent, everything is default
	wrong bool  // it is there and no table: what it lacks is no further mistake
	path  string
	keys  []Key // types, defaults and limits of what is read
	known []string
}

func (r *reporter) section(n *node, path string, keys ...Key) *section {
	s := &section{r: r, n: n, path: path, keys: keys}
	if n != nil && n.form != tableForm {
		hint := ""
		if word, ok := n.scalar.(string); ok {
			if k, known := lookupKey(keys, word); known && k.Type == ParamBool {
				hint = fmt.Sprintf("write { %s = true }", word)
			}
		}
		r.add(n.at.problem(path, n.show(), "must be a table, not "+n.typeName(), hint))
		s.n, s.wrong = nil, true
	}
	return s
}

func (s *section) full(key string) string {
	if s.path == "" {
		return quoteSegment(key)
	}
	return s.path + "." + quoteSegment(key)
}

// value returns the node of a key, or nil.
func (s *section) value(key string) *node {
	s.known = append(s.known, key)
	return s.n.get(key)
}

func (s *section) has(key string) bool { return s.n.get(key) != nil }

// fail reports a problem with the value of a key, or with the table if the key
// is absent.
func (s *section) fail(key, message, hint string) {
	if s.wrong {
		return
	}
	s.r.add(s.problem(key, message, hint))
}

func (s *section) problem(key, message, hint string) Problem {
	if n := s.n.get(key); n != nil {
		return n.at.problem(s.full(key), n.show(), message, hint)
	}
	at := span{src: s.r.src}
	if s.n != nil {
		at = s.n.keyAt
	}
	return at.problem(s.full(key), "", message, hint)
}

// schema reads the version of the format.
func (s *section) schema() {
	v := s.value("schema")
	if v == nil {
		s.r.add(span{src: s.n.at.src}.problem("schema", "", "is missing", "the first line is: schema = 1"))
		return
	}
	switch x, ok := v.scalar.(int64); {
	case !ok:
		s.fail("schema", "must be a whole number, not "+v.typeName(), "write schema = 1")
	case x != 1:
		s.fail("schema", "this version reads schema 1", "")
	}
}

// close reports unknown keys.
func (s *section) close() {
	if s.r.asked != nil {
		s.r.asked(s)
	}
	if s.n == nil {
		return
	}
	for _, k := range s.n.keys {
		if slices.Contains(s.known, k) {
			continue
		}
		v := s.n.table[k]
		hint := ""
		if near := options.Nearest(k, s.known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if _, ok := options.Lookup(k); ok {
			hint = "options go under [options]"
		} else if home := homes[k]; home != "" && home != s.path {
			hint = fmt.Sprintf("%s goes under [%s]", k, home)
		} else if len(s.known) > 0 && len(s.known) <= 16 {
			hint = "keys here are " + strings.Join(s.known, ", ")
		}
		s.r.add(v.keyAt.problem(s.full(k), "", "unknown key", hint))
	}
}

// homes tells where keys belong that are easily put into the wrong table.
var homes = map[string]string{
	"repeats": "run", "warmup": "run", "seed": "run", "trial-timeout": "run", "primary": "run", "include-invalid": "run",
	"target": "cluster", "workers": "cluster", "slots-per-worker": "cluster", "network-memory": "cluster", "buffer-size": "cluster",
	"buffers-per-channel": "cluster", "floating-buffers-per-gate": "cluster", "max-buffers-per-channel": "cluster",
	"overdraft-buffers-per-gate": "cluster", "state-backend": "cluster", "storage": "cluster",
	"mode": "workload", "parallelism": "workload", "max-parallelism": "workload",
}

// key returns the description of a key; one that the format does not describe
// has no limits.
func (s *section) key(name string) Key {
	k, _ := lookupKey(s.keys, name)
	return k
}

// str reads a string, of the words that the key allows.
func (s *section) str(key string) string { return s.strOr(key, s.key(key).Default) }

// strOr is str where the default depends on other keys.
func (s *section) strOr(key, def string) string {
	v := s.value(key)
	if v == nil {
		return def
	}
	x, ok := v.scalar.(string)
	if !ok {
		s.fail(key, "must be a string, not "+v.typeName(), "")
		return def
	}
	if s.zero(v, key, x) {
		return def
	}
	words := s.key(key).Words
	if len(words) == 0 || slices.Contains(words, x) {
		return x
	}
	hint := ""
	if near := options.Nearest(x, words); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	s.fail(key, "must be one of "+strings.Join(words, ", "), hint)
	return def
}

// boolean reads a switch; absent it is off.
func (s *section) boolean(key string) bool {
	v := s.value(key)
	if v == nil {
		return false
	}
	x, ok := v.scalar.(bool)
	if !ok {
		s.fail(key, "must be true or false, not "+v.typeName(), "")
	}
	return x
}

func (s *section) integer(key string) int64 {
	k := s.key(key)
	return s.integerOr(key, k.count(k.Default, 0))
}

// integerOr is integer where the default depends on other keys.
func (s *section) integerOr(key string, def int64) int64 {
	v := s.value(key)
	if v == nil {
		return def
	}
	k := s.key(key)
	low, high := k.limits()
	x, ok := v.scalar.(int64)
	switch {
	case !ok:
		hint := ""
		if text, isText := v.scalar.(string); isText {
			if _, err := strconv.ParseInt(text, 10, 64); err == nil {
				hint = "write it without quotes"
			}
		}
		s.fail(key, "must be a whole number, not "+v.typeName(), hint)
		return def
	case x < low || x > high:
		s.fail(key, outside(strconv.FormatInt(low, 10), k.High), "")
		return def
	}
	return x
}

func (s *section) number(key string) float64 {
	k := s.key(key)
	def := k.float(k.Default, 0)
	v := s.value(key)
	if v == nil {
		return def
	}
	x, ok := v.scalar.(float64)
	if i, isInt := v.scalar.(int64); isInt {
		x, ok = float64(i), true
	}
	switch {
	case !ok:
		s.fail(key, "must be a number, not "+v.typeName(), "")
		return def
	case math.IsNaN(x) || math.IsInf(x, 0):
		s.fail(key, "must be a finite number", "")
		return def
	case x < k.float(k.Low, math.Inf(-1)) || x > k.float(k.High, math.Inf(1)):
		s.fail(key, outside(k.Low, k.High), "")
		return def
	}
	return x
}

// text returns the string of a key that needs a unit; a bare number gets a
// problem that says so.
func (s *section) text(key, what, example string) (string, bool) {
	v := s.value(key)
	if v == nil {
		return "", false
	}
	switch x := v.scalar.(type) {
	case string:
		return x, true
	case int64, float64:
		s.fail(key, "a "+what+" needs a unit", fmt.Sprintf("write it as %s", example))
	default:
		s.fail(key, fmt.Sprintf("must be a %s such as %s, not %s", what, example, v.typeName()), "")
	}
	return "", false
}

func (s *section) duration(key string) time.Duration {
	k := s.key(key)
	def := k.length(k.Default, 0)
	x, ok := s.text(key, "duration", `"30 s"`)
	if !ok {
		return def
	}
	d, err := options.ParseDuration(x)
	if err != nil {
		s.fail(key, err.Error(), "")
		return def
	}
	if d < k.length(k.Low, 0) {
		s.fail(key, "must be at least "+k.Low, "")
		return def
	}
	return d
}

func (s *section) size(key string) int64 {
	k := s.key(key)
	def := k.bytes(k.Default, 0)
	x, ok := s.text(key, "size", `"32 KiB"`)
	if !ok {
		return def
	}
	n, err := options.ParseSize(x)
	switch {
	case err != nil:
		s.fail(key, err.Error(), "")
		return def
	case n < k.bytes(k.Low, 0):
		s.fail(key, "must be at least "+k.Low, "")
		return def
	case n > k.bytes(k.High, math.MaxInt64):
		s.fail(key, "must be at most "+k.High, "")
		return def
	}
	return n
}

// rate reads "50000/s".
func (s *section) rate(key string) float64 {
	x, ok := s.text(key, "rate", `"50000/s"`)
	if !ok {
		return 0
	}
	f, err := parseRate(x)
	if err != nil {
		s.fail(key, err.Error(), "")
	}
	return f
}

var ratePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*/\s*(\S.*)$`)

// parseRate reads records per time: "50000/s", "3/min", "100/10ms".
func parseRate(text string) (float64, error) {
	m := ratePattern.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no rate; write it as \"50000/s\"", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate: %q is no number", text, m[1])
	}
	unit := m[2]
	if unit[0] < '0' || unit[0] > '9' {
		unit = "1" + unit
	}
	per, err := options.ParseDuration(unit)
	if err != nil || per <= 0 {
		return 0, fmt.Errorf("%q is no rate: after the / stands a unit of time", text)
	}
	rate := n / per.Seconds()
	if rate <= 0 || rate > 1e12 {
		return 0, fmt.Errorf("rate %q must be above 0 and at most 1e12/s", text)
	}
	return rate, nil
}

// strings reads a list of strings.
func (s *section) strings(key string) []string {
	v := s.value(key)
	if v == nil {
		return nil
	}
	if v.form != listForm || !v.inline {
		s.fail(key, "must be a list of strings, not "+v.typeName(), "")
		return nil
	}
	var out []string
	for _, item := range v.items {
		x, ok := item.scalar.(string)
		if !ok {
			s.r.add(item.at.problem(s.full(key), item.show(), "must be a string, not "+item.typeName(), ""))
			continue
		}
		if !s.zero(item, key, x) {
			out = append(out, x)
		}
	}
	return out
}

// zero refuses a string that no system takes for a name or a path.
func (s *section) zero(at *node, key, text string) bool {
	if !strings.Contains(text, "\x00") {
		return false
	}
	s.r.add(at.at.problem(s.full(key), at.show(), "holds a zero byte, which no name and no path can have", ""))
	return true
}

// tables reads a list of tables ([[...]] or a list of {...}).
func (s *section) tables(key string) []*node {
	v := s.value(key)
	if v == nil {
		return nil
	}
	if v.form != listForm {
		hint := ""
		if v.form == tableForm {
			hint = "write [[" + s.full(key) + "]]"
		}
		s.fail(key, "must be a list of tables, not "+v.typeName(), hint)
		return nil
	}
	var out []*node
	for _, item := range v.items {
		if item.form != tableForm {
			s.r.add(item.at.problem(s.full(key), item.show(), "must be a table, not "+item.typeName(), ""))
			continue
		}
		out = append(out, item)
	}
	return out
}
