package cluster_test

import (
	"strings"
	"testing"
	"time"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// The master dies within the first interval of its log, which names nobody and
// nothing yet: it is the workers that know what has finished, and one finished
// task has read what another one has left. With all workers alive nothing runs
// again.
//
// Fails if the log does not name workers at once and nobody waits for those that
// it does not name, or if consumers of what the log does not know are cancelled.
func TestBatchUnloggedWorkIsKept(t *testing.T) {
	p, err := failpoint.Lookup("task/record")
	if err != nil {
		t.Fatal(err)
	}
	led := make(chan struct{})
	defer p.Arm(func(_ int, subject string) error {
		if strings.HasPrefix(subject, "numbers/7/0") {
			<-led // its vertex is not complete before: that would hurry the log
		}
		return nil
	})()
	j := (&job{}).sequence("numbers", 8, source.Params{Records: 64_000, Splits: 8}).
		op("m", "map", 8, operator.Params{}).op("out", "verify-sink", 8, operator.Params{}).
		link("numbers", "m", graph.Rescale).link("m", "out", graph.Rescale)
	c, log := setup{workers: 2, slots: 2, options: map[string]any{jobRecovery: true, flushEvery: "1 h"}}.batch(t, j)
	await(t, log, 0, "finished consumers", finishedTask("m", 3))
	before := len(log.Events())
	if err := c.KillMaster(time.Millisecond, func() {}); err != nil {
		t.Fatal(err)
	}
	replayed, at := await(t, log, before, "a log", kind(timeline.EventReplayed))
	await(t, log, at, "a job that goes on", func(e timeline.Event) bool { return e.Kind == timeline.JobState && e.State == "RUNNING" })
	close(led)
	finish(t, c).exactly(t, 64_000)
	if replayed.Detail != "0 finished tasks" {
		t.Errorf("the log had %s: this shows nothing", replayed.Detail)
	}
	type place struct {
		vertex  string
		subtask int
	}
	begun := map[place]int{} // with which attempt
	for i, e := range log.Events() {
		at := place{e.Vertex, e.Subtask}
		switch {
		case e.Kind != timeline.TaskState:
		case i < before:
			if e.State != "DEPLOYING" { // one that was told to nobody has not begun
				begun[at] = e.Attempt
			}
		case e.State == "DEPLOYING":
			if attempt, ok := begun[at]; !ok || attempt == e.Attempt { // adopted before it was ready
				continue
			}
			t.Errorf("%s/%d had begun, and runs again", e.Vertex, e.Subtask)
		}
	}
}
