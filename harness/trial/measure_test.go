package trial

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/timeline"

	"github.com/cockroachdb/datadriven"
)

// TestMeasure reads timelines as scripts and prints the metrics of each fault.
// A line is "TIME KIND [VERTEX/SUBTASK[@ATTEMPT]] [key=value ...]"; a fault
// line opens a window; "TIME task VERTEX/SUBTASK[@ATTEMPT] STATE" is short for a
// state of a task; "all STATE N" is a state of the tasks a/0 .. a/N-1. "batch a-b
// b-c" is a job in which b reads what a has written, and so on.
//
// Fails, in batch, if the last words of a dying master end the time until somebody
// knows, if a worker that misses an earlier master does (missed), if the end of a
// process comes before what workers say, if a master that did nothing began anew
// (way), if the states of a master that comes tell of another fault, if an attempt runs that had finished (over), if any condition of what had
// to run again (forced) is left out, or if a later fault is charged with what was
// lost before it: if the ledger leaves out partition-lost or partition-kept, takes the
// last loss for the first or what is too late for kept, or forgets which output it was.
func TestMeasure(t *testing.T) {
	datadriven.Walk(t, "testdata/measure", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			events, windows := parseTimeline(t, d)
			var b bytes.Buffer
			switch d.Cmd {
			case "measure", "batch":
				var faults []result.Fault
				if d.Cmd == "batch" {
					faults = measureBatch(events, windows, edges(d), true)
				} else {
					faults = Measure(events, windows)
				}
				for _, f := range faults {
					fmt.Fprintf(&b, "%s at %dus", f.Name, f.T0Us)
					if f.RecoveryPath != "" {
						fmt.Fprintf(&b, ", %s", f.RecoveryPath)
					}
					b.WriteByte('\n')
					for _, k := range slices.Sorted(maps.Keys(f.Metrics)) {
						fmt.Fprintf(&b, "  %s %v\n", k, f.Metrics[k])
					}
				}
			case "wasted":
				fmt.Fprintln(&b, newLedger(events, nil).wasted(edges(d)))
			case "throughput":
				var from, to string
				d.ScanArgs(t, "from", &from)
				d.ScanArgs(t, "to", &to)
				rate, ok := throughputOf(events, duration(t, from), duration(t, to))
				fmt.Fprintf(&b, "%v %t\n", rate, ok)
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return b.String()
		})
	})
}

// edges are those that a command names.
func edges(d *datadriven.TestData) consumers {
	g := consumers{}
	for _, a := range d.CmdArgs {
		from, to, _ := strings.Cut(a.Key, "-")
		g[from] = append(g[from], to)
	}
	return g
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseTimeline(t *testing.T, d *datadriven.TestData) ([]timeline.Event, []Window) {
	var events []timeline.Event
	var windows []Window
	for _, line := range strings.Split(d.Input, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		at := duration(t, words[0])
		if words[1] == "all" {
			n, err := strconv.Atoi(words[3])
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				e := timeline.Task(timeline.TaskState, "a", i, 0)
				e.T, e.State = at, words[2]
				events = append(events, e)
			}
			continue
		}
		if words[1] == "task" { // "TIME task VERTEX/SUBTASK[@ATTEMPT] STATE ..."
			words = append([]string{words[0], string(timeline.TaskState), words[2], "state=" + words[3]}, words[4:]...)
		}
		e := timeline.Of(timeline.Kind(words[1]))
		e.T = at
		for _, w := range words[2:] {
			key, value, ok := strings.Cut(w, "=")
			if !ok {
				vertex, subtask, _ := strings.Cut(w, "/")
				subtask, attempt, hasAttempt := strings.Cut(subtask, "@")
				e.Vertex, e.Attempt = vertex, 0
				e.Subtask, _ = strconv.Atoi(subtask)
				if hasAttempt {
					e.Attempt, _ = strconv.Atoi(attempt)
				}
				continue
			}
			n, _ := strconv.ParseInt(value, 10, 64)
			switch key {
			case "state":
				e.State = value
			case "id":
				e.Checkpoint = n
			case "bytes":
				e.Bytes = n
			case "records":
				e.Records = n
			case "lag":
				e.Lag = duration(t, value)
			case "detail":
				e.Detail = value
			case "epoch":
				e.Detail = strings.TrimSpace(e.Detail + " epoch=" + value)
			case "reason":
				e.Reason = value
			case "kind":
				windows = append(windows, Window{Name: e.Detail, Kind: value, T0: at})
			case "undrained":
				windows[len(windows)-1].Undrained = true
			default:
				t.Fatalf("%s: unknown key %s", d.Pos, key)
			}
		}
		events = append(events, e)
	}
	return events, windows
}

// TestObserverKnowsTheDead: a worker that dies says nothing of its tasks; they
// must not count as running until they run again.
func TestObserverKnowsTheDead(t *testing.T) {
	w, err := fakeWorkload(rescaleSteps)
	if err != nil {
		t.Fatal(err)
	}
	o := newObserver(w)
	at := time.Duration(0)
	state := func(vertex string, subtask, attempt int, s string) {
		at += time.Millisecond
		e := timeline.Task(timeline.TaskState, vertex, subtask, attempt)
		e.T, e.State = at, s
		o.add(e)
	}
	for _, v := range []string{"numbers", "out"} {
		for i := range 2 {
			state(v, i, 0, "RUNNING")
		}
	}
	if !o.running() {
		t.Fatal("not running at first")
	}
	at += time.Millisecond
	o.fault(w.Steps[1].Do, at, true)
	o.known["out"] = 2
	o.expect()
	if o.running() {
		t.Error("running before anything restarted")
	}
	state("numbers", 0, 0, "CANCELED")
	state("out", 0, 0, "CANCELED")
	at += time.Millisecond
	assigned := timeline.Of(timeline.RestoreAssigned)
	assigned.T = at
	o.add(assigned)
	state("numbers", 0, 1, "RUNNING")
	state("out", 0, 1, "RUNNING")
	if o.running() {
		t.Error("running without the tasks of the dead worker")
	}
	state("numbers", 1, 1, "RUNNING")
	state("out", 1, 1, "RUNNING")
	if !o.running() {
		t.Error("not running though all tasks are")
	}
	state("out", 1, 0, "CANCELED") // late news of the old attempt
	if !o.running() {
		t.Error("late news of an old attempt count")
	}
}

func TestOneRegion(t *testing.T) {
	for sets, want := range map[string]bool{
		"":                                    true,
		"workload.edge.1.partitioner=rescale": false,
	} {
		list := []string{"workload.vertex.out.parallelism=2"}
		if sets != "" {
			list = append(list, sets)
		}
		w, err := fakeWorkload(quickSteps, list...)
		if err != nil {
			t.Fatal(err)
		}
		if got := oneRegion(w); got != want {
			t.Errorf("%q: one region %t", sets, got)
		}
	}
}
