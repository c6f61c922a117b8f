package source

import (
	"slices"
	"testing"
)

// CO-3, CO-4, CO-5: of 6 splits 2 are with reader 0 when a batch snapshot is
// taken. Restored, 4 are unassigned, the same 2 are still attributed to reader 0,
// and no reader is registered; a reset of reader 0 gives them back. Taking the
// snapshot changes nothing.
//
// Fails if BatchSnapshot passes the tracker's splits on to a checkpoint, if the
// snapshot leaves them out, or if a coordinator keeps its readers over a reset.
func TestBatchSnapshotKeepsAttribution(t *testing.T) {
	kind := SplitsOnRequest(testSplits(6))
	c := NewCoordinator("s", 3, kind)
	c.Step(FromReader{0, 0, ReaderEvent{Register: true}})
	for range 2 {
		c.Step(FromReader{0, 0, ReaderEvent{Request: true}})
	}
	snapshot := c.BatchSnapshot()
	if again := c.BatchSnapshot(); !slices.Equal(snapshot, again) {
		t.Error("the same state, other bytes")
	}
	ids := func(splits []Split) (out []string) {
		for _, s := range splits {
			out = append(out, s.ID)
		}
		return out
	}
	want := ids(c.Assigned(0))
	if len(want) != 2 {
		t.Fatalf("reader 0 has %v", want)
	}
	next := NewCoordinator("s", 3, kind)
	if e := next.Step(Reset{Checkpoint: BatchCheckpoint, State: snapshot, Parallelism: 3}); len(e) > 0 {
		t.Fatalf("%+v", e)
	}
	if got := ids(next.Assigned(0)); !slices.Equal(got, want) {
		t.Errorf("reader 0 has %v, had %v", got, want)
	}
	if rest, err := decodeNumbered(next.enumerator.Snapshot()); err != nil || len(rest) != 4 {
		t.Errorf("%d splits are unassigned, %v", len(rest), err)
	}
	if r := (assigner{next}).Registered(); len(r) > 0 {
		t.Errorf("readers %v are registered", r)
	}
	for _, c := range []*Coordinator{c, next} {
		c.Step(SubtaskReset{0, BatchCheckpoint})
		if rest, err := decodeNumbered(c.enumerator.Snapshot()); err != nil || len(rest) != 6 {
			t.Errorf("%d splits after the reset, %v", len(rest), err)
		}
	}
}

// FLINK-35522: who comes after the last split has been given out is told so, as
// often as it comes: after a failure, and under a new master. FLINK-20222: a reset
// to nothing begins with all splits, whatever was there. FLINK-18071: what is
// meant for an attempt that is gone goes to nobody.
//
// Fails if forget keeps done, or begin keeps the tracker.
func TestFLINK35522_NoMoreSplitsIsToldToEveryAttempt(t *testing.T) {
	told := func(effects []Effect) (more, last int) {
		for _, e := range effects {
			if s, ok := e.(Send); ok {
				more += len(s.Event.IDs)
				if s.Event.NoMore {
					last++
				}
			}
		}
		return more, last
	}
	c := NewCoordinator("s", 2, StaticSplits(testSplits(3)))
	ask := func(subtask, attempt, more, last int) {
		t.Helper()
		effects := c.Step(FromReader{subtask, attempt, ReaderEvent{Register: true}})
		if m, l := told(effects); m != more || l != last {
			t.Errorf("attempt %d: %d splits, told %d times that there are no more; want %d, %d", attempt, m, l, more, last)
		}
		for _, e := range effects {
			if s := e.(Send); s.Subtask != subtask || s.Attempt != attempt {
				t.Errorf("%v, not to %d#%d", s, subtask, attempt)
			}
		}
	}
	total := 0
	for s := range 2 {
		m, _ := told(c.Step(FromReader{s, 0, ReaderEvent{Register: true}}))
		total += m
	}
	if total != 3 {
		t.Fatalf("%d splits were given out", total)
	}
	had := len(c.Assigned(0))
	for life := 1; life <= 3; life++ {
		c.Step(SubtaskFailed{0, life - 1})
		c.Step(SubtaskReset{0, BatchCheckpoint})
		ask(0, life, had, 1)
	}
	ask(0, 1, 0, 0) // it is gone
	held := map[int][]string{}
	for s := range 2 {
		for _, x := range c.Assigned(s) {
			held[s] = append(held[s], x.ID)
		}
	}
	c.Step(Reset{Checkpoint: BatchCheckpoint, Parallelism: 2, Held: held})
	ask(0, 4, 0, 1)
	c.Step(Reset{Checkpoint: BatchCheckpoint, Parallelism: 2})
	if rest, err := decodeNumbered(c.enumerator.Snapshot()); err != nil || len(rest) != 3 {
		t.Errorf("reset to nothing: %d splits, %v", len(rest), err)
	}
}
