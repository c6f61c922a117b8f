package inflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"benchrun/runtime/graph"
	"benchrun/runtime/record"
)

// TestRangeTables holds Range against tables worked out by hand from the rules
// of key-group assignment.
func TestRangeTables(t *testing.T) {
	for _, x := range []struct {
		old, n    int
		want      string
		ambiguous []int
	}{
		{1, 2, "0/0", []int{0}},
		{2, 1, "01", nil},
		{2, 3, "0/01/1", []int{0, 1}},
		{3, 2, "01/12", []int{1}},
		{2, 4, "0/0/1/1", []int{0, 1}},
		{2, 5, "0/0/01/1/1", []int{0, 1}},
		{5, 2, "012/234", []int{2}},
		{3, 7, "0/0/01/1/12/2/2", []int{0, 1, 2}},
		{7, 3, "012/234/456", []int{2, 4}},
		{2, 7, "0/0/0/01/1/1/1", []int{0, 1}},
		{7, 2, "0123/3456", []int{3}},
		{8, 4, "01/23/45/67", nil},
	} {
		var got []string
		for i := range x.n {
			s := ""
			for _, d := range Range.Old(x.old, x.n, i) {
				s += fmt.Sprint(d)
				if !Range.Covers(x.old, x.n, i, d) {
					t.Errorf("%d->%d: new %d gets %d, but Covers says no", x.old, x.n, i, d)
				}
			}
			got = append(got, s)
		}
		if g := strings.Join(got, "/"); g != x.want {
			t.Errorf("%d->%d: %s, want %s", x.old, x.n, g, x.want)
		}
		var ambiguous []int
		for s := range x.old {
			if Range.Ambiguous(x.old, x.n, s) {
				ambiguous = append(ambiguous, s)
			}
		}
		if !slices.Equal(ambiguous, x.ambiguous) {
			t.Errorf("%d->%d: ambiguous %v, want %v", x.old, x.n, ambiguous, x.ambiguous)
		}
	}
}

// TestRangeCoversOwner: whatever the maximum parallelism, the new owner of
// every key group gets the old owner's data (RM-3), and if it is not the only
// one that does, the old one is ambiguous.
func TestRangeCoversOwner(t *testing.T) {
	for _, maxp := range []int{128, 256, 4096} {
		for old := 1; old <= 40; old++ {
			for n := 1; n <= 40; n++ {
				for g := range maxp {
					o, i := record.GroupOwner(maxp, old, g), record.GroupOwner(maxp, n, g)
					if !Range.Covers(old, n, i, o) {
						t.Fatalf("max %d, %d->%d: group %d moves from %d to %d, which does not get its data", maxp, old, n, g, o, i)
					}
				}
			}
		}
	}
}

// TestRoundRobinPartition: every old subtask goes to exactly one new one.
func TestRoundRobinPartition(t *testing.T) {
	for old := 1; old <= 12; old++ {
		for n := 1; n <= 12; n++ {
			seen := make([]int, old)
			for i := range n {
				for _, s := range RoundRobin.Old(old, n, i) {
					seen[s]++
				}
			}
			for s, k := range seen {
				if k != 1 {
					t.Errorf("%d->%d: old %d goes to %d new ones", old, n, s, k)
				}
			}
		}
	}
}

// TestMappersOfPartitioners: pointwise and broadcast edges have none.
func TestMappersOfPartitioners(t *testing.T) {
	want := map[graph.Partitioner]Mapper{
		graph.Hash: Range, graph.Rebalance: RoundRobin, graph.Shuffle: RoundRobin, graph.Global: First, graph.Custom: Full,
		graph.Broadcast: Unsupported, graph.Forward: Unsupported, graph.Rescale: Unsupported,
	}
	for p, m := range want {
		if got := Downstream(p); got != m {
			t.Errorf("%s: mapper %d, want %d", p, got, m)
		}
	}
}
