package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/storage"

	"pgregory.net/rapid"
)

func drawSubtask(t *rapid.T, n int) SubtaskState {
	small := rapid.IntRange(0, 300)
	big := rapid.Int64Range(0, 1<<40)
	name := rapid.StringMatching(`[a-z]{1,8}(/[a-z]{1,3})?`)
	handle := func() Handle {
		h := Handle{CRC: rapid.Uint32().Draw(t, "crc")}
		if rapid.Bool().Draw(t, "inline") {
			h.Inline = rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "bytes")
			h.Length = int64(len(h.Inline))
		} else {
			h.File, h.Offset, h.Length = name.Draw(t, "file"), big.Draw(t, "offset"), big.Draw(t, "length")
		}
		return h
	}
	s := SubtaskState{
		Subtask: n, Finished: rapid.Bool().Draw(t, "finished"),
		InFlightBytes: big.Draw(t, "in flight"), StateBytes: big.Draw(t, "state"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "operators") {
		o := OperatorState{Operator: name.Draw(t, "operator")}
		for range rapid.IntRange(0, 2).Draw(t, "keyed") {
			k := KeyGroupHandle{Handle: handle(), First: small.Draw(t, "first")}
			for range rapid.IntRange(0, 5).Draw(t, "groups") {
				k.Offsets = append(k.Offsets, rapid.Int64Range(0, k.Length).Draw(t, "group offset"))
			}
			slices.Sort(k.Offsets)
			o.Keyed = append(o.Keyed, k)
		}
		for range rapid.IntRange(0, 2).Draw(t, "lists") {
			o.List = append(o.List, ListHandle{Handle: handle(), Name: name.Draw(t, "list"),
				Mode: ListMode(rapid.IntRange(0, 2).Draw(t, "mode")), Items: small.Draw(t, "items")})
		}
		s.Operators = append(s.Operators, o)
	}
	for range rapid.IntRange(0, 3).Draw(t, "files") {
		s.Files = append(s.Files, name.Draw(t, "channel file"))
	}
	channels := func() (cs []ChannelState) {
		for range rapid.IntRange(0, 4).Draw(t, "channels") {
			c := ChannelState{Gate: small.Draw(t, "gate"), Channel: small.Draw(t, "channel"), Bytes: big.Draw(t, "bytes")}
			if len(s.Files) > 0 {
				for range rapid.IntRange(0, 3).Draw(t, "extents") {
					e := Extent{File: int32(rapid.IntRange(0, len(s.Files)-1).Draw(t, "index")),
						Offset: rapid.Int64Range(0, 3).Draw(t, "extent"), Length: int32(rapid.IntRange(0, 3).Draw(t, "length")),
						CRC: rapid.Uint32().Draw(t, "crc")}
					c.Extents = append(c.Extents, e)
				}
			}
			cs = append(cs, c)
		}
		return cs
	}
	s.Inputs, s.Outputs = channels(), channels()
	return s
}

func drawMetadata(t *rapid.T) *Metadata {
	m := &Metadata{
		Checkpoint: rapid.Int64Range(0, 1<<50).Draw(t, "id"), Savepoint: rapid.Bool().Draw(t, "savepoint"),
		Unaligned: rapid.Bool().Draw(t, "unaligned"), Epoch: rapid.Int64Range(0, 9).Draw(t, "epoch"), TriggeredUnixNano: rapid.Int64().Draw(t, "time"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "vertices") {
		v := VertexState{ID: fmt.Sprint("v", i), Parallelism: 2, MaxParallelism: 128, FullyFinished: rapid.Bool().Draw(t, "fully")}
		v.Operators = rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "operator ids")
		v.Kinds = rapid.SliceOfN(rapid.String(), len(v.Operators), len(v.Operators)).Draw(t, "operator kinds")
		for j := range rapid.IntRange(0, 2).Draw(t, "subtasks") {
			v.Subtasks = append(v.Subtasks, drawSubtask(t, j))
		}
		m.Vertices = append(m.Vertices, v)
	}
	for range rapid.IntRange(0, 2).Draw(t, "coordinators") {
		m.Coordinators = append(m.Coordinators, CoordinatorState{rapid.String().Draw(t, "op"), rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "data")})
	}
	if b := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "results"); len(b) > 0 {
		m.Results = b
	}
	for range rapid.IntRange(0, 2).Draw(t, "edges") {
		m.Edges = append(m.Edges, EdgeState{"a->b#0", "a", "b", rapid.SampledFrom([]string{"hash", "rebalance"}).Draw(t, "partitioner"), 1, 2})
	}
	return m
}

func TestMetadataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMetadata(t)
		got, err := Decode("f", Encode(m))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m, got) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, m)
		}
	})
}

func TestSubtaskRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSubtask(t, 7)
		got, err := DecodeSubtask("ack", EncodeSubtask(&s))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&s, got) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, s)
		}
	})
}

