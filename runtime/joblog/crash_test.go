package joblog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// view is what a row of events says, told without the code of the store.
type view struct {
	Finished                        []VertexFinished // in order
	Initialized, Snapshots, Workers string
	Epoch                           uint64
	End                             string
}

func viewOf(es []Event) view {
	var v view
	initialized, snapshots := map[string]int{}, map[string]string{}
	keep := func(f func(VertexFinished) bool) {
		var out []VertexFinished
		for _, x := range v.Finished {
			if f(x) {
				out = append(out, x)
			}
		}
		v.Finished = out
	}
	for _, e := range es {
		switch e := e.(type) {
		case VertexFinished:
			keep(func(x VertexFinished) bool { return x.Attempt.TaskID != e.Attempt.TaskID })
			v.Finished = append(v.Finished, e)
		case VerticesReset:
			for _, t := range e.Tasks {
				keep(func(x VertexFinished) bool { return x.Attempt.TaskID != t })
			}
		case EpochStarted:
			v.Epoch = e.Epoch
			keep(func(x VertexFinished) bool {
				for _, k := range e.Kept {
					if k == x.Attempt {
						return true
					}
				}
				return false
			})
		case JobVertexInitialized:
			initialized[e.Vertex] = e.Parallelism
		case CoordinatorSnapshot:
			snapshots[e.Operator] = string(e.Data)
		case WorkerSet:
			v.Workers = strings.Join(e.Workers, " ")
		case JobFinished:
			v = view{End: e.Status}
			clear(initialized)
			clear(snapshots)
		}
	}
	if v.End == "" {
		v.Initialized, v.Snapshots = fmt.Sprint(initialized), fmt.Sprint(snapshots)
	}
	return v
}

func drawEvent(t *rapid.T, epoch uint64, n int) Event {
	task := TaskID{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "vertex"), rapid.IntRange(0, 3).Draw(t, "subtask")}
	switch rapid.SampledFrom([]string{"finished", "finished", "finished", "reset", "initialized", "snapshot", "workers"}).Draw(t, "event") {
	case "finished":
		return finished(task.Vertex, task.Subtask, n, epoch)
	case "reset":
		return VerticesReset{Tasks: []TaskID{task}}
	case "initialized":
		return initialized(task.Vertex, n+1)
	case "snapshot":
		return CoordinatorSnapshot{Snapshot{task.Vertex, fmt.Appendf(nil, "snapshot %d", n)}}
	}
	return WorkerSet{Workers: []string{fmt.Sprint("w", n)}}
}

