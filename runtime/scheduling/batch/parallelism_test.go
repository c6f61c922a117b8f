package batch

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Fails if cut lets a range pass the limit or splits where it need not, if a
// range may be longer than maxPairs allows, or if the bisection ends beside the
// nearest legal number.
func TestParallelismFollowsBytes(t *testing.T) {
	for _, c := range []struct {
		name                         string
		bytes                        []int64
		volume                       int64
		low, high, producers, expect int
		ranges                       string
	}{
		{name: "one range a limit", bytes: []int64{5, 5, 5, 5}, volume: 10, low: 1, high: 4, producers: 1, expect: 2, ranges: "[{0 1} {2 3}]"},
		{name: "a large one stays alone", bytes: []int64{1, 50, 1, 1}, volume: 10, low: 1, high: 4, producers: 1, expect: 3, ranges: "[{0 0} {1 1} {2 3}]"},
		{name: "no data", bytes: []int64{0, 0, 0}, volume: 10, low: 1, high: 3, producers: 1, expect: 1, ranges: "[{0 2}]"},
		{name: "too many", bytes: []int64{9, 9, 9, 9}, volume: 9, low: 1, high: 2, producers: 1, expect: 2, ranges: "[{0 1} {2 3}]"},
		{name: "too few", bytes: []int64{1, 1, 1, 1}, volume: 100, low: 3, high: 4, producers: 1, expect: 4},
		{name: "none is legal", bytes: []int64{0, 0, 0, 0}, volume: 10, low: 2, high: 4, producers: 1, expect: 2, ranges: "[{0 1} {2 3}]"},
		{name: "too many pairs", bytes: []int64{0, 0, 0, 0}, volume: 10, low: 1, high: 4, producers: 16384, expect: 2, ranges: "[{0 1} {2 3}]"},
	} {
		got := balanced(c.bytes, c.volume, c.low, c.high, c.producers)
		if len(got) != c.expect || c.ranges != "" && fmt.Sprint(got) != c.ranges {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Each subpartition of each partition is read by exactly one task, or by all if
// it is broadcast, and each task reads something; the parallelism is legal.
func TestRangesCoverEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 40).Draw(t, "bytes")
		low := rapid.IntRange(1, 10).Draw(t, "low")
		high := rapid.IntRange(low, 40).Draw(t, "high")
		got := balanced(bytes, rapid.Int64Range(1, 200).Draw(t, "volume"), low, high, rapid.IntRange(1, 9).Draw(t, "producers"))
		if n := len(got); n < min(low, len(bytes)) || n > high {
			t.Fatalf("%d ranges, not %d to %d", n, low, high)
		}
		next := 0
		for _, r := range got {
			if r.first != next || r.last < r.first {
				t.Fatalf("ranges %v", got)
			}
			next = r.last + 1
		}
		if next != len(bytes) {
			t.Fatalf("ranges %v of %d", got, len(bytes))
		}

		e := Edge{Pointwise: rapid.Bool().Draw(t, "pointwise")}
		producers, most := rapid.IntRange(1, 12).Draw(t, "producers"), rapid.IntRange(1, 12).Draw(t, "most")
		consumers := rapid.IntRange(1, most).Draw(t, "consumers")
		subs := subpartitions(e, producers, 0, most)
		seen := map[[2]int]int{}
		for _, r := range inputs(e, producers, subs, consumers, nil) {
			if r.FirstPartition > r.LastPartition || r.FirstSubpartition > r.LastSubpartition {
				t.Fatalf("a task reads nothing: %+v", r)
			}
			for p := r.FirstPartition; p <= r.LastPartition; p++ {
				for s := r.FirstSubpartition; s <= r.LastSubpartition; s++ {
					seen[[2]int{p, s}]++
				}
			}
		}
		for p := range producers {
			for s := range subs {
				if seen[[2]int{p, s}] != 1 {
					t.Fatalf("subpartition %d of %d is read %d times (%d producers, %d consumers of %d)", s, p, seen[[2]int{p, s}], producers, consumers, most)
				}
			}
		}
	})
}

// BR-6: fails if Assign takes a split that another subtask has, or one that a
// finished subtask contains, or if it keeps one that came before the error. Fails if
// Finish takes an end without a split that was given.
func TestLedgerRefusesASplitInTwoPlaces(t *testing.T) {
	l := NewLedger("source")
	l.Discover([]string{"a", "b", "c"})
	steps := []struct {
		do   func() error
		fine bool
	}{
		{func() error { return l.Assign(0, []string{"a"}) }, true},
		{func() error { return l.Assign(0, []string{"a"}) }, true},
		{func() error { return l.Assign(1, []string{"a"}) }, false},
		{func() error { return l.Assign(1, []string{"c", "a"}) }, false},
		{func() error { return l.Assign(2, []string{"c"}) }, true},
		{func() error { l.Return(2); return nil }, true},
		{func() error { return l.Finish(0, []string{"a", "b"}) }, true},
		{func() error { return l.Assign(0, []string{"b"}) }, false},
		{func() error { return l.Finish(1, []string{"b"}) }, false},
		{func() error { l.Return(0); return l.Assign(1, []string{"a", "b", "c"}) }, true},
		{func() error { return l.Finish(1, []string{"a", "c"}) }, false},
		{func() error { l.Reset(); return l.Finish(2, []string{"c"}) }, true},
	}
	for i, s := range steps {
		if err := s.do(); (err == nil) != s.fine {
			t.Errorf("step %d: %v", i, err)
		}
	}
	if got := fmt.Sprint(l.Unassigned(), l.Of(2)); got != "[a b] [c]" {
		t.Errorf("unassigned and of 2: %s", got)
	}
}
