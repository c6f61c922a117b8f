package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/record"
)

// What is written comes out, in any range, from any codec, after any number of
// spills, and again from a store that adopted the folder.
//
// Fails if a reader takes a piece of each region up to the begin of the last
// subpartition only, or if clusters.clear forgets to clear.
func TestWriteReadAdopt(t *testing.T) {
	rnd := seeded(t)
	for _, codec := range []Codec{None, LZ4, Zstd} {
		for _, memory := range []int{1 << 10, 4 << 10, 1 << 20} {
			t.Run(fmt.Sprint(codec, memory), func(t *testing.T) {
				c := small(t.TempDir())
				s := open(t, c)
				o := randomOutput(rnd, 5, 400, 300)
				id := partitionOf("job", 0)
				f := o.make(t, s, id, memory, codec)
				ranges := []Range{{0, 0}, {1, 3}, {4, 4}, {0, 4}}
				for _, r := range ranges {
					o.expect(t, s, id, r)
				}
				shut(t, s)
				s, a, err := Open(c)
				if err != nil || a.Partitions != 1 || a.Unfinished != 0 {
					t.Fatalf("adopted %+v: %v", a, err)
				}
				list := s.Inventory("job")
				if len(list) != 1 || list[0].Checksum != f.Checksum || list[0].Disk != f.Disk || list[0].ID != id {
					t.Fatalf("inventory %+v, want %+v", list, f)
				}
				o.checkFinished(t, list[0])
				for _, r := range ranges {
					o.expect(t, s, id, r)
				}
				if err := s.Verify(id, true); err != nil {
					t.Error(err)
				}
				if n, err := s.diskBytes(""); err != nil || n != f.Disk {
					t.Errorf("%d bytes on disk, %d were reported: %v", n, f.Disk, err)
				}
				shut(t, s)
			})
		}
	}
}

// The same records make the same bytes.
func TestSameInputSameBytes(t *testing.T) {
	o := randomOutput(seeded(t), 3, 200, 100)
	for _, codec := range []Codec{None, LZ4, Zstd} {
		var files [2][]byte
		for i := range files {
			dir := t.TempDir()
			s := open(t, small(dir))
			id := partitionOf("job", 0)
			o.make(t, s, id, 2<<10, codec)
			for _, suffix := range []string{dataSuffix, indexSuffix} {
				b, err := os.ReadFile(filepath.Join(dir, id.file(suffix)))
				if err != nil {
					t.Fatal(err)
				}
				files[i] = append(files[i], b...)
			}
			shut(t, s)
		}
		if string(files[0]) != string(files[1]) {
			t.Errorf("%v: two writers made different files", codec)
		}
	}
}

// A record larger than all memory is a region of its own; an empty partition
// has none.
func TestExtremeSizes(t *testing.T) {
	for _, codec := range []Codec{None, LZ4, Zstd} {
		s := open(t, small(t.TempDir()))
		o := &output{subs: make([][][]byte, 3), mark: 5}
		for i, n := range []int{10, 100 << 10, 0, 50 << 10, 20} {
			o.add(i%2, &record.Record{Number: uint64(i), Data: make([]byte, n)})
		}
		o.make(t, s, partitionOf("job", 0), 2<<10, codec)
		o.expect(t, s, partitionOf("job", 0), Range{0, 2})
		o.expect(t, s, partitionOf("job", 0), Range{1, 1})
		empty := &output{subs: make([][][]byte, 2), mark: record.MinWatermark}
		empty.make(t, s, partitionOf("job", 1), 2<<10, codec)
		empty.expect(t, s, partitionOf("job", 1), Range{0, 1})
		shut(t, s)
	}
}

// More subpartitions than memory has chunks.
func TestManySubpartitions(t *testing.T) {
	c := small(t.TempDir())
	c.SegmentSize, c.ReadMemory = 1<<10, 16<<10
	s := open(t, c)
	o := randomOutput(seeded(t), 300, 3000, 40)
	id := partitionOf("job", 0)
	o.make(t, s, id, 8<<10, None)
	for i := range 300 {
		o.expect(t, s, id, Range{i, i})
	}
	o.expect(t, s, id, Range{0, 299})
	shut(t, s)
}

