package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/options"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// pipes is a network in memory, for clusters whose time is not real.
type pipes struct {
	mu   sync.Mutex
	made int
	open map[string]*pipeListener
}

type pipeListener struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Listen() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]*pipeListener{}
	}
	p.made++
	l := &pipeListener{name: fmt.Sprint("pipe-", p.made), conns: make(chan net.Conn), closed: make(chan struct{})}
	p.open[l.name] = l
	return l, nil
}

func (p *pipes) Dial(ctx context.Context, addr string) (net.Conn, error) {
	p.mu.Lock()
	l := p.open[addr]
	p.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("no listener %q", addr)
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, fmt.Errorf("listener %q is closed", addr)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr  { return l }
func (l *pipeListener) Network() string { return "pipe" }
func (l *pipeListener) String() string  { return l.name }

// simulated is one of some small jobs whose channels fill up.
type simulated struct {
	*job
	vertices []string // may be rescaled
	records  int64    // of all sources; 0: they are stopped
	window   int64    // size of the windows that come out; 0: records do
}

// windowKeys is how many keys the records of a windowed job have.
const windowKeys = 5

func newSimulated(rnd *rand.Rand) *simulated {
	p := func() int { return 1 + rnd.IntN(4) }
	some := func(ps ...graph.Partitioner) graph.Partitioner { return ps[rnd.IntN(len(ps))] }
	edge := func() graph.Partitioner {
		return some(graph.Hash, graph.Rebalance, graph.Shuffle, graph.Global, graph.Rescale, graph.Custom)
	}
	s := &simulated{job: &job{}}
	bounded := rnd.IntN(3) == 0
	from := func(id string, p int, x source.Params) {
		if x.Splits = 8; bounded {
			x.Records = uint64(50 + rnd.IntN(1500))
			s.records += int64(x.Records)
		}
		s.sequence(id, p, x)
		s.vertices = append(s.vertices, id)
	}
	to := func(id, op string, p int, x operator.Params) {
		s.op(id, op, p, x)
		s.vertices = append(s.vertices, id)
	}
	cost := operator.Params{Cost: int64(time.Millisecond) * int64(1+rnd.IntN(3))}
	switch rnd.IntN(8) {
	case 6, 7:
		s.window = int64(10 + rnd.IntN(60))
		q := p()
		from("a", q, source.Params{RecordSize: 60, Keys: windowKeys})
		to("windows", "window-sum", p(), operator.Params{Size: s.window, Source: 9, Cost: int64(time.Millisecond)})
		to("out", "verify-sink", p(), operator.Params{})
		head := "a"
		if rnd.IntN(2) == 0 {
			head = "pass"
			to(head, "map", q+rnd.IntN(3), operator.Params{})
			s.link("a", head, some(graph.Rescale, graph.Rebalance))
		}
		s.link(head, "windows", graph.Hash).link("windows", "out", edge())
	case 0:
		from("a", p(), source.Params{RecordSize: 60 + rnd.IntN(2000), Keys: 50})
		to("sum", "keyed-sum", p(), operator.Params{StateSize: 8})
		to("out", "verify-sink", p(), cost)
		s.link("a", "sum", graph.Hash).link("sum", "out", edge())
	case 1:
		from("a", p(), source.Params{RecordSize: 100})
		from("b", p(), source.Params{RecordSize: 300, Rate: 400})
		to("co", "co-map", p(), operator.Params{})
		to("mid", "map", p(), cost)
		to("out", "verify-sink", p(), operator.Params{})
		s.link("a", "co", graph.Hash).link("b", "co", edge()).link("co", "mid", edge()).link("mid", "out", edge())
	case 2:
		from("a", p(), source.Params{RecordSize: 100})
		from("b", p(), source.Params{RecordSize: 200})
		to("union", "map", p(), operator.Params{})
		to("out", "verify-sink", p(), cost)
		s.link("a", "union", edge()).link("b", "union", edge()).link("union", "out", graph.Hash)
	case 3:
		from("a", p(), source.Params{RecordSize: 80})
		rules := source.Params{RecordSize: 60, Splits: 2, Rate: 50}
		if bounded {
			rules.Records = 20
			s.records += 20
		}
		s.sequence("rules", 1, rules)
		to("process", "broadcast-map", p(), operator.Params{})
		to("out", "verify-sink", p(), cost)
		s.link("a", "process", edge()).link("rules", "process", graph.Broadcast).link("process", "out", edge())
	case 4: // chained, and two regions
		q, r := p(), p()
		from("a", q, source.Params{RecordSize: 100})
		s.op("head", "map", q, operator.Params{}).link("a", "head", graph.Forward)
		to("sum", "keyed-sum", r, operator.Params{StateSize: 30})
		s.op("tail", "map", r, operator.Params{}).link("sum", "tail", graph.Forward)
		to("out", "verify-sink", p(), cost)
		s.link("head", "sum", graph.Hash).link("tail", "out", edge())
		from("b", p(), source.Params{RecordSize: 70, Rate: 300})
		to("other", "verify-sink", p(), operator.Params{})
		s.link("b", "other", edge())
		s.vertices = []string{"out", "other", "b"}
	default: // two edges between the same vertices would double every record, so one goes round
		from("a", p(), source.Params{RecordSize: 90})
		to("left", "filter", p(), operator.Params{Keep: 1})
		to("sum", "keyed-sum", p(), operator.Params{})
		to("again", "keyed-sum", p(), operator.Params{StateSize: 12})
		to("out", "verify-sink", 1, cost)
		s.link("a", "left", some(graph.Rebalance, graph.Shuffle)).link("left", "sum", graph.Hash).link("sum", "again", graph.Hash).link("again", "out", some(graph.Rebalance, graph.Global))
	}
	return s
}

// TestSimulation runs small clusters in virtual time: random jobs under random
// options, and a random series of rescales, deaths, freezes, failures, broken
// storage and savepoints. Whatever happens, each record comes out exactly once,
// the job ends, and nothing is left. SIMULATIONS=n for more than a few,
// SIMULATION_SEED for one of them.
func TestSimulation(t *testing.T) {
	n, first := 25, rand.Uint64()>>1
	if x, err := strconv.Atoi(os.Getenv("SIMULATIONS")); err == nil {
		n = x
	}
	if x, err := strconv.ParseUint(os.Getenv("SIMULATION_SEED"), 10, 64); err == nil {
		n, first = 1, x
	}
	for i := range n {
		seed := first + uint64(i)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, rand.New(rand.NewPCG(seed, 1))) })
		}) {
			return
		}
	}
}

