package page

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

// fixture makes run folders as the harness leaves them, from seeded numbers.
type fixture struct {
	workload    string
	cells       []string
	builds      []string
	blocks      int
	warmup      int
	parallelism int
	primary     string
	steps       []string // names of rescale steps
	state       result.State
	outcome     func(cell string, block int) result.Outcome // nil: all ok
	shape       func(cell string, block int) way            // nil: as the options make it
	tail        string                                      // after the last line of trials.jsonl
	unproved    bool
	more        map[string]float64 // metrics of every trial
	others      float64            // cores that other processes use
	mangle      func(*result.Run)
}

// way is what one recovery takes.
type way struct{ running, checkpoint, drained float64 }

const workloadText = "schema = 1\n"

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// standard is a run as the quickstart leaves it.
func standard() fixture {
	return fixture{
		workload: "quickstart", cells: []string{"R=false,D=false", "R=true,D=false", "R=true,D=true"}, builds: []string{"this"},
		blocks: 3, parallelism: 4, primary: "time_to_first_checkpoint_s", steps: []string{"rescale"}, state: result.Complete,
	}
}

func usual(cell string, r *rand.Rand) way {
	noise := 1 + 0.1*r.Float64()
	drained := 2.0 * noise
	switch {
	case strings.Contains(cell, "D=true"):
		return way{0.03 * noise, 0.12 * noise, drained}
	case strings.Contains(cell, "R=true"):
		return way{drained, drained + 0.2*noise, drained}
	}
	return way{0.4 * noise, drained + 0.5*noise, drained}
}

func (f fixture) write(t testing.TB) string {
	t.Helper()
	return writeRun(t, f)
}

// writeRun makes the folder of a run of several workloads; the first says what
// concerns the run as a whole.
func writeRun(t testing.TB, all ...fixture) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"events", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	first := all[0]
	load := 0.25
	ended := began.Add(95 * time.Second)
	run := result.Run{
		Schema: 1, Run: "20260304T050607Z-" + first.workload + "-0a1b2c3d", State: first.state,
		Tool: result.Tool{Version: "1.0.0", Revision: "abc123", Go: "go1.26"}, Builds: map[string]result.Build{},
		Command: []string{"benchrun", "run", "configs/" + first.workload + ".toml"}, Overrides: []string{}, Seed: 42,
		Machine: result.Machine{Hostname: "lab", OS: "linux", Arch: "amd64", CPUModel: "Some CPU @ 3 GHz", Cores: 8, MemoryBytes: 16 << 30, Kernel: "6.1", Load1: &load, Probes: map[string]float64{"fsync_ms": 1.25}},
		Targets: map[string]string{"embedded": "1"}, Started: began, Ended: &ended,
	}
	for _, b := range first.builds {
		run.Builds[b] = result.Build{Path: "/opt/" + b, SHA256: fmt.Sprintf("%064x", len(b)), Revision: b}
	}
	if len(first.builds) > 1 {
		run.BaseBuild = first.builds[0]
	}
	w := writer{dir: dir, run: &run, at: began, r: rand.New(rand.NewPCG(1, 2))}
	for _, f := range all {
		w.workload(t, f)
	}
	run.Plan.Trials = len(run.Plan.Order)
	if first.mangle != nil {
		first.mangle(&run)
	}
	if err := result.WriteJSON(filepath.Join(dir, "run.json"), run); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), []byte(w.lines.String()+first.tail), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writer fills a run folder.
type writer struct {
	dir   string
	run   *result.Run
	lines strings.Builder
	at    time.Time
	r     *rand.Rand
}

