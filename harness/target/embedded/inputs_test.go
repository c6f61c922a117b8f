package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/workloads/spec"
)

// A file that is not what it was is found, whatever was done to it, and said with
// what was done; one that was only read is not.
//
// Fails if size, time or the file itself is not compared, or only of the first file.
func TestInputsThatChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   string // empty: nothing
	}{
		"read":      {func(p string) error { _, err := os.ReadFile(p); return err }, ""},
		"appended":  {func(p string) error { return os.WriteFile(p, []byte("one\ntwo\nthree\n"), 0o666) }, "it had 8 bytes and has 14"},
		"rewritten": {func(p string) error { return os.Chtimes(p, time.Time{}, time.Unix(1e9, 0)) }, "it was written at 2001-09-09T01:46:40Z"},
		"removed":   {os.Remove, "no such file"},
		"replaced": {func(p string) error {
			info, err := os.Stat(p)
			return errors.Join(err, os.WriteFile(p+".new", []byte("one\ntwo\n"), 0o666), os.Chtimes(p+".new", time.Time{}, info.ModTime()), os.Rename(p+".new", p))
		}, "another file has its name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			last := filepath.Join(dir, "b.txt")
			for _, path := range []string{filepath.Join(dir, "a.txt"), last} {
				if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			w := &spec.Workload{Mode: spec.Streaming, Vertices: []spec.Vertex{
				{ID: "text", Operator: "lines", Kind: spec.Source, Params: spec.Params{Paths: []string{filepath.Join(dir, "*.txt")}}},
			}}
			in, err := LookAtInputs(w)
			if err != nil || in.changed() != nil {
				t.Fatal(in, err)
			}
			if err := c.change(last); err != nil {
				t.Fatal(err)
			}
			err = in.changed()
			var changed *InputChangedError
			if c.want == "" && err == nil {
				return
			}
			if !errors.As(err, &changed) || changed.File != last || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