func simulate(t *testing.T, rnd *rand.Rand) {
	ms := func(lo, hi int) time.Duration { return time.Duration(lo+rnd.IntN(hi-lo)) * time.Millisecond }
	flip := func() bool { return rnd.IntN(2) == 0 }
	opts := map[string]any{
		"execution.checkpointing.interval":          ms(20, 200).String(),
		"execution.checkpointing.unaligned.enabled": rnd.IntN(5) > 0,
		"execution.checkpointing.unaligned.forced":  true,
		"execution.checkpointing.timeout":           "10 s",
		options.TolerableFailedCheckpoints.Key():    int64(1_000_000),
		options.RestartFixedDelay.Key():             ms(1, 50).String(),
		options.HeartbeatInterval.Key():             "50 ms",
		options.HeartbeatTimeout.Key():              "500 ms",
		keyR:                                        flip(),
	}
	opts[options.PauseSources.Key()] = rnd.IntN(4) == 0
	opts[options.WatermarkInterval.Key()] = ms(1, 300).String()
	opts[options.OperatorChaining.Key()] = flip()
	opts[options.CheckpointsAfterFinish.Key()] = flip()
	opts[options.FailoverStrategy.Key()] = []string{"region", "full"}[rnd.IntN(2)]
	opts[options.NumRetained.Key()] = int64(1 + rnd.IntN(3))
	opts[options.MaxConcurrentCheckpoints.Key()] = int64(1 + rnd.IntN(2))
	opts[keyD] = opts[keyR].(bool) && rnd.IntN(3) > 0
	if flip() {
		opts["execution.checkpointing.aligned-checkpoint-timeout"] = ms(1, 100).String()
	}
	for k, v := range opts {
		if s, ok := v.(string); ok {
			if d, err := time.ParseDuration(s); err == nil {
				opts[k] = fmt.Sprintf("%d ms", d.Milliseconds())
			}
		}
	}
	values, errs := options.Parse(opts)
	for _, err := range errs {
		t.Fatal(err)
	}
	j := newSimulated(rnd)
	vertices := j.vertices
	log := timeline.New()
	url := "mem://" + t.Name()
	t.Cleanup(func() { storage.DropMemory(t.Name()) })
	c, err := cluster.Start(cluster.Config{
		Job: j.Job, Values: values, Workers: 3, Slots: 16, NetworkMemory: 8 << 20, BufferSize: 512 << rnd.IntN(4),
		Network: task.NetworkConfig{Exclusive: rnd.IntN(3), Floating: 1 + rnd.IntN(4), MaxPerSub: 2 + rnd.IntN(4), Overdraft: rnd.IntN(3)},
		Dir:     t.TempDir(), Storage: url, Timeline: log, Transport: &pipes{}, Seed: rnd.Uint64(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Close()
		if t.Failed() {
			t.Logf("options %v", opts)
			for _, n := range j.Nodes {
				t.Logf("vertex %s: %s of %d %s", n.ID, n.Operator, n.Parallelism, n.Params)
			}
			for _, l := range j.Links {
				t.Logf("edge %s -> %s: %s", l.From, l.To, l.Partitioner)
			}
			dump(t, log)
		}
	}()
	over := func() bool {
		select {
		case <-c.Master().Done():
			return true
		default:
			return false
		}
	}
	lost := 0
	for range 2 + rnd.IntN(6) {
		time.Sleep(ms(1, 600))
		if over() {
			break
		}
		switch rnd.IntN(7) {
		case 0, 1:
			p := map[string]int{}
			for _, v := range vertices {
				if flip() {
					p[v] = 1 + rnd.IntN(5)
				}
			}
			err := c.Master().Rescale(t.Context(), p, func() {})
			t.Logf("%v: rescale %v: %v", log.Now(), p, err)
		case 2:
			v := vertices[rnd.IntN(len(vertices))]
			err := c.Master().FailTask(t.Context(), v, 0, "simulated", func() {})
			t.Logf("%v: fail %s: %v", log.Now(), v, err)
		case 3:
			err := c.KillWorker(rnd.IntN(2), ms(0, 300), func() {})
			t.Logf("%v: kill: %v", log.Now(), err)
		case 4:
			d := ms(10, 1500)
			if d > 400*time.Millisecond {
				if lost++; lost > 2 { // one that is lost does not come back
					continue
				}
			}
			err := c.FreezeWorker(rnd.IntN(2), d, func() {})
			t.Logf("%v: freeze for %v: %v", log.Now(), d, err)
		case 5:
			k, d := []string{"error", "slow", "full", "torn"}[rnd.IntN(4)], ms(10, 400)
			err := c.FailStorage(k, d)
			t.Logf("%v: storage %s for %v: %v", log.Now(), k, d, err)
		case 6:
			path, err := c.Master().Savepoint(t.Context(), false)
			t.Logf("%v: savepoint %s: %v", log.Now(), path, err)
		}
	}
	time.Sleep(ms(0, 1000))
	c.Master().StopSources()
	select {
	case <-c.Master().Done():
	case <-time.After(10 * time.Minute):
		t.Fatal("the job does not end")
	}
	if err := c.Master().Err(); err != nil {
		t.Fatal(err)
	}
	res := finish(t, c)
	// A split that an attempt reported which finished before a failure, and
	// again one after it, stands where it stood last.
	splits := map[string]uint64{}
	for _, r := range c.Master().Reports(t.Context()) {
		if x, ok := r.Data.(*task.SourceReport); ok {
			for _, b := range x.Splits {
				i, k, err := source.ReadSequenceSplit(b)
				if err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(r.Operator, i)
				splits[key] = max(splits[key], k)
			}
		}
	}
	var emitted int64
	for _, k := range splits {
		emitted += int64(k)
	}
	if j.records > 0 && emitted != j.records {
		t.Errorf("sources emitted %d records of %d", emitted, j.records)
	}
	if j.window > 0 {
		windows(t, res, j.window, splits)
	} else {
		res.exactly(t, emitted)
	}
	t.Logf("%v: %d records, %d events", log.Now(), emitted, len(log.Events()))
}

// windows checks that each key and window came out once, and with all of its
// records, as they follow from how far the splits got.
//
// Fails, in some hundred simulations, if Plan.continues of runtime/inflight leaves
// the parallelism out.
func windows(t *testing.T, r result, size int64, splits map[string]uint64) {
	t.Helper()
	want := map[[2]uint64]int64{}
	for key, emitted := range splits {
		var split uint64
		if _, err := fmt.Sscanf(strings.TrimPrefix(key, "a"), "%d", &split); err != nil {
			t.Fatalf("split %q: %v", key, err)
		}
		for k := range emitted {
			n := split + k*8
			h := record.Mix(n)
			want[[2]uint64{h % windowKeys, n / uint64(size)}] += int64(h >> 56)
		}
	}
	if r.arrived != int64(len(want)) {
		t.Errorf("%d windows came out, want %d", r.arrived, len(want))
	}
	if !maps.Equal(r.aggregates, want) {
		t.Errorf("%d windows differ from the %d that were to come", len(r.aggregates), len(want))
	}
}
