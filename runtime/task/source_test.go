package task

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
)

// statuses is an output that remembers what it was told of idleness, and of
// watermarks.
type statuses struct {
	operator.Output
	told  []bool
	marks []int64
}

func (s *statuses) Watermark(t int64) error {
	s.marks = append(s.marks, t)
	return nil
}

func (s *statuses) Emit(*record.Record) error { return nil }

func (s *statuses) Status(active bool) error {
	s.told = append(s.told, active)
	return nil
}

// asking is a listener that counts what a reader asks for.
type asking struct {
	Listener
	asked int
}

func (a *asking) OperatorEvent(ID, []byte) { a.asked++ }

// A source that the split enumerator has yet to answer is not idle: the splits
// that it gets may be behind the watermarks of the others, which would pass.
//
// Fails if stepSource does not look at answered, or not at requested.
func TestSourceIsNotIdleBeforeTheAnswer(t *testing.T) {
	params, err := json.Marshal(source.Params{Splits: 4, Keys: 1, RecordSize: 64, Files: []string{"nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	nothing := source.EncodeCoordinatorEvent(source.CoordinatorEvent{})
	splits := source.EncodeCoordinatorEvent(source.CoordinatorEvent{Splits: [][]byte{make([]byte, 12)}})
	for _, x := range []struct {
		kind   string
		answer []byte
		told   []bool
	}{
		{source.Sequence, nil, nil},
		{source.Sequence, nothing, []bool{false}},
		{source.Lines, nil, nil},
		{source.Lines, nothing, nil}, // it asks again
	} {
		reader, err := source.NewReader(x.kind, params, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		out, l := &statuses{}, &asking{}
		task := &Task{
			reader: reader, v: &graph.Vertex{Operators: []graph.Operator{{Node: graph.Node{Operator: x.kind}}}}, chain: &chain{}, mail: newMailbox(),
			outs: []operator.Output{out}, listener: l, more: func() bool { return true },
		}
		step := func() {
			t.Helper()
			if err := task.mail.run(); err != nil {
				t.Fatal(err)
			}
			if _, err := task.stepSource(); err != nil {
				t.Fatal(err)
			}
		}
		step()
		if x.answer != nil {
			if err := task.OperatorEvent(x.answer); err != nil {
				t.Fatal(err)
			}
			step()
			step()
		}
		if !slices.Equal(out.told, x.told) {
			t.Errorf("%s, answer %s: told %v, want %v", x.kind, x.answer, out.told, x.told)
		}
		if asks := x.kind == source.Lines; asks != (l.asked > 0) {
			t.Errorf("%s asked %d times", x.kind, l.asked)
		}
		if len(x.told) > 0 { // what it gets wakes it
			if err := task.OperatorEvent(splits); err != nil {
				t.Fatal(err)
			}
			if err := task.mail.run(); err != nil {
				t.Fatal(err)
			}
			if want := append(x.told, true); !slices.Equal(out.told, want) {
				t.Errorf("%s with splits: told %v, want %v", x.kind, out.told, want)
			}
		}
	}
}

// A source with restored splits says nothing of time before the enumerator has
// answered: what it gets may be at the beginning.
//
// Fails if tickSource does not look at answered.
func TestNoWatermarkBeforeTheAnswer(t *testing.T) {
	params, err := json.Marshal(source.Params{Splits: 4, Keys: 1, RecordSize: 64})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := source.NewReader(source.Sequence, params, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	split := func(index, k byte) []byte { return []byte{index, 0, 0, 0, k, 0, 0, 0, 0, 0, 0, 0} }
	if err := reader.AddSplits([][]byte{split(0, 100)}); err != nil {
		t.Fatal(err)
	}
	out := &statuses{}
	task := &Task{reader: reader, chain: &chain{head: out}, mail: newMailbox(), outs: []operator.Output{out}}
	tick := func() {
		t.Helper()
		task.lastMark = time.Time{}
		if err := errors.Join(task.mail.run(), task.tickSource()); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	if len(out.marks) > 0 {
		t.Errorf("watermarks %v before the answer", out.marks)
	}
	if err := task.OperatorEvent(source.EncodeCoordinatorEvent(source.CoordinatorEvent{Splits: [][]byte{split(1, 0)}})); err != nil {
		t.Fatal(err)
	}
	tick()
	if !slices.Equal(out.marks, []int64{0}) {
		t.Errorf("watermarks %v, want that of the split that came", out.marks)
	}
}

// Splits that come behind the end of a batch source are read by nobody, and are not
// among those that it has taken.
//
// Fails if they count, or if those before do not.
func TestSplitsBehindTheEndAreNotTaken(t *testing.T) {
	params, err := json.Marshal(source.Params{Records: 4, Splits: 4, Keys: 1, RecordSize: 64})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := source.NewReader(source.Sequence, params, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	task := &Task{reader: reader, v: &graph.Vertex{}, mail: newMailbox(), dep: Deployment{Batch: &Batch{}}}
	splits := source.EncodeCoordinatorEvent(source.CoordinatorEvent{Splits: [][]byte{make([]byte, 12), make([]byte, 12)}})
	deliver := func() {
		t.Helper()
		if err := errors.Join(task.OperatorEvent(splits), task.mail.run()); err != nil {
			t.Fatal(err)
		}
	}
	deliver()
	task.ended = true
	deliver()
	if n := task.Taken(); n != 2 {
		t.Errorf("%d splits are taken", n)
	}
}
