package plan

import (
	"testing"

	"benchrun/workloads/spec"
)

// TestB35CellsInterleave (airspeed-velocity/asv#595): all of A and then all of B
// lets the drift of the machine look like a change.
//
// Fails if order walks cells outside and blocks inside, or does not shuffle.
func TestB35CellsInterleave(t *testing.T) {
	p, err := New(Input{Files: []*spec.File{load(t, "a", "x", "run.repeats=12", "run.warmup=0")}, Builds: []string{"base", "head"}})
	if err != nil {
		t.Fatal(err)
	}
	first, place := map[string]int{}, map[string]int{}
	for i, s := range p.Order {
		key := s.Cell + "@" + s.Build
		place[key] += i % 6
		if i%6 == 0 {
			first[key]++
		}
		if s.Block != i/6 {
			t.Fatalf("slot %d is of block %d", i, s.Block)
		}
	}
	if len(place) != 6 {
		t.Fatalf("%d columns", len(place))
	}
	for key, n := range first {
		if n > 8 {
			t.Errorf("%s comes first in %d of 12 blocks", key, n)
		}
	}
	if len(first) < 3 {
		t.Errorf("only %d columns ever come first", len(first))
	}
}
