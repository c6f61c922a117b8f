package worker

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// Who leads cannot be read for a while: the worker goes on looking, and ends only
// when that does not get better.
// Fails if Follow ends at the first error, or does not forget one that is over.
func TestFollowWhenNobodyCanBeFound(t *testing.T) {
	unreadable := errors.New("too many open files")
	for _, x := range []struct {
		name    string
		trouble []time.Duration // before each master
		masters int
		err     error
	}{
		{"for a moment", []time.Duration{leaderTrouble / 2}, 1, nil},
		{"twice", []time.Duration{leaderTrouble - time.Second, leaderTrouble - time.Second}, 2, nil},
		{"for good", []time.Duration{0, time.Hour}, 1, unreadable},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin, joined := time.Now(), 0
				find := func(context.Context, int64) (string, int64, error) {
					switch {
					case joined == len(x.trouble):
						cancel()
						return "", 0, ctx.Err()
					case time.Since(begin) < x.trouble[joined]:
						return "", 0, unreadable
					}
					return "there", int64(joined + 1), nil
				}
				err := Follow(ctx, find, false, func(string, int64) (bool, error) {
					joined++
					begin = time.Now()
					return true, nil
				})
				if joined != x.masters || !errors.Is(err, x.err) {
					t.Errorf("%d masters, %v", joined, err)
				}
			})
		})
	}
}

// Events of the split enumerator that come while the task is being made are kept
// for it, in order.
// Fails if coordinatorEvent fails the attempt, or run drops what came early.
func TestEarlyEventsOfTheEnumerator(t *testing.T) {
	for _, x := range []struct {
		name    string
		payload []byte
		state   scheduling.TaskState
	}{
		{"no more splits", source.EncodeCoordinatorEvent(source.CoordinatorEvent{NoMore: true}), scheduling.TaskFinished},
		{"rubbish", []byte("rubbish"), scheduling.TaskFailed},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m := startBatch(t, filepath.Join(t.TempDir(), "w"), 0)
				m.Send(control.BatchJob{Epoch: 1, Job: "job", Graph: alone(t, true)})
				m.messages()
				id := joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "numbers"}, Epoch: 1}
				w.mu.Lock()
				a := &attempt{w: w, id: id, deploy: control.DeployAttempt{Attempt: id, Parallelism: 1}, job: w.mu.job, over: make(chan struct{}), state: scheduling.TaskDeploying}
				w.mu.attempts[id] = a
				d := a.deployment(0, w.mu.name)
				w.mu.Unlock()
				m.Send(control.ToAttempt{Epoch: 1, Attempt: id, Payload: x.payload})
				synctest.Wait()
				go a.run(d, nil)
				var last control.AttemptState
				for _, msg := range m.messages() {
					if s, ok := msg.(control.AttemptState); ok {
						last = s
					}
				}
				if last.State != x.state {
					t.Errorf("the attempt is %v (%s), not %v", last.State, last.Error, x.state)
				}
				w.Stop()
				m.Close(false)
			})
		})
	}
}

// A master that comes while a worker gives up what nobody has asked for waits for the
// worker, and is told what is there afterwards.
// Fails if the worker joins, and the job begins, while it is about to delete.
func TestMasterThatComesTooLate(t *testing.T) {
	deleting, err := failpoint.Lookup("shuffle/delete")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := &pipes{}
		l, _ := n.Listen()
		epochs := make(chan int64, 1)
		newest := int64(1)
		accept := func(epoch int64) *master {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			m := welcomeAs(epoch, 0)(c)
			m.Send(control.BatchJob{Epoch: epoch, Job: "job", Graph: alone(t, true)})
			m.Send(control.AskInventory{Epoch: epoch})
			return m
		}
		inventories := func(m *master) (n int) {
			for _, x := range m.messages() {
				if _, ok := x.(control.Inventory); ok {
					n++
				}
			}
			return n
		}
		w, err := StartBatch(BatchConfig{
			Name: "w", Slots: 1, Memory: 1 << 20, Segment: 1 << 10, Dir: filepath.Join(t.TempDir(), "w"), OutputDir: t.TempDir(), Timeline: timeline.New(),
			Origin: time.Now(), Transport: n, Heartbeat: time.Second, Tick: time.Second, Retention: time.Minute, Recovery: true, Adoption: true,
			Leader: func(ctx context.Context, _ int64) (string, int64, error) {
				select {
				case epoch := <-epochs:
					return l.Addr().String(), epoch, nil
				case <-ctx.Done():
					return "", 0, ctx.Err()
				}
			},
			Newer: func(epoch int64) bool { return epoch < newest },
		})
		if err != nil {
			t.Fatal(err)
		}
		epochs <- 1
		first := accept(1)
		if inventories(first) != 1 {
			t.Error("no inventory for the first master")
		}
		first.Close(true)
		hold, holds := make(chan struct{}), 0
		disarm := deleting.Arm(func(int, string) error { holds++; <-hold; return nil })
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if holds != 1 {
			t.Fatalf("after its retention the worker deletes %d times", holds)
		}
		epochs <- 2
		synctest.Wait()
		select {
		case <-l.(*pipeListener).conns:
			t.Fatal("the worker comes while it is about to delete")
		default:
		}
		disarm()
		close(hold)
		second := accept(2)
		if inventories(second) != 1 {
			t.Error("the second master is told nothing")
		}
		w.Stop()
		second.Close(false)
		l.Close()
	})
}
