package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/workloads/spec"

	"pgregory.net/rapid"
)

const sample = `schema = 1
name = "NAME"
tags = ["nightly", "TAG"]
[run]
repeats = 3
warmup = 1
seed = 7
[options]
"execution.checkpointing.interval" = "1 s"
"execution.checkpointing.unaligned.enabled" = true
[matrix]
"execution.checkpointing.unaligned.recover-output-on-downstream.enabled" = [false, true]
"execution.checkpointing.unaligned.during-recovery.enabled" = [false, true]
[workload]
[[workload.vertex]]
id = "numbers"
operator = "sequence"
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "out"
partitioner = "rebalance"
[[scenario.step]]
name = "fill"
wait = { checkpoints = 1 }
[[scenario.step]]
do = "fail-task"
vertex = "out"
[[scenario.step]]
wait = { first-checkpoint = true, drained = true }
`

func load(t interface {
	Fatal(...any)
	Helper()
}, name, tag string, sets ...string) *spec.File {
	t.Helper()
	f, err := spec.Parse(name+".toml", "/dir", []byte(strings.NewReplacer("NAME", name, "TAG", tag).Replace(sample)), sets)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestBlocksInterleave(t *testing.T) {
	p, err := New(Input{Files: []*spec.File{load(t, "a", "x"), load(t, "b", "y", "run.repeats=1")}, Builds: []string{"old", "new"}})
	if err != nil {
		t.Fatal(err)
	}
	var heads []string
	seen := map[result.Slot]bool{}
	for _, s := range p.Order {
		if seen[s] {
			t.Errorf("%v is planned twice", s)
		}
		seen[s] = true
		h := fmt.Sprintf("%s%d", s.Workload, s.Block)
		if len(heads) == 0 || heads[len(heads)-1] != h {
			heads = append(heads, h)
		}
		if s.Warmup != (s.Block == 0) {
			t.Errorf("%v: only block 0 warms up", s)
		}
	}
	if got, want := strings.Join(heads, " "), "a0 b0 a1 b1 a2 a3"; got != want {
		t.Errorf("blocks %s, want %s", got, want)
	}
	if got, want := len(p.Order), 3*2*4+3*2*2; got != want || p.Result().Trials != want {
		t.Errorf("%d trials, want %d", got, want)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	orders := map[string]bool{}
	for seed := range 20 {
		set := fmt.Sprintf("run.seed=%d", seed)
		a, err := New(Input{Files: []*spec.File{load(t, "a", "x", set)}})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := New(Input{Files: []*spec.File{load(t, "a", "x", set)}})
		if !slices.Equal(a.Order, b.Order) {
			t.Fatalf("seed %d gives two orders", seed)
		}
		orders[fmt.Sprint(a.Order)] = true
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds give %d orders", len(orders))
	}
	// The order must not change from version to version: resumed runs and notes refer to it.
	p, _ := New(Input{Files: []*spec.File{load(t, "a", "x")}})
	var first []string
	for _, s := range p.Order[:3] {
		first = append(first, s.Cell)
	}
	if got, want := strings.Join(first, " "), "R=true,D=false R=false,D=false R=true,D=true"; got != want {
		t.Errorf("first block %s, want %s", got, want)
	}
}

func TestOnly(t *testing.T) {
	files := []*spec.File{load(t, "a", "x"), load(t, "b", "y")}
	for _, c := range []struct {
		only string
		want int // cells
		err  string
	}{
		{"", 6, ""},
		{"cell:R=true,*", 4, ""},
		{"cell:R=true,D=true workload:a", 1, ""},
		{"!cell:*D=true", 4, ""},
		{"tag:x", 3, ""},
		{"tag:nightly !tag:y", 3, ""},
		{"workload:[ab]", 6, ""},
		{"workload:c", 0, "leaves no cell of 6"},
		{"cells:x", 0, "is no term"},
		{"R=true", 0, "is no term"},
		{"cell:", 0, "names nothing"},
		{"cell:[", 0, "is no pattern"},
	} {
		p, err := New(Input{Files: files, Only: c.only})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q", c.only, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.only, err)
		} else if len(p.Cells) != c.want || p.Dropped != 6-c.want {
			t.Errorf("%q: %d cells, %d dropped; want %d", c.only, len(p.Cells), p.Dropped, c.want)
		}
	}
	if _, err := New(Input{Files: []*spec.File{load(t, "a", "x"), load(t, "a", "y")}}); err == nil || !strings.Contains(err.Error(), "unique") {
		t.Errorf("two files of one name: %v", err)
	}
}

func TestEveryBlockHoldsEveryCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		repeats := rapid.IntRange(1, 5).Draw(t, "repeats")
		warmup := rapid.IntRange(0, 2).Draw(t, "warmup")
		seed := rapid.Int64Range(0, 1<<40).Draw(t, "seed")
		builds := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "builds")]
		f := load(t, "w", "x", fmt.Sprintf("run.repeats=%d", repeats), fmt.Sprintf("run.warmup=%d", warmup), fmt.Sprintf("run.seed=%d", seed))
		p, err := New(Input{Files: []*spec.File{f}, Builds: builds})
		if err != nil {
			t.Fatal(err)
		}
		per := 3 * len(builds)
		if len(p.Order) != per*(repeats+warmup) {
			t.Fatalf("%d trials", len(p.Order))
		}
		for i, s := range p.Order {
			if s.Block != i/per {
				t.Fatalf("trial %d is of block %d", i, s.Block)
			}
		}
	})
}

func TestWrite(t *testing.T) {
	f := load(t, "a", "x", `options."execution.checkpointing.unaligned.enabled"=false`, "run.include-invalid=true")
	p, err := New(Input{Files: []*spec.File{f}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a (a.toml): 4 cells × 3 blocks + 1 warm-up block = 16 trials, seed 7",
		"R=true,D=true   control: D (execution.checkpointing.unaligned.during-recovery.enabled) requires U",
		"cannot differ: R=false,D=false  R=false,D=true  R=true,D=false  R=true,D=true",
		"buffers hold 0.6 MiB: numbers -> out 0.6 MiB; a worker needs at least 2 buffers",
		"a block 0 (warm-up): ",
		"16 trials, about",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	p, _ = New(Input{Files: []*spec.File{load(t, "a", "x")}, Only: "!cell:R=true,D=true"})
	p.Write(&b)
	for _, want := range []string{"left out: R=false,D=true   D (", "left out by --only: 1 cell"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestMetricNames holds the names that a workload file may use to the metrics
// that exist.
func TestMetricNames(t *testing.T) {
	var names []string
	for _, m := range result.Metrics() {
		names = append(names, m.Name)
	}
	if got := spec.Metrics(); !slices.Equal(got, names) {
		t.Errorf("workload files know %v, the lab %v", got, names)
	}
}
