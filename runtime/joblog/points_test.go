package joblog

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"benchrun/runtime/failpoint"
)

// points are all fault points of this package, as they are registered.
func points(t testing.TB) (out []*failpoint.Point) {
	for _, name := range failpoint.Names() {
		if strings.HasPrefix(name, "joblog/") {
			out = append(out, must(failpoint.Lookup(name))(t))
		}
	}
	return out
}

// countHits runs something and tells how often each point was passed.
func countHits(points []*failpoint.Point, run func()) map[string]int {
	hits := map[string]int{}
	for _, p := range points {
		defer p.Arm(func(int, string) error { hits[p.Name()]++; return nil })()
	}
	run()
	return hits
}

// Every method of a folder and of a file is known here as one that only looks,
// or passes two points of its own: before it does something and after.
//
// Fails if a method is added, or if watched leaves one of them to what it wraps.
func TestEveryOperationHasItsPoints(t *testing.T) {
	looking := []string{"Names", "ReadFile", "String"}
	changing := map[string]string{"Create": "create", "Truncate": "truncate", "Publish": "rename", "Remove": "delete", "Folder.Sync": "sync",
		"Write": "append", "Flush": "flush", "File.Sync": "sync", "Close": "close"}
	all := points(t)
	seen := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[Folder](), reflect.TypeFor[File]()} {
		for i := range of.NumMethod() {
			name := of.Method(i).Name
			if slices.Contains(looking, name) {
				continue
			}
			point, ok := changing[name]
			if !ok {
				if point, ok = changing[of.Name()+"."+name]; !ok {
					t.Errorf("%s.%s: nobody says what its fault points are", of.Name(), name)
					continue
				}
			}
			m := newMemory()
			d := watched{m}
			f := must(d.Create("a"))(t)
			var subject any = d
			if of == reflect.TypeFor[File]() {
				subject = f
			}
			args := map[string][]any{"Create": {"b"}, "Truncate": {"a", int64(0)}, "Publish": {"a", "b"}, "Remove": {"a"}, "Write": {[]byte("x")}}[name]
			in := make([]reflect.Value, len(args))
			for i, a := range args {
				in[i] = reflect.ValueOf(a)
			}
			hits := countHits(all, func() { reflect.ValueOf(subject).MethodByName(name).Call(in) })
			past := map[string]string{"create": "created", "truncate": "truncated", "rename": "renamed", "delete": "deleted", "sync": "synced",
				"append": "appended", "flush": "flushed", "close": "closed"}[point]
			want := map[string]int{"joblog/" + point: 1, "joblog/" + past: 1}
			if !reflect.DeepEqual(hits, want) {
				t.Errorf("%s.%s passes %v, not %v", of.Name(), name, hits, want)
			}
			seen["joblog/"+point], seen["joblog/"+past] = true, true
		}
	}
	for _, p := range all {
		if !seen[p.Name()] {
			t.Errorf("no operation passes %s", p.Name())
		}
	}
}

// life is a job's whole life under two masters, always the same: it passes every
// point. look is called now and then. before is what a master before has left: a torn end, files that did not
// come to have a header, a compaction that was not finished. It returns what was
// appended, how many of that were durable, and whether the log may be gone.
func life(d *memory, policy SyncPolicy, look func(appended []Event, durable int)) (appended []Event, durable int, over bool, err error) {
	for epoch := uint64(2); epoch <= 3; epoch++ {
		h, err := openHardened(d, Config{Job: "job", Epoch: epoch, Policy: policy, BufferSize: 200, CompactBytes: 600})
		if err != nil {
			return appended, durable, over, err
		}
		was := len(appended)
		add := func(e Event, cut bool) {
			appended = append(appended, e)
			h.Append(Entry{Event: e, Cut: cut})
		}
		settled := func() {
			durable = was + int(h.Stats().Durable)
			if look != nil {
				look(appended, durable)
			}
		}
		add(EpochStarted{Epoch: epoch, Kept: attempts(appended, epoch)}, false)
		h.step(false, false)
		settled()
		for i := range 6 {
			add(finished("a", i, int(epoch), epoch), i == 5)
			h.step(i%2 == 0, false)
			settled()
		}
		d.breakDown(errors.New("disk full"))
		add(CoordinatorSnapshot{Snapshot{"a", []byte("state")}}, false)
		h.step(true, false)
		d.breakDown(nil)
		add(VerticesReset{Tasks: []TaskID{{"a", 1}}}, false)
		h.step(true, false)
		settled()
		for i := range 4 {
			add(finished("b", i, int(epoch), epoch), false)
			h.step(false, false)
			settled()
		}
		if epoch == 3 {
			add(JobFinished{Status: "FINISHED"}, true)
		}
		h.step(false, true)
		if h.file == nil {
			h.step(true, false) // a master that dies before it could try again has lost what is not durable
		}
		settled()
		if epoch == 3 && h.file != nil {
			over = true
			if err := h.clear(); err != nil {
				return appended, durable, over, err
			}
		}
		if h.file != nil {
			if err := h.file.Close(); err != nil {
				return appended, durable, over, err
			}
		}
	}
	return appended, durable, over, nil
}

// attempts are those that a new master keeps: the first one has kept what before
// says.
func attempts(appended []Event, epoch uint64) (out []AttemptID) {
	es := appended
	if epoch == 2 {
		es = leftBefore()
	}
	for _, f := range viewOf(es).Finished {
		out = append(out, f.Attempt)
	}
	return out
}

func leftBefore() []Event {
	return []Event{initialized("a", 6), finished("a", 0, 0, 1), finished("a", 1, 0, 1)}
}

