package source

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// whereSplits finds every split of a coordinator, and fails if one is in two
// places.
func whereSplits(t *rapid.T, c *Coordinator, subtasks int) map[string]int {
	t.Helper()
	at := map[string]int{}
	put := func(id string, place int) {
		if other, twice := at[id]; twice {
			t.Fatalf("split %s is with %d and with %d", id, other, place)
		}
		at[id] = place
	}
	rest, err := decodeNumbered(c.enumerator.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rest {
		put(s.ID, -1)
	}
	for s := range subtasks {
		for _, x := range c.Assigned(s) {
			put(x.ID, s)
		}
	}
	return at
}

// A new master makes a coordinator from a snapshot of any age, or none, and from
// what subtasks are known to have; every split is then in exactly one place, and
// the held ones are where they are held.
//
// Fails if resetBatch does not take held splits out of what an older snapshot
// still has, or drops those that the snapshot gave to somebody who does not hold
// them.
func TestBatchResetConservesSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, p := rapid.IntRange(1, 12).Draw(t, "splits"), rapid.IntRange(1, 4).Draw(t, "parallelism")
		kind := StaticSplits(testSplits(n))
		if rapid.Bool().Draw(t, "on request") {
			kind = SplitsOnRequest(testSplits(n))
		}
		c := NewCoordinator("s", p, kind)
		var snapshot []byte
		lives := make([]int, p)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			s := rapid.IntRange(0, p-1).Draw(t, "subtask")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				c.Step(FromReader{s, lives[s], ReaderEvent{Register: true}})
				c.Step(FromReader{s, lives[s], ReaderEvent{Request: true}})
			case 2:
				c.Step(SubtaskFailed{s, lives[s]})
				c.Step(SubtaskReset{s, BatchCheckpoint})
				lives[s]++
			case 3:
				snapshot = c.BatchSnapshot()
			}
			if at := whereSplits(t, c, p); len(at) != n {
				t.Fatalf("%d splits of %d", len(at), n)
			}
		}
		// Some of the subtasks go on, or have finished.
		held := map[int][]string{}
		for s := range p {
			if rapid.Bool().Draw(t, fmt.Sprint("held ", s)) {
				held[s] = []string{}
				for _, x := range c.Assigned(s) {
					held[s] = append(held[s], x.ID)
				}
			}
		}
		next := NewCoordinator("s", p, kind)
		for _, x := range next.Step(Reset{Checkpoint: BatchCheckpoint, State: snapshot, Parallelism: p, Held: held}) {
			t.Fatalf("reset: %+v", x)
		}
		at := whereSplits(t, next, p)
		if len(at) != n {
			t.Fatalf("%d splits of %d after the reset", len(at), n)
		}
		for s, ids := range held {
			for _, id := range ids {
				if at[id] != s {
					t.Fatalf("split %s is with %d, subtask %d holds it", id, at[id], s)
				}
			}
		}
		for id, place := range at {
			if place >= 0 && !slices.Contains(held[place], id) {
				t.Fatalf("split %s is with %d, which does not hold it", id, place)
			}
		}
	})
}

// A split that two subtasks claim, or that nobody knows, is refused.
func TestBatchResetRefusesImpossibleSplits(t *testing.T) {
	for what, held := range map[string]map[int][]string{"twice": {0: {"1"}, 1: {"1"}}, "unknown": {0: {"99"}}} {
		c := NewCoordinator("s", 2, StaticSplits(testSplits(4)))
		effects := c.Step(Reset{Checkpoint: BatchCheckpoint, Parallelism: 2, Held: held})
		if len(effects) != 1 {
			t.Fatalf("%s: %v", what, effects)
		}
		if _, ok := effects[0].(FailJob); !ok {
			t.Errorf("%s: %v", what, effects)
		}
	}
	c := NewCoordinator("s", 2, StaticSplits(testSplits(4)))
	b := c.BatchSnapshot()
	for n := range b {
		if e := c.Step(Reset{Checkpoint: BatchCheckpoint, Parallelism: 2, State: b[:n:n]}); n > 0 && len(e) != 1 {
			t.Errorf("a snapshot cut at %d of %d is taken", n, len(b))
		}
	}
}
