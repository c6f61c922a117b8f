package worker

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"benchrun/runtime/buffer"
	"benchrun/runtime/control"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/record"
	"benchrun/runtime/shuffle"
)

// A disk that takes its time for the inventory keeps nobody else waiting, and what
// is finished meanwhile is part of the inventory.
// Fails if inventory sweeps under the lock, or lists before it sweeps.
func TestInventoryOnASlowDisk(t *testing.T) {
	deleting, err := failpoint.Lookup("shuffle/delete")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w, m := startBatch(t, filepath.Join(t.TempDir(), "w"), 0)
		m.Send(control.BatchJob{Epoch: 1, Job: "job", Graph: alone(t, true)})
		m.messages()
		w.mu.Lock()
		w.mu.job.from["edge"] = "numbers"
		w.mu.Unlock()
		pool := buffer.NewGlobal(1<<10, 64)
		finish := func(index int) shuffle.PartitionID {
			id := shuffle.PartitionID{Job: "job", Dataset: "edge", Index: index, Epoch: 1}
			p, err := w.store.Create(id, shuffle.WriterConfig{Subpartitions: 1, Memory: 16 << 10, Pool: pool})
			if err == nil {
				err = p.Write(0, &record.Record{Key: 1})
			}
			if err == nil {
				_, err = p.Finish()
			}
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		finish(0)
		if err := w.store.Drop(finish(1)); err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		disarm := deleting.Arm(func(int, string) error { <-hold; return nil })
		m.Send(control.AskInventory{Epoch: 1})
		synctest.Wait()
		w.Load() // takes the lock
		finish(2)
		disarm()
		close(hold)
		var got []int
		for _, x := range m.messages() {
			if inv, ok := x.(control.Inventory); ok {
				for _, h := range inv.Partitions {
					got = append(got, h.Partition.Producer.Subtask)
				}
			}
		}
		if len(got) != 2 || got[0] != 0 || got[1] != 2 {
			t.Errorf("the inventory has the partitions %v, not 0 and 2", got)
		}
		w.Stop()
		m.Close(false)
	})
}
