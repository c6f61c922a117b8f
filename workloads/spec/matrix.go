package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"benchrun/runtime/options"
)

// Axis is one dimension of the matrix.
type Axis struct {
	Key    string // option key, or path of the file
	Short  string // name in cell ids
	Values []any  // canonical: bool, int64, float64, string

	option *options.Info // nil: a path
	path   []string
	typ    ParamType
	nodes  []*node // of the values
	keyAt  span
}

// OfScenario tells whether the axis changes the scenario and not the job.
func (a *Axis) OfScenario() bool { return a.option == nil && a.path[0] == "scenario" }

const maxCells = 10000

// matrix is the parsed [matrix] with its excludes and includes.
type matrix struct {
	axes  []*Axis
	cells []cellNodes
	// partial: something is wrong with the matrix. The cells are none that run:
	// each has one value of one axis, so that what is wrong with it is told too.
	partial bool
}

// cellNodes is a cell before its workload is checked.
type cellNodes struct {
	values []*node // by axis; nil in a partial matrix
	at     span
}

func (r *reporter) matrix(root *node) matrix {
	var m matrix
	before := len(r.problems)
	if n := root.get("matrix"); n != nil {
		m.readAxes(r, root, n)
	}
	if len(r.problems) > before {
		return m.single(root)
	}
	total := 1
	for _, a := range m.axes {
		total *= len(a.nodes)
		if total > maxCells {
			r.add(root.get("matrix").keyAt.problem("matrix", "", fmt.Sprintf("has more than %d cells", maxCells), "leave out an axis"))
			return matrix{}
		}
	}
	s := &section{r: r, n: root}
	if len(m.axes) > 0 {
		m.product(root)
	}
	for _, key := range []string{"matrix-exclude", "matrix-include"} {
		for _, t := range s.tables(key) {
			if len(m.axes) == 0 {
				r.add(t.keyAt.problem(key, "", "there is no [matrix] that it could change", ""))
				continue
			}
			if key == "matrix-exclude" {
				m.exclude(r, t)
			} else {
				m.include(r, t)
			}
		}
	}
	if len(r.problems) > before {
		return m.single(root)
	}
	if len(m.axes) > 0 && len(m.cells) == 0 {
		r.add(root.get("matrix").keyAt.problem("matrix", "", "every cell is excluded", ""))
	}
	return m
}

// single makes the cells of a partial matrix.
func (m *matrix) single(root *node) matrix {
	out := matrix{axes: m.axes, partial: true}
	for i, a := range m.axes {
		for _, v := range a.nodes {
			c := cellNodes{values: make([]*node, len(m.axes)), at: root.at}
			c.values[i] = v
			out.cells = append(out.cells, c)
		}
	}
	return out
}

func (m *matrix) readAxes(r *reporter, root, n *node) {
	if r.section(n, "matrix").n == nil {
		return
	}
	nodes, order := map[string]*node{}, []string(nil)
	flatten(n, "", nodes, &order, r)
	given, givenOrder := map[string]*node{}, []string(nil)
	if o := root.get("options"); o != nil && o.form == tableForm {
		flatten(o, "", given, &givenOrder, newReporter(nil))
	}
	for _, key := range order {
		v := nodes[key]
		full := "matrix." + quoteSegment(key)
		a := &Axis{Key: key, keyAt: v.keyAt}
		if !m.axisKey(r, root, a, full) {
			continue
		}
		for g, gv := range given {
			info, ok := options.Lookup(g)
			if a.option != nil && ok && info == a.option {
				first := gv.keyAt.problem("", "", "", "")
				r.add(v.keyAt.problem(full, "", "stands in [options], too", fmt.Sprintf("remove it there, on line %d", first.Line)))
			}
		}
		for _, b := range m.axes {
			if a.option != nil && b.option == a.option || a.option == nil && slices.Equal(a.path, b.path) {
				r.add(v.keyAt.problem(full, "", "is the same axis as "+b.Key, "keep one of them"))
			}
		}
		if v.form != listForm || !v.inline {
			r.add(v.at.problem(full, v.show(), "must be a list of values", "write ["+v.show()+"]"))
			continue
		}
		if len(v.items) == 0 {
			r.add(v.at.problem(full, "", "has no values", ""))
			continue
		}
		for _, item := range v.items {
			a.add(r, item, full)
		}
		m.axes = append(m.axes, a)
	}
	keys := make([]string, len(m.axes))
	for i, a := range m.axes {
		keys[i] = a.Key
	}
	for _, a := range m.axes {
		a.Short = options.Short(a.Key, keys)
	}
}