// Every flipped bit and every cut is found, and the error names the file.
func TestDamageIsFound(t *testing.T) {
	b := Encode(rapid.Custom(drawMetadata).Example(3))
	bad := func(name string, b []byte) {
		t.Helper()
		_, err := Decode("chk-3/_metadata", b)
		if !IsCorrupt(err) || !strings.Contains(err.Error(), "chk-3/_metadata") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 1 << (i % 8)
		bad(fmt.Sprint("bit of byte ", i), c)
	}
	for n := range b {
		bad(fmt.Sprint("cut to ", n), b[:n])
	}
	bad("longer", append(bytes.Clone(b), 0))
	if _, err := DecodeSubtask("x", b); !IsCorrupt(err) {
		t.Errorf("metadata as subtask state: %v", err)
	}
}

func TestFutureVersion(t *testing.T) {
	b := Encode(&Metadata{})
	binary.LittleEndian.PutUint16(b[4:], 9)
	binary.LittleEndian.PutUint32(b[len(b)-4:], Checksum(b[:len(b)-4]))
	if _, err := Decode("f", b); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("got %v", err)
	}
}

// fix makes the outer frame valid, so that fuzzing reaches the fields.
func fix(magic string, b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < frameHeader+frameTrailer {
		return b
	}
	copy(b, magic)
	binary.LittleEndian.PutUint16(b[4:], version)
	binary.LittleEndian.PutUint32(b[len(b)-4:], Checksum(b[:len(b)-4]))
	return b
}

func FuzzDecode(f *testing.F) {
	for i := range 5 {
		f.Add(Encode(rapid.Custom(drawMetadata).Example(i)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Decode("f", b)
		m, err := Decode("f", fix(metadataMagic, b))
		if err != nil {
			if !IsCorrupt(err) {
				t.Fatalf("not a corruption: %v", err)
			}
			return
		}
		again, err := Decode("f", Encode(m))
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("what was decoded does not survive: %v", err)
		}
		Files(m)
	})
}

func FuzzDecodeSubtask(f *testing.F) {
	for i := range 5 {
		s := rapid.Custom(func(t *rapid.T) SubtaskState { return drawSubtask(t, 1) }).Example(i)
		f.Add(EncodeSubtask(&s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeSubtask("f", fix(subtaskMagic, b)); err != nil && !IsCorrupt(err) {
			t.Fatalf("not a corruption: %v", err)
		}
	})
}

// One edge at parallelism 160 has 25 600 channels on each side.
func TestMetadataIsCompact(t *testing.T) {
	m := wide(160)
	b := Encode(m)
	if per := float64(len(b)) / (2 * 160 * 160); per > 18 {
		t.Errorf("%.1f bytes a channel", per)
	}
}

func wide(p int) *Metadata {
	m := &Metadata{Checkpoint: 12, Unaligned: true}
	v := VertexState{ID: "map", Parallelism: p, MaxParallelism: 1024, Operators: []string{"map"}}
	for i := range p {
		s := SubtaskState{Subtask: i, Files: []string{fmt.Sprintf("inflight-map-%d", i/5)}}
		off := int64(8)
		for j := range p {
			c := ChannelState{Channel: j, Bytes: 32768 * 4, Extents: []Extent{{Offset: off, Length: 32768 * 4, CRC: uint32(i * j * 77777)}}}
			off += 32768 * 4
			s.Inputs = append(s.Inputs, c)
		}
		s.Outputs = s.Inputs
		m.Vertices = append(m.Vertices[:0], v)
		v.Subtasks = append(v.Subtasks, s)
		m.Vertices[0] = v
	}
	return m
}

func BenchmarkEncode(b *testing.B) {
	m := wide(160)
	b.ReportAllocs()
	for b.Loop() {
		Encode(m)
	}
}

func BenchmarkDecode(b *testing.B) {
	data := Encode(wide(160))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Decode("f", data); err != nil {
			b.Fatal(err)
		}
	}
}

