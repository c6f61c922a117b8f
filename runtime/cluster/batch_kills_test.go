package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/failpoint"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// instants are the places in the code at which the death of a process hurts most:
// in front of the first commit, between two, behind the last, with the decision
// made and not yet told, and while everything is cleaned up. The number is that of
// passings from which one is drawn.
var instants = []struct {
	point    string
	passings int
	master   bool // the code of a master; of a worker otherwise, or of both
}{
	{"reports/rename", 5, true}, {"reports/renamed", 5, true}, {"filesink/rename", 4, true}, {"filesink/renamed", 4, true},
	{"reports/sync", 1, true}, {"reports/synced", 1, true}, {"filesink/synced-folder", 5, false},
	{"result/write", 1, true}, {"result/written", 1, true},
	{"shuffle/delete", 12, false}, {"shuffle/deleted", 12, false}, {"reports/remove", 2, true}, {"filesink/remove", 2, false},
}

// mishap is what a seed draws of a job and of what befalls it.
type mishap struct {
	r      *rand.Rand
	t      *testing.T
	c      cluster.Running
	log    *timeline.Log
	began  chan struct{} // closed when c is there
	aims   map[string]int
	work   sync.WaitGroup
	mu     sync.Mutex
	struck map[string]bool // points at which somebody was killed
	freeze bool            // workers are taken for dead, too, and come back
	toll   *toll
}

// toll counts the faults that struck, over all seeds of a test.
type toll struct {
	sync.Mutex
	n map[string]int
}

// Kinds of faults that count.
const (
	masterKills  = "kills of a master"
	workerKills  = "kills of a worker"
	others       = "lost partitions and failed tasks"
	instantKills = "kills at an instant"
	freezes      = "workers that were taken for dead, and then their master killed"
)

func (x *toll) add(kind string) {
	x.Lock()
	defer x.Unlock()
	x.n[kind]++
}

// check: a test of so many seeds whose faults come too late shows nothing.
func (x *toll) check(t *testing.T, seeds int) {
	t.Logf("of %d seeds: %v", seeds, x.n)
	for kind, want := range map[string]int{masterKills: seeds / 2, workerKills: seeds / 4, others: seeds / 12, instantKills: seeds / 8, freezes: seeds / 12} {
		if x.n[kind] < want && !t.Failed() {
			t.Errorf("%d %s struck in %d seeds, %d must have", x.n[kind], kind, seeds, want)
		}
	}
}

// silence is for how long a worker may be silent where workers are frozen.
const silence = 500 * time.Millisecond

// drawn begins a seed: a job, the options of its cluster, and the instants at
// which somebody is killed.
func drawn(t *testing.T, seed uint64, all *toll) (m *mishap, j *job, o map[string]any) {
	m = &mishap{r: rand.New(rand.NewPCG(seed, 7)), t: t, began: make(chan struct{}), aims: map[string]int{}, struck: map[string]bool{}, toll: all}
	sink := []string{"verify-sink", "file-sink"}[m.r.IntN(2)]
	flush := []string{"10 ms", "100 ms", "1 s"}[m.r.IntN(3)]
	if seed%2 == 0 {
		for range 1 + m.r.IntN(3) {
			i := instants[m.r.IntN(len(instants))]
			m.aims[i.point] = 1 + m.r.IntN(i.passings)
		}
	}
	m.freeze = m.r.IntN(3) == 0
	lines := seed/2%2 == 1
	t.Logf("seed %d: %s, flushed every %s, kills at %v, lines %v, freezes %v", seed, sink, flush, m.aims, lines, m.freeze)
	o = recovering(map[string]any{"heartbeat.interval": "50 ms", flushEvery: flush})
	cost := int64(5000)
	if m.freeze { // the job must not be over before somebody is missed
		o["heartbeat.timeout"], cost = silence.String(), 50_000
	}
	if !lines {
		return m, costly(threeStageTo(sink, 30_000, 4), "pairs", cost), o
	}
	j = threeStageOfLines(sink, texts(t, 64, 30_000), 4)
	for _, id := range []string{"left-read", "right-read", "pairs"} {
		costly(j, id, cost)
	}
	return m, j, o
}