func TestBadInput(t *testing.T) {
	s := open(t, small(t.TempDir()))
	defer shut(t, s)
	g := buffer.NewGlobal(256, 64)
	good := partitionOf("job", 0)
	long := good
	long.Dataset = string(make([]byte, 300))
	for name, c := range map[string]struct {
		id   PartitionID
		conf WriterConfig
	}{
		"no job":           {PartitionID{Dataset: "d"}, WriterConfig{Subpartitions: 1, Memory: 4096}},
		"no data set":      {PartitionID{Job: "j"}, WriterConfig{Subpartitions: 1, Memory: 4096}},
		"long":             {long, WriterConfig{Subpartitions: 1, Memory: 4096}},
		"negative":         {PartitionID{Job: "j", Dataset: "d", Index: -1}, WriterConfig{Subpartitions: 1, Memory: 4096}},
		"no subpartitions": {good, WriterConfig{Memory: 4096}},
		"little memory":    {good, WriterConfig{Subpartitions: 1, Memory: 300}},
		"codec":            {good, WriterConfig{Subpartitions: 1, Memory: 4096, Codec: 9}},
	} {
		c.conf.Pool = g
		if _, err := s.Create(c.id, c.conf); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if st := g.Stats(); st.Pools != 0 {
		t.Errorf("pools are left: %+v", st)
	}
	w, err := s.Create(good, WriterConfig{Subpartitions: 1, Memory: 4096, Pool: g})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(good, WriterConfig{Subpartitions: 1, Memory: 4096, Pool: g}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("two writers of one partition: %v", err)
	}
	if err := w.Write(0, &record.Record{Data: make([]byte, record.MaxElement)}); err == nil {
		t.Error("a record that no consumer could read was accepted")
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(0, &record.Record{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after finish: %v", err)
	}
	if _, err := w.Finish(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("finish after finish: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := s.Create(good, WriterConfig{Subpartitions: 1, Memory: 4096, Pool: g}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a finished partition was written again: %v", err)
	}
	for _, r := range []Range{{0, 1}, {-1, 0}, {1, 0}} {
		if _, err := s.Reader(good, r); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("range %v: %v", r, err)
		}
	}
	if _, err := s.Source("shuffle:../../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("key: %v", err)
	}
}

// No id leads out of the store's folder, and every id comes back out of its
// file name and its key.
//
// Fails if escape lets '.' begin a name, or '/' pass.
func TestNamesStayInside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, small(filepath.Join(dir, "store")))
	o := randomOutput(seeded(t), 2, 20, 10)
	for i, name := range []string{"..", ".", "../../up", "/etc/x", "a/b", "a~1~2", "%2F", "a\\b", "ä€", ".tmp-x", " ", "a\nb", "x.data", "->#0"} {
		id := PartitionID{Job: name, Dataset: name, Index: i, Attempt: i, Epoch: uint64(i)}
		o.make(t, s, id, 4<<10, None)
		o.expect(t, s, id, Range{0, 1})
		got, r, err := ParseKey(id.Key(Range{1, 2}))
		if err != nil || got != id || r != (Range{1, 2}) {
			t.Errorf("%q: key gives %+v %v %v", name, got, r, err)
		}
		if got, _, temp, ok := parseName(id.temp(dataSuffix)); !ok || !temp || got != id {
			t.Errorf("%q: file name gives %+v", name, got)
		}
	}
	shut(t, s)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the store: %v %v", entries, err)
	}
	s = open(t, small(filepath.Join(dir, "store")))
	if n := len(s.Inventory("")); n != 14 {
		t.Errorf("%d of 14 were adopted", n)
	}
	for _, f := range s.Inventory("") {
		if err := s.Release(f.ID); err != nil {
			t.Error(err)
		}
	}
	checkEmpty(t, s)
	shut(t, s)
}

// diskBytes counts the bytes of all files of a job, or of all with "", unfinished
// ones and strangers included.
func (s *Store) diskBytes(job string) (n int64, err error) {
	dir := "."
	if job != "" {
		dir = escape(job)
	}
	err = fs.WalkDir(s.root.FS(), dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				n += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // removed while we walk
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("shuffle: bytes on disk: %w", err)
	}
	return n, nil
}

// checkEmpty: no byte and no folder is left.
func checkEmpty(t fataler, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.c.Dir)
	if err != nil || len(entries) != 0 {
		t.Fatalf("left in the store: %v %v", entries, err)
	}
	if n, err := s.diskBytes(""); n != 0 || err != nil {
		t.Fatalf("%d bytes are left: %v", n, err)
	}
}

