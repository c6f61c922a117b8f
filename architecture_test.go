package benchrun_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "benchrun"

// floors orders the packages of runtime/: none imports a higher floor.
var floors = map[string]int{
	"options": 0, "timeline": 0, "failpoint": 0,
	"record": 1, "buffer": 1, "storage": 1, "graph": 1,
	"exchange": 2, "shuffle": 2, "state": 2, "snapshot": 2,
	"inflight": 3, "operator": 3, "source": 3,
	"task": 4, "checkpoint": 4, "scheduling": 4, "joblog": 4,
	"control": 5, "worker": 5, "master": 5,
	"cluster": 6,
}

// neighbours are the imports inside a floor. A new one is a decision: it goes
// into this list and into ARCHITECTURE.md.
var neighbours = map[string][]string{
	"scheduling": {"joblog"},   // the batch scheduler decides what is logged
	"buffer":     {"record"},   // a queued buffer knows the kind of element it carries
	"graph":      {"record"},   // edges are keyed by record key groups
	"shuffle":    {"exchange"}, // what blocks is served over the same wire and gates
	"source":     {"operator"}, // readers emit into the first operator of a chain
	"worker":     {"control"},  // the worker's side of the transport
	"master":     {"control"},  // the master's side of the transport
}

// leaves are the only packages of ours, at any depth, that a package needs.
// What proves the output must share nothing with what produced it, and old
// results must stay readable whatever the engine became.
var leaves = map[string][]string{
	"harness/result":   {},
	"harness/schema":   {"harness/result", "workloads/spec", "runtime/options"},
	"workloads/spec":   {"runtime/options"},
	"workloads/expect": {"workloads/spec", "runtime/options"},
	"reports/stats":    {},
	"reports/chart":    {},
	"reports/verdict":  {"harness/result", "reports/stats"},
	"reports/export":   {"harness/result", "reports/stats", "reports/verdict"},
	"reports/page":     {"harness/result", "reports/stats", "reports/verdict", "reports/chart"},
}

// doors are the packages of runtime/ that the harness may import, beside
// options and timeline. Jobs run through cluster alone; the others are the
// vocabulary in which the embedded target reads what sinks and sources report.
var doors = map[string][]string{
	"harness/plan":            {},
	"harness/probe":           {},
	"harness/schema":          {},
	"harness/trial":           {},
	"harness/target":          {},
	"harness/target/embedded": {"cluster", "control", "operator", "record", "source", "task"},
	"harness/target/process":  {"cluster"},
}

// rooms are where a heavy library may be imported directly.
var rooms = map[string]string{
	"gonum.org/v1/":                     "reports/chart",
	"github.com/shirou/gopsutil/":       "harness/probe",
	"github.com/pelletier/go-toml/":     "workloads/spec",
	"github.com/montanaflynn/stats":     "reports/stats",
	"github.com/aclements/go-moremath/": "reports/stats",
	"github.com/spf13/cobra":            "cmd/benchrun",
	"github.com/invopop/jsonschema":     "harness/schema",
	"github.com/bmatcuk/doublestar/":    "workloads/catalog",
	"github.com/cockroachdb/pebble":     "runtime/state/lsm",
	"github.com/minio/minio-go/":        "runtime/storage/s3",
	"github.com/klauspost/compress/":    "runtime/shuffle",
	"github.com/pierrec/lz4/":           "runtime/shuffle",
	"github.com/cockroachdb/datadriven": "tests only",
	"pgregory.net/rapid":                "tests only",
	"github.com/chromedp/":              "tests only",
	"github.com/santhosh-tekuri/":       "tests only",
	"golang.org/x/perf/":                "tests only",
	"golang.org/x/sys/":                 "tests only",
}

// deciders are state machines: an event in, effects out.
var deciders = []string{"runtime/checkpoint", "runtime/scheduling", "runtime/scheduling/batch"}

type pkg struct {
	ImportPath, Name, Dir string
	Standard              bool
	Imports, Deps         []string
	GoFiles, TestGoFiles  []string
	XTestGoFiles          []string
}