func TestFolders(t *testing.T) {
	for name, want := range map[string]string{
		"chk-7":            "7 false true",
		"chk-0":            "0 false true",
		"savepoint-12-abc": "12 true true",
		"savepoint-12-":    "0 false false",
		"savepoint-12":     "0 false false",
		"chk-":             "0 false false",
		"chk--1":           "0 false false",
		"chk-07":           "0 false false",
		"chk-7x":           "0 false false",
		"other":            "0 false false",
	} {
		id, savepoint, ok := ParseFolder(name)
		if got := fmt.Sprint(id, savepoint, ok); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	a, b := SavepointFolder(3), SavepointFolder(3)
	if a == b {
		t.Error("two savepoints share a folder")
	}
	if id, savepoint, ok := ParseFolder(a); id != 3 || !savepoint || !ok {
		t.Errorf("%s is not read back", a)
	}
}

// checkpoint writes a whole checkpoint with one data file.
func checkpoint(t *testing.T, s storage.Store, id int64, data string) (string, *Metadata) {
	t.Helper()
	folder := Folder(id)
	w := NewStateWriter(s, folder, "state-0", 4)
	io.WriteString(w, data)
	w.EndSection()
	io.WriteString(w, "second")
	w.EndSection()
	hs, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	cw, err := s.Create(folder + "/inflight-0")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(cw, "....channel")
	if err := cw.Commit(); err != nil {
		t.Fatal(err)
	}
	m := &Metadata{Checkpoint: id, Vertices: []VertexState{{ID: "v", Parallelism: 1, MaxParallelism: 2, Operators: []string{"v"}, Kinds: []string{"map"},
		Subtasks: []SubtaskState{{Operators: []OperatorState{{Operator: "v",
			Keyed: []KeyGroupHandle{{Handle: hs[0], Offsets: []int64{0, 2}}},
			List:  []ListHandle{{Handle: hs[1], Name: "l", Items: 1}}}},
			Files:  []string{"inflight-0"},
			Inputs: []ChannelState{{Bytes: 7, Extents: []Extent{{Offset: 4, Length: 7, CRC: Checksum([]byte("channel"))}}}},
		}}}}}
	if err := Write(s, folder, m); err != nil {
		t.Fatal(err)
	}
	return folder, m
}

func TestWriteAndLoad(t *testing.T) {
	s := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	folder, m := checkpoint(t, s, 9, "keyed state")
	got, err := Load(s, folder)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := Verify(s, folder, got); err != nil {
		t.Error(err)
	}
	k := &got.Vertices[0].Subtasks[0].Operators[0].Keyed[0]
	if b, err := ReadHandle(s, folder, &k.Handle); err != nil || string(b) != "keyed state" {
		t.Errorf("%q, %v", b, err)
	}
	if off, n, ok := k.Group(1); off != 2 || n != 9 || !ok {
		t.Errorf("group 1: %d, %d, %t", off, n, ok)
	}
	if off, n, ok := k.Group(0); off != 0 || n != 2 || !ok {
		t.Errorf("group 0: %d, %d, %t", off, n, ok)
	}
	if _, _, ok := k.Group(2); ok || k.Last() != 1 {
		t.Error("group 2 was found")
	}
	if _, err := Load(s, "chk-10"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing checkpoint: %v", err)
	}
}

func TestSmallStateIsInline(t *testing.T) {
	s := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	w := NewStateWriter(s, "chk-1", "f", 10)
	io.WriteString(w, "abc")
	w.EndSection()
	w.EndSection() // an empty one
	io.WriteString(w, "defghij")
	w.EndSection()
	hs, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"abc", "", "defghij"} {
		if b, err := ReadHandle(s, "chk-1", &hs[i]); err != nil || string(b) != want || hs[i].File != "" {
			t.Errorf("section %d: %q, %v, file %q", i, b, err, hs[i].File)
		}
	}
	if names, _ := s.List(""); len(names) > 0 {
		t.Errorf("files were made: %v", names)
	}
	// A checkpoint without a data file completes as well.
	if err := Write(s, "chk-1", &Metadata{Checkpoint: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(s, "chk-1"); err != nil {
		t.Error(err)
	}
}

func TestLargeStateIsOneFile(t *testing.T) {
	s := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	w := NewStateWriter(s, "chk-1", "f", 100)
	var want [][]byte
	for i := range 7 {
		data := bytes.Repeat([]byte{byte(i)}, i*60000)
		for len(data) > 0 {
			n := min(len(data), 777)
			w.Write(data[:n])
			data = data[n:]
		}
		want = append(want, bytes.Repeat([]byte{byte(i)}, i*60000))
		w.EndSection()
	}
	hs, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if b, err := ReadHandle(s, "chk-1", &hs[i]); err != nil || !bytes.Equal(b, want[i]) {
			t.Errorf("section %d: %d bytes, %v", i, len(b), err)
		}
	}
}

func TestStateWriterFailure(t *testing.T) {
	f := storage.NewFaulty(storage.OpenMemory(t.Name()))
	defer storage.DropMemory(t.Name())
	w := NewStateWriter(f, "chk-1", "f", 0)
	io.WriteString(w, "x")
	w.EndSection()
	f.Set(storage.FaultFull, 0)
	if _, err := w.Commit(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	f.Clear()
	if names, _ := f.List(""); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// The damaged file is named, whichever it is.
func TestVerifyNamesTheFile(t *testing.T) {
	for _, file := range []string{"state-0", "inflight-0"} {
		for how, damage := range map[string]func(path string, b []byte) error{
			"missing": func(p string, b []byte) error { return os.Remove(p) },
			"cut":     func(p string, b []byte) error { return os.WriteFile(p, b[:len(b)-1], 0o666) },
			"flipped": func(p string, b []byte) error { b[len(b)-2] ^= 4; return os.WriteFile(p, b, 0o666) },
		} {
			dir := t.TempDir()
			s, err := storage.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			folder, m := checkpoint(t, s, 1, "keyed state")
			p := filepath.Join(dir, folder, file)
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(p, b); err != nil {
				t.Fatal(err)
			}
			err = Verify(s, folder, m)
			if e, ok := errors.AsType[*CorruptError](err); !ok || e.File != folder+"/"+file {
				t.Errorf("%s %s: %v", file, how, err)
			}
			if err := Check(s, folder, m); (how == "flipped") != (err == nil) {
				t.Errorf("Check of %s %s: %v", file, how, err)
			}
		}
	}
}

func TestLoadRefusesAnotherCheckpoint(t *testing.T) {
	s := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	s.Put("chk-4/_metadata", Encode(&Metadata{Checkpoint: 5}))
	if _, err := Load(s, "chk-4"); !IsCorrupt(err) {
		t.Errorf("got %v", err)
	}
}

func TestNewestAndLocate(t *testing.T) {
	dir := t.TempDir()
	s, err := storage.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Locate(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty store: %v", err)
	}
	for _, id := range []int64{2, 10, 9} {
		checkpoint(t, s, id, "data")
	}
	sp := SavepointFolder(11)
	if err := Write(s, sp, &Metadata{Checkpoint: 11, Savepoint: true}); err != nil {
		t.Fatal(err)
	}
	s.Put("chk-12/state", nil)            // never completed
	s.Put("other/_metadata", []byte("x")) // not ours
	got, err := Newest(s)
	if want := []string{sp, "chk-10", "chk-9", "chk-2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, c := range []struct{ url, folder string }{
		{dir, sp}, {dir + "/", sp}, {"file://" + dir + "/chk-9", "chk-9"},
		{dir + "/chk-2/", "chk-2"}, {dir + "/chk-2/_metadata", "chk-2"}, {dir + "/" + sp, sp},
	} {
		s, folder, err := Locate(c.url)
		if err != nil || folder != c.folder {
			t.Errorf("%s: %q, %v", c.url, folder, err)
			continue
		}
		if _, err := Load(s, folder); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := Locate(dir + "/missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing path: %v", err)
	}
}

// A crash at any point leaves the checkpoint complete or absent, never half.
func TestDurableOrder(t *testing.T) {
	boom := errors.New("boom")
	m := storage.OpenMemory(t.Name())
	defer storage.DropMemory(t.Name())
	defer storage.DropMemory(t.Name() + "/crashed")
	seen := map[bool]int{}
	crash := func(where string) {
		for _, survives := range []func(string) bool{
			nil,
			func(n string) bool { return !strings.Contains(n, MetadataFile) },
			func(n string) bool { return strings.Contains(n, MetadataFile) },
		} {
			c := m.CrashClone(t.Name()+"/crashed", survives)
			meta, err := Load(c, "chk-1")
			seen[err == nil]++
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v", where, err)
				}
				continue
			}
			if err := Verify(c, "chk-1", meta); err != nil {
				t.Errorf("%s: the metadata survived, its data did not: %v", where, err)
			}
		}
	}
	for _, where := range []string{"storage/commit", "storage/committed", "storage/sync-dir", "snapshot/before-metadata",
		"storage/put", "storage/put-visible", "storage/put-done", "snapshot/after-metadata"} {
		p, err := failpoint.Lookup(where)
		if err != nil {
			t.Fatal(err)
		}
		hit := false
		disarm := p.Arm(func(int, string) error { hit = true; crash(where); return nil })
		m = storage.OpenMemory(t.Name() + where)
		defer storage.DropMemory(m.URL()[len("mem://"):])
		checkpoint(t, m, 1, "keyed state")
		disarm()
		if !hit {
			t.Errorf("%s was not passed", where)
		}
	}
	crash("at the end")
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("complete %d times, absent %d times", seen[true], seen[false])
	}

	// Failing before the metadata is certain, failing after it is not.
	disarm := beforeMetadata.Arm(func(int, string) error { return boom })
	err := Write(m, "chk-2", &Metadata{Checkpoint: 2})
	disarm()
	if !errors.Is(err, boom) || IsUnknownOutcome(err) {
		t.Errorf("before: %v", err)
	}
	disarm = afterMetadata.Arm(func(int, string) error { return boom })
	err = Write(m, "chk-2", &Metadata{Checkpoint: 2})
	disarm()
	if !errors.Is(err, boom) || !IsUnknownOutcome(err) {
		t.Errorf("after: %v", err)
	}
}