// axisKey finds out what an axis varies.
func (m *matrix) axisKey(r *reporter, root *node, a *Axis, full string) bool {
	if info, ok := options.Lookup(a.Key); ok {
		a.option = info
		return true
	}
	if c, ok := options.Covered(a.Key); ok {
		r.add(a.keyAt.problem(full, "", "is set by the key "+c+" of the workload file", fmt.Sprintf("use %q here", c)))
		return false
	}
	segments, err := splitPath(a.Key)
	if err != nil {
		r.add(a.keyAt.problem(full, "", err.Error(), ""))
		return false
	}
	switch segments[0] {
	case "cluster", "workload", "scenario":
		if len(segments) > 1 {
			break
		}
		fallthrough
	default:
		hint := "axes are option keys, or paths of this file under cluster, workload or scenario"
		if near := options.NearestKey(a.Key); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.add(a.keyAt.problem(full, "", "is no option, and no path that can vary", hint))
		return false
	}
	if err := setPath(root.clone(), segments, &node{form: scalarForm, scalar: "", at: a.keyAt, keyAt: a.keyAt}); err != nil {
		r.add(a.keyAt.problem(full, "", err.Error(), ""))
		return false
	}
	a.path, a.typ = segments, pathType(root, segments)
	return true
}

// add checks one value of an axis and appends it.
func (a *Axis) add(r *reporter, item *node, full string) {
	v, message := a.canonical(item)
	if message != "" {
		r.add(item.at.problem(full, item.show(), message, ""))
		return
	}
	if slices.Contains(a.Values, v) {
		r.add(item.at.problem(full, item.show(), "is listed twice", ""))
		return
	}
	a.Values = append(a.Values, v)
	a.nodes = append(a.nodes, item)
}

// canonical is a value in the form of flags, or what is wrong with it.
func (a *Axis) canonical(item *node) (any, string) {
	if item.form != scalarForm {
		return nil, "must be a single value, not " + item.typeName()
	}
	if a.option != nil {
		raw := item.scalar
		if o, ok := raw.(other); ok {
			raw = string(o)
		}
		x, err := a.option.Check(raw)
		if err != nil {
			return nil, err.Error()
		}
		return a.option.Canonical(x), ""
	}
	switch x := item.scalar.(type) {
	case other:
		return nil, "must not be a date"
	case string:
		switch a.typ {
		case ParamSize:
			if n, err := options.ParseSize(x); err == nil {
				return options.FormatSize(n), ""
			}
		case ParamDuration:
			if d, err := options.ParseDuration(x); err == nil {
				return options.FormatDuration(d), ""
			}
		case ParamRate:
			return strings.ReplaceAll(x, " ", ""), ""
		}
	}
	return item.scalar, ""
}

// pathType is the type of the value at a path, where the format knows it.
func pathType(root *node, segments []string) ParamType {
	last := segments[len(segments)-1]
	switch {
	case segments[0] == "cluster" && (last == "network-memory" || last == "buffer-size"):
		return ParamSize
	case segments[0] == "scenario" && last == "in-flight":
		return ParamSize
	case segments[0] == "scenario" && slices.Contains([]string{"timeout", "for", "elapsed", "replace-after", "down-for"}, last):
		return ParamDuration
	case segments[0] == "workload" && len(segments) >= 5 && segments[1] == "vertex" && segments[3] == "params":
		v, err := find(root.get("workload").get("vertex"), "vertex", segments[2])
		if err != nil {
			return ""
		}
		if o := v.get("operator"); o != nil {
			name, _ := o.scalar.(string)
			op, _ := LookupOperator(name)
			for _, p := range op.Params {
				if p.Name == last {
					return p.Type
				}
			}
		}
	}
	return ""
}

// product fills the cells: the last axis varies fastest.
func (m *matrix) product(root *node) {
	at := root.get("matrix").keyAt
	cells := []cellNodes{{at: at}}
	for _, a := range m.axes {
		var next []cellNodes
		for _, c := range cells {
			for _, v := range a.nodes {
				next = append(next, cellNodes{values: append(slices.Clone(c.values), v), at: at})
			}
		}
		cells = next
	}
	m.cells = cells
}