// TestCrashAnywhere: masters follow one another; each dies at some hit of some
// fault point, with its process or with the machine. What was durable is there,
// nothing is invented, and no crash is taken for damage. Seeds are printed by
// rapid.
//
// Fails, for one, if
//   - sync settles before it has synced,
//   - repair does not truncate, or begin does not sync the folder,
//   - compact publishes before it has synced, or removeOld goes first.
func TestCrashAnywhere(t *testing.T) {
	points := points(t)
	crashed := map[string]int{}
	one := func(t *rapid.T) {
		d := newMemory()
		policy := rapid.SampledFrom([]SyncPolicy{SyncNone, SyncInterval, SyncVertex, SyncAlways}).Draw(t, "policy")
		var history []Event
		safe := 0 // of them, that no machine can lose any more
		for epoch := uint64(1); epoch <= 4; epoch++ {
			p := rapid.SampledFrom(points).Draw(t, "point")
			most := 12
			if strings.Contains(p.Name(), "rename") || strings.Contains(p.Name(), "delete") || strings.Contains(p.Name(), "create") ||
				strings.Contains(p.Name(), "close") || strings.Contains(p.Name(), "truncate") {
				most = 2 // they come with new files only
			}
			hit := rapid.IntRange(1, most).Draw(t, "hit")
			// Power is cut only where the policy promises something about it.
			machine := policy != SyncNone && rapid.Bool().Draw(t, "machine")
			disarm := p.Arm(func(n int, _ string) error {
				if n == hit {
					crashed[p.Name()]++
					return d.crash()
				}
				return nil
			})
			appended, durable, opened, gone, err := func() ([]Event, int, bool, bool, error) {
				defer disarm()
				return incarnation(t, d, policy, epoch, history)
			}()
			if err != nil {
				t.Fatal(err)
			}
			if gone {
				history, safe, d = nil, 0, newMemory()
				continue
			}
			if opened {
				safe = len(history) + durable
			}
			_ = d.crash()
			image := d.process()
			if machine {
				image = d.machine(t)
			}
			// A reader must find what was durable, whoever it is.
			s, err := openHardened(image.process(), Config{Job: "job", Epoch: 99})
			if err != nil {
				t.Fatalf("after a crash at %s: %v\n%v", p.Name(), err, names(image))
			}
			var got []Event
			if err := s.Replay(func(e Event) error { got = append(got, e); return nil }); err != nil {
				t.Fatal(err)
			}
			all := append(history[:len(history):len(history)], appended...)
			k := len(all)
			for ; k >= safe; k-- {
				if reflect.DeepEqual(viewOf(got), viewOf(all[:k])) {
					break
				}
			}
			if k < safe {
				t.Fatalf("after a crash at %s (hit %d): %d of %d were durable\ngot  %+v\nwant %+v", p.Name(), hit, durable, len(appended), viewOf(got), viewOf(all))
			}
			history = all[:k]
			if machine {
				safe = k
			}
			d = image
		}
	}
	for round := 0; round == 0 || round < 20 && len(crashed) < len(points); round++ { // some are rare
		rapid.Check(t, one)
	}
	for _, p := range points {
		if crashed[p.Name()] == 0 {
			t.Errorf("no crash at %s", p.Name())
		}
	}
}

// incarnation opens the log, appends and lets the writer work. It returns what
// it appended and how many of them were durable. A master that did not come to
// open it has made nothing durable that it may have read.
func incarnation(t *rapid.T, d *memory, policy SyncPolicy, epoch uint64, history []Event) (appended []Event, durable int, opened, gone bool, err error) {
	steps := rapid.IntRange(1, 25).Draw(t, "steps")
	h, err := openHardened(d, Config{Job: "job", Epoch: epoch, Policy: policy, BufferSize: 200, CompactBytes: 900})
	if err != nil {
		if d.dead {
			return nil, 0, false, false, nil
		}
		return nil, 0, false, false, err
	}
	add := func(e Event, cut bool) {
		appended = append(appended, e)
		h.Append(Entry{Event: e, Cut: cut})
	}
	if len(history) > 0 && rapid.Bool().Draw(t, "takeover") {
		e := EpochStarted{Epoch: epoch}
		for _, f := range viewOf(history).Finished {
			if rapid.Bool().Draw(t, "keep") {
				e.Kept = append(e.Kept, f.Attempt)
			}
		}
		add(e, false)
	}
	for i := range steps {
		switch rapid.SampledFrom([]string{"append", "append", "append", "work", "tick", "fail"}).Draw(t, "step") {
		case "append":
			add(drawEvent(t, epoch, i), rapid.Bool().Draw(t, "cut"))
		case "work":
			h.step(false, false)
		case "tick":
			h.step(true, false)
		case "fail":
			d.breakDown(fmt.Errorf("disk full"))
			h.step(true, false)
			d.breakDown(nil)
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		add(JobFinished{Status: "FINISHED"}, true)
		h.step(false, false)
		if h.file != nil {
			_ = h.clear() // cut short by the crash
		}
		// Once everything is gone there is nothing to be found.
		if s := h.Stats(); s.Durable == s.Events && len(names(d)) == 0 {
			return nil, 0, true, true, nil
		}
	case 1:
		h.step(false, true)
	}
	return appended, int(h.Stats().Durable), true, false, nil
}
