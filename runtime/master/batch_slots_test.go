package master

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
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

// A worker that does not answer is one failure: of who reads from it first, then of
// the worker that is found lost. The restart strategy allows one.
//
// Fails if the other end of a broken connection does not reach the scheduler, or if
// batchConfig leaves Silence out.
func TestBatchWorkerThatDoesNotAnswerIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, map[string]any{options.RestartFixedAttempts.Key(): 1})
		m, network := j.master()
		m.Begin(0, 2, time.Minute)
		near := j.act(network, nil, "b")
		synctest.Wait()
		far := j.act(network, nil, "b")
		time.Sleep(10 * time.Second) // the sources have finished
		synctest.Wait()
		for id := range maps.Clone(near.outputs) { // what is sent makes it deploy more
			if id.Vertex == "b" {
				near.Send(control.AttemptState{Attempt: id, State: scheduling.TaskFailed, Error: "no answer", Class: batch.FailureTransfer, Peer: "worker-1"})
			}
		}
		time.Sleep(time.Second)
		far.leave()
		time.Sleep(time.Second)
		select {
		case <-m.Done():
			t.Errorf("the job has ended: %v", m.Err())
		default:
		}
		if n := len(j.states("RESTARTING")); n < 2 {
			t.Errorf("restarted %d times", n)
		}
		m.Close()
		near.leave()
	})
}