// texts writes files with so many lines in all, of a thousand different ones.
func texts(t *testing.T, files, lines int) (paths []string) {
	dir := t.TempDir()
	for f := range files {
		var b strings.Builder
		for i := f * lines / files; i < (f+1)*lines/files; i++ {
			fmt.Fprintf(&b, "line %d\n", i%1000)
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%02d.txt", f)))
		if err := os.WriteFile(paths[f], []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// threeStageOfLines is one whose readers ask for their splits, with what they read
// chained to something that can take its time.
func threeStageOfLines(sink string, paths []string, p int) *job {
	j := &job{}
	for i, id := range []string{"left", "right"} {
		j.node(id, source.Lines, p, source.Params{Source: uint16(i), Files: paths}, true).op(id+"-read", "map", p, operator.Params{}).link(id, id+"-read", graph.Forward)
	}
	return j.op("pairs", "join", p, operator.Params{}).op("count", "count-by-key", p, operator.Params{Source: 9}).op("out", sink, p, operator.Params{}).
		link("left-read", "pairs", graph.Hash).link("right-read", "pairs", graph.Hash).link("pairs", "count", graph.Hash).link("count", "out", graph.Rebalance)
}

func (m *mishap) begin(c cluster.Running, log *timeline.Log) {
	m.c, m.log = c, log
	close(m.began)
}

// arm has the instants come true in this process. disarm waits until all who were
// to be killed are.
func (m *mishap) arm() (disarm func()) {
	var off []func()
	for point, n := range m.aims {
		p, err := failpoint.Lookup(point)
		if err != nil {
			m.t.Fatal(err)
		}
		off = append(off, p.Arm(func(hit int, _ string) error {
			if hit != n {
				return nil
			}
			<-m.began
			dead, returned := make(chan struct{}), make(chan struct{})
			m.work.Go(func() {
				defer close(returned)
				m.strike(point, func() { close(dead) })
			})
			select {
			case <-dead:
			case <-returned: // there was nobody to kill
				return nil
			}
			if ofMaster(point) {
				return errors.New("the master dies here")
			}
			return nil
		}))
	}
	return func() {
		for _, disarm := range off {
			disarm()
		}
		m.work.Wait()
	}
}

func ofMaster(point string) bool {
	for _, i := range instants {
		if i.point == point {
			return i.master
		}
	}
	return false
}

// points are the instants as processes know them.
func (m *mishap) points() (all []string) {
	for point, n := range m.aims {
		all = append(all, fmt.Sprint(point, "=", n))
	}
	return all
}

// strikeOnce is strike for a process that stands at a point; masters after it get
// there, too.
func (m *mishap) strikeOnce(point string) {
	select {
	case <-m.began:
	case <-m.t.Context().Done(): // the cluster is not up
		return
	}
	m.mu.Lock()
	before := m.struck[point]
	m.mu.Unlock()
	if !before {
		m.strike(point, func() {})
	}
}

// strike kills the master at an instant, a worker, or both. dead is called at the
// first death.
func (m *mishap) strike(point string, dead func()) {
	m.mu.Lock()
	kind, victim, down := m.r.IntN(4), m.r.IntN(2), time.Duration(m.r.IntN(30))*time.Millisecond
	m.struck[point] = true
	m.mu.Unlock()
	first := sync.OnceFunc(func() { m.note(point); m.toll.add(instantKills); dead() })
	var errs []error
	if kind > 0 || ofMaster(point) { // an operation of a dead master is not carried out
		errs = append(errs, m.c.KillMaster(down, first))
	}
	if kind < 2 {
		errs = append(errs, m.c.KillWorker(victim, down, first))
	}
	if err := errors.Join(errs...); err != nil {
		m.t.Logf("at %s: %v", point, err) // the job may be over
	}
}

func (m *mishap) note(what string) {
	e := timeline.Of(timeline.Fault)
	e.Detail = what
	m.log.Add(e)
}

// kills disturbs the job some times, when a number of tasks have changed their
// state since the last time, and may be once more when all that is missing is the
// commit.
func (m *mishap) kills() {
	i := 0
	for k := range 2 + m.draw(3) {
		// Of the time between two faults the one half are long, the other short: then
		// the fault meets the recovery from the one before.
		left := 1 + m.draw([]int{120, 8}[m.draw(2)])
		if !reached(m.t, m.c, m.log, &i, func(e timeline.Event) bool {
			if e.Kind == timeline.TaskState || e.Kind == timeline.MasterElected || e.Kind == timeline.EventReplayed {
				left--
			}
			return left <= 0
		}) {
			return
		}
		m.disturb(fmt.Sprint("fault ", k))
	}
	if m.draw(3) > 0 {
		return
	}
	from, ends := 0, map[int]bool{}
	if reached(m.t, m.c, m.log, &from, func(e timeline.Event) bool {
		if e.Kind == timeline.TaskState && e.State == "FINISHED" && e.Vertex == "out" {
			ends[e.Subtask] = true
		}
		return len(ends) == 4
	}) {
		m.disturb("before the commit")
	}
}

func (m *mishap) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

func (m *mishap) disturb(what string) {
	if m.freeze && m.draw(2) == 0 {
		m.freezeAndKill(what)
		return
	}
	down := time.Duration(m.draw(30)) * time.Millisecond
	as := func(kind string) func() {
		return func() { m.note(what); m.toll.add(kind) }
	}
	var err error
	switch kind := m.draw(8); kind {
	case 0, 1, 2:
		err = m.c.KillMaster(down, as(masterKills))
	case 3, 4:
		err = m.c.KillWorker(m.draw(2), down, as(workerKills))
	case 5:
		err = m.c.KillMaster(down, as(masterKills))
		if werr := m.c.KillWorker(m.draw(2), down, as(workerKills)); err == nil {
			err = werr
		}
	default:
		struck := as(others)
		ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
		vertices, first := []string{"left", "right", "pairs", "count"}, m.draw(16)
		for i := range 16 { // of those that could be hit most have not begun, or are over
			vertex, subtask := vertices[(first+i)/4%4], (first+i)%4
			if kind == 6 {
				err = m.c.DropPartition(ctx, vertex, subtask, func(time.Duration) { struck() })
			} else {
				err = m.c.FailTask(ctx, vertex, subtask, "on request", func(time.Duration) { struck() })
			}
			if err == nil || ctx.Err() != nil {
				break
			}
		}
		cancel()
	}
	if err != nil {
		m.t.Logf("%s: %v", what, err) // there may be nothing to disturb just now
	}
}

// freezeAndKill stops a worker for longer than it may be silent, and kills the master
// that has taken it for dead: the worker is back before the next one leads, while that
// takes over, or later.
func (m *mishap) freezeAndKill(what string) {
	from := len(m.log.Events())
	err := m.c.FreezeWorker(m.draw(2), silence+time.Duration(100+m.draw(600))*time.Millisecond, func() { m.note(what + ", frozen") })
	if err == nil && reached(m.t, m.c, m.log, &from, func(e timeline.Event) bool {
		return e.Kind == timeline.WorkerLost && strings.HasPrefix(e.Reason, "no heartbeat")
	}) {
		err = m.c.KillMaster(time.Duration(m.draw(500))*time.Millisecond, func() { m.note(what); m.toll.add(freezes); m.toll.add(masterKills) })
	}
	if err != nil {
		m.t.Logf("%s: %v", what, err) // the job may be over
	}
}

// proved checks what came out, and that nothing is left.
func (m *mishap) proved(dir string, disarm func()) {
	t := m.t
	t.Helper()
	keys, sum, arrived := finishCounts(t, m.c)
	disarm()
	if keys != 1000 || sum != 30_000 || arrived != 1000 {
		t.Errorf("%d keys of 1000, %d pairs of 30000, %d records of 1000", keys, sum, arrived)
	}
	f, err := m.c.Batch(t.Context())
	noneLeftOver(t, f, err)
	if err := m.c.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir)
}

// noneLeftOver: nothing was left, or it is said who has not told: with a kill at the
// end of the job that may be all of them, who have told a master that died.
func noneLeftOver(t *testing.T, f *cluster.BatchFigures, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Error(err)
	case (f.Leftover == nil) == (len(f.Unheard) == 0):
		t.Errorf("figures %+v", f)
	case f.Leftover != nil && *f.Leftover != 0:
		t.Errorf("%d bytes are left over", *f.Leftover)
	}
}

// seeds runs a test for some seeds: BATCH_SOAK from BATCH_SEED on.
func seeds(t *testing.T, n int, one func(t *testing.T, seed uint64, all *toll)) {
	if x, err := strconv.Atoi(os.Getenv("BATCH_SOAK")); err == nil {
		n = x
	}
	all := &toll{n: map[string]int{}}
	t.Cleanup(func() { all.check(t, n) }) // some seeds are parallel
	first, _ := strconv.ParseUint(os.Getenv("BATCH_SEED"), 10, 64)
	for k := range n {
		seed := first + uint64(k)
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { one(t, seed, all) }) {
			t.Fatalf("seed %d is wrong", seed)
		}
	}
}

// costly makes an operator take some time a record.
func costly(j *job, id string, nanoseconds int64) *job {
	for i := range j.Nodes {
		if j.Nodes[i].ID == id {
			j.Nodes[i].Params = fmt.Appendf(nil, `{"Cost":%d}`, nanoseconds)
		}
	}
	return j
}

// reached waits for an event behind index i; false: the job has ended. One that
// has not, and of which nothing is heard, hangs.
func reached(t testing.TB, c cluster.Running, log *timeline.Log, i *int, match func(timeline.Event) bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), finishLimit)
	defer cancel()
	go func() {
		select {
		case <-c.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		es, err := log.Wait(ctx, *i)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("the job stands still")
		}
		if err != nil {
			return false
		}
		for _, e := range es {
			*i++
			if match(e) {
				return true
			}
		}
	}
}

