package joblog

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func openFaithful(t testing.TB, d Folder) *Faithful {
	t.Helper()
	return must(OpenFaithful(d, Config{Job: "job", Epoch: 1, BufferSize: 300}))(t)
}

// lengths are the sizes of the files as another process would find them.
func lengths(d *memory) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []int
	for i := 0; d.entries[eventFile(i)] != nil; i++ {
		out = append(out, len(d.entries[eventFile(i)].data))
	}
	return out
}

// ST-2, ST-5, ST-7: fails if a cut does not end the file, if a new incarnation
// writes into an old file, or if events come back changed.
func TestFaithfulKeepsFilesOfAllIncarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		s := openFaithful(t, d)
		if s.HasEvents() {
			t.Error("a new log has events")
		}
		all := []Event{initialized("a", 2), finished("a", 0, 0, 1), finished("a", 1, 0, 1), VerticesReset{Tasks: []TaskID{{"a", 0}}}}
		snapshots := NewPending()
		s.Append(Entry{Event: all[0]})
		s.Append(Entry{Event: all[1]})
		s.Append(Entry{Event: all[2], Cut: true, Snapshots: snapshots})
		synctest.Wait()
		if got := lengths(d); len(got) != 1 || s.Stats().GapTasks != 2 {
			t.Errorf("before the snapshots came: %v, %+v", got, s.Stats())
		}
		snapshots.Complete([]Snapshot{{"a", []byte("state")}}, nil)
		s.Append(Entry{Event: all[3]})
		time.Sleep(1500 * time.Millisecond)
		if got := lengths(d); len(got) != 2 || s.Stats().Durable != 4 {
			t.Errorf("files %v, %d durable", got, s.Stats().Durable)
		}
		shut(t, s)
		last := all[2].(VertexFinished)
		last.Snapshots, last.Snapshotted = []Snapshot{{"a", []byte("state")}}, true
		all[2] = last
		s = openFaithful(t, d)
		if got := replayed(t, s); !reflect.DeepEqual(got, all) {
			t.Errorf("got %+v", got)
		}
		s.Append(Entry{Event: all[1], Cut: true})
		synctest.Wait()
		if got := lengths(d); len(got) != 3 {
			t.Errorf("files %v", got)
		}
		if err := s.Close(true); err != nil || len(names(d)) > 0 {
			t.Errorf("cleared: %v, left %v", err, names(d))
		}
	})
}

// ST-10: a record cut short ends its file, and the next file goes on. Fails if
// it fails the replay, or if an unknown type does not.
func TestFaithfulTornTail(t *testing.T) {
	d := newMemory()
	s := openFaithful(t, d)
	s.Append(Entry{Event: finished("a", 0, 0, 1), Cut: true})
	s.Append(Entry{Event: finished("a", 1, 0, 1), Cut: true})
	shut(t, s)
	n := d.entries["events.0"]
	n.data = append(n.data, n.data[:len(n.data)-1]...)
	s = openFaithful(t, d)
	if got := replayed(t, s); len(got) != 2 {
		t.Errorf("%d events", len(got))
	}
	shut(t, s)
	n.data[3] = 9
	s = openFaithful(t, d)
	if err := s.Replay(func(Event) error { return nil }); err == nil || !strings.Contains(err.Error(), "unknown event type 9") {
		t.Errorf("unknown type: %v", err)
	}
	shut(t, s)
}

// ST-9, L13: one error, and the job is unprotected without a word; the hardened
// store on the same disk in the same minute is whole again
// (TestADiskThatFailsForAWhile). Fails if the faithful store writes on.
func TestFaithfulGivesUpSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		told := 0
		s := must(OpenFaithful(d, Config{Job: "job", Trouble: func(time.Time, error) { told++ }}))(t)
		s.Append(Entry{Event: finished("a", 0, 0, 1)})
		d.breakDown(errors.New("disk full"))
		time.Sleep(1500 * time.Millisecond)
		d.breakDown(nil)
		s.Append(Entry{Event: finished("a", 1, 0, 1), Cut: true})
		time.Sleep(1500 * time.Millisecond)
		if st := s.Stats(); told != 0 || st.Durable != 0 || st.GapTasks != 2 || st.Errors != 1 {
			t.Errorf("told %d times, %+v", told, st)
		}
		shut(t, s)
	})
}