// tree lists our packages by their path below the module.
var tree = sync.OnceValues(func() (map[string]pkg, error) {
	out, err := exec.Command("go", "list", "-deps", "-json", "./...").Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(string(e.Stderr))
		}
		return nil, err
	}
	m := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return m, nil
		} else if err != nil {
			return nil, err
		}
		if rel, ok := ours(p.ImportPath); ok {
			m[rel] = p
		}
	}
})

// ours cuts the module off an import path.
func ours(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func packages(t *testing.T) (map[string]pkg, []string) {
	t.Helper()
	m, err := tree()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(m) < 20 {
		t.Fatalf("go list finds only %d packages of ours", len(m))
	}
	return m, slices.Sorted(maps.Keys(m))
}

// TestArrows: cmd -> harness -> workloads -> runtime, cmd -> reports ->
// harness/result.
func TestArrows(t *testing.T) {
	rank := map[string]int{"runtime": 0, "workloads": 1, "harness": 2, "cmd": 4, "scripts": 4}
	m, names := packages(t)
	for _, from := range names {
		house, _, _ := strings.Cut(from, "/")
		for _, path := range m[from].Imports {
			to, ok := ours(path)
			if !ok {
				continue
			}
			other, _, _ := strings.Cut(to, "/")
			switch {
			case house == "reports":
				if other != "reports" && to != "harness/result" {
					t.Errorf("%s imports %s: reports read results and nothing else", from, to)
				}
			case other == "reports":
				if house != "cmd" {
					t.Errorf("%s imports %s: only the command line renders reports", from, to)
				}
			case house == "scripts" || other == "scripts" || other == "cmd" && house != "cmd":
				t.Errorf("%s imports %s", from, to)
			case rank[other] > rank[house]:
				t.Errorf("%s imports %s: arrows run cmd -> harness -> workloads -> runtime", from, to)
			}
		}
	}
}

// TestFloors holds the engine to its order.
func TestFloors(t *testing.T) {
	m, names := packages(t)
	used := map[string]bool{}
	for _, from := range names {
		name, ok := strings.CutPrefix(from, "runtime/")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, "/")
		floor, ok := floors[name]
		if !ok {
			t.Errorf("%s has no floor", from)
			continue
		}
		for _, path := range m[from].Imports {
			to, ok := ours(path)
			other, inside := strings.CutPrefix(to, "runtime/")
			if !ok || !inside {
				continue
			}
			other, _, _ = strings.Cut(other, "/")
			switch {
			case other == name:
			case floors[other] > floor:
				t.Errorf("%s (floor %d) imports %s (floor %d)", from, floor, to, floors[other])
			case floors[other] == floor && !slices.Contains(neighbours[name], other):
				t.Errorf("%s imports %s of its own floor", from, to)
			case floors[other] == floor:
				used[name+" "+other] = true
			}
		}
	}
	for from, list := range neighbours {
		for _, to := range list {
			if !used[from+" "+to] {
				t.Errorf("runtime/%s no longer imports its neighbour %s: drop it from the list", from, to)
			}
		}
	}
}

// TestLeaves holds packages to the closure that their promise needs.
func TestLeaves(t *testing.T) {
	m, _ := packages(t)
	for name, allowed := range leaves {
		p, ok := m[name]
		if !ok {
			t.Errorf("%s is gone", name)
		}
		for _, path := range p.Deps {
			if to, ok := ours(path); ok && !slices.Contains(allowed, to) {
				t.Errorf("%s depends on %s, it may need %q only", name, to, allowed)
			}
		}
	}
}

// TestDoor: the harness runs jobs through the cluster.
func TestDoor(t *testing.T) {
	m, names := packages(t)
	for _, from := range names {
		allowed, ok := doors[from]
		if !ok {
			if strings.HasPrefix(from, "harness/") && from != "harness/result" && !strings.HasSuffix(from, "test") {
				t.Errorf("%s has no list of the runtime packages that it may import", from)
			}
			continue
		}
		for _, path := range m[from].Imports {
			to, ok := ours(path)
			if !ok {
				continue
			}
			if to, ok := strings.CutPrefix(to, "runtime/"); ok && to != "options" && to != "timeline" && !slices.Contains(allowed, to) {
				t.Errorf("%s imports runtime/%s past the door", from, to)
			}
		}
	}
}

