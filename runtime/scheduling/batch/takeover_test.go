package batch

import (
	"errors"
	"fmt"
	"testing"

	"benchrun/runtime/scheduling"

	"pgregory.net/rapid"
)

// TestTakeoverThrowsNothingAway: the master dies at any moment, and with it all of
// its log that was not durable, perhaps before the log names a worker; the workers
// live. Whatever had finished, and whatever ran, goes on under the next master: no
// task is deployed again. Seeds are printed by rapid.
//
// Fails if over does not wait for workers that the log does not name, if adopt
// takes tasks of a vertex before the ends of those that they read from, if answer
// drops what has finished and is not logged, or if adoptable asks for inputs that
// the log has.
func TestTakeoverThrowsNothingAway(t *testing.T) {
	carriedOn := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := configure(jobs()[rapid.SampledFrom([]string{"three stages", "diamond"}).Draw(t, "job")], Hardened)
		w := newWorld(cfg, map[string]int{"source": 6})
		w.slowLog = true
		h := &history{t: t, w: w, ops: []string{"finish", "finish", "finish", "pull", "sync"}}
		for i := range 2 {
			w.join(Worker(fmt.Sprint("w", i)), rapid.IntRange(1, 4).Draw(t, "slots"))
		}
		w.step(Start{})
		for range rapid.IntRange(1, 3).Draw(t, "masters") {
			for range rapid.IntRange(0, 25).Draw(t, "steps") {
				if w.end == nil {
					h.step(Hardened)
				}
			}
			if w.end != nil || w.s.phase != phaseRunning {
				break
			}
			begun := map[TaskID]bool{}
			for _, v := range w.s.vertices {
				for _, x := range v.tasks {
					if x.state != created {
						begun[x.id()] = true
					}
				}
			}
			w.crash(1000)
			for _, e := range w.takeOver() {
				if d, ok := e.(Deploy); ok && begun[d.Attempt.TaskID] {
					t.Fatalf("%s had begun, and is deployed again as %s", d.Attempt.TaskID, d.Attempt)
				}
			}
			carriedOn += len(begun)
			if err := errors.Join(append(w.errs, w.splitsAreConserved())...); err != nil {
				t.Fatal(err)
			}
		}
		h.drain()
		if w.end == nil || w.end.Status != scheduling.StatusFinished {
			t.Fatalf("the job does not finish: %+v, vertices %s", w.end, h.vertices())
		}
		if err := w.verify(); err != nil {
			t.Fatal(err)
		}
	})
	if carriedOn < 100 {
		t.Errorf("%d tasks had begun when a master died", carriedOn)
	}
}
