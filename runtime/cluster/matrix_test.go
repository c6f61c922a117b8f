package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// row is one row of the rescale matrix of Flink's
// UnalignedCheckpointRescaleITCase.
type row struct {
	topology string
	from, to int
}

var matrix = func() (rows []row) {
	add := func(topology string, pairs ...[2]int) {
		for _, p := range pairs {
			rows = append(rows, row{topology, p[0], p[1]})
		}
	}
	add("pipeline", [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 7}, [2]int{4, 8}, [2]int{20, 21},
		[2]int{2, 1}, [2]int{3, 2}, [2]int{7, 3}, [2]int{8, 4}, [2]int{21, 20},
		[2]int{1, 1}, [2]int{3, 3}, [2]int{7, 7}, [2]int{20, 20})
	for _, t := range []string{"union", "multi-input"} {
		add(t, [2]int{1, 2}, [2]int{2, 3}, [2]int{3, 7}, [2]int{2, 1}, [2]int{3, 2}, [2]int{7, 3}, [2]int{1, 1}, [2]int{7, 7})
	}
	add("keyed-different-parallelism", [2]int{12, 7}, [2]int{7, 12})
	add("keyed-broadcast", [2]int{7, 2}, [2]int{2, 7})
	add("broadcast", [2]int{5, 2}, [2]int{2, 5})
	add("custom", [2]int{3, 5}, [2]int{5, 3})
	return rows
}()

// scaled builds a topology for p and says which parallelism each vertex has,
// so that the same job can be rescaled to another p.
type scaled struct {
	job
	parallelism map[string]int
}

func (s *scaled) source(id string, p int) {
	s.sequence(id, p, source.Params{RecordSize: 80, Splits: 32, Keys: 100})
	s.parallelism[id] = p
}

func (s *scaled) add(id, op string, p int, params operator.Params) {
	s.op(id, op, p, params)
	s.parallelism[id] = p
}

// pipeline appends the common pipeline behind a source and returns its end.
func (s *scaled) pipeline(name string, p int) string {
	id := func(x string) string { return name + "-" + x }
	s.source(id("source"), p)
	s.add(id("global"), "map", p, operator.Params{})
	s.add(id("rebalance"), "map", p+1, operator.Params{})
	s.add(id("up"), "map", 2*p, operator.Params{})
	s.add(id("down"), "map", p+1, operator.Params{})
	s.add(id("keyed"), "keyed-sum", p, operator.Params{StateSize: 8})
	s.add(id("rescale"), "map", max(p+1, p*3/2), operator.Params{})
	s.link(id("source"), id("global"), graph.Global).link(id("global"), id("rebalance"), graph.Rebalance).
		link(id("rebalance"), id("up"), graph.Shuffle).link(id("up"), id("down"), graph.Shuffle).
		link(id("down"), id("keyed"), graph.Hash).link(id("keyed"), id("rescale"), graph.Rescale)
	return id("rescale")
}

// end appends the slow sink behind the last vertex.
func (s *scaled) end(last string, p int) {
	s.add("tail", "map", p, operator.Params{})
	s.add("sink", "verify-sink", 1, operator.Params{Cost: int64(50 * time.Microsecond)})
	s.link(last, "tail", graph.Shuffle).link("tail", "sink", graph.Shuffle)
}

func topology(name string, p int) *scaled {
	s := &scaled{parallelism: map[string]int{}}
	switch name {
	case "pipeline":
		s.end(s.pipeline("a", p), p)
	case "union":
		s.add("union", "map", p, operator.Params{})
		for _, n := range []string{"a", "b", "c"} {
			s.link(s.pipeline(n, p), "union", graph.Shuffle)
		}
		s.end("union", p)
	case "multi-input":
		a, b, c := s.pipeline("a", p), s.pipeline("b", p), s.pipeline("c", p)
		s.add("ab", "co-map", p, operator.Params{})
		s.link(a, "ab", graph.Rebalance).link(b, "ab", graph.Hash)
		s.add("abc", "co-map", p, operator.Params{})
		s.link("ab", "abc", graph.Rebalance).link(c, "abc", graph.Shuffle)
		s.end("abc", p)
	case "keyed-different-parallelism":
		a, b := s.pipeline("a", p/2), s.pipeline("b", p/3)
		s.add("co", "co-map", p, operator.Params{})
		s.link(a, "co", graph.Hash).link(b, "co", graph.Hash)
		s.add("sum", "keyed-sum", p, operator.Params{})
		s.link("co", "sum", graph.Hash)
		s.end("sum", p)
	case "broadcast":
		a := s.pipeline("a", p)
		s.source("rules", 1)
		s.add("process", "broadcast-map", 2*p, operator.Params{})
		s.link(a, "process", graph.Rebalance).link("rules", "process", graph.Broadcast)
		s.end("process", p)
	case "keyed-broadcast":
		s.add("rules", "map", 1, operator.Params{})
		for _, n := range []string{"r1", "r2", "r3"} {
			s.source(n, 1)
			s.link(n, "rules", graph.Rebalance)
		}
		a := s.pipeline("a", p)
		s.add("process", "broadcast-map", p+2, operator.Params{})
		s.link(a, "process", graph.Hash).link("rules", "process", graph.Broadcast)
		s.end("process", p)
	case "custom":
		s.source("a", p)
		s.add("custom", "map", p, operator.Params{Cost: int64(20 * time.Microsecond)})
		s.link("a", "custom", graph.Custom)
		s.end("custom", p)
	}
	return s
}