// What a disk has lost is left out of the inventory and swept away, the rest of it
// included; List does not look.
//
// Fails if broken does not compare one of the two lengths, or takes a folder that is
// gone for a shortage.
func TestSweepAfterLosses(t *testing.T) {
	for _, x := range []struct {
		name string
		lose func(file func(suffix string) string) error
	}{
		{"data gone", func(file func(string) string) error { return os.Remove(file(dataSuffix)) }},
		{"index gone", func(file func(string) string) error { return os.Remove(file(indexSuffix)) }},
		{"data cut off", func(file func(string) string) error { return os.Truncate(file(dataSuffix), 9) }},
		{"index grown", func(file func(string) string) error { return os.Truncate(file(indexSuffix), 1<<20) }},
		{"folder gone", func(file func(string) string) error { return os.RemoveAll(filepath.Dir(file(dataSuffix))) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := open(t, small(t.TempDir()))
			o := randomOutput(seeded(t), 2, 100, 50)
			id := partitionOf("job", 1)
			id.Epoch++ // in a folder of its own
			var all, whole []PartitionID
			for _, p := range []PartitionID{partitionOf("job", 2), id, partitionOf("job", 0)} {
				o.make(t, s, p, 2<<10, None)
				all = append(all, p)
				if p != id {
					whole = append(whole, p)
				}
			}
			o.make(t, s, partitionOf("other", 0), 2<<10, None)
			if err := x.lose(func(suffix string) string { return filepath.Join(s.c.Dir, id.file(suffix)) }); err != nil {
				t.Fatal(err)
			}
			ids := func(list []Finished) (out []PartitionID) {
				for _, f := range list {
					out = append(out, f.ID)
				}
				return out
			}
			if got := ids(s.Inventory("job")); !slices.Equal(got, whole) {
				t.Errorf("inventory %v", got)
			}
			if got := ids(s.List("job")); !slices.Equal(got, all) {
				t.Errorf("list %v", got)
			}
			if err := s.Sweep("job"); err != nil {
				t.Error(err)
			}
			if got := ids(s.List("job")); !slices.Equal(got, whole) {
				t.Errorf("swept, list %v", got)
			}
			if _, err := os.Stat(filepath.Join(s.c.Dir, id.folder())); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left of it: %v", err)
			}
			shut(t, s)
		})
	}
}

// Nobody else may write what consumers believe, whatever the umask is.
// Fails if a folder or a file is made with more than the owner's bits.
func TestNobodyElseWritesPartitions(t *testing.T) {
	c := small(filepath.Join(t.TempDir(), "store"))
	s := open(t, c)
	randomOutput(seeded(t), 2, 100, 50).make(t, s, partitionOf("job", 0), 2<<10, None)
	files := 0
	err := filepath.WalkDir(c.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		if !e.IsDir() {
			files++
		}
		return err
	})
	if err != nil || files != 2 {
		t.Errorf("%d files, %v", files, err)
	}
	shut(t, s)
}

func TestRelease(t *testing.T) {
	s := open(t, small(t.TempDir()))
	o := randomOutput(seeded(t), 2, 100, 50)
	for _, job := range []string{"a", "b"} {
		for i := range 3 {
			o.make(t, s, partitionOf(job, i), 2<<10, None)
		}
	}
	g := buffer.NewGlobal(256, 64)
	w, err := s.Create(partitionOf("a", 9), WriterConfig{Subpartitions: 2, Memory: 2 << 10, Pool: g})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.write(w); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(partitionOf("a", 0), partitionOf("a", 9), partitionOf("never", 1), partitionOf("a", 0)); err != nil {
		t.Error(err)
	}
	if n := len(s.Inventory("a")); n != 2 {
		t.Errorf("%d of job a are left, want 2", n)
	}
	if err := s.ReleaseJob("a"); err != nil {
		t.Error(err)
	}
	if _, err := w.Finish(); err == nil {
		t.Error("a released partition was finished")
	}
	if err := s.ReleaseJob("none"); err != nil {
		t.Error(err)
	}
	if n, _ := s.diskBytes("a"); n != 0 || len(s.Inventory("a")) != 0 {
		t.Errorf("%d bytes of job a are left", n)
	}
	if n := len(s.Inventory("b")); n != 3 {
		t.Errorf("%d of job b are left, want 3", n)
	}
	o.expect(t, s, partitionOf("b", 2), Range{0, 1})
	if err := s.ReleaseJob("b"); err != nil {
		t.Error(err)
	}
	checkEmpty(t, s)
	shut(t, s)
}

// All channels of a gate, local ones, in turn: no more readers at a time than the
// window.
func TestWindow(t *testing.T) {
	s := open(t, small(t.TempDir()))
	o := randomOutput(seeded(t), 3, 100, 100)
	var in []Input
	for i := range 20 {
		o.make(t, s, partitionOf("job", i), 2<<10, LZ4)
		in = append(in, Input{Partition: partitionOf("job", i), Range: Range{1, 2}})
	}
	g := newGate(t, buffer.NewGlobal(256, 16), len(in), 0)
	defer g.Close()
	if err := s.Connect(context.Background(), g.Gate, in, 3); err != nil {
		t.Fatal(err)
	}
	list, err := g.drain()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		o.check(t, c, Range{1, 2})
	}
	if st := s.memory.Stats(); st.Peak > 3*s.c.ReadAhead+1 {
		t.Errorf("readers held %d segments, three at a time may have %d each", st.Peak, s.c.ReadAhead)
	}
	if err := s.Connect(context.Background(), g.Gate, in[:2], 1); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("2 inputs for 20 channels: %v", err)
	}
	shut(t, s)
}

