package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// job builds logical jobs for tests.
type job struct {
	graph.Job
	n uint16
}

func (j *job) node(id, op string, parallelism int, params any, source bool) *job {
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	j.Nodes = append(j.Nodes, graph.Node{ID: id, Operator: op, Params: raw, Parallelism: parallelism, MaxParallelism: 128, Source: source})
	return j
}

func (j *job) sequence(id string, p int, params source.Params) *job {
	params.Source = j.n
	j.n++
	if params.Splits == 0 {
		params.Splits = 64
	}
	if params.Keys == 0 {
		params.Keys = 1000
	}
	if params.RecordSize == 0 {
		params.RecordSize = 128
	}
	return j.node(id, source.Sequence, p, params, true)
}

func (j *job) op(id, op string, p int, params operator.Params) *job {
	return j.node(id, op, p, params, false)
}

func (j *job) link(from, to string, p graph.Partitioner) *job {
	input := 0
	for _, n := range j.Nodes {
		if n.ID == to && (n.Operator == "join" || n.Operator == "co-map" || n.Operator == "broadcast-map") {
			for _, l := range j.Links {
				if l.To == to {
					input = 1
				}
			}
		}
	}
	j.Links = append(j.Links, graph.Link{From: from, To: to, Partitioner: p, Input: input})
	return j
}

// setup is a cluster under test.
type setup struct {
	workers, slots int
	memory         int64
	segment        int
	network        task.NetworkConfig
	options        map[string]any
	dir            string
	stops          *stops // of processes; nil: they stop nowhere
}

func (s setup) start(t testing.TB, j *job) (*cluster.Cluster, *timeline.Log) {
	t.Helper()
	cfg := s.config(t, j)
	c, err := cluster.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	return c, cfg.Timeline
}

func cleanUp(t testing.TB, c cluster.Running, log *timeline.Log) {
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			dump(t, log)
		}
	})
}

// processes starts the job on a cluster of processes.
func (s setup) processes(t testing.TB, j *job) (*cluster.Processes, *timeline.Log) {
	t.Helper()
	cfg := s.config(t, j)
	out := t.Output()
	if _, ok := t.(*testing.B); ok {
		out = io.Discard // a table of numbers comes out there
	}
	c, err := cluster.StartProcesses(t.Context(), cfg, nodes, out)
	if err != nil {
		t.Fatal(err)
	}
	cleanUp(t, c, cfg.Timeline)
	return c, cfg.Timeline
}

func (s setup) config(t testing.TB, j *job) cluster.Config {
	t.Helper()
	values, errs := options.Parse(s.options)
	for _, err := range errs {
		t.Fatal(err)
	}
	if s.segment == 0 {
		s.segment = 4 << 10
	}
	if s.memory == 0 {
		s.memory = 64 << 20
	}
	if s.network == (task.NetworkConfig{}) {
		s.network = task.NetworkConfig{Exclusive: 2, Floating: 8, MaxPerSub: 10, Overdraft: 5}
	}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	return cluster.Config{
		Job: j.Job, Values: values, Workers: s.workers, Slots: s.slots, NetworkMemory: s.memory, BufferSize: s.segment,
		Network: s.network, Dir: s.dir, Timeline: timeline.New(), Seed: 1,
	}
}

func dump(t testing.TB, log *timeline.Log) {
	es := log.Events()
	if len(es) > 400 {
		es = es[len(es)-400:]
	}
	for _, e := range es {
		if e.Kind == timeline.Throughput {
			continue
		}
		t.Logf("%9.3f %-24s %s/%d#%d %s chk=%d bytes=%d %s %s", e.T.Seconds(), e.Kind, e.Vertex, e.Subtask, e.Attempt, e.State, e.Checkpoint, e.Bytes, e.Reason, e.Detail)
	}
}

// await waits for an event from index i on and returns the index behind it.
func await(t testing.TB, log *timeline.Log, i int, what string, match func(timeline.Event) bool) (timeline.Event, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		es, err := log.Wait(ctx, i)
		if err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		for _, e := range es {
			i++
			if match(e) {
				return e, i
			}
		}
	}
}

func completedCheckpoint(e timeline.Event) bool { return e.Kind == timeline.CheckpointCompleted }

// finishLimit is a hang limit, not a target.
var finishLimit = 60 * time.Second

// result is what came out of a finished job.
type result struct {
	arrived, distinct int64
	emitted           map[string]uint64
	aggregates        map[[2]uint64]int64 // by key and window
}

func finish(t testing.TB, c cluster.Running) result {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(finishLimit):
		t.Fatal("the job does not end")
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	r := result{emitted: map[string]uint64{}, aggregates: map[[2]uint64]int64{}}
	seen := map[operator.Lane]map[uint64]*operator.Page{}
	positions := map[string]map[int]uint64{}
	reports, err := c.Reports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rep := range reports {
		switch x := rep.Data.(type) {
		case *operator.SinkReport:
			r.arrived += x.Arrived
			for _, a := range x.Aggregates {
				r.aggregates[[2]uint64{a.Key, a.Number}] = a.Value
			}
			for _, l := range x.Lanes {
				pages := seen[l.Lane]
				if pages == nil {
					pages = map[uint64]*operator.Page{}
					seen[l.Lane] = pages
				}
				for k, p := range l.Pages {
					if pages[k] == nil {
						pages[k] = new(operator.Page)
					}
					for i, w := range p {
						pages[k][i] |= w
					}
				}
			}
		case *task.SourceReport:
			for _, b := range x.Splits {
				i, k, err := source.ReadSequenceSplit(b)
				if err != nil {
					t.Fatal(err)
				}
				// An attempt that had finished before a failure and the one
				// after it report the same splits.
				splits := positions[rep.Operator]
				if splits == nil {
					splits = map[int]uint64{}
					positions[rep.Operator] = splits
				}
				splits[i] = max(splits[i], k)
			}
		}
	}
	for id, splits := range positions {
		for _, k := range splits {
			r.emitted[id] += k
		}
	}
	r.distinct = int64(len(r.aggregates))
	for _, pages := range seen {
		for _, p := range pages {
			for _, w := range p {
				r.distinct += int64(bits.OnesCount64(w))
			}
		}
	}
	return r
}

func (r result) exactly(t testing.TB, want int64) {
	t.Helper()
	if r.arrived != want || r.distinct != want {
		t.Errorf("sink got %d records, %d of them distinct; want %d: lost %d, duplicated %d", r.arrived, r.distinct, want, want-r.distinct, r.arrived-r.distinct)
	}
}

func TestBoundedJob(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			j := (&job{}).sequence("numbers", 4, source.Params{Records: 200_000}).
				op("sum", "keyed-sum", 3, operator.Params{StateSize: 16}).op("out", "verify-sink", 2, operator.Params{}).
				link("numbers", "sum", graph.Hash).link("sum", "out", graph.Rebalance)
			c, _ := setup{workers: workers, slots: 4, options: map[string]any{"execution.checkpointing.interval": "100 ms"}}.start(t, j)
			finish(t, c).exactly(t, 200_000)
		})
	}
}
