package cluster_test

import (
	"testing"

	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// A source that has got splits is not idle, also while it waits until the next
// record is due: its watermarks count, and windows are emitted as time goes by.
//
// Fails if a reader is idle while it waits for its rate (Task.stepSource).
func TestSourceThatWaitsIsNotIdle(t *testing.T) {
	j := (&job{}).sequence("numbers", 4, source.Params{Rate: 400, RecordSize: 64}).
		op("windows", "window-sum", 2, operator.Params{Size: 50, Source: 9}).op("out", "verify-sink", 1, operator.Params{}).
		link("numbers", "windows", graph.Hash).link("windows", "out", graph.Rebalance)
	c, log := setup{workers: 2, slots: 4, options: unaligned("100 ms", nil)}.start(t, j)
	await(t, log, 0, "a window", kind(timeline.FirstOutput))
	if err := c.StopSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := finish(t, c)
	r.exactly(t, r.distinct)
}