// TestRescaleMatrix runs rows of the matrix: every one with MATRIX=all, else a
// part chosen by a seed (MATRIX_SEED, printed).
func TestRescaleMatrix(t *testing.T) {
	type run struct {
		row
		exclusive int
		path      string
	}
	var runs []run
	for _, r := range matrix {
		for _, exclusive := range []int{0, 1} {
			for _, path := range []string{"upstream", "downstream", "during"} {
				runs = append(runs, run{r, exclusive, path})
			}
		}
	}
	if os.Getenv("MATRIX") != "all" {
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("MATRIX_SEED"); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seed = n
		}
		t.Logf("MATRIX_SEED=%d", seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
		runs = runs[:12]
	}
	for _, r := range runs {
		t.Run(fmt.Sprintf("%s/%d-%d/exclusive=%d/%s", r.topology, r.from, r.to, r.exclusive, r.path), func(t *testing.T) {
			rescaleRow(t, r.row, r.exclusive, r.path)
		})
	}
}

var errInjected = errors.New("injected failure")

// rescaleRow goes there and back and there again, each time from the first
// checkpoint after the last restore, with failures in between.
func rescaleRow(t *testing.T, r row, exclusive int, path string) {
	there, back := topology(r.topology, r.to), topology(r.topology, r.from)
	opts := unaligned("50 ms", paths[path])
	opts["execution.checkpointing.unaligned.forced"] = true
	opts[options.TolerableFailedCheckpoints.Key()] = int64(1000)
	c, log := setup{
		workers: 3, slots: 64, memory: 64 << 20, segment: 2 << 10,
		network: task.NetworkConfig{Exclusive: exclusive, Floating: 8, MaxPerSub: 4, Overdraft: 5},
		options: opts,
	}.start(t, &back.job)
	_, at := await(t, log, 0, "in-flight data", func(e timeline.Event) bool { return completedCheckpoint(e) && e.Bytes > 10_000 })
	for i, to := range []*scaled{there, back, there} {
		if err := c.Master().Rescale(t.Context(), to.parallelism, func() {}); err != nil {
			t.Fatal(err)
		}
		if r.from == r.to { // nothing to rescale: a failure restarts it
			c.Master().FailTask(t.Context(), "tail", 0, "test", func() {})
		}
		at = restoredWith(t, log, at, path)
		point := []*failpoint.Point{task.FailRecord, task.FailSnapshot, task.FailRestore}[i]
		at = fireOnce(t, c.Master(), log, at, point)
		at = restoredWith(t, log, at, path)
	}
	fired := false
	disarm := task.FailClose.Arm(func(hit int, _ string) error {
		if hit == 3 {
			fired = true
			return errInjected
		}
		return nil
	})
	defer disarm()
	c.Master().StopSources()
	res := finish(t, c)
	var emitted int64
	for _, n := range res.emitted {
		emitted += int64(n)
	}
	res.exactly(t, emitted)
	if !fired {
		t.Error("the failure at close did not fire")
	}
}

// restoredWith waits for a restore and the first checkpoint after it, and checks
// that in-flight data came back on the path.
func restoredWith(t *testing.T, log *timeline.Log, at int, path string) int {
	t.Helper()
	from := at
	_, at = await(t, log, at, "restore", func(e timeline.Event) bool { return e.Kind == timeline.RestoreAssigned })
	_, at = await(t, log, at, "first checkpoint", completedCheckpoint)
	bytes, read := int64(0), ""
	for _, e := range log.From(from)[:at-from] {
		switch e.Kind {
		case timeline.RestoreAssigned:
			bytes += e.Bytes
		case timeline.RestoreRead:
			read = e.Detail
		}
	}
	if bytes == 0 || read != path {
		t.Errorf("restored %d in-flight bytes on path %q, want some on %s", bytes, read, path)
	}
	return at
}

// fireOnce makes one point fail and waits until it has.
func fireOnce(t *testing.T, m interface {
	FailTask(ctx context.Context, vertex string, subtask int, reason string, accepted func()) error
}, log *timeline.Log, at int, p *failpoint.Point) int {
	t.Helper()
	disarm := p.Arm(failpoint.Once(1, errInjected))
	defer disarm()
	if p == task.FailRestore {
		if err := m.FailTask(t.Context(), "sink", 0, "test", func() {}); err != nil {
			t.Fatal(err)
		}
	}
	_, at = await(t, log, at, "injected failure at "+p.Name(), func(e timeline.Event) bool {
		return e.Kind == timeline.TaskState && e.State == "FAILED" && strings.Contains(e.Reason, p.Name())
	})
	return at
}
