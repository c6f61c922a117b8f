package batch

import (
	"fmt"
	"testing"

	"benchrun/runtime/joblog"
)

// H9: a full snapshot is followed by further ones, some of nothing. Flink's list
// of shuffle snapshots cannot grow then; here there is none, and of an operator's
// snapshots the newest counts, whatever came before, in both modes. The log that
// is replayed stays as it was.
//
// Fails if putSnapshot keeps the oldest, or if a snapshot of nothing takes away
// what is there.
func TestH9SnapshotsFollowOneAnother(t *testing.T) {
	snapshot := func(op, data string) joblog.Snapshot { return joblog.Snapshot{Operator: op, Data: []byte(data)} }
	end := func(i int, s ...joblog.Snapshot) joblog.Event {
		return joblog.VertexFinished{Attempt: AttemptID{TaskID: TaskID{Vertex: "v", Subtask: i}}, Snapshotted: true, Snapshots: s}
	}
	log := []joblog.Event{end(0, snapshot("a", "full"), snapshot("b", "full")), end(1), end(2, snapshot("a", "more")), end(3), end(4, snapshot("c", "late"))}
	own := []joblog.Event{joblog.CoordinatorSnapshot{Snapshot: snapshot("a", "full")}, joblog.CoordinatorSnapshot{Snapshot: snapshot("b", "full")},
		joblog.CoordinatorSnapshot{Snapshot: snapshot("a", "more")}, joblog.CoordinatorSnapshot{Snapshot: snapshot("c", "late")}}
	for what, p := range map[string]struct {
		replay func([]joblog.Event) *state
		log    []joblog.Event
	}{"faithful": {faithful{}.replay, log}, "hardened": {hardened{}.replay, own}} {
		was := fmt.Sprintf("%+v", p.log)
		for range 2 {
			st := p.replay(p.log)
			for op, want := range map[string]string{"a": "more", "b": "full", "c": "late"} {
				if got := string(st.snapshot(op)); got != want {
					t.Errorf("%s: snapshot of %s is %q, not %q", what, op, got, want)
				}
			}
			if len(st.snapshots) != 3 {
				t.Errorf("%s: %d snapshots", what, len(st.snapshots))
			}
		}
		if now := fmt.Sprintf("%+v", p.log); now != was {
			t.Errorf("%s: the log was changed to %s", what, now)
		}
	}
}
