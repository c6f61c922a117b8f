package joblog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func finished(vertex string, subtask, attempt int, epoch uint64) VertexFinished {
	return VertexFinished{
		Attempt: AttemptID{TaskID{vertex, subtask}, epoch, attempt}, Worker: "w0", Records: 10, BytesIn: 7,
		Results: []Result{{DataSet: vertex + "->x#0", Bytes: []int64{1, 2, 3}}}, Splits: []string{"s1"},
	}
}

func initialized(vertex string, parallelism int) JobVertexInitialized {
	return JobVertexInitialized{Vertex: vertex, Parallelism: parallelism,
		Inputs: []InputInfo{{DataSet: "in->" + vertex + "#0", Subtasks: []InputRange{{0, 3, 0, 1}, {0, 3, 2, 5}}}}}
}

func events() []Event {
	return []Event{
		EpochStarted{Epoch: 1},
		WorkerSet{Workers: []string{"w0", "w1"}},
		initialized("a", 2),
		finished("a", 0, 0, 1),
		CoordinatorSnapshot{Snapshot{"a", []byte("snapshot")}},
		VerticesReset{Tasks: []TaskID{{"a", 0}}},
		finished("a", 0, 1, 1),
		JobFinished{Status: "FINISHED", Error: "none"},
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func open(t testing.TB, d Folder, epoch uint64) *Hardened {
	t.Helper()
	return must(OpenHardened(d, Config{Job: "job", Epoch: epoch}))(t)
}

func replayed(t testing.TB, s Store) []Event {
	t.Helper()
	var out []Event
	if err := s.Replay(func(e Event) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func appendAll(t testing.TB, s Store, es ...Event) {
	t.Helper()
	for _, e := range es {
		s.Append(Entry{Event: e})
	}
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func shut(t testing.TB, s Store) {
	t.Helper()
	if err := s.Close(false); err != nil {
		t.Fatal(err)
	}
}

// Fails if the encoder and the decoder of any event differ in a field, or if
// Replay changes the order.
func TestEventsComeBackAsTheyWere(t *testing.T) {
	dir := must(OpenDir(t.TempDir() + "/a/b"))(t)
	s := open(t, dir, 1)
	if s.HasEvents() {
		t.Error("a new log has events")
	}
	appendAll(t, s, events()...)
	shut(t, s)
	s = open(t, dir, 2)
	if !s.HasEvents() {
		t.Error("the log has no events")
	}
	if got := replayed(t, s); !reflect.DeepEqual(got, events()) {
		t.Errorf("got  %+v\nwant %+v", got, events())
	}
	shut(t, s)
}

// logOf writes two files of three events each and returns the folder.
func logOf(t *testing.T) *memory {
	d := newMemory()
	for epoch := uint64(1); epoch <= 2; epoch++ {
		s := open(t, d, epoch)
		for i := range 3 {
			s.Append(Entry{Event: finished("a", i, int(epoch), epoch)})
		}
		shut(t, s)
	}
	return d
}

// Fails if the checksum leaves the payload out, if a bad record in the middle is skipped instead of
// refused, or if the torn end is refused instead of cut off.
func TestFlippedBits(t *testing.T) {
	whole := logOf(t)
	for _, name := range []string{"log.1", "log.2"} {
		size := len(whole.entries[name].data)
		for at := range size {
			d := whole.process()
			d.entries[name].data[at] ^= 1 << (at % 8)
			s, err := OpenHardened(d, Config{Job: "job", Epoch: 3})
			var damaged *DamagedError
			var version *VersionError
			switch {
			case at == 4: // the version stands in front of everything else
				if !errors.As(err, &version) {
					t.Fatalf("%s:%d: %v, not a version error", name, at, err)
				}
			case name == "log.1" || at < frameBytes+5: // a header with the job's name
				if !errors.As(err, &damaged) || damaged.File != name || damaged.Offset > int64(at) {
					t.Fatalf("%s:%d: %v, not damage there", name, at, err)
				}
			case err != nil:
				t.Fatalf("%s:%d: %v", name, at, err)
			default:
				got := replayed(t, s)
				if len(got) >= 6 || len(got) < 3 || s.Torn() == "" {
					t.Fatalf("%s:%d: %d events, torn %q", name, at, len(got), s.Torn())
				}
				shut(t, s)
			}
			if err != nil && !reflect.DeepEqual(names(d), []string{"log.1", "log.2"}) {
				t.Fatalf("%s:%d: a refused log was changed: %v", name, at, names(d))
			}
		}
	}
}

func names(d Folder) []string {
	n, _ := d.Names()
	return n
}

// Fails if a torn end is refused, if a record of which a byte is missing counts,
// or if the cut is not made on the disk: then the next master refuses the log.
func TestTornTail(t *testing.T) {
	whole := logOf(t)
	for size := range len(whole.entries["log.2"].data) {
		d := whole.process()
		d.entries["log.2"].data = d.entries["log.2"].data[:size]
		s := open(t, d, 3)
		n := len(replayed(t, s))
		if n < 3 || n > 5 {
			t.Fatalf("%d bytes left: %d events", size, n)
		}
		appendAll(t, s, finished("b", 0, 0, 3))
		shut(t, s)
		s = open(t, d, 4)
		if got := replayed(t, s); len(got) != n+1 {
			t.Fatalf("%d bytes left: %d events, then %d", size, n, len(got))
		}
		shut(t, s)
	}
}

// Fails if a missing file goes unnoticed, first, in the middle or by sequence.
func TestGaps(t *testing.T) {
	d := logOf(t)
	shut(t, open(t, d, 3))
	for _, name := range []string{"log.1", "log.2"} {
		c := d.process()
		if err := c.Remove(name); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := OpenHardened(c, Config{Job: "job", Epoch: 9}); !errors.As(err, &damaged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// Fails if the job or the epoch of a log is not compared.
func TestLogsOfOthers(t *testing.T) {
	d := logOf(t)
	var foreign *ForeignError
	if _, err := OpenHardened(d, Config{Job: "other", Epoch: 9}); !errors.As(err, &foreign) || foreign.Job != "job" {
		t.Errorf("another job: %v", err)
	}
	var stale *StaleError
	if _, err := OpenHardened(d, Config{Job: "job", Epoch: 2}); !errors.As(err, &stale) || stale.Epoch != 2 {
		t.Errorf("an epoch that was: %v", err)
	}
	if _, err := OpenHardened(d, Config{Job: "job", Epoch: 9, Policy: "sometimes"}); err == nil {
		t.Error("an unknown policy is taken")
	}
	note := newMemory()
	note.entries["log.1"] = &inode{data: []byte("a file of somebody else")}
	var damaged *DamagedError
	if _, err := OpenHardened(note, Config{Job: "job", Epoch: 1}); !errors.As(err, &damaged) {
		t.Errorf("a file that is no log: %v", err)
	}
	if err := Wipe(d); err != nil {
		t.Fatal(err)
	}
	s := open(t, d, 1)
	if s.HasEvents() {
		t.Error("events after Wipe")
	}
	shut(t, s)
}

// Two masters at once: the older one goes on writing for a while. Fails if
// readRecords ignores its limit, or if begin takes a name that a newer master
// has.
func TestTheOlderMasterIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		old := open(t, d, 1)
		appendAll(t, old, finished("a", 0, 0, 1))
		young := open(t, d, 2)
		appendAll(t, old, finished("a", 1, 0, 1))
		appendAll(t, young, finished("a", 1, 0, 2))
		d.breakDown(errors.New("disk full"))
		old.Append(Entry{Event: finished("a", 2, 0, 1)})
		time.Sleep(1500 * time.Millisecond)
		d.breakDown(nil)
		time.Sleep(5 * time.Second)
		appendAll(t, young, finished("a", 3, 0, 2))
		var stale *StaleError
		if s := old.Stats(); !errors.As(s.Cause, &stale) || s.Durable != 2 {
			t.Errorf("the older master: %v, %d durable", s.Cause, s.Durable)
		}
		if err := old.Close(false); err == nil {
			t.Error("closing the older one reports nothing")
		}
		shut(t, young)
		s := open(t, d, 3)
		want := []Event{finished("a", 0, 0, 1), finished("a", 1, 0, 2), finished("a", 3, 0, 2)}
		if got := replayed(t, s); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v", got)
		}
		shut(t, s)
	})
}

// A disk that hangs in a call lets nobody write, and nobody look: the pressure is
// told nevertheless, once, and its end when the disk goes on. Fails if Append does
// not compare the backlog, or the writer tells of pressure itself.
func TestADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		s := must(OpenHardened(newMemory(), Config{Job: "job", Epoch: 1, MaxBacklog: 4, Pressure: func(on bool) { told = append(told, on) }}))(t)
		hold, hangs := make(chan struct{}), 0
		disarm := syncing.Before.Arm(func(int, string) error { hangs++; <-hold; return nil })
		defer disarm()
		s.Append(Entry{Event: finished("a", 0, 0, 1)})
		time.Sleep(2 * time.Second)
		for i := 1; i <= 4; i++ {
			s.Append(Entry{Event: finished("a", i, 0, 1)})
		}
		synctest.Wait()
		if len(told) != 0 || hangs != 1 {
			t.Errorf("at the bound told %v, the disk hangs %d times", told, hangs)
		}
		for i := 5; i < 20; i++ {
			s.Append(Entry{Event: finished("a", i, 0, 1)})
		}
		synctest.Wait()
		if st := s.Stats(); !slices.Equal(told, []bool{true}) || !st.Pressure || st.Backlog != 19 {
			t.Errorf("told %v, %d events wait, pressure %v", told, st.Backlog, st.Pressure)
		}
		close(hold)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st := s.Stats(); !slices.Equal(told, []bool{true, false}) || st.Pressure || st.Backlog != 0 || st.Durable != 20 {
			t.Errorf("told %v, %d events wait, pressure %v, %d durable", told, st.Backlog, st.Pressure, st.Durable)
		}
		shut(t, s)
	})
}

// ST-9, L13: fails if an error is not reported, not counted, never over, or if
// an event that came meanwhile is lost (begin without h.retained).
func TestADiskThatFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		var mu sync.Mutex // pressure and trouble come from two goroutines
		var told []string
		tell := func(what ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(what...))
		}
		s := must(OpenHardened(d, Config{Job: "job", Epoch: 1, MaxBacklog: 4,
			Trouble: func(since time.Time, cause error) {
				tell(since.IsZero(), cause)
			},
			Pressure: func(on bool) { tell("pressure ", on) },
		}))(t)
		appendAll(t, s, finished("a", 0, 0, 1))
		start := time.Now()
		d.breakDown(errors.New("disk full"))
		for i := 1; i <= 8; i++ {
			s.Append(Entry{Event: finished("a", i, 0, 1)})
			synctest.Wait()
		}
		time.Sleep(1100 * time.Millisecond)
		st := s.Stats()
		if st.GapTasks != 8 || !st.GapSince.Equal(start) || st.UnprotectedSince.IsZero() || !st.Pressure || st.Backlog != 8 || st.Errors == 0 {
			t.Errorf("while it fails: %+v", st)
		}
		time.Sleep(5 * time.Second)
		d.breakDown(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		st = s.Stats()
		if st.GapTasks != 0 || !st.UnprotectedSince.IsZero() || st.Pressure || st.Durable != 9 {
			t.Errorf("afterwards: %+v", st)
		}
		if want := []string{"false job log log.1: disk full", "true <nil>"}; told[0] != want[0] || !slices.Contains(told, want[1]) ||
			!slices.Contains(told, "pressure true") || told[len(told)-1] != "pressure false" {
			t.Errorf("told %q", told)
		}
		shut(t, s)
		s = open(t, d, 2)
		if got := replayed(t, s); len(got) != 9 {
			t.Errorf("%d events", len(got))
		}
		shut(t, s)
	})
}

