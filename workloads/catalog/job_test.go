package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"benchrun/workloads/spec"
)

// Files of patterns that overlap come once, in the order of their names: that is
// the order of the source's splits.
//
// Fails if a file is listed by each pattern that matches it, or a pattern that
// matches none is passed over.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.go", "sub/a.go", "c.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &spec.Workload{Vertices: []spec.Vertex{
		{ID: "t", Operator: "lines", Kind: spec.Source, Params: spec.Params{Paths: []string{filepath.Join(dir, "**/*.go"), filepath.Join(dir, "*.go")}}},
		{ID: "s", Operator: "sequence", Kind: spec.Source},
	}}
	got, err := Files(w)
	want := []string{filepath.Join(dir, "b.go"), filepath.Join(dir, "sub/a.go")}
	if err != nil || len(got) != 1 || !slices.Equal(got["t"], want) {
		t.Errorf("%v, %v", got, err)
	}
	w.Vertices[0].Params.Paths = []string{filepath.Join(dir, "*.rs")}
	if _, err := Files(w); err == nil || !strings.Contains(err.Error(), `vertex "t"`) {
		t.Errorf("no file: %v", err)
	}
}
