package shuffle

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/failpoint"
)

// points are all places of a partition's life on disk.
var points = []*failpoint.Point{
	beforeCreate, afterCreate, beforeSpill, afterSpill, beforeWrite, afterWrite, beforeIndex, afterIndex,
	beforeSync, afterSync, beforeRename, afterRename, beforeSyncFolder, afterSyncFolder, beforeDelete, afterDelete,
}

// onHit calls f at hit n of all points together, counted from 1.
func onHit(n int, f func()) (disarm func(), hits func() int) {
	count := 0
	var undo []func()
	for _, p := range points {
		undo = append(undo, p.Arm(func(int, string) error {
			if count++; count == n {
				f()
			}
			return nil
		}))
	}
	return func() {
		for _, u := range undo {
			u()
		}
	}, func() int { return count }
}

// fate is what has happened to a partition.
type fate int

const (
	absent   fate = iota
	changing      // its writer or its release is at work
	finished
)

// job is a random life of partitions in one store.
type job struct {
	outputs map[PartitionID]*output
	fates   map[PartitionID]fate
}

// run does what seed says: writes, aborts and releases partitions.
func (j *job) run(t fataler, s *Store, seed uint64) {
	j.outputs, j.fates = map[PartitionID]*output{}, map[PartitionID]fate{}
	rnd := rand.New(rand.NewPCG(seed, 1))
	subs := 1 + rnd.IntN(4)
	g := buffer.NewGlobal(s.c.SegmentSize, 1<<10)
	var ids []PartitionID
	for i := range 2 + rnd.IntN(4) {
		id := partitionOf("job", i/2)
		id.Attempt = i % 2
		ids = append(ids, id)
		o := randomOutput(rnd, subs, rnd.IntN(60), 150)
		j.outputs[id], j.fates[id] = o, changing
		w, err := s.Create(id, WriterConfig{Subpartitions: subs, Memory: 1<<10 + rnd.IntN(8<<10), Pool: g, Codec: Codec(rnd.IntN(3))})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.write(w); err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(4) == 0 {
			if err := w.Abort(); err != nil {
				t.Fatal(err)
			}
			j.fates[id] = absent
			continue
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		j.fates[id] = finished
		if rnd.IntN(3) == 0 {
			victim := ids[rnd.IntN(len(ids))]
			if j.fates[victim] == finished {
				j.fates[victim] = changing
			}
			if err := s.Release(victim); err != nil {
				t.Fatal(err)
			}
			j.fates[victim] = absent
		}
	}
}

// check holds a store that was opened on what a crash left to what had happened
// until then.
func (j *job) check(t fataler, s *Store, a Adopted, fates map[PartitionID]fate) {
	t.Helper()
	if len(a.Damaged) > 0 || len(a.Foreign) > 0 {
		t.Fatalf("found %+v", a)
	}
	held := map[PartitionID]Finished{}
	var disk int64
	for _, f := range s.Inventory("") {
		held[f.ID] = f
		disk += f.Disk
	}
	for id, what := range fates {
		f, ok := held[id]
		if ok != (what == finished) && what != changing {
			t.Fatalf("%s: held %v, fate %d", id, ok, what)
		}
		if !ok {
			if _, err := s.Reader(id, Range{}); !errors.Is(err, exchange.ErrPartitionLost) {
				t.Fatalf("%s is absent: %v", id, err)
			}
			continue
		}
		o := j.outputs[id]
		o.checkFinished(t, f)
		o.expect(t, s, id, Range{0, len(o.subs) - 1})
		if err := s.Verify(id, true); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.diskBytes(""); n != disk || err != nil {
		t.Fatalf("%d bytes on disk, finished partitions have %d: %v", n, disk, err)
	}
	if err := s.ReleaseJob("job"); err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, s)
}

// The process dies at any fault point: what was finished is there, complete;
// what was not leaves nothing; what was changing is one or the other.
//
// Fails if Finish renames the index before the data, or if adopt leaves temporary
// files.
func TestCrashAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "shuffle")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		seed := rapid.Uint64().Draw(rt, "seed")
		c := small(filepath.Join(dir, "dry"))
		c.Sync = rapid.IntRange(0, 7).Draw(rt, "sync") == 0
		var j job

		s := open(rt, c)
		disarm, hits := onHit(0, nil)
		func() { defer disarm(); j.run(rt, s, seed) }()
		j.check(rt, s, Adopted{}, j.fates)
		shut(rt, s)

		at := rapid.IntRange(1, hits()).Draw(rt, "crash at hit")
		c.Dir = filepath.Join(dir, "live")
		left := filepath.Join(dir, "left")
		fates := map[PartitionID]fate{}
		s = open(rt, c)
		disarm, _ = onHit(at, func() {
			if err := os.CopyFS(left, os.DirFS(c.Dir)); err != nil {
				rt.Fatal(err)
			}
			for id, f := range j.fates {
				fates[id] = f
			}
		})
		func() { defer disarm(); j.run(rt, s, seed) }()
		shut(rt, s)

		c.Dir = left
		s, a, err := Open(c)
		if err != nil {
			rt.Fatal(err)
		}
		j.check(rt, s, a, fates)
		shut(rt, s)
	})
}

