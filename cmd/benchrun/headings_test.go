package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/reports/page"
)

// printed are the headings and legends that pages and tables can print, as their
// sources have them, and the metrics in words.
func printed(t *testing.T) (out []string) {
	t.Helper()
	const pages = "../../reports/page"
	files, err := filepath.Glob(pages + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := func(x ast.Expr) {
		if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && s != "" {
				out = append(out, s)
			}
		}
	}
	isColumn := func(x ast.Expr) bool { i, ok := x.(*ast.Ident); return ok && i.Name == "column" }
	text := func(c *ast.CompositeLit) {
		for _, e := range c.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "Text" {
					literal(kv.Value)
				}
			}
		}
	}
	for _, path := range append(files, "table.go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if isColumn(n.Type) {
					text(n)
				}
				if a, ok := n.Type.(*ast.ArrayType); ok && isColumn(a.Elt) {
					for _, e := range n.Elts {
						if c, ok := e.(*ast.CompositeLit); ok {
							text(c)
						}
					}
				}
			case *ast.KeyValueExpr: // words of a legend
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Series" {
					if c, ok := n.Value.(*ast.CompositeLit); ok {
						for _, e := range c.Elts {
							literal(e)
						}
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "sums" {
					for _, a := range n.Args {
						if c, ok := a.(*ast.CompositeLit); ok {
							for _, e := range c.Elts {
								literal(e)
							}
						}
					}
				}
			case *ast.BasicLit: // heads of the terminal's tables
				if s, err := strconv.Unquote(n.Value); path == "table.go" && err == nil && strings.Contains(s, "\t") && !strings.Contains(s, "%") {
					for _, h := range strings.Split(strings.TrimSpace(s), "\t") {
						if h != "" {
							out = append(out, h)
						}
					}
				}
			}
			return true
		})
	}
	templates, err := filepath.Glob(pages + "/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range templates {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:<th scope="col"[^>{]*>|<i class="k [^>{]*>[^<]*</i>)([^<{]+)`).FindAllSubmatch(b, -1) {
			out = append(out, string(m[1]))
		}
	}
	for _, c := range slices.Concat(columns, batchColumns) {
		out = append(out, c.title)
	}
	for _, m := range slices.Concat(result.Metrics(), result.DerivedMetrics()) {
		out = append(out, page.InWords(m.Name))
	}
	return append(out, "recovery", "fault", "no fault", "whole trial", "outage", "useful work")
}

// Every heading and legend of pages and tables can be asked for.
//
// Fails if a word is taken out of headings, or a column of a new name is added to a
// table.
func TestEveryHeadingIsExplained(t *testing.T) {
	all := printed(t)
	for _, h := range all {
		if x, ok := lookup(h); !ok || x.Help == "" && len(x.Facts) == 0 {
			t.Errorf("%q is not explained", h)
		}
	}
	for _, h := range []string{"trials ok", "noise floor", "wasted", "unavoidable: output lost, or its input", "no job recovery", "checkpoint failed", "started", "blocks", "avoidably redone"} {
		if !slices.Contains(all, h) {
			t.Errorf("%q was not found among the headings: the test does not see where it is now", h)
		}
	}
}

// A heading that is also a key of workload files is explained as both.
//
// Fails if headings, or words, leave out what the key means.
func TestHeadingsHideNoKey(t *testing.T) {
	hidden := 0
	for _, w := range slices.Concat(words, headings) {
		uses := usesOfKey(w.name)
		x, ok := lookup(w.name)
		if !ok || x.Help != w.help { // an option, a fault, an operator or a metric
			continue
		}
		for _, u := range uses {
			hidden++
			if !slices.ContainsFunc(x.Facts, func(f []string) bool { return strings.HasSuffix(f[0], u[0]) && f[1] == u[1] }) {
				t.Errorf("%q does not say what the key means in %s: %q", w.name, u[0], x.Facts)
			}
		}
	}
	for _, name := range []string{"from", "run", "options"} {
		if len(usesOfKey(name)) == 0 {
			t.Errorf("%q is no key", name)
		}
	}
	if hidden < 3 {
		t.Errorf("%d keys were looked at", hidden)
	}
}

// What heads the columns of later faults is explained as that of the first.
//
// Fails if the step is not cut, if a metric of the whole trial counts as one of a
// fault, or if any word may follow a step, or if
// a word of the lab is taken for a title.
func TestHeadingsOfLaterFaults(t *testing.T) {
	for name, want := range map[string]string{
		"kill.control recovery":                "control_recovery_s",
		"w.parity":                             "time_to_parity_s",
		"the last.one.parity":                  "time_to_parity_s",
		"kill.control_recovery_s":              "control_recovery_s",
		page.InWords("w.time_to_parity_s"):     "time_to_parity_s",
		"w." + tableTitle("time_to_running_s"): "time_to_running_s",
		"w.recovery":                           "recovery",
		"w." + tableTitle("makespan_s"):        "",
		"w.kill-worker":                        "",
		".parity":                              "",
		"w.":                                   "",
	} {
		x, ok := lookup(name)
		if ok != (want != "") || !strings.HasSuffix(x.Name, want) {
			t.Errorf("%q: %v %q, want %q", name, ok, x.Name, want)
		}
	}
}
