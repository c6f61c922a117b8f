package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"benchrun/runtime/options"
)

// File is a workload file that was read without a problem. It is immutable.
type File struct {
	Path        string // as it was given
	Dir         string // absolute
	Text        []byte
	Name        string
	Description string
	Tags        []string
	Run         Run
	Mode        string
	Axes        []Axis
	Thresholds  []Threshold
	Overrides   []string
	Warnings    []Problem

	all       []Cell
	workloads map[string]*Workload
	vertices  map[string]vertexPlace
	clusters  map[string]*section // by cell

	// Of the first cell that breaks a rule: the place to show, and whether it
	// could run as a control.
	firstBroken span
	inertOnly   bool
}

// vertexPlace is where a vertex stands in the file.
type vertexPlace struct {
	id   span
	path string
}

// AtVertex is something to be said of a vertex by those who know more of jobs
// than this package, at its place in the file.
func (f *File) AtVertex(id, message, hint string) Problem {
	at := f.vertices[id]
	return at.id.problem(at.path, "", message, hint)
}

// AtCluster is the same of a key of [cluster], as a cell that runs has it.
func (f *File) AtCluster(cell, key, message, hint string) Problem {
	return f.clusters[cell].problem(key, message, hint)
}

// Load reads a file and applies overrides (KEY=VALUE, later ones win). If the
// file has problems the error is a Problems with all of them.
func Load(path string, overrides []string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("workload file: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("workload file %s: %w", path, err)
	}
	return Parse(path, dir, text, overrides)
}

// Parse is Load of a text; relative paths are relative to dir.
func Parse(path, dir string, text []byte, overrides []string) (*File, error) {
	src := &source{name: path, text: string(text)}
	r := newReporter(src)
	root, ok := parseTree(src, r)
	if !ok {
		return nil, sorted(r.problems)
	}
	for _, o := range overrides {
		override(root, o, r)
	}
	f := &File{Path: path, Dir: dir, Text: slices.Clone(text), Overrides: slices.Clone(overrides), workloads: map[string]*Workload{},
		vertices: map[string]vertexPlace{}, clusters: map[string]*section{}}
	m := r.matrix(root)
	for _, a := range m.axes {
		f.Axes = append(f.Axes, *a)
	}
	if len(m.cells) == 0 {
		m = matrix{cells: []cellNodes{{at: root.at}}}
	}
	for _, c := range m.cells {
		f.addCell(r, root, m, c)
		r.freeze()
	}
	if !m.partial {
		f.check(r, root, m)
	}
	f.Warnings = sorted(r.warnings)
	if len(r.problems) > 0 {
		return nil, sorted(r.problems)
	}
	return f, nil
}

func (f *File) addCell(r *reporter, root *node, m matrix, c cellNodes) {
	tree := root.clone()
	m.apply(tree, c)
	d := &decoder{r: r, file: f.Path, dir: f.Dir}
	w := d.decode(tree)
	d.wrong.numbers = d.wrong.numbers || m.partial
	d.wrong.options = d.wrong.options || m.partial
	d.checkGraph()
	d.checkIdentities()
	d.checkSteps()
	d.checkCapacity()
	if len(r.problems) == 0 {
		d.checkHost()
	}
	cell := m.cell(c)
	broken := w.Options.Broken()
	var reasons []string
	control := w.Run.IncludeInvalid
	for _, b := range broken {
		reasons = append(reasons, b.Reason)
		control = control && b.Conflict == ""
	}
	cell.Reason = strings.Join(reasons, "; ")
	cell.Control = cell.Reason != "" && control
	if f.firstBroken.src == nil && len(reasons) > 0 {
		f.firstBroken, f.inertOnly = d.root.at, true
		if n := d.root.get("options"); n != nil {
			f.firstBroken = n.keyAt
		}
		for _, b := range broken {
			f.inertOnly = f.inertOnly && b.Conflict == ""
			for key, n := range d.optionsAt {
				if info, ok := options.Lookup(key); ok && info.Key == broken[0].Key {
					f.firstBroken = n.keyAt
				}
			}
		}
	}
	for i, v := range w.Vertices {
		if id := d.vertices[i].n.get("id"); id != nil && f.vertices[v.ID].path == "" {
			f.vertices[v.ID] = vertexPlace{id.at, d.vertices[i].path}
		}
	}
	w.Cell = cell
	f.all = append(f.all, cell)
	f.workloads[cell.ID] = w
	f.clusters[cell.ID] = d.clusterAt()
	if f.Name == "" {
		f.Name, f.Description, f.Tags, f.Run, f.Mode, f.Thresholds = w.Name, w.Description, w.Tags, w.Run, w.Mode, w.Thresholds
	}
}

