package control

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/record"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// side is one end and what came to it.
type side struct {
	*Conn
	mu   sync.Mutex
	got  []any
	lost []error
}

func newSide(c net.Conn, pause func()) *side {
	s := &side{}
	s.Conn = NewConn(c, pause, func(m any) {
		s.mu.Lock()
		s.got = append(s.got, m)
		s.mu.Unlock()
	}, func(err error) {
		s.mu.Lock()
		s.lost = append(s.lost, err)
		s.mu.Unlock()
	})
	return s
}

func nop() {}

type note struct{ Text string }

// Every kind of message arrives as it was sent, in order, in both directions.
func TestMessagesRoundTrip(t *testing.T) {
	gob.Register(note{})
	id := task.ID{Vertex: "v", Subtask: 3, Attempt: 2}
	g, err := graph.Build(graph.Job{
		Nodes: []graph.Node{{ID: "a", Operator: "sequence", Params: []byte(`{"rate":1}`), Parallelism: 2, Source: true}, {ID: "b", Parallelism: 3}},
		Links: []graph.Link{{From: "a", To: "b", Partitioner: graph.Hash}},
	}, graph.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ev := record.Event{Kind: record.Barrier, Barrier: record.AlignedWithTimeout, Checkpoint: 5, Triggered: 9, Options: record.Options{Unaligned: true, Timeout: time.Second, Savepoint: true, Terminate: true, Drain: true}}
	at := joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "v", Subtask: 3}, Epoch: 2, Attempt: 1}
	part := batch.PartitionID{DataSet: "a->b#0", Producer: at}
	result := batch.Result{Records: 1, BytesIn: 2, Results: []joblog.Result{{DataSet: "a->b#0", Bytes: []int64{3, 4}}}, Splits: []string{"5"}}
	messages := []any{
		BatchJob{2, "job", "run", *g, map[string]any{"a": int64(1)}, time.Minute}, Peers{2, []Peer{{"worker-0", "worker-0.1f", "x"}}}, AskInventory{2},
		Inventory{2, []batch.Worker{"worker-0"}, []batch.Held{{Partition: part, Bytes: []int64{1}}}, []int64{7}, []batch.Execution{{Attempt: at, Parallelism: 2, State: scheduling.TaskRunning, Result: result, Inputs: []joblog.AttemptID{at}}}},
		Settle{2, []batch.PartitionID{part}, []batch.PartitionID{part}, []joblog.AttemptID{at}, []joblog.AttemptID{at}},
		DeployAttempt{2, at, 3, []batch.Input{{DataSet: "d", Range: joblog.InputRange{LastPartition: 1}}}, []batch.Output{{DataSet: "e", Subpartitions: 2}}},
		Producers{2, "d", 3, []batch.Producer{{Attempt: at, Worker: "worker-1"}}}, CancelAttempt{2, at, "why"}, ReleasePartitions{2, []batch.PartitionID{part}}, DropData{2, part}, JobOver{2}, Leftover{2, 9},
		AttemptState{Attempt: at, State: scheduling.TaskFinished, Error: "e", Class: batch.FailurePartitionLost, Partition: part, Peer: "w1", Result: result, Records: []int64{4}},
		Counts{[]AttemptCount{{at, 5}}}, ToAttempt{2, at, []byte{1}, []string{"5"}}, FromAttempt{at, []byte{1}}, DropPartition{"v", 3}, WorkerGone{3}, Recorded{2, []joblog.AttemptID{at}},
		Hello{Index: 3, Slots: 4, DataAddr: "127.0.0.1:1"}, Welcome{Epoch: 2, Worker: 1}, Heartbeat{},
		Deploy{
			Epoch: 2, Execution: 3, Graph: *g, Placement: [][]int{{0, 1}, {1, 0, -1}}, Addrs: map[int]string{0: "x"},
			Options: map[string]any{"a": int64(1), "b": true, "c": "text", "d": 1.5}, Tasks: []TaskSpec{{id, 1}}, RestoreURL: "file:///x", RestoreFolder: "chk-1",
			Started: time.Minute, Draining: true, SavepointToken: "t",
		},
		Cancel{2, []task.ID{id}}, Trigger{2, ev, []task.ID{id}}, Notify{2, 5, true, []task.ID{id}}, ToReader{2, 7, id, []byte{1}},
		StopSources{2, []task.ID{id}}, FailTask{2, id, "why"}, Forget{2, 3}, TaskState{Task: id, State: task.Failed, Error: "e"},
		Acknowledge{Task: id, Checkpoint: 5, State: []byte{2}}, Passed{id, 5}, Decline{Task: id, Checkpoint: 5, Reason: "r", Error: "e"}, Ended{id},
		FromReader{id, []byte{3}}, ReaderGot{7, "e"}, Report{Task: id, Operator: "o", Data: note{"x"}},
		InUse{Execution: 1, Options: map[string]any{"k": int64(1)}},
		Attach{"worker-1", time.Millisecond}, Clock{1, time.Second}, Events{[]timeline.Event{timeline.Task(timeline.TaskState, "v", 1, 2)}, 3},
		Leading{3, "127.0.0.1:1", time.Second}, JobEnded{Epoch: 3, Error: "e", JobLog: true}, Told{Seq: 3, At: time.Second, Path: "p", Error: "e", Data: Load{Tasks: 3, Restoring: true}},
		Rescale{map[string]int{"v": 3}}, FailSubtask{"v", 3, "why"}, TakeSavepoint{true}, EndSources{}, CancelJob{}, GetReports{}, GetOptions{},
		GetLoad{true}, BreakStorage{"slow", time.Second}, Leave{}, Load{Tasks: 1}, Reports{[]Report{{Task: id, Operator: "o", Data: note{"x"}}}},
		Options{map[string]any{"k": true}}, Ask{4, TakeSavepoint{true}},
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(messages, func(m any) bool { return reflect.TypeOf(m) == reflect.TypeOf(k) }) {
			t.Errorf("%T is not tried", k)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		x, y := newSide(a, nop), newSide(b, nop)
		for _, m := range messages {
			x.Send(m)
			y.Send(m)
		}
		synctest.Wait()
		for name, s := range map[string]*side{"there": y, "back": x} {
			if len(s.got) != len(messages) {
				t.Fatalf("%s: %d messages of %d, lost: %v", name, len(s.got), len(messages), s.lost)
			}
			for i := range messages {
				if !reflect.DeepEqual(s.got[i], messages[i]) {
					t.Errorf("%s: %+v became %+v", name, messages[i], s.got[i])
				}
			}
		}
		x.Close(false)
		synctest.Wait()
		y.Close(false)
		if len(x.lost) != 1 || len(y.lost) != 1 || !strings.Contains(y.lost[0].Error(), "closed by the other side") {
			t.Errorf("lost: %v and %v", x.lost, y.lost)
		}
		x.Send(Heartbeat{}) // into the void
		x.Close(true)
	})
}

