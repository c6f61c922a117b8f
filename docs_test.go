package benchrun_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"benchrun/workloads/spec"
)

var pages = []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestWorkloadOfReadme: what the README prints as a workload is one.
func TestWorkloadOfReadme(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(page(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no workload")
	}
	for i, b := range blocks {
		f, err := spec.Parse(fmt.Sprintf("README.md, block %d", i+1), t.TempDir(), []byte(b[1]), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Cells()) == 0 {
			t.Errorf("block %d has no cell", i+1)
		}
	}
}

// TestConfigs: every file under configs/ is valid, says on top what it asks,
// and the README names it.
func TestConfigs(t *testing.T) {
	files, err := filepath.Glob("configs/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("configs/*/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	if len(files) < 9 {
		t.Fatalf("only %d workload files found", len(files))
	}
	readme := page(t, "README.md")
	for _, name := range files {
		if _, err := spec.Load(name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := page(t, name)
		top, _, _ := strings.Cut(text, "schema =")
		if !strings.HasPrefix(top, "# ") || !strings.Contains(top, "?") {
			t.Errorf("%s: no question in the comment on top", name)
		}
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("the README does not name %s", name)
		}
	}
}

// TestLinks: links to files of this tree lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, name := range pages {
		for _, m := range link.FindAllStringSubmatch(page(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

// TestNamedFiles: the files that the architecture page follows exist.
func TestNamedFiles(t *testing.T) {
	named := regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(page(t, "ARCHITECTURE.md"), -1)
	if len(named) < 20 {
		t.Fatalf("only %d files named", len(named))
	}
	for _, m := range named {
		if !slices.ContainsFunc([]string{"", "runtime", "harness/trial", "harness/target", "cmd/benchrun"}, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, m[1]))
			return err == nil
		}) {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
		}
	}
}

// TestNamedTests: each test that the pages name exists in the package that
// they name with it.
func TestNamedTests(t *testing.T) {
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)` in `([a-z/]+)`").FindAllStringSubmatch(page(t, "CONTRIBUTING.md"), -1)
	if len(named) < 10 {
		t.Fatalf("only %d named tests found", len(named))
	}
	var all []string
	for _, m := range named {
		all = append(all, m[1])
		files, err := filepath.Glob(m[2] + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(page(t, f), "func "+m[1]+"(") }) {
			t.Errorf("%s has no test %s", m[2], m[1])
		}
	}
	ticket := regexp.MustCompile(`func (TestFLINK\w+)\(`)
	eachFile(t, func(name string, text []byte) {
		for _, m := range ticket.FindAllSubmatch(text, -1) {
			if !slices.Contains(all, string(m[1])) {
				t.Logf("%s: %s is not in the table of CONTRIBUTING.md yet", name, m[1])
			}
		}
	})
}

// TestMakeTargets: the make targets that the pages name exist.
func TestMakeTargets(t *testing.T) {
	makefile := "\n" + page(t, "Makefile")
	target := regexp.MustCompile("`make ([a-z -]+?)(?: [A-Z]+=[^`]*)?`")
	found := 0
	for _, name := range pages {
		for _, m := range target.FindAllStringSubmatch(page(t, name), -1) {
			for _, x := range strings.Fields(m[1]) {
				found++
				if !strings.Contains(makefile, "\n"+x+":") {
					t.Errorf("%s names `make %s`, which does not exist", name, x)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no target found")
	}
}
