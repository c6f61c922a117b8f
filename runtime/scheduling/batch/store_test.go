package batch

import (
	"context"
	"fmt"
	"testing"

	"benchrun/runtime/joblog"
)

// TestTakeoverFromDisk: what the scheduler logs comes back from the hardened
// store as it was, and a new master ends the job with it. Fails if an event of
// the scheduler has a field that the store does not write.
func TestTakeoverFromDisk(t *testing.T) {
	dir, err := joblog.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(configure(jobs()["diamond"], Hardened), map[string]int{"source": 5})
	h := &history{w: w, ops: everything}
	w.join("w0", 4)
	w.join("w1", 4)
	w.step(Start{})
	for epoch := uint64(1); w.end == nil; epoch++ {
		for range 3 {
			if running, where := w.running(); len(running) > 0 {
				w.finish(where[running[0].Attempt], running[0].Attempt, 3, false)
			}
		}
		if w.end != nil || epoch == 20 {
			break
		}
		store, err := joblog.OpenHardened(dir, joblog.Config{Job: "job", Epoch: epoch})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range w.log {
			store.Append(joblog.Entry{Event: e})
		}
		if err := store.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(false); err != nil {
			t.Fatal(err)
		}
		back := readAll(t, dir, epoch+1)
		if got, want := fmt.Sprintf("%+v", back), fmt.Sprintf("%+v", w.log); got != want {
			t.Fatalf("came back\n%s\nwritten\n%s", got, want)
		}
		if err := joblog.Wipe(dir); err != nil {
			t.Fatal(err)
		}
		w.log = back
		w.crash(0)
		w.takeOver()
	}
	h.drain()
	if w.end == nil || w.cfg.Epoch < 3 {
		t.Fatalf("ended %v in epoch %d", w.end, w.cfg.Epoch)
	}
	if err := w.verify(); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, dir joblog.Folder, epoch uint64) (events []joblog.Event) {
	t.Helper()
	store, err := joblog.OpenHardened(dir, joblog.Config{Job: "job", Epoch: epoch})
	if err == nil {
		err = store.Replay(func(e joblog.Event) error { events = append(events, e); return nil })
	}
	if err == nil {
		err = store.Close(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return events
}