// Another version of the protocol, and bytes that are none, end the connection
// with an error and harm nobody.
func TestForeignPeer(t *testing.T) {
	for what, x := range map[string]struct {
		bytes []byte
		want  string
	}{
		"another version": {[]byte{protocol + 1}, "speaks protocol 6, not 5"},
		"no gob":          {[]byte{protocol, 0xff, 0xff, 0xff}, "control connection"},
		"nothing":         {nil, "closed by the other side"},
		"half a message":  {[]byte{protocol, 20, 1, 2}, "closed by the other side"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			s := newSide(a, nop)
			go io.Copy(io.Discard, b)
			b.Write(x.bytes)
			b.Close()
			synctest.Wait()
			if len(s.lost) != 1 || !strings.Contains(s.lost[0].Error(), x.want) || len(s.got) != 0 {
				t.Errorf("%s: got %v, lost %v; want %q", what, s.got, s.lost, x.want)
			}
			s.Close(false)
		})
	}
}

// A message that gob cannot carry ends the connection with an error that names
// it; nobody waits for it for ever.
func TestUnknownMessage(t *testing.T) {
	type private struct{ C chan int }
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		x, y := newSide(a, nop), newSide(b, nop)
		x.Send(private{})
		synctest.Wait()
		if len(x.lost) != 1 || len(y.lost) != 1 {
			t.Errorf("lost: %v and %v", x.lost, y.lost)
		}
		x.Close(false)
		y.Close(false)
	})
}

// While its owner is frozen a connection neither reads nor writes; Send does
// not block. When it thaws everything comes, in order.
func TestFrozenSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var mu sync.Mutex
		cond, shut := sync.NewCond(&mu), true
		pause := func() {
			mu.Lock()
			for shut {
				cond.Wait()
			}
			mu.Unlock()
		}
		x, y := newSide(a, pause), newSide(b, nop)
		for i := range 100 {
			x.Send(Passed{Checkpoint: int64(i)})
			y.Send(Passed{Checkpoint: int64(i)})
		}
		synctest.Wait()
		if len(x.got) != 0 || len(y.got) != 0 {
			t.Fatalf("frozen: %d and %d messages came", len(x.got), len(y.got))
		}
		mu.Lock()
		shut = false
		mu.Unlock()
		cond.Broadcast()
		synctest.Wait()
		for _, s := range []*side{x, y} {
			if len(s.got) != 100 {
				t.Fatalf("%d messages of 100", len(s.got))
			}
			for i, m := range s.got {
				if m.(Passed).Checkpoint != int64(i) {
					t.Fatalf("message %d is %+v", i, m)
				}
			}
		}
		x.Close(true)
		y.Close(true)
	})
}

// brokenConn fails in the middle of what is written.
type brokenConn struct {
	net.Conn
	left int
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		return 0, errors.New("cable cut")
	}
	return c.Conn.Write(b)
}

func TestBrokenWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		x := newSide(&brokenConn{a, 10}, nop)
		y := newSide(b, nop)
		x.Send(Acknowledge{State: bytes.Repeat([]byte{1}, 100_000)})
		synctest.Wait()
		if len(x.lost) != 1 || len(y.lost) != 1 || len(y.got) != 0 {
			t.Errorf("lost: %v and %v; got %v", x.lost, y.lost, y.got)
		}
		x.Close(false)
		y.Close(false)
	})
}