// H7: a record as large as the buffer goes around it and is not flushed by time,
// where the file system holds bytes back; its head can be there without it.
// Fails if put flushes after it has written.
func TestH7LargeRecordsAreNotFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := finished("a", 0, 0, 1)
		large.Splits = []string{strings.Repeat("x", 400)}
		d := newMemory()
		d.lazy = true
		s := openFaithful(t, d)
		s.Append(Entry{Event: large})
		time.Sleep(time.Minute)
		if got := lengths(d); len(got) != 1 || got[0] != 8 {
			t.Errorf("%v bytes are there, not the head alone", got)
		}
		shut(t, s)

		d = newMemory()
		d.lazy = true
		h := must(OpenHardened(d, Config{Job: "job", Epoch: 1, BufferSize: 300}))(t)
		h.Append(Entry{Event: large})
		time.Sleep(1500 * time.Millisecond)
		if st := h.Stats(); st.GapTasks != 0 {
			t.Errorf("hardened: %+v", st)
		}
		shut(t, h)
	})
}

// H8: a gap in the numbers ends the reading, and the next file has a name that
// is taken: recording is off. The hardened store refuses such a log (TestGaps).
// Fails if fileNo is taken from the highest number.
func TestH8GapInTheNumbers(t *testing.T) {
	d := newMemory()
	s := openFaithful(t, d)
	for i := range 3 {
		s.Append(Entry{Event: finished("a", i, 0, 1), Cut: true})
	}
	shut(t, s)
	if err := d.Remove("events.1"); err != nil {
		t.Fatal(err)
	}
	s = openFaithful(t, d)
	if got := replayed(t, s); len(got) != 1 {
		t.Errorf("%d events", len(got))
	}
	s.Append(Entry{Event: finished("b", 0, 0, 1), Cut: true})
	shut(t, s)
	if st := s.Stats(); st.Durable != 0 || st.Errors != 1 {
		t.Errorf("%+v", st)
	}
}

// H11: snapshots that never come hold up everything behind them; the hardened
// store does not wait for them. Fails if write does not wait, or if Close waits
// for ever.
func TestH11SnapshotsThatNeverCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stores [2]Store
		stores[0] = openFaithful(t, newMemory())
		stores[1] = open(t, newMemory(), 1)
		for i, s := range stores {
			s.Append(Entry{Event: finished("a", 0, 0, 1), Snapshots: NewPending()})
			for range 100 {
				s.Append(Entry{Event: finished("a", 1, 0, 1), Cut: true})
			}
			time.Sleep(time.Minute)
			want := []int{101, 0}[i]
			if st := s.Stats(); st.GapTasks != want {
				t.Errorf("%T: %+v", s, st)
			}
			shut(t, s)
		}
	})
}

// A flipped bit that no format check meets is replayed as if it were true by the
// faithful store, and met by the checksum of the hardened one (TestFlippedBits).
func TestFaithfulBelievesAFlippedBit(t *testing.T) {
	d := newMemory()
	s := openFaithful(t, d)
	s.Append(Entry{Event: finished("a", 0, 0, 1), Cut: true})
	shut(t, s)
	data := d.entries["events.0"].data
	data[9] ^= 2 // the vertex's name
	s = openFaithful(t, d)
	if got := replayed(t, s); got[0].(VertexFinished).Attempt.Vertex != "c" {
		t.Errorf("got %+v", got)
	}
	shut(t, s)
}

