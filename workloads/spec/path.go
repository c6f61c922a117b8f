package spec

import (
	"fmt"
	"strconv"
	"strings"

	"benchrun/runtime/options"
)

// splitPath cuts a dotted path into its segments; segments may be quoted.
func splitPath(path string) ([]string, error) {
	var out []string
	rest := path
	for {
		var segment string
		if strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, `'`) {
			end := strings.IndexByte(rest[1:], rest[0])
			if end < 0 {
				return nil, fmt.Errorf("the quote in %s is not closed", path)
			}
			segment, rest = rest[1:end+1], rest[end+2:]
			if rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("in %s a dot must follow the closing quote", path)
			}
		} else if i := strings.IndexByte(rest, '.'); i >= 0 {
			segment, rest = rest[:i], rest[i:]
		} else {
			segment, rest = rest, ""
		}
		if strings.TrimSpace(segment) == "" {
			return nil, fmt.Errorf("%q has an empty part", path)
		}
		out = append(out, strings.TrimSpace(segment))
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	// Option keys are dotted; they may stand without quotes where nothing else can.
	if len(out) > 2 && (out[0] == "options" || out[0] == "matrix" || out[0] == "thresholds") {
		out = []string{out[0], strings.Join(out[1:], ".")}
	}
	return out, nil
}

// setPath puts a value at a path of a tree. Vertices are found by their id,
// steps by their name or step-N, edges by their number from 1. Tables on the
// way are made if they are absent.
func setPath(root *node, segments []string, v *node) error {
	here := root
	for i, seg := range segments[:len(segments)-1] {
		next := here.get(seg)
		if next == nil {
			next = newTable(v.keyAt)
			here.set(seg, next)
		}
		if next.form == listForm {
			// The segment after the list chooses an item; see below.
			if i+2 > len(segments)-1 {
				return fmt.Errorf("%s is a list: name one of its entries and a key", seg)
			}
			item, err := find(next, seg, segments[i+1])
			if err != nil {
				return err
			}
			return setPath(item, segments[i+2:], v)
		}
		if next.form != tableForm {
			return fmt.Errorf("%s is no table", strings.Join(segments[:i+1], "."))
		}
		here = next
	}
	last := segments[len(segments)-1]
	if old := here.get(last); old != nil && old.form == listForm && !old.inline {
		return fmt.Errorf("%s is a list: name one of its entries and a key", last)
	}
	here.set(last, v)
	return nil
}

// find chooses an item of a list of tables.
func find(list *node, name, want string) (*node, error) {
	key := map[string]string{"vertex": "id", "step": "name"}[name]
	var names []string
	for i, item := range list.items {
		label := strconv.Itoa(i + 1)
		if name == "step" {
			label = "step-" + label
		}
		if id := item.get(key); id != nil {
			if s, ok := id.scalar.(string); ok {
				label = s
			}
		}
		if label == want {
			return item, nil
		}
		names = append(names, label)
	}
	message := fmt.Sprintf("there is no %s %q", name, want)
	if near := options.Nearest(want, names); near != "" {
		return nil, fmt.Errorf("%s; did you mean %q?", message, near)
	}
	return nil, fmt.Errorf("%s; there are %s", message, strings.Join(names, ", "))
}

// override applies KEY=VALUE to a tree. The value is read as TOML; what is no
// TOML value is a string.
func override(root *node, text string, r *reporter) {
	src := &source{name: "--set", text: text}
	whole := span{src: src, len: len(text)}
	key, value, ok := cutOverride(text)
	if !ok {
		r.add(whole.problem("", "", "an override is written KEY=VALUE", ""))
		return
	}
	keyAt := span{src: src, len: len(key)}
	segments, err := splitPath(key)
	if err != nil {
		r.add(keyAt.problem(key, "", err.Error(), ""))
		return
	}
	v := overrideValue(src, len(key)+1, value)
	v.keyAt = keyAt
	if len(segments) == 2 && segments[0] == "options" {
		// Another spelling in the file would be a second value for the same option.
		dropOption(root.get("options"), segments[1])
	}
	if err := setPath(root, segments, v); err != nil {
		r.add(keyAt.problem(key, value, err.Error(), ""))
	}
}

// cutOverride splits at the first = that is not inside quotes.
func cutOverride(text string) (key, value string, ok bool) {
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '=':
			return text[:i], text[i+1:], strings.TrimSpace(text[:i]) != ""
		}
	}
	return "", "", false
}

func overrideValue(src *source, offset int, value string) *node {
	at := span{src: src, offset: offset, len: len(value)}
	quiet := newReporter(nil)
	if !strings.ContainsAny(value, "\n\r#") {
		tree, ok := parseTree(&source{text: "x = " + value + "\n"}, quiet)
		if v := tree.get("x"); v != nil && ok && len(quiet.problems) == 0 && len(tree.keys) == 1 {
			if _, isDate := v.scalar.(other); !isDate {
				placeAll(v, at)
				return v
			}
		}
	}
	return &node{form: scalarForm, scalar: value, at: at, keyAt: at}
}

// placeAll gives all nodes of a value one position.
func placeAll(n *node, at span) {
	n.at, n.keyAt = at, at
	for _, i := range n.items {
		placeAll(i, at)
	}
	for _, v := range n.table {
		placeAll(v, at)
	}
}

func dropOption(table *node, key string) {
	if table == nil || table.form != tableForm {
		return
	}
	same := func(other string) bool {
		a, okA := options.Lookup(key)
		b, okB := options.Lookup(other)
		return other == key || okA && okB && a == b
	}
	var drop func(n *node, prefix string)
	drop = func(n *node, prefix string) {
		kept := n.keys[:0:0]
		for _, k := range n.keys {
			full := k
			if prefix != "" {
				full = prefix + "." + k
			}
			if v := n.table[k]; v.form == tableForm {
				drop(v, full)
			} else if same(full) {
				delete(n.table, k)
				continue
			}
			kept = append(kept, k)
		}
		n.keys = kept
	}
	drop(table, "")
}
