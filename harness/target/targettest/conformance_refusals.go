package targettest

import (
	"errors"
	"strings"
	"testing"

	"benchrun/harness/target"
)

// refusals: a fault that cannot act says why, in words that stand behind its name,
// and the job goes on as if nothing had been.
//
// Fails if a cluster's error begins with the name of what it was asked for, or if
// what the target cannot do is taken for a failure.
func refusals(t *testing.T, sut target.Target) {
	type refusal struct {
		fault       target.Fault
		unsupported bool
		says        string
	}
	lines := []string{"s sequence 2 records = 300, keys = 50, splits = 8", "k keyed-sum 2 cost = \"500us\"", "out verify-sink 2", "s hash k", "k rebalance out"}
	for _, c := range []struct {
		mode  string
		start func() *session
		list  []refusal
	}{
		{"streaming", func() *session { return start(t, sut, Workload(t, sut.Name(), lines...)) }, []refusal{
			{target.Fault{Kind: "drop-partition", Vertex: "s"}, true, "no finished partitions"},
			{target.Fault{Kind: "rescale", Parallelism: map[string]int{"x": 2}}, false, `no vertex "x"`},
			{target.Fault{Kind: "rescale", Parallelism: map[string]int{"k": 999}}, false, "999"},
			{target.Fault{Kind: "fail-task", Vertex: "k", Subtask: 99}, false, `no subtask 99 of vertex "k"`},
			{target.Fault{Kind: "kill-worker", Worker: 9}, false, "no worker 9"},
			{target.Fault{Kind: "freeze-worker", Worker: 9}, false, "no worker 9"},
			{target.Fault{Kind: "lightning"}, true, "not supported"},
		}},
		{"batch", func() *session { return start(t, sut, BatchWorkload(t, sut.Name(), lines...)) }, []refusal{
			{target.Fault{Kind: "rescale", Parallelism: map[string]int{"k": 3}}, true, "for streaming jobs"},
			{target.Fault{Kind: "fail-storage", StorageKind: "error"}, true, "for streaming jobs"},
			{target.Fault{Kind: "fail-task", Vertex: "k", Subtask: 99}, false, `subtask 99 of vertex "k" does not run`},
			{target.Fault{Kind: "drop-partition", Vertex: "k", Subtask: 99}, false, `subtask 99 of vertex "k" holds no`},
			{target.Fault{Kind: "kill-worker", Worker: 9}, false, "no worker 9"},
		}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			s := c.start()
			for _, r := range c.list {
				_, err := s.job.Inject(s.ctx, r.fault)
				if err == nil || strings.Contains(err.Error(), r.fault.Kind+": ") || !strings.Contains(err.Error(), r.says) {
					t.Errorf("%s: %v", r.fault.Kind, err)
				}
				if errors.Is(err, target.ErrUnsupported) != r.unsupported {
					t.Errorf("%s is unsupported, or is not: %v", r.fault.Kind, err)
				}
			}
			s.prove(300)
		})
	}
}