// before is the folder that life begins with.
func before(t testing.TB) *memory {
	d := newMemory()
	s := open(t, d, 1)
	appendAll(t, s, leftBefore()...)
	shut(t, s)
	n := d.entries["log.1"]
	n.data = append(n.data, n.data[:40]...)
	n.synced = len(n.data)
	d.entries["log.2"] = &inode{data: []byte("BRJ"), synced: 3}
	d.entries[tempFile] = &inode{data: []byte("half of it"), synced: 10}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	return d
}

// images are what may be left of a folder after its process has died, or its
// machine has: with the least and the most of what was not synced.
func images(d *memory) map[string]*memory {
	out := map[string]*memory{"process": d.process(), "machine, least": newMemory(), "machine, most, zeros": d.process()}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, n := range d.kept {
		out["machine, least"].entries[name] = &inode{slices.Clone(n.data[:n.synced]), n.synced}
	}
	for name, n := range d.entries {
		// The length reached the disk, the bytes did not.
		clear(out["machine, most, zeros"].entries[name].data[n.synced:])
	}
	return out
}

// A crash at each passing of each point: what was durable is there, nothing is
// invented, and no crash is taken for damage.
//
// Fails, for one, if sync settles before it has synced (machine); if begin does
// not sync the folder.
func TestCrashAtEveryPoint(t *testing.T) {
	all := points(t)
	for _, policy := range []SyncPolicy{SyncNone, SyncInterval, SyncVertex, SyncAlways} {
		hits := countHits(all, func() {
			d := before(t)
			if _, _, _, err := life(d, policy, nil); err != nil || len(names(d)) > 0 {
				t.Fatal(err, names(d))
			}
		})
		crashes := 0
		for _, p := range all {
			if hits[p.Name()] == 0 {
				t.Errorf("%s: %s is never passed", policy, p.Name())
			}
			for hit := 1; hit <= hits[p.Name()]; hit++ {
				d := before(t) // passes points of its own
				disarm := p.Arm(func(n int, _ string) error {
					if n == hit {
						crashes++
						return d.crash()
					}
					return nil
				})
				appended, durable, over, _ := life(d, policy, nil)
				disarm()
				_ = d.crash()
				for what, image := range images(d) {
					if policy == SyncNone && what != "process" {
						continue // nothing is promised
					}
					where := fmt.Sprintf("%s, crash %d at %s, %s", policy, hit, p.Name(), what)
					got, err := read(image, 99)
					if err != nil {
						t.Fatalf("%s: %v\n%v", where, err, names(image))
					}
					if over && len(got) == 0 {
						continue // it was being removed
					}
					if !prefix(got, append(leftBefore(), appended...), len(leftBefore())+durable) {
						t.Fatalf("%s: %d of %d were durable\ngot %+v", where, durable, len(appended), viewOf(got))
					}
				}
			}
		}
		if crashes < 100 {
			t.Errorf("%s: %d crashes only", policy, crashes)
		}
	}
}

// read opens a log as the next master does.
func read(d Folder, epoch uint64) (got []Event, err error) {
	h, err := openHardened(d, Config{Job: "job", Epoch: epoch})
	if err != nil {
		return nil, err
	}
	err = h.Replay(func(e Event) error { got = append(got, e); return nil })
	return got, errors.Join(err, h.file.Close())
}

// prefix tells whether what came back is what a prefix of all says, at least so
// long.
func prefix(got, all []Event, least int) bool {
	for k := len(all); k >= least; k-- {
		if reflect.DeepEqual(viewOf(got), viewOf(all[:k])) {
			return true
		}
	}
	return false
}

// An operation that fails once, before or after it has had its effect, costs
// nothing: the store goes on, what it calls durable is there at any time, and all
// that was appended is there in the end. A log that cannot be opened stays as it
// was.
//
// Fails if passBy leaves a compacted file that a failed Publish has made visible:
// finished tasks are lost. Fails if fail keeps the file.
func TestFailureAtEveryPoint(t *testing.T) {
	all := points(t)
	for _, policy := range []SyncPolicy{SyncNone, SyncInterval, SyncVertex, SyncAlways} {
		hits := countHits(all, func() { _, _, _, _ = life(before(t), policy, nil) })
		failures := 0
		for _, p := range all {
			for hit := 1; hit <= hits[p.Name()]; hit++ {
				d := before(t)
				where := fmt.Sprintf("%s, failure %d at %s", policy, hit, p.Name())
				passed, looking := 0, false
				disarm := p.Arm(func(int, string) error {
					if looking {
						return nil
					}
					if passed++; passed == hit {
						failures++
						return errors.New("once")
					}
					return nil
				})
				look := func(appended []Event, durable int) {
					looking = true
					defer func() { looking = false }()
					got, err := read(d.process(), 99)
					if err != nil {
						t.Fatalf("%s, on the way: %v\n%v", where, err, names(d))
					}
					if !prefix(got, append(leftBefore(), appended...), len(leftBefore())+durable) {
						t.Fatalf("%s, on the way: %d of %d were durable\ngot %+v", where, durable, len(appended), viewOf(got))
					}
				}
				appended, _, over, err := life(d, policy, look)
				disarm()
				got, rerr := read(d.process(), 99)
				switch {
				case rerr != nil:
					t.Fatalf("%s: %v after %v\n%v", where, rerr, err, names(d))
				case over && len(got) == 0:
				case !prefix(got, append(leftBefore(), appended...), len(leftBefore())+len(appended)):
					t.Fatalf("%s: %v\ngot %+v\nof %+v", where, err, viewOf(got), appended)
				}
			}
		}
		if failures < 100 {
			t.Errorf("%s: %d failures only", policy, failures)
		}
	}
}