func (w *writer) workload(t testing.TB, f fixture) {
	t.Helper()
	w.run.Workloads = append(w.run.Workloads, result.Workload{Name: f.workload, Description: "Rescale with data in flight", Primary: f.primary, File: "configs/" + f.workload + ".toml", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(workloadText))), Text: workloadText})
	for _, c := range f.cells {
		w.run.Plan.Cells = append(w.run.Plan.Cells, result.Cell{Workload: f.workload, Cell: c, Flags: map[string]any{}})
	}
	for b := range f.warmup + f.blocks {
		for _, c := range f.cells {
			for _, build := range f.builds {
				w.run.Plan.Order = append(w.run.Plan.Order, result.Slot{Workload: f.workload, Cell: c, Build: build, Block: b, Warmup: b < f.warmup})
				outcome := result.OK
				if f.outcome != nil {
					outcome = f.outcome(c, b)
				}
				if outcome == "" {
					continue
				}
				x, events := f.trial(w.r, c, build, b, len(w.run.Plan.Order), outcome)
				x.Started, x.WallS = w.at, 3
				w.at = w.at.Add(4 * time.Second)
				w.lines.WriteString(line(t, x))
				var log strings.Builder
				for _, e := range events {
					log.WriteString(line(t, e))
				}
				for path, text := range map[string]string{filepath.Join(w.dir, "events", x.Trial+".jsonl"): log.String(), filepath.Join(w.dir, "logs", x.Trial+".txt"): ""} {
					if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func line(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// trial plays one trial: its line and its timeline.
func (f fixture) trial(r *rand.Rand, cell, build string, block, order int, outcome result.Outcome) (result.Trial, []result.Event) {
	x := result.Trial{
		Trial: fmt.Sprintf("%04d-%s", order, f.workload), Workload: f.workload, Cell: cell, Flags: map[string]any{}, Build: build, Revision: build, Block: block, Warmup: block < f.warmup,
		Order: order, Target: "embedded", Outcome: outcome, Options: map[string]any{"execution.checkpointing.interval": "2s"},
	}
	p := player{f: f}
	p.start()
	for i, step := range f.steps {
		v := usual(cell, r)
		if f.shape != nil {
			v = f.shape(cell, block)
		}
		fault := p.recover(step, i+1, v, strings.Contains(cell, "D=true"))
		if outcome == result.OK {
			x.Faults = append(x.Faults, fault)
		}
	}
	if outcome != result.OK {
		x.Phase, x.Reason = "recover", "the step took longer than 60s <&>"
		return x, p.events
	}
	x.Metrics = map[string]float64{"throughput_records_per_s": 150000 + 1000*float64(block)}
	if len(x.Faults) > 0 {
		for k, v := range x.Faults[0].Metrics {
			x.Metrics[k] = v
		}
		x.RecoveryPath = x.Faults[0].RecoveryPath
	}
	maps.Copy(x.Metrics, f.more)
	if !f.unproved {
		x.Correctness = &result.Correctness{Expected: 1000, Received: 1000, Digest: "d", ExpectedDigest: "d"}
	}
	cpu, rss := 1.5, int64(200<<20)
	x.Resources = &result.Resources{CPUS: &cpu, MaxRSSBytes: &rss}
	return x, p.events
}

// player writes a timeline.
type player struct {
	f      fixture
	now    int64
	events []result.Event
}

func (p *player) add(e result.Event) {
	e.TUs = p.now
	p.events = append(p.events, e)
}

func blank(kind string) result.Event {
	return result.Event{Kind: kind, Subtask: result.None, Attempt: result.None, Checkpoint: result.None, Bytes: result.None, Records: result.None, LagUs: result.None}
}

var vertices = []string{"numbers", "slow", "out"}

func (p *player) tasks(state string, attempt int) {
	for _, v := range vertices {
		for i := range p.f.parallelism {
			e := blank("task-state")
			e.Vertex, e.Subtask, e.Attempt, e.State = v, i, attempt, state
			p.add(e)
		}
	}
}

func (p *player) checkpoint(kind string, id int64) {
	e := blank(kind)
	e.Checkpoint = id
	if kind == "checkpoint-completed" {
		e.Bytes = 32 << 20
	}
	p.add(e)
}

func (p *player) flow(until int64, records int64) {
	for ; p.now < until; p.now += 100_000 {
		e := blank("throughput")
		e.Vertex, e.Records = "numbers", records
		p.add(e)
		if p.now/500_000 != (p.now-100_000)/500_000 {
			h := blank("host-sample")
			h.Detail = fmt.Sprintf("busy=4.00 own=%.2f others=%.2f steal=0.00", 4-p.f.others, p.f.others)
			p.add(h)
		}
	}
	p.now = until
}

func (p *player) start() {
	p.now = 3000
	p.tasks("DEPLOYING", 0)
	p.now = 20_000
	p.tasks("INITIALIZING", 0)
	p.now = 30_000
	p.tasks("RUNNING", 0)
	p.checkpoint("checkpoint-triggered", 1)
	p.flow(400_000, 15000)
	p.checkpoint("checkpoint-completed", 1)
	p.flow(500_000, 15000)
}

func (p *player) recover(step string, attempt int, v way, during bool) result.Fault {
	t0 := p.now
	us := func(s float64) int64 { return t0 + int64(s*1e6) }
	e := blank("fault")
	e.State, e.Detail = "rescale", step
	p.add(e)
	p.tasks("CANCELED", attempt-1)
	e = blank("restore-assigned")
	e.Checkpoint, e.Bytes = int64(attempt), 32<<20
	p.now = us(0.004)
	p.add(e)
	p.tasks("DEPLOYING", attempt)
	p.now = us(0.01)
	p.tasks("INITIALIZING", attempt)
	type moment struct {
		at int64
		do func()
	}
	id := int64(attempt) + 1
	moments := []moment{
		{us(v.running), func() { p.tasks("RUNNING", attempt) }},
		{us(v.checkpoint) - 60_000, func() { p.checkpoint("checkpoint-triggered", id) }},
		{us(v.checkpoint), func() { p.checkpoint("checkpoint-completed", id) }},
		{us(v.drained), func() {
			for i := range p.f.parallelism {
				e := blank("restore-drained")
				e.Vertex, e.Subtask, e.Attempt = "slow", i, attempt
				p.add(e)
			}
		}},
	}
	for len(moments) > 0 {
		first := 0
		for i, m := range moments {
			if m.at < moments[first].at {
				first = i
			}
		}
		p.flow(max(moments[first].at, p.now), 4000)
		moments[first].do()
		moments = append(moments[:first], moments[first+1:]...)
	}
	p.flow(p.now+300_000, 15000)
	path := result.RecoveryUpstream
	if during {
		path = result.RecoveryDuring
	}
	return result.Fault{Name: step, Kind: "rescale", T0Us: t0, RecoveryPath: path, Metrics: map[string]float64{
		"detect_s": 0.0001, "time_to_deploying_s": 0.004, "time_to_initializing_s": 0.01, "time_to_running_s": v.running, "time_to_first_checkpoint_s": v.checkpoint, "time_to_drained_s": v.drained,
		"restored_inflight_bytes": 32 << 20, "first_checkpoint_inflight_bytes": 30 << 20, "inflight_inflation": 30.0 / 32, "spilled_bytes": 0,
	}}
}