// More readers than memory: they wait for each other, and all end.
//
// Fails if giveBack does not wake those that wait.
func TestReadersWaitForMemory(t *testing.T) {
	c := small(t.TempDir())
	c.ReadMemory = 4 * c.SegmentSize
	s := open(t, c)
	o := randomOutput(seeded(t), 4, 300, 100)
	o.make(t, s, partitionOf("job", 0), 4<<10, None)
	var in []Input
	for i := range 40 {
		in = append(in, Input{Partition: partitionOf("job", 0), Range: Range{i % 4, 3}})
	}
	g := newGate(t, buffer.NewGlobal(256, 16), len(in), 0)
	defer g.Close()
	if err := s.Connect(context.Background(), g.Gate, in, len(in)); err != nil {
		t.Fatal(err)
	}
	list, err := g.drain()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		o.check(t, c, in[i].Range)
	}
	if st := s.memory.Stats(); st.Peak > 4+1 { // one is in the hands of the consumer
		t.Errorf("readers held %d segments of 4", st.Peak)
	}
	shut(t, s)
}

// A reader at its end has no memory, though nobody has closed it yet.
//
// Fails if donePoolLocked waits for Close.
func TestEndedReaderHasNoMemory(t *testing.T) {
	c := small(t.TempDir())
	c.ReadMemory = c.ReadAhead * c.SegmentSize // one at a time
	s := open(t, c)
	o := randomOutput(seeded(t), 1, 100, 100)
	id := partitionOf("job", 0)
	o.make(t, s, id, 4<<10, None)
	g := newGate(t, buffer.NewGlobal(256, 16), 5, 0)
	defer g.Close()
	for ch := range 5 {
		r, err := s.Reader(id, Range{0, 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.AddSource(ch, r); err != nil {
			t.Fatal(err)
		}
	}
	list, err := g.drain()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		o.check(t, x, Range{0, 0})
	}
	g.Close()
	shut(t, s)
}

// The order of finishing outlives the process.
//
// Fails if adopt sorts by name alone.
func TestOldestAfterRestart(t *testing.T) {
	c := small(t.TempDir())
	s := open(t, c)
	o := randomOutput(seeded(t), 1, 10, 10)
	for i := range 3 {
		id := partitionOf("job", 2-i)
		o.make(t, s, id, 4<<10, None)
		at := time.Unix(int64(1000+i), 0) // clocks of file systems are coarse
		if err := os.Chtimes(filepath.Join(c.Dir, id.file(indexSuffix)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	s = open(t, c)
	for i := range 3 {
		if id, ok, err := s.DropOldest("job"); id != partitionOf("job", 2-i) || !ok || err != nil {
			t.Errorf("%v %v %v", id, ok, err)
		}
	}
	shut(t, s)
}

// A consumer that goes away in the middle leaves nothing behind, and neither
// does a store that closes under its readers.
func TestReadersGoAway(t *testing.T) {
	s := open(t, small(t.TempDir()))
	o := randomOutput(seeded(t), 2, 300, 100)
	o.make(t, s, partitionOf("job", 0), 4<<10, None)
	for i := range 20 {
		g := newGate(t, buffer.NewGlobal(256, 16), 1, 0)
		if err := s.Connect(context.Background(), g.Gate, []Input{{Partition: partitionOf("job", 0), Range: Range{0, 1}}}, 1); err != nil {
			t.Fatal(err)
		}
		for range i {
			if _, b, ok := g.Poll(); ok {
				b.Release()
			}
		}
		g.Close()
	}
	g := newGate(t, buffer.NewGlobal(256, 16), 1, 0)
	if err := s.Connect(context.Background(), g.Gate, []Input{{Partition: partitionOf("job", 0), Range: Range{0, 1}}}, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.drain(); !errors.Is(err, fs.ErrClosed) || errors.Is(err, exchange.ErrPartitionLost) {
		t.Errorf("the store was closed: %v", err)
	}
	g.Close()
	shut(t, s)
	if _, err := s.Create(partitionOf("job", 1), WriterConfig{Subpartitions: 1}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed store creates: %v", err)
	}
}