// Fails if a policy syncs more or less often than it says.
func TestSyncPolicies(t *testing.T) {
	for policy, want := range map[SyncPolicy]string{
		// After the first batch, the flush interval, a finished vertex.
		SyncNone:     "0/0 1/0 2/0",
		SyncInterval: "0/0 1/1 1/1",
		SyncVertex:   "0/0 0/0 2/1",
		SyncAlways:   "1/1 1/1 2/2",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := must(OpenHardened(newMemory(), Config{Job: "job", Epoch: 1, Policy: policy}))(t)
			first := s.Stats()
			var got []string
			note := func() {
				synctest.Wait()
				st := s.Stats()
				got = append(got, fmt.Sprintf("%d/%d", st.Durable, st.Syncs-first.Syncs))
			}
			s.Append(Entry{Event: finished("a", 0, 0, 1)})
			note()
			time.Sleep(1100 * time.Millisecond)
			note()
			s.Append(Entry{Event: finished("a", 1, 0, 1), Cut: true})
			note()
			if g := strings.Join(got, " "); g != want {
				t.Errorf("%s: durable/syncs %s, not %s", policy, g, want)
			}
			shut(t, s)
		})
	}
}

// Fails if an event of the end of a job waits for the policy.
func TestTheEndIsSyncedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(OpenHardened(newMemory(), Config{Job: "job", Epoch: 1, Policy: SyncVertex}))(t)
		s.Append(Entry{Event: finished("a", 0, 0, 1)})
		s.Append(Entry{Event: JobFinished{Status: "FINISHED"}})
		synctest.Wait()
		if st := s.Stats(); st.Durable != 2 {
			t.Errorf("%d durable", st.Durable)
		}
		shut(t, s)
	})
}

