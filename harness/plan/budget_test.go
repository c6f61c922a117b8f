package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

// grid lays out workloads a, b, ... with so many cells each, a warm-up and
// blocks for the builds x and y.
func grid(cells []int, blocks int) (all []result.Cell, order []result.Slot) {
	for w, n := range cells {
		for c := range n {
			all = append(all, result.Cell{Workload: string(rune('a' + w)), Cell: fmt.Sprintf("c=%d", c)})
		}
	}
	for block := range blocks + 1 {
		for _, c := range all {
			for _, b := range []string{"x", "y"} {
				order = append(order, result.Slot{Workload: c.Workload, Cell: c.Cell, Build: b, Block: block, Warmup: block == 0})
			}
		}
	}
	return all, order
}

// Fails if Fit drops the cells that are named first, takes a part of a cell's
// blocks, drops warm-ups, or charges for them.
func TestFit(t *testing.T) {
	cells, order := grid([]int{2, 2}, 3)
	costs := map[string]time.Duration{"a c=0": 2 * time.Second, "a c=1": 5 * time.Second, "b c=0": time.Second, "b c=1": time.Second}
	cost := func(s result.Slot) time.Duration { return costs[s.Workload+" "+s.Cell] }
	for _, c := range []struct {
		budget time.Duration
		in     string // cells with measured slots
		left   int
		fails  bool
	}{
		{54 * time.Second, "a c=0, a c=1, b c=0, b c=1", 0, false},
		{53 * time.Second, "a c=0, a c=1, b c=0", 1, false},
		{47 * time.Second, "a c=0, a c=1", 2, false},
		{24 * time.Second, "a c=0, b c=0, b c=1", 1, false}, // the dear one leaves room to cheaper ones
		{12 * time.Second, "a c=0", 3, false},
		{11 * time.Second, "b c=0", 3, false},
		{5 * time.Second, "", 0, true},
		{-time.Second, "", 0, true},
	} {
		t.Run(c.budget.String(), func(t *testing.T) {
			kept, left, err := Fit(cells, order, cost, c.budget)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), "the cheapest takes about 6s") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			warm := 0
			for _, s := range kept {
				if s.Warmup {
					warm++
				} else {
					count[s.Workload+" "+s.Cell]++
				}
			}
			var in []string
			for _, c := range cells {
				name := c.Workload + " " + c.Cell
				switch count[name] {
				case 0:
				case 6:
					in = append(in, name)
				default:
					t.Errorf("%s has %d of 6 slots", name, count[name])
				}
			}
			if got := strings.Join(in, ", "); got != c.in || len(left) != c.left || warm != 8 {
				t.Errorf("in %q, %d left out, %d warm-ups; want %q, %d, 8", got, len(left), warm, c.in, c.left)
			}
			for _, l := range left {
				if !strings.Contains(l.Reason, "it takes about") {
					t.Errorf("reason %q", l.Reason)
				}
			}
			if !slices.IsSortedFunc(kept, func(a, b result.Slot) int { return a.Block - b.Block }) {
				t.Error("blocks are out of order")
			}
		})
	}
}

// Fails if the blocks of More begin at one that exists, a build is left out,
// or the order does not come from the seed.
func TestMore(t *testing.T) {
	cells, order := grid([]int{2, 1}, 3)
	run := &result.Run{Workloads: []result.Workload{{Name: "a"}, {Name: "b"}}, Builds: map[string]result.Build{"x": {}, "y": {}}, Plan: result.Plan{Cells: cells, Order: order}}
	seed := func(string) uint64 { return 42 }
	got := More(run, []result.Cell{cells[1], cells[2]}, seed, 5)
	if len(got) != 2*2*5 {
		t.Fatalf("%d slots, want 20", len(got))
	}
	seen := map[result.Slot]bool{}
	for _, s := range slices.Concat(order, got) {
		if seen[s] {
			t.Errorf("%+v twice", s)
		}
		seen[s] = true
	}
	flipped := 0
	for i := 0; i < len(got); i += 2 {
		a, b := got[i], got[i+1]
		if a.Block != b.Block || a.Workload != b.Workload || a.Cell != b.Cell || a.Build == b.Build || a.Warmup || a.Block < 4 {
			t.Errorf("pair %+v %+v", a, b)
		}
		if a.Build == "y" {
			flipped++
		}
	}
	if flipped == 0 || flipped == len(got)/2 {
		t.Errorf("the builds never change their order")
	}
	if again := More(run, []result.Cell{cells[1], cells[2]}, seed, 5); !slices.Equal(got, again) {
		t.Error("the same seed gives another order")
	}
}
