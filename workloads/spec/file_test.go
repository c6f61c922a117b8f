package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func TestContractSample(t *testing.T) {
	f, err := Load("testdata/contract.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, c := range f.Cells() {
		cells = append(cells, c.ID)
	}
	if got, want := strings.Join(cells, " "), "R=false,D=false R=true,D=false R=true,D=true"; got != want {
		t.Errorf("cells: %s, want %s", got, want)
	}
	if left := f.LeftOut(); len(left) != 1 || left[0].ID != "R=false,D=true" || !strings.Contains(left[0].Reason, "D (") {
		t.Errorf("left out: %+v", left)
	}
	w, err := f.Resolve("R=true,D=true")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings: %v", f.Warnings)
	}
	edges, total := w.Capacity()
	// numbers -> slow: 4 × (4×128) + 4 × (2×128+8); slow -> out alike.
	if want := int64(2*(4*4*128+4*(2*128+8))) * 32 << 10; total != want {
		t.Errorf("capacity %d, want %d (%v)", total, want, edges)
	}
	if p := w.Vertices[1].Params; p.Cost.String() != "200µs" || p.CostKind != "wait" || p.StateSize != 1024 {
		t.Errorf("params %+v", p)
	}
	if len(w.Steps) != 4 || w.Steps[2].Name != "step-3" || w.Steps[3].Do.Kind != "finish" {
		t.Errorf("steps %+v", w.Steps)
	}
}

// TestFiles runs the scripts of testdata/files: each command has a workload
// file, or a change to a base file, as its input and prints what came of it.
func TestFiles(t *testing.T) {
	t.Setenv("SPEC_TEST_DIR", "/data")
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var sets []string
			text := d.Input
			var b strings.Builder
			switch d.Cmd {
			case "check":
			case "base": // the base file with the input's lines in place of "# HERE" or "OLD => NEW" replacements
				text = patch(t, d, "testdata/base.toml")
			case "batch": // likewise, of a batch job
				text = patch(t, d, "testdata/batch.toml")
			case "set":
				base, err := os.ReadFile("testdata/base.toml")
				if err != nil {
					t.Fatal(err)
				}
				text = string(base)
				sets = strings.Split(strings.TrimRight(d.Input, "\n"), "\n")
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			f, err := Parse("w.toml", "/dir", []byte(text), sets)
			if err != nil {
				var ps Problems
				if !errors.As(err, &ps) {
					t.Fatal(err)
				}
				for i := range ps {
					b.WriteString(ps[i].Text())
				}
				return b.String()
			}
			describe(&b, f, d)
			return b.String()
		})
	})
}

func patch(t *testing.T, d *datadriven.TestData, path string) string {
	base, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(base)
	var extra []string
	for _, line := range strings.Split(d.Input, "\n") {
		if old, replacement, ok := strings.Cut(line, " => "); ok && strings.HasPrefix(line, "~ ") {
			old = strings.ReplaceAll(strings.TrimPrefix(old, "~ "), `\n`, "\n")
			replacement = strings.ReplaceAll(replacement, `\n`, "\n")
			if !strings.Contains(text, old) {
				t.Fatalf("%s: the base has no %q", d.Pos, old)
			}
			text = strings.Replace(text, old, replacement, 1)
			continue
		}
		extra = append(extra, line)
	}
	return strings.Replace(text, "# HERE\n", strings.Join(extra, "\n"), 1)
}

func describe(b *strings.Builder, f *File, d *datadriven.TestData) {
	for i := range f.Warnings {
		b.WriteString("warning: " + f.Warnings[i].Text())
	}
	for _, c := range f.Cells() {
		control := ""
		if c.Control {
			control = " (control: " + c.Reason + ")"
		}
		fmt.Fprintf(b, "cell %s %v%s\n", c.ID, c.Flags, control)
	}
	for _, c := range f.LeftOut() {
		fmt.Fprintf(b, "left out %s: %s\n", c.ID, c.Reason)
	}
	for _, g := range f.Alike() {
		fmt.Fprintf(b, "alike %s\n", strings.Join(g, " "))
	}
	w, err := f.Resolve(f.Cells()[0].ID)
	if err != nil {
		fmt.Fprintln(b, err)
		return
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "steps":
			for _, s := range w.Steps {
				if s.Do != nil {
					do := *s.Do
					do.When = nil // a pointer
					fmt.Fprintf(b, "%s: do %+v", s.Name, do)
					if s.Do.When != nil {
						fmt.Fprintf(b, " %+v", *s.Do.When)
					}
					b.WriteString("\n")
				} else {
					fmt.Fprintf(b, "%s: wait %+v\n", s.Name, *s.Wait)
				}
			}
		case "vertices":
			for _, v := range w.Vertices {
				fmt.Fprintf(b, "%+v\n", v)
			}
			for _, e := range w.Edges {
				fmt.Fprintf(b, "%+v\n", e)
			}
		case "options":
			fmt.Fprintf(b, "%v\n", w.Options.Map())
		case "cluster":
			fmt.Fprintf(b, "%+v\n", w.Cluster)
		case "run":
			fmt.Fprintf(b, "%+v\n", w.Run)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/two.toml", "a/one.toml", "a/readme.md"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, "a/one.toml"), filepath.Join(dir, "b/two.toml")}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := Find([]string{filepath.Join(dir, "absent")}); err == nil {
		t.Error("no error for a path that does not exist")
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Find([]string{filepath.Join(dir, "empty")}); err == nil {
		t.Error("no error for a folder without files")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/contract.toml", "testdata/base.toml"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "run.repeats=2")
		f.Add(b[:len(b)/2], `workload.vertex.slow.params.cost=1ms`)
	}
	f.Add([]byte("a = [1,\n{b.c = 2}]\n[[x]]\n[x.y]\n[x]\n"), `options."a.b"={}`)
	f.Add([]byte("[workload]\nvertex = [1, {id=2}]\nedge={}\n[scenario]\nstep=[{do=[]}]"), "scenario.step.step-1.do=finish")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		file, err := Parse("f.toml", "/dir", text, []string{set})
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("error of type %T: %v", err, err)
			}
			for i := range ps {
				ps[i].Text()
				if ps[i].Line < 1 || ps[i].Column < 1 {
					t.Fatalf("no position: %+v", ps[i])
				}
			}
			return
		}
		if len(file.Cells()) == 0 {
			t.Fatal("a good file without cells")
		}
	})
}