// Fails if compaction keeps what was reset, loses what counts, deletes nothing
// or changes the order.
func TestCompaction(t *testing.T) {
	d := newMemory()
	s := must(OpenHardened(d, Config{Job: "job", Epoch: 1, CompactBytes: 2000}))(t)
	appendAll(t, s, initialized("a", 2), CoordinatorSnapshot{Snapshot{"a", []byte("1")}})
	for i := range 200 {
		appendAll(t, s, finished("a", i%2, i, 1), VerticesReset{Tasks: []TaskID{{"a", i % 2}}})
	}
	appendAll(t, s, CoordinatorSnapshot{Snapshot{"a", []byte("2")}}, finished("a", 1, 300, 1), finished("a", 0, 301, 1))
	if st := s.Stats(); st.Compactions < 2 || len(names(d)) != 1 {
		t.Errorf("%d compactions, files %v", st.Compactions, names(d))
	}
	shut(t, s)
	s = must(OpenHardened(d, Config{Job: "job", Epoch: 2, CompactBytes: 1}))(t)
	appendAll(t, s, EpochStarted{Epoch: 2, Kept: []AttemptID{{TaskID{"a", 1}, 1, 300}}})
	for range 50 {
		appendAll(t, s, VerticesReset{Tasks: []TaskID{{"b", 0}}})
	}
	shut(t, s)
	s = open(t, d, 3)
	want := []Event{initialized("a", 2), CoordinatorSnapshot{Snapshot{"a", []byte("2")}}, finished("a", 1, 300, 1),
		EpochStarted{Epoch: 2, Kept: []AttemptID{{TaskID{"a", 1}, 1, 300}}}}
	if got := replayed(t, s); len(got) < 4 || !reflect.DeepEqual(got[:4], want) {
		t.Errorf("got %+v", got)
	}
	shut(t, s)
}