// check looks at all cells together.
func (f *File) check(r *reporter, root *node, m matrix) {
	if len(f.Cells()) == 0 {
		left := f.LeftOut()
		at, key := f.firstBroken, "options"
		if n := root.get("matrix"); n != nil && len(m.axes) > 0 {
			at, key = n.keyAt, "matrix"
		}
		hint := ""
		if f.inertOnly {
			hint = "for controls that break a rule on purpose set run.include-invalid = true"
		}
		r.add(at.problem(key, "", "no option set can run: "+left[0].Reason, hint))
	}
	if len(r.problems) > 0 {
		return
	}
	f.warnInert(r, root)
}

// warnInert warns of options in [options] that have no effect in any cell.
func (f *File) warnInert(r *reporter, root *node) {
	n := root.get("options")
	if n == nil {
		return
	}
	given, order := map[string]*node{}, []string(nil)
	flatten(n, "", given, &order, newReporter(nil))
	for _, key := range order {
		info, ok := options.Lookup(key)
		if !ok {
			continue
		}
		always := true
		for _, c := range f.Cells() {
			always = always && slices.Contains(f.workloads[c.ID].Options.Inert(), info.Key)
		}
		if always && len(f.Cells()) > 0 {
			r.warn(given[key].keyAt.problem("options."+quoteSegment(key), given[key].show(), "has no effect with the other options", ""))
		}
	}
}

// Cells lists the cells that run, in matrix order.
func (f *File) Cells() []Cell {
	return slices.DeleteFunc(slices.Clone(f.all), func(c Cell) bool { return c.Reason != "" && !c.Control })
}

// LeftOut lists the combinations that do not run, each with its Reason.
func (f *File) LeftOut() []Cell {
	return slices.DeleteFunc(slices.Clone(f.all), func(c Cell) bool { return c.Reason == "" || c.Control })
}

// Resolve returns the workload of a cell that runs. The caller must not change
// it.
func (f *File) Resolve(cell string) (*Workload, error) {
	var ids []string
	for _, c := range f.Cells() {
		if c.ID == cell {
			return f.workloads[cell], nil
		}
		ids = append(ids, c.ID)
	}
	if near := options.Nearest(cell, ids); near != "" {
		return nil, fmt.Errorf("workload %s has no cell %q; did you mean %q?", f.Name, cell, near)
	}
	return nil, fmt.Errorf("workload %s has no cell %q; there are %s", f.Name, cell, strings.Join(ids, " and "))
}

// Alike groups the cells that the options' own rules make equal: within a
// group a difference in the results is noise, or a bug.
func (f *File) Alike() [][]string {
	groups := map[string][]string{}
	var order []string
	for _, c := range f.Cells() {
		print := f.workloads[c.ID].Options.Fingerprint()
		for _, v := range c.Values {
			if _, ok := options.Lookup(v.Key); !ok {
				print += fmt.Sprintf("%s=%v\n", v.Key, v.Value)
			}
		}
		if groups[print] == nil {
			order = append(order, print)
		}
		groups[print] = append(groups[print], c.ID)
	}
	var out [][]string
	for _, p := range order {
		if len(groups[p]) > 1 {
			out = append(out, groups[p])
		}
	}
	return out
}

// SHA256 is the hash of the file's text, in hex.
func (f *File) SHA256() string {
	sum := sha256.Sum256(f.Text)
	return hex.EncodeToString(sum[:])
}

// Find turns files and folders into a list of files: a folder stands for all
// .toml files below it, in order of their paths.
func Find(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if bad, ok := errors.AsType[*fs.PathError](err); ok {
			err = bad.Err // the path is named here, and how it was asked for is nobody's business
		}
		if err != nil {
			return nil, fmt.Errorf("workload file %s: %w", p, err)
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		before := len(out)
		err = filepath.WalkDir(p, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && filepath.Ext(path) == ".toml" {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("workload files in %s: %w", p, err)
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no .toml file in %s", p)
		}
	}
	return out, nil
}
