package master

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/timeline"
)

// A job without workers says so and ends when it has waited for slot.request.timeout,
// however it came to that: nobody ever came, the last worker is lost, or the master
// takes over what no worker works for. One that comes in time is enough.
//
// Fails if batchConfig leaves SlotTimeout out, if slotsDue does not arm the timer, or
// if awaitSlots does not forget a shortage that is over.
func TestBatchJobWithoutWorkers(t *testing.T) {
	const limit, patience = 2 * time.Minute, 5 * time.Second
	for _, x := range []struct {
		name   string
		play   func(j *batchJob) *Batch // until nobody works for the job any more
		within time.Duration            // it begins to wait
	}{
		{"nobody comes", func(j *batchJob) *Batch {
			m, _ := j.master()
			m.Begin(0, 1, patience)
			return m
		}, patience},
		{"the last is lost", func(j *batchJob) *Batch {
			m, network := j.master()
			m.Begin(0, 1, patience)
			w := j.act(network, nil, "b")
			time.Sleep(time.Minute)
			w.leave()
			return m
		}, time.Second},
		{"another comes, and is lost", func(j *batchJob) *Batch {
			m, network := j.master()
			m.Begin(0, 1, patience)
			w := j.act(network, nil, "b")
			time.Sleep(time.Minute)
			w.leave()
			time.Sleep(limit - time.Second)
			w = j.act(network, nil, "b")
			time.Sleep(time.Minute)
			w.leave()
			return m
		}, time.Second},
		{"a master takes over", func(j *batchJob) *Batch {
			m, network := j.master()
			m.Begin(0, 1, patience)
			w := j.act(network, nil, "b")
			time.Sleep(time.Minute)
			m.Kill()
			w.leave()
			m, _ = j.master()
			m.WorkerGone(0)
			m.Begin(0, 1, patience)
			return m
		}, patience},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newBatchJob(t, map[string]any{options.SlotRequestTimeout.Key(): limit.String()})
				m := x.play(j)
				begin := time.Now()
				select {
				case <-m.Done():
				case <-time.After(time.Hour):
					t.Error("the job waits for ever")
				}
				took := time.Since(begin)
				if took < limit || took > limit+x.within {
					t.Errorf("it took %v, not %v to %v", took, limit, limit+x.within)
				}
				m.Close()
				none, ok := errors.AsType[*batch.NoSlotError](m.Err())
				if !ok || none.Task.Subtask != 0 || none.Needed != 1 || none.Slots != 0 || none.Workers != 0 || none.Waited < limit {
					t.Errorf("ended with %v", m.Err())
				}
				var last []timeline.Event
				for _, e := range j.log.Events() {
					if e.Kind == timeline.JobState {
						last = append(last, e)
					}
				}
				n := len(last)
				if n < 3 || last[n-3].State != "RESTARTING" || last[n-3].Reason == "" || last[n-2].State != "FAILING" || last[n-1].State != "FAILED" {
					t.Errorf("states %+v", last)
				}
			})
		})
	}
}