// TestRooms keeps heavy libraries where they are wrapped.
func TestRooms(t *testing.T) {
	m, names := packages(t)
	for _, from := range names {
		for _, path := range m[from].Imports {
			for lib, room := range rooms {
				if strings.HasPrefix(path+"/", lib) && from != room {
					t.Errorf("%s imports %s, whose room is %s", from, path, room)
				}
			}
		}
	}
}

// TestDecidersArePure: no goroutine, clock, file or socket.
func TestDecidersArePure(t *testing.T) {
	m, _ := packages(t)
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	for _, name := range deciders {
		p, ok := m[name]
		if !ok {
			t.Fatalf("%s is gone", name)
		}
		for _, path := range p.Imports {
			if slices.Contains([]string{"os", "net", "sync", "context"}, path) || strings.HasPrefix(path, "os/") || strings.HasPrefix(path, "net/") {
				t.Errorf("%s imports %s", name, path)
			}
		}
		for _, file := range p.GoFiles {
			f, set := parse(t, filepath.Join(p.Dir, file))
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a goroutine", set.Position(n.Pos()))
				case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
					t.Errorf("%s: a channel", set.Position(n.Pos()))
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
						t.Errorf("%s: time.%s", set.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// TestPackages: each says what it is, none is a drawer.
func TestPackages(t *testing.T) {
	m, names := packages(t)
	for _, name := range names {
		p := m[name]
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", name)
		}
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "base", "lib"}, path.Base(name)) {
			t.Errorf("%s: a name that says nothing", name)
		}
		if name == "runtime" {
			t.Error("runtime/ holds packages, no Go files of its own")
		}
	}
}

// TestNoSleep: a test waits for an event, or sleeps on the clock of a bubble.
// Benchmarks measure over a span of real time.
func TestNoSleep(t *testing.T) {
	eachFile(t, func(name string, _ []byte) {
		if !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "bench_test.go") {
			return
		}
		f, set := parse(t, name)
		bubbles := map[string]bool{} // functions that make one, and those that they call
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && len(uses(fn, "synctest", "")) > 0 {
				bubbles[fn.Name.Name] = true
				ast.Inspect(fn, func(n ast.Node) bool {
					if c, ok := n.(*ast.CallExpr); ok {
						if x, ok := c.Fun.(*ast.Ident); ok {
							bubbles[x.Name] = true
						}
					}
					return true
				})
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && bubbles[fn.Name.Name] {
				continue
			}
			for _, at := range uses(d, "time", "Sleep") {
				t.Errorf("%s: time.Sleep in a test, outside of a bubble", set.Position(at))
			}
		}
	})
}

// uses finds where something of a package is used; any of it with an empty name.
func uses(in ast.Node, pkg, name string) (at []token.Pos) {
	ast.Inspect(in, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (name == "" || s.Sel.Name == name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				at = append(at, n.Pos())
			}
		}
		return true
	})
	return at
}

// TestFileLengths: a file has one subject, and fits a reader's head.
func TestFileLengths(t *testing.T) {
	const wanted, limit = 500, 700
	eachFile(t, func(name string, text []byte) {
		switch n := bytes.Count(text, []byte("\n")); {
		case n > limit:
			t.Errorf("%s has %d lines, the limit is %d", name, n, limit)
		case n > wanted:
			t.Logf("%s has %d lines: think of splitting it above %d", name, n, wanted)
		}
	})
}

// eachFile calls f for each Go file of the tree.
func eachFile(t *testing.T, f func(name string, text []byte)) {
	t.Helper()
	var files int
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "results" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || filepath.Ext(name) != ".go" {
			return nil
		}
		files++
		text, err := os.ReadFile(name)
		if err == nil {
			f(name, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Fatalf("only %d Go files found", files)
	}
}

func parse(t *testing.T, name string) (*ast.File, *token.FileSet) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f, set
}