// The same at each fault point of one partition's life, from its creation to its
// release.
//
// Fails if Release deletes the data before the index.
func TestCrashAtEveryPoint(t *testing.T) {
	o := randomOutput(seeded(t), 2, 30, 100)
	id := partitionOf("job", 0)
	for at, total := 1, 1; at <= total; at++ {
		c := small(filepath.Join(t.TempDir(), "live"))
		c.Sync = true
		left := filepath.Join(t.TempDir(), "left")
		s := open(t, c)
		j := job{outputs: map[PartitionID]*output{id: o}}
		disarm, hits := onHit(at, func() {
			if err := os.CopyFS(left, os.DirFS(c.Dir)); err != nil {
				t.Fatal(err)
			}
		})
		o.make(t, s, id, 1<<10, LZ4)
		if err := s.Release(id); err != nil {
			t.Fatal(err)
		}
		disarm()
		total = hits()
		shut(t, s)
		if total < 20 {
			t.Fatalf("only %d points were passed", total)
		}
		c.Dir = left
		s, a, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		j.check(t, s, a, map[PartitionID]fate{id: changing})
		shut(t, s)
	}
}

// Any step fails, once: the error comes out and names the file, the partition is not
// there, memory and files are back, and what could not be deleted can be later.
func TestFailureAnywhere(t *testing.T) {
	o := randomOutput(seeded(t), 2, 100, 100)
	for _, p := range points {
		for n := 1; n <= 2; n++ {
			c := small(t.TempDir())
			c.Sync = true
			s := open(t, c)
			g := buffer.NewGlobal(256, 1<<10)
			id := partitionOf("job", 0)
			boom := errors.New("boom")
			passed, named := false, ""
			disarm := p.Arm(func(hit int, subject string) error {
				if hit == n {
					passed = true
					if subject != id.file(dataSuffix) && subject != id.file(indexSuffix) && subject != id.folder() && subject != id.Job {
						t.Errorf("%s has subject %s", p.Name(), subject)
					}
					named = subject
					return boom
				}
				return nil
			})
			err := func() error {
				w, err := s.Create(id, WriterConfig{Subpartitions: 2, Memory: 2 << 10, Pool: g})
				if err != nil {
					return err
				}
				if err := o.write(w); err != nil {
					return errors.Join(err, w.Abort())
				}
				if _, err := w.Finish(); err != nil {
					return err
				}
				return s.Release(id)
			}()
			disarm()
			if passed && (!errors.Is(err, boom) || !strings.Contains(err.Error(), named)) {
				t.Errorf("%s, hit %d: %v", p.Name(), n, err)
			}
			if !passed && (n == 1 || err != nil) {
				t.Errorf("%s, hit %d: not passed, %v", p.Name(), n, err)
			}
			if st := g.Stats(); st.Used != 0 || st.Pools != 0 {
				t.Errorf("%s: memory of the writer: %+v", p.Name(), st)
			}
			if len(s.Inventory("")) != 0 {
				t.Errorf("%s: the partition is there", p.Name())
			}
			if err := s.Release(id); err != nil { // again, for what could not be deleted
				t.Error(err)
			}
			checkEmpty(t, s)
			shut(t, s)
		}
	}
}
