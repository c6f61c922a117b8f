package worker

import (
	"strings"
	"testing"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling/batch"
)

// What an attempt was told to read stays as it was when the master tells of other
// producers, and one that reads what nobody has told is refused.
// Fails if learn writes over what an attempt has, or if resolve takes an entry
// that is empty.
func TestProducersOfAttempts(t *testing.T) {
	j := &batchJob{producers: map[string][]batch.Producer{}}
	from := func(partition, attempt int) batch.Producer {
		return batch.Producer{Attempt: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "v", Subtask: partition}, Epoch: 1, Attempt: attempt}, Worker: "worker-0"}
	}
	learn := func(first int, list ...batch.Producer) {
		j.learn(control.Producers{DataSet: "d", First: first, List: list})
	}
	read := func(first, last int) ([]batch.Producer, string) {
		in := batch.Input{DataSet: "d", Range: joblog.InputRange{FirstPartition: first, LastPartition: last}}
		if err := j.resolve(&in); err != nil {
			return nil, err.Error()
		}
		return in.Producers, ""
	}
	learn(1, from(1, 0), from(2, 0))
	before, problem := read(1, 2)
	if problem != "" || len(before) != 2 {
		t.Fatalf("%v, %s", before, problem)
	}
	for _, x := range []struct {
		first, last int
		problem     string
	}{
		{0, 2, "partition 0 of d, whose producer the master has not told"},
		{1, 3, "partitions 1 to 3 of d, of which the master has told 3"},
		{-1, 1, "partitions -1 to 1"}, {2, 0, "partitions 2 to 0"}, {2, 1, ""},
	} {
		if _, got := read(x.first, x.last); !strings.Contains(got, x.problem) || x.problem == "" && got != "" {
			t.Errorf("%d..%d: %q, want %q", x.first, x.last, got, x.problem)
		}
	}
	learn(0, from(0, 0), from(1, 1))
	learn(-1, from(0, 9))
	learn(3, from(3, 0))
	if before[0] != from(1, 0) || before[1] != from(2, 0) {
		t.Errorf("what an attempt reads became %v", before)
	}
	if now, problem := read(0, 3); problem != "" || now[0] != from(0, 0) || now[1] != from(1, 1) || now[2] != from(2, 0) || now[3] != from(3, 0) {
		t.Errorf("%v, %s", now, problem)
	}
}
