package task

import (
	"slices"
	"testing"

	"benchrun/runtime/record"
)

// A task that gets no barrier because everybody upstream has finished snapshots
// when it has processed what they left, and not before: nobody else would store
// it.
//
// Mutation: TriggerCheckpoint snapshots at once.
func TestTriggerWaitsForWhatFinishedTasksLeft(t *testing.T) {
	s := &script{}
	b := newBarriers(2, s)
	ev := event(3, record.Aligned)
	step := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.did, want) {
			t.Fatalf("%s: %q, want %q", what, s.did, want)
		}
		s.did = nil
	}
	step("trigger", b.expect(&ev))
	step("trigger again", b.expect(&ev))
	step("one channel ends", b.ended(0))
	step("the other one ends", b.ended(1), "trigger 3 unaligned=false")
	step("an old trigger", b.expect(&ev))
	next := event(4, record.Aligned)
	step("all channels have ended", b.expect(&next), "trigger 4 unaligned=false")

	b = newBarriers(1, s)
	step("trigger", b.expect(&ev))
	step("a newer one", b.expect(&next), "aborted 3 CHECKPOINT_DECLINED_SUBSUMED")
	b.cancel(4)
	step("aborted", nil, "aborted 4 CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER")
	step("its channel ends", b.ended(0))

	source := newBarriers(0, s)
	step("a source", source.expect(&ev), "trigger 3 unaligned=false")
}