// pick reads a table of axis = value. Axes that it does not name are nil.
func (m *matrix) pick(r *reporter, t *node, path string) ([]*node, bool) {
	nodes, order := map[string]*node{}, []string(nil)
	flatten(t, "", nodes, &order, r)
	out := make([]*node, len(m.axes))
	ok := true
	var keys []string
	for _, a := range m.axes {
		keys = append(keys, a.Key)
	}
	for _, key := range order {
		v := nodes[key]
		i := m.axis(key)
		if i < 0 {
			hint := "axes are " + strings.Join(keys, ", ")
			if near := options.Nearest(key, keys); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.add(v.keyAt.problem(path+"."+quoteSegment(key), "", "is no axis of the matrix", hint))
			ok = false
			continue
		}
		if _, message := m.axes[i].canonical(v); message != "" {
			r.add(v.at.problem(path+"."+quoteSegment(key), v.show(), message, ""))
			ok = false
			continue
		}
		out[i] = v
	}
	return out, ok
}

func (m *matrix) axis(key string) int {
	info, known := options.Lookup(key)
	segments, err := splitPath(key)
	for i, a := range m.axes {
		if known && a.option == info || a.option == nil && err == nil && slices.Equal(segments, a.path) {
			return i
		}
	}
	return -1
}

func (m *matrix) exclude(r *reporter, t *node) {
	want, ok := m.pick(r, t, "matrix-exclude")
	if !ok {
		return
	}
	before := len(m.cells)
	m.cells = slices.DeleteFunc(m.cells, func(c cellNodes) bool { return m.matches(c, want) })
	if len(m.cells) == before {
		r.warn(t.keyAt.problem("matrix-exclude", "", "matches no cell", ""))
	}
}

func (m *matrix) include(r *reporter, t *node) {
	want, ok := m.pick(r, t, "matrix-include")
	if !ok {
		return
	}
	for i, v := range want {
		if v == nil {
			r.add(t.keyAt.problem("matrix-include", "", fmt.Sprintf("names no value for the axis %q", m.axes[i].Key), "an include names every axis"))
			ok = false
		}
	}
	if !ok {
		return
	}
	if slices.ContainsFunc(m.cells, func(c cellNodes) bool { return m.matches(c, want) }) {
		r.warn(t.keyAt.problem("matrix-include", "", "is a cell of the matrix already", "remove it"))
		return
	}
	m.cells = append(m.cells, cellNodes{values: want, at: t.keyAt})
}

func (m *matrix) matches(c cellNodes, want []*node) bool {
	for i, v := range want {
		if v == nil {
			continue
		}
		a, _ := m.axes[i].canonical(c.values[i])
		b, _ := m.axes[i].canonical(v)
		if a != b {
			return false
		}
	}
	return true
}

// cell names a cell.
func (m *matrix) cell(c cellNodes) Cell {
	if len(m.axes) == 0 {
		return Cell{ID: "default", Flags: map[string]any{}}
	}
	out := Cell{Flags: map[string]any{}}
	var parts []string
	for i, a := range m.axes {
		if c.values[i] == nil {
			continue
		}
		v, _ := a.canonical(c.values[i])
		out.Flags[a.Short] = v
		out.Values = append(out.Values, AxisValue{Key: a.Key, Short: a.Short, Value: v})
		parts = append(parts, a.Short+"="+escape(fmt.Sprint(v)))
	}
	out.ID = strings.Join(parts, ",")
	return out
}

// apply puts a cell's values into a tree.
func (m *matrix) apply(root *node, c cellNodes) {
	for i, a := range m.axes {
		if c.values[i] == nil {
			continue
		}
		v := *c.values[i]
		if a.option == nil {
			// axisKey has tried the path.
			setPath(root, a.path, &v)
			continue
		}
		o := root.get("options")
		if o == nil || o.form != tableForm {
			o = newTable(root.get("matrix").keyAt)
			root.set("options", o)
		}
		o.set(a.Key, &v)
	}
}

// escape writes a value for a cell id: the characters that separate cells and
// those that file names and shells trip over are percent-encoded.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == ',' || c == '=' || c == '/' || c == '%' || c <= ' ' || c == 0x7f:
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)+0x100, 16)[1:]))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
