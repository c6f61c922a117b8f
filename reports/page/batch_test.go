package page

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/chart"
)

// batchLab writes runs of a batch job of three stages of eight tasks, with job
// recovery on and off, with a kill of the master at some places and without.
type batchLab struct {
	blocks int
	gap    int // tasks that the log misses
	fail   bool
}

func (b batchLab) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"events", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	run := result.Run{
		Schema: 1, Run: "20260304T050607Z-master-loss-0a1b2c3d", State: result.Complete, Tool: result.Tool{Version: "1.0.0", Revision: "abc123", Go: "go1.26"},
		Builds: map[string]result.Build{"this": {Path: "/opt/this", SHA256: fmt.Sprintf("%064x", 1)}}, Command: []string{"benchrun", "run", "configs/batch/master-loss.toml"}, Overrides: []string{}, Seed: 42,
		Workloads: []result.Workload{{Name: "master-loss", Description: "A batch job loses its master", Primary: "makespan_s", File: "configs/batch/master-loss.toml", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(workloadText))), Text: workloadText, Mode: "batch", ScenarioAxes: []string{"progress", "repeat"}}},
		Machine:   result.Machine{Hostname: "lab", OS: "linux", Arch: "amd64", CPUModel: "Some CPU @ 3 GHz", Cores: 2, MemoryBytes: 16 << 30, Kernel: "6.1"},
		Targets:   map[string]string{"process": "1"}, Started: began,
	}
	var lines strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	order := 0
	for _, progress := range []float64{0.25, 0.5, 0.75, 0} {
		for _, j := range []bool{false, true} {
			repeat := 1.0
			place := progress
			if progress == 0 {
				repeat, place = 0, 0.25
			}
			cell := fmt.Sprintf("J=%t,progress=%v,repeat=%v", j, place, repeat)
			flags := map[string]any{"J": j, "progress": place, "repeat": repeat}
			run.Plan.Cells = append(run.Plan.Cells, result.Cell{Workload: "master-loss", Cell: cell, Flags: flags})
			for block := range b.blocks {
				order++
				run.Plan.Order = append(run.Plan.Order, result.Slot{Workload: "master-loss", Cell: cell, Build: "this", Block: block})
				x := result.Trial{Trial: fmt.Sprintf("t%03d", order), Workload: "master-loss", Cell: cell, Flags: flags, Build: "this", Block: block, Order: order, Target: "process",
					Outcome: result.OK, Started: began.Add(time.Duration(order) * 20 * time.Second), WallS: 15, Options: map[string]any{"execution.batch.job-recovery.enabled": j}, Metrics: map[string]float64{},
					Correctness: &result.Correctness{Expected: 800, Received: 800, Digest: "d", ExpectedDigest: "d"}}
				var log strings.Builder
				for _, e := range b.trial(r, &x, j, progress) {
					log.WriteString(line(t, e))
				}
				if b.fail && j && progress == 0.5 {
					x.Outcome, x.Reason, x.Phase, x.Metrics, x.Faults = result.Timeout, "after 60s still missing: running", "step-3", nil, nil
				}
				lines.WriteString(line(t, x))
				for path, text := range map[string]string{filepath.Join(dir, "events", x.Trial+".jsonl"): log.String(), filepath.Join(dir, "logs", x.Trial+".txt"): ""} {
					if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	run.Plan.Trials = len(run.Plan.Order)
	if err := result.WriteJSON(filepath.Join(dir, "run.json"), run); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trial plays one: waves of four tasks of about a second; down for 0.6 s.
func (b batchLab) trial(r *rand.Rand, x *result.Trial, j bool, progress float64) (events []result.Event) {
	const stages, tasks, slots = 3, 8, 4
	at := 0.05
	event := func(kind, vertex string, subtask, attempt int, state string, records int64) {
		e := result.Event{TUs: int64(at * 1e6), Kind: kind, Vertex: vertex, Subtask: subtask, Attempt: attempt, State: state, Checkpoint: -1, Bytes: -1, Records: records, LagUs: -1}
		if kind == "fault" {
			e.Detail, e.State = "kill", "kill-jobmanager"
		}
		events = append(events, e)
	}
	job := func(kind, state string) { event(kind, "", -1, -1, state, -1) }
	job("job-state", "RUNNING")
	begin := at
	vertices := []string{"numbers", "sum", "out"}
	done, attempt := map[int]bool{}, 0
	var finished []int
	killed := progress == 0
	for len(done) < stages*tasks {
		var wave []int
		for n := 0; n < stages*tasks && len(wave) < slots; n++ {
			if !done[n] && (len(wave) == 0 || wave[0]/tasks == n/tasks) {
				wave = append(wave, n)
			}
		}
		for _, n := range wave {
			event("task-state", vertices[n/tasks], n%tasks, attempt, "DEPLOYING", -1)
			event("task-state", vertices[n/tasks], n%tasks, attempt, "RUNNING", -1)
		}
		took := 0.9 + 0.1*r.Float64()
		if !killed && float64(len(done)) >= progress*stages*tasks {
			killed = true
			at += took / 3
			job("fault", "")
			t0 := at
			at += 0.6
			job("master-elected", "")
			m := map[string]float64{"detect_s": 0.1, "recovery_elect_s": 0.5, "recovery_schedule_s": 0.02, "control_recovery_s": 0.62, "time_to_parity_s": 0.62,
				"reexecuted_fraction": 0, "avoidable_reexecuted_fraction": 0, "durability_gap_tasks": 0}
			path := result.RecoveryFull
			kept := 0
			if j {
				path = result.RecoveryEventLog
				m["recovery_replay_s"], m["recovery_wait_s"], m["control_recovery_s"] = 0.03, 0.15, 0.8
				kept = len(finished) - b.gap
				at += 0.18
			}
			share := 1 - float64(kept)/float64(len(finished))
			m["reexecuted_fraction"], m["avoidable_reexecuted_fraction"], m["durability_gap_tasks"] = share, share, float64(len(finished)-kept)
			if !j {
				delete(m, "durability_gap_tasks") // there is no log
			}
			for _, n := range finished[kept:] {
				delete(done, n)
			}
			finished = finished[:kept]
			x.Faults = []result.Fault{{Name: "kill", Kind: "kill-jobmanager", T0Us: int64(t0 * 1e6), Metrics: m, RecoveryPath: path}}
			for k, v := range m {
				x.Metrics[k] = v
			}
			x.RecoveryPath = path
			attempt++
			continue
		}
		at += took
		for _, n := range wave {
			event("task-state", vertices[n/tasks], n%tasks, attempt, "FINISHED", 100)
			done[n] = true
			finished = append(finished, n)
		}
	}
	job("job-state", "FINISHED")
	x.Metrics["makespan_s"] = at - begin
	x.Metrics["wasted_bytes"], x.Metrics["leftover_bytes"] = 0, 0
	if j {
		x.Metrics["event_log_bytes"], x.Metrics["recording_overhead"] = 4000, 0.0012
	}
	return events
}

// The page of a batch job shows the curves, the phases, what was done again, the
// overhead and what recovery saved; cells are named by what happens in them.
//
// Fails if any of the figures is not drawn, or a control is called by a place at
// which nothing happens in it.
func TestBatchPage(t *testing.T) {
	dir := batchLab{blocks: 8, gap: 1}.write(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	page := read(t, dir, "report.html")
	for _, want := range []string{
		"What was lost, and what recovery took", "How far the job got", "From the loss of the master to the first task of the next", "Finished work that was done again", "What job recovery costs where nothing happens",
		"unavoidable: output lost", "noise floor", "recovery efficiency", "J, no fault", "no J, at 75 %", "event-log", "full", "Makespan with and without job recovery",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, not := range []string{"no fault, progress", "NaN", "first checkpoint is the"} {
		if strings.Contains(page, not) {
			t.Errorf("the page says %q", not)
		}
	}
	for _, name := range []string{"work", "phases-of-control", "done-again", "overhead"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", "master-loss-"+name+".png")); err != nil {
			t.Error(err)
		}
	}
}

// Work is taken off at the fault, not when it is done again; in the end all of it
// is there.
func TestUsefulWork(t *testing.T) {
	x := result.Trial{Outcome: result.OK, Metrics: map[string]float64{}}
	events := batchLab{}.trial(rand.New(rand.NewPCG(1, 2)), &x, false, 0.5)
	p, to := progress(newStory(&x, events))
	if len(p.Faults) != 1 || len(p.Outages) != 1 || p.End == nil || *p.End > to {
		t.Fatalf("%+v until %v", p, to)
	}
	low := 1.0
	for _, s := range p.Steps {
		if s.T == p.Faults[0].T {
			low = s.Share
		}
		if s.Share < 0 || s.Share > 1 {
			t.Errorf("share %v", s)
		}
	}
	if low != 0 {
		t.Errorf("after the fault %v of the work is left, without job recovery", low)
	}
	if last := p.Steps[len(p.Steps)-1]; last.Share != 1 {
		t.Errorf("in the end %v", last)
	}
	if d := p.Outages[0]; d.From != p.Faults[0].T || math.Abs(d.To-d.From-0.62) > 1e-9 {
		t.Errorf("outage %+v", d)
	}
	if s := steps(nil); len(s) != 0 {
		t.Errorf("no work: %v", s)
	}
	if s := steps([]*finish{{at: 1, gone: 2, records: 5}}); len(s) != 2 || s[0] != (chart.WorkStep{T: 1, Share: 1}) || s[1].Share != 0 {
		t.Errorf("all lost: %v", s)
	}
}

// Trials that did not end well have a curve and no times.
func TestFailedBatchTrials(t *testing.T) {
	dir := batchLab{blocks: 2, fail: true}.write(t)
	if err := Render(dir, nil); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	page := read(t, dir, "report.html")
	if !strings.Contains(page, "still missing: running") || !strings.Contains(page, "timeout") {
		t.Error("failures are not told")
	}
}

// What the first lines say of a batch job: what recovery gave, what it took, what
// it costs, and how sure that is.
//
// Fails if cells of different faults are compared, if medians of all places are
// taken for one, or if a cost below the noise is called one.
func TestBatchWords(t *testing.T) {
	for name, c := range map[string]struct {
		lab       batchLab
		want, not []string
	}{
		"all kept": {batchLab{blocks: 8}, []string{
			"After the loss of the master the job took 6.8 s with job recovery (J) and 8.6 s to 11 s without: 21 % to 40 % less. Undisturbed it takes 5.7 s.",
			"With job recovery the next master had a task running 0.80 s after the loss, of which nobody led for 0.60 s; nothing was done again whose output was still there.",
			"Where nothing happened job recovery changed the makespan by", "within the noise floor of ±", "writing down what finished took 0.12 % of the machine.",
			"In all 64 trials every record is accounted for",
			"Better than no J in makespan: J, at 25 %", "With job recovery against without",
		}, []string{"Better than no J, at 25 %", "J, no fault −", "no option"}},
		"a task forgotten": {batchLab{blocks: 3, gap: 1}, []string{
			"of the finished work", "was done again although its output was still there", "too few to tell that from noise)",
		}, []string{"noise floor of ±"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.lab.write(t)
			if err := Render(dir, nil); err != nil {
				t.Fatal(err)
			}
			page := visible(read(t, dir, "report.html"))
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(page, not) {
					t.Errorf("the page says %q", not)
				}
			}
			summary := read(t, dir, "summary.md")
			for _, want := range []string{"What the recovery took", "steady overhead", "noise floor"} {
				if !strings.Contains(summary, want) {
					t.Errorf("the summary does not say %q", want)
				}
			}
			if strings.Contains(summary, "RUNNING means") {
				t.Error("the summary explains RUNNING, which no table has")
			}
			if t.Failed() {
				i := strings.Index(page, `class="headline"`)
				t.Log(page[i:min(len(page), i+2500)])
			}
		})
	}
}

// visible is a page without its raw samples.
func visible(page string) string {
	if i := strings.Index(page, `id="raw"`); i >= 0 {
		page = page[:i]
	}
	return strings.NewReplacer("&#43;", "+", "&lt;", "<").Replace(page)
}

// Cells in which different things happen are called by that, and each fault has
// only the rows of those that it befell.
//
// Fails if the first faults of two cells are taken for one, or if a cell is called by
// how often its steps are repeated.
func TestCellsOfDifferentFaults(t *testing.T) {
	l := &result.Loaded{Dir: t.TempDir(), Run: result.Run{
		Schema: 1, Run: "r", State: result.Complete, Builds: map[string]result.Build{"this": {SHA256: "h"}},
		Workloads: []result.Workload{{Name: "w", Primary: "makespan_s", Mode: "batch", ScenarioAxes: []string{"drop.repeat", "lose.repeat"}}},
	}}
	add := func(drop, lose, makespan float64, f *result.Fault) {
		c := result.Cell{Workload: "w", Cell: fmt.Sprintf("drop.repeat=%v,lose.repeat=%v", drop, lose), Flags: map[string]any{"drop.repeat": drop, "lose.repeat": lose}}
		l.Run.Plan.Cells = append(l.Run.Plan.Cells, c)
		l.Run.Plan.Order = append(l.Run.Plan.Order, result.Slot{Workload: "w", Cell: c.Cell, Build: "this"})
		x := result.Trial{Trial: c.Cell, Workload: "w", Cell: c.Cell, Flags: c.Flags, Build: "this", Outcome: result.OK, Metrics: map[string]float64{"makespan_s": makespan}, Correctness: &result.Correctness{Expected: 1, Received: 1}}
		if f != nil {
			x.Faults = []result.Fault{*f}
			for k, v := range f.Metrics {
				x.Metrics[k] = v
			}
		}
		l.Trials = append(l.Trials, x)
	}
	add(0, 0, 2, nil)
	add(0, 1, 3, &result.Fault{Name: "lose", Kind: "kill-worker", Metrics: map[string]float64{"reexecuted_fraction": 0.5, "avoidable_reexecuted_fraction": 0}})
	add(1, 0, 4, &result.Fault{Name: "drop", Kind: "drop-partition", Metrics: map[string]float64{"reexecuted_fraction": 0.25, "avoidable_reexecuted_fraction": 0.125}})
	v, _, err := newView(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := v.Workloads[0]
	if want := []string{"no fault", "lose", "drop"}; !slices.Equal(w.labels, want) {
		t.Errorf("labels %q", w.labels)
	}
	want := []string{
		"Undisturbed the job takes 2.0 s. It took 3.0 s after the loss of a worker (lose), which made it do 50 % of the finished work again, none of it avoidably.",
		"It took 4.0 s after the loss of a partition (drop), which made it do 25 % of the finished work again, 12 % avoidably.",
		"In all 3 trials every record is accounted for: none lost, none duplicated.",
	}
	if !slices.Equal(w.Headline, want) {
		t.Errorf("%q", w.Headline)
	}
	for _, x := range []struct {
		table *table
		want  []string
	}{
		{w.Results, []string{"whole trial", "no fault", "lose", "drop", "lose", "lose", "drop", "drop"}},
		{w.Batch, []string{"lose", "lose", "drop", "drop"}},
	} {
		var rows []string
		for _, r := range x.table.Rows {
			rows = append(rows, r.Group+r.Label)
		}
		if !slices.Equal(rows, x.want) {
			t.Errorf("%s: rows %q", x.table.Caption, rows)
		}
	}
}

// The curve of progress begins where the makespan does.
//
// Fails if the first state that a master tells is the beginning.
func TestProgressBeginsWithTheSubmission(t *testing.T) {
	submitted := result.Event{TUs: 100_000, Kind: "job-state", State: "SUBMITTED"}
	created := result.Event{TUs: 700_000, Kind: "job-state", State: "CREATED"}
	late := result.Event{TUs: 90_000, Kind: "job-state", State: "UNPROTECTED"} // stamped elsewhere
	for want, events := range map[int64][]result.Event{
		100_000: {late, submitted, created},
		700_000: {{TUs: 50_000, Kind: "master-elected"}, created},
		0:       {},
	} {
		if got := submission(events); got != want {
			t.Errorf("%v: from %d us, not %d", events, got, want)
		}
	}
}

// What trials say of themselves, and why a number is absent, stands among the warnings,
// once for all blocks that say the same.
//
// Fails if trials that are not ok are among them, or a note or a reason is not.
func TestRemarksOfTrials(t *testing.T) {
	idle := map[string]string{"control_recovery_s": "no task was left to run"}
	trials := []result.Trial{
		{Block: 1, Outcome: result.OK, Absent: idle},
		{Block: 2, Outcome: result.OK, Absent: idle, Notes: []string{"the log could not be written for 3.2 s"}},
		{Block: 3, Outcome: result.Failed, Absent: idle},
	}
	var got []string
	remarks("J", trials, func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
	want := []string{
		"J, blocks 1 and 2: no control recovery: no task was left to run",
		"J, block 2: the log could not be written for 3.2 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