// FLINK-11813: fails if Close deletes the terminal record before the rest, or
// leaves a file.
func TestClearingLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, must(OpenDir(dir))(t), 1)
	appendAll(t, s, events()...)
	if err := s.Close(true); err != nil {
		t.Fatal(err)
	}
	if got := names(must(OpenDir(dir))(t)); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	if err := s.Close(true); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// The log stays in proportion to what counts, however much has happened: after
// every batch the files are at most six times as large as what counts, or three
// times CompactBytes, and two buffers.
//
// Fails if compactIfDue waits for four times CompactBytes, or if removeOld leaves
// a file.
func TestCompactionBoundsTheLog(t *testing.T) {
	const compactBytes, buffer = 4 << 10, 1 << 10
	d := newMemory()
	h := must(openHardened(d, Config{Job: "job", Epoch: 1, CompactBytes: compactBytes, BufferSize: buffer}))(t)
	for i := range 3000 {
		// The number of tasks that count goes up and down.
		if i/500%2 == 0 {
			h.Append(Entry{Event: finished("a", i%200, i, 1)})
		} else {
			h.Append(Entry{Event: VerticesReset{Tasks: []TaskID{{"a", i % 200}}}})
		}
		h.step(i%7 == 0, false)
		size := int64(0)
		for _, n := range d.entries {
			size += int64(len(n.data))
		}
		if bound := 3*max(compactBytes, 2*h.live.bytes) + 2*buffer; size > bound {
			t.Fatalf("event %d: %d bytes for %d that count, at most %d", i, size, h.live.bytes, bound)
		}
	}
	if n := h.Stats().Compactions; n < 10 {
		t.Errorf("%d compactions", n)
	}
	if err := h.file.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(d, 2)
	if v := viewOf(got); err != nil || len(v.Finished) != 0 {
		t.Errorf("%d tasks count, %v", len(v.Finished), err)
	}
}