// Masters and workers die, partitions are lost and tasks fail at random, also
// while others of these are being recovered from; in half of the seeds somebody
// dies at an instant of the commit or of the end, too. The output is exact, every
// split is in one place at any time (the scheduler's ledger would end the job),
// and nothing is left. BATCH_SOAK=n runs, from seed BATCH_SEED.
//
// Half of the jobs have readers that ask for their splits; in a third of them workers
// are taken for dead, come back, and meet another master. Too few faults that struck
// are a failure of the test.
//
// Fails if a worker does not tell again of an adopted attempt that ended before
// it was adopted (Batch.settle): the job hangs. Fails if the coordinator of a
// new master does not take held splits away (resetBatch): records come twice. Fails
// if a finished attempt that was cancelled, or one that read what has been made
// anew since, may go on under a new master (hardened.adoptable): counts are mixed.
func TestBatchKills(t *testing.T) {
	seeds(t, 12, func(t *testing.T, seed uint64, all *toll) {
		m, j, o := drawn(t, seed, all)
		if len(m.aims) == 0 {
			t.Parallel() // fault points are those of the process
		}
		disarm := m.arm()
		defer disarm()
		if seed%4 == 3 {
			o["execution.batch.speculative.enabled"] = true
			o["slow-task-detector.check-interval"], o["slow-task-detector.execution-time.baseline-lower-bound"] = "5 ms", "5 ms"
			o["slow-task-detector.execution-time.baseline-ratio"], o["slow-task-detector.execution-time.baseline-multiplier"] = 0.25, 1.0
		}
		dir := t.TempDir()
		m.begin(setup{workers: 3, slots: 2, dir: dir, memory: 16 << 20, options: o}.batch(t, j))
		m.kills()
		m.proved(dir, disarm)
	})
}

// The same with kill -9, on processes.
//
// Fails if a worker process does not open the store of the one that died on its
// folder, or if a worker does not find the next leader.
func TestBatchProcessKills(t *testing.T) {
	seeds(t, 4, func(t *testing.T, seed uint64, all *toll) {
		m, j, o := drawn(t, seed, all)
		dir := t.TempDir()
		s := setup{workers: 3, slots: 2, dir: dir, memory: 16 << 20, options: o}
		done := func() {}
		if len(m.aims) > 0 {
			s.stops = stopAt(t, m.strikeOnce, m.points()...)
			done = s.stops.close
		}
		m.begin(s.batchProcesses(t, j))
		m.kills()
		m.proved(dir, done)
	})
}
