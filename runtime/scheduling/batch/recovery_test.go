package batch

import (
	"slices"
	"testing"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
)

// What happens while a new master waits changes what workers have said, and not the
// message in which they said it.
// Fails if withdraw keeps what is gone, if changed drops the outputs of a task that
// has finished, or if inventory does not make the lists its own.
func TestInventoriesWhileTheMasterWaits(t *testing.T) {
	s, err := New(wide(3))
	if err != nil {
		t.Fatal(err)
	}
	r := newRecovery(1, 0)
	s.recovery, s.phase = r, phaseReconciling
	of := func(subtask int) AttemptID { return AttemptID{TaskID: TaskID{Vertex: "a", Subtask: subtask}, Epoch: 1} }
	part := func(subtask int) PartitionID { return PartitionID{"d", of(subtask)} }
	said := Inventory{
		Worker: "w", Epoch: s.cfg.Epoch, Partitions: []Held{{Partition: part(0)}, {Partition: part(1)}},
		Running: []Execution{{Attempt: of(2), State: scheduling.TaskRunning}},
	}
	r.expected = map[PartitionID]ref{part(0): {}, part(1): {}, part(2): {}}
	s.inventory(said)
	for _, x := range []struct {
		what    string
		do      func()
		has     []PartitionID
		missing int
	}{
		{"as it was said", func() {}, []PartitionID{part(0), part(1)}, 1},
		{"one is lost", func() { r.withdraw([]PartitionID{part(0), {"other", of(1)}}) }, []PartitionID{part(1)}, 2},
		{"a task finishes", func() {
			r.changed(TaskChanged{Attempt: of(2), State: scheduling.TaskFinished, Result: Result{Results: []joblog.Result{{DataSet: "d"}}}})
			r.count()
		}, []PartitionID{part(1), part(2)}, 1},
		{"a consumer finds one gone", func() {
			r.changed(TaskChanged{Attempt: of(9), State: scheduling.TaskFailed, Class: FailurePartitionLost, Partition: part(1)})
		}, []PartitionID{part(2)}, 2},
	} {
		x.do()
		held := heldBy(r.inventories["w"])
		if len(held) != len(x.has) || !held.all(x.has) || r.missing != x.missing {
			t.Errorf("%s: the worker has %v, %d are missing", x.what, held, r.missing)
		}
	}
	if !slices.ContainsFunc(said.Partitions, func(h Held) bool { return h.Partition == part(0) }) || said.Running[0].State != scheduling.TaskRunning {
		t.Errorf("the message became %+v", said)
	}
}