// ST-3: any entry makes the folder one with events. Fails if only files with the
// right names count.
func TestFaithfulTakesAnyEntryForEvents(t *testing.T) {
	d := newMemory()
	d.entries["notes.txt"] = &inode{}
	s := openFaithful(t, d)
	if !s.HasEvents() || len(replayed(t, s)) != 0 {
		t.Error("an entry that is none of ours")
	}
	shut(t, s)
}

// Two masters at once: nothing fences the older one. What it still writes into
// its file is replayed as if it were true, until its next file has a name that is
// taken; then it is silent. The hardened store voids what came too late
// (TestTheOlderMasterIsFenced).
//
// Fails if OpenFaithful goes on in a file of an older master, or if Create
// replaces one.
func TestFaithfulDoesNotFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		old := openFaithful(t, d)
		old.Append(Entry{Event: finished("a", 0, 0, 1)})
		time.Sleep(1500 * time.Millisecond)
		young := openFaithful(t, d)
		young.Append(Entry{Event: finished("a", 1, 0, 2)})
		time.Sleep(1500 * time.Millisecond)
		old.Append(Entry{Event: finished("a", 1, 7, 1), Cut: true})
		old.Append(Entry{Event: finished("a", 2, 7, 1), Cut: true})
		synctest.Wait()
		if st := old.Stats(); st.Errors != 1 || st.GapTasks != 1 {
			t.Errorf("the older master: %+v", st)
		}
		shut(t, old)
		shut(t, young)
		s := openFaithful(t, d)
		want := []Event{finished("a", 0, 0, 1), finished("a", 1, 7, 1), finished("a", 1, 0, 2)}
		if got := replayed(t, s); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
		shut(t, s)
	})
}

// A process that dies at any point of writing leaves a prefix of what it wrote,
// with all that had been flushed. (A machine may leave less: nothing is synced,
// ST-8.)
//
// Fails if cut or tick call something durable that is not flushed.
func TestFaithfulCrashAtEveryPoint(t *testing.T) {
	all := points(t)
	life := func(d *memory) (appended []Event, durable int) {
		for epoch := uint64(1); epoch <= 2; epoch++ {
			s, err := OpenFaithful(d, Config{Job: "job", Epoch: epoch, BufferSize: 120, FlushInterval: time.Hour})
			if err != nil {
				return appended, durable
			}
			was := len(appended)
			for i := range 6 {
				e := finished("a", i, int(epoch), epoch)
				if i == 4 {
					e.Splits = []string{strings.Repeat("x", 200)}
				}
				appended = append(appended, e)
				s.Append(Entry{Event: e, Cut: i%3 == 2})
			}
			synctest.Wait()
			durable = was + int(s.Stats().Durable)
			if d.dead || s.Close(false) != nil {
				_ = s.Close(false)
				return appended, durable
			}
		}
		return appended, durable
	}
	synctest.Test(t, func(t *testing.T) {
		hits := countHits(all, func() { life(newMemory()) })
		crashes := 0
		for _, p := range all {
			for hit := 1; hit <= hits[p.Name()]; hit++ {
				d := newMemory()
				d.lazy = true
				disarm := p.Arm(func(n int, _ string) error {
					if n == hit {
						crashes++
						return d.crash()
					}
					return nil
				})
				appended, durable := life(d)
				disarm()
				s, err := OpenFaithful(d.process(), Config{Job: "job", Epoch: 9})
				if err != nil {
					t.Fatal(err)
				}
				got := replayed(t, s)
				shut(t, s)
				if len(got) < durable || len(got) > len(appended) || len(got) > 0 && !reflect.DeepEqual(got, appended[:len(got)]) {
					t.Fatalf("crash %d at %s: %d of %d events, %d were durable", hit, p.Name(), len(got), len(appended), durable)
				}
			}
		}
		if crashes < 30 {
			t.Errorf("%d crashes only", crashes)
		}
	})
}
