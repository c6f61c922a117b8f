package shuffle

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"benchrun/runtime/exchange"
)

// damaged writes a partition of a few blocks and regions, and returns its folder
// and the bytes of its files.
func damaged(t *testing.T, o *output, codec Codec) (c Config, id PartitionID, files map[string][]byte) {
	t.Helper()
	c = small(t.TempDir())
	s := open(t, c)
	id = partitionOf("job", 0)
	o.make(t, s, id, 1<<10, codec)
	shut(t, s)
	files = map[string][]byte{}
	for _, suffix := range []string{dataSuffix, indexSuffix} {
		name := filepath.Join(c.Dir, id.file(suffix))
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return c, id, files
}

// lost: an error says that this partition has to be made again.
func lost(err error, id PartitionID) bool {
	got, is := Lost(err)
	return is && got == id && errors.Is(err, exchange.ErrPartitionLost)
}

// A flipped bit, anywhere in either file, before or after the store opened
// it: never a wrong record, always a lost partition.
//
// Fails if readBlock does not compare the checksum, if openData does not check
// the footer, or if index.verify leaves out the totals.
func TestFlippedBits(t *testing.T) {
	rnd := seeded(t)
	for _, codec := range []Codec{None, LZ4, Zstd} {
		o := randomOutput(rnd, 3, 12, 60)
		c, id, files := damaged(t, o, codec)
		for name, good := range files {
			step := 3
			if codec != None { // the frame is the same
				step = 11
			}
			for i := rnd.IntN(step); i < len(good); i += step {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << rnd.IntN(8)

				// The disk turns bad under the store.
				s := open(t, c)
				put(t, name, bad)
				if err := s.Verify(id, true); !lost(err, id) {
					t.Fatalf("%v: byte %d of %s: full check says %v", codec, i, filepath.Base(name), err)
				}
				if ch, err := read(t, s, id, Range{0, 2}); err == nil {
					o.check(t, ch, Range{0, 2}) // what it does not read may be bad
				} else if !lost(err, id) {
					t.Fatalf("%v: byte %d of %s: reader says %v", codec, i, filepath.Base(name), err)
				}
				shut(t, s)

				// It was bad when the store was opened.
				s, a, err := Open(c)
				if err != nil {
					t.Fatal(err)
				}
				if a.Partitions+len(a.Damaged) != 1 {
					t.Fatalf("%v: byte %d of %s: opened with %+v", codec, i, filepath.Base(name), a)
				}
				if a.Partitions == 1 {
					if ch, err := read(t, s, id, Range{0, 2}); err == nil {
						o.check(t, ch, Range{0, 2})
					} else if !lost(err, id) {
						t.Fatal(err)
					}
					if err := s.Verify(id, true); !lost(err, id) {
						t.Fatalf("byte %d of %s was adopted: %v", i, filepath.Base(name), err)
					}
				} else {
					checkEmpty(t, s)
				}
				shut(t, s)
				for n, b := range files {
					put(t, n, b)
				}
			}
		}
	}
}

// A file that was cut somewhere, or has something behind its end.
func TestTornFiles(t *testing.T) {
	rnd := seeded(t)
	o := randomOutput(rnd, 2, 8, 100)
	c, id, files := damaged(t, o, None)
	for name, good := range files {
		for n := 0; n < len(good)+2; n++ {
			if n < len(good)-40 { // every length within the footer
				n += rnd.IntN(9)
			}
			if n == len(good) {
				continue
			}
			s := open(t, c)
			put(t, name, slices.Concat(good, []byte("x"))[:min(n, len(good)+1)])
			{
				if err := s.Verify(id, false); !lost(err, id) {
					t.Fatalf("%d of %d bytes of %s: %v", n, len(good), filepath.Base(name), err)
				}
			}
			if len(s.Inventory("")) != 0 {
				t.Fatalf("%d of %d bytes of %s are in the inventory", n, len(good), filepath.Base(name))
			}
			if _, err := read(t, s, id, Range{0, 1}); !lost(err, id) {
				t.Fatalf("%d of %d bytes of %s: reader says %v", n, len(good), filepath.Base(name), err)
			}
			shut(t, s)
			s, a, err := Open(c)
			if err != nil || len(a.Damaged) != 1 {
				t.Fatalf("%d of %d bytes of %s: %+v %v", n, len(good), filepath.Base(name), a, err)
			}
			checkEmpty(t, s)
			shut(t, s)
			for n, b := range files {
				put(t, n, b)
			}
		}
	}
}

// Blocks that are whole, but in each other's place, are damage to a reader, too.
//
// Fails if the checksum of a block leaves out its offset.
func TestMovedBlocks(t *testing.T) {
	o := randomOutput(seeded(t), 1, 40, 100)
	c := small(t.TempDir())
	s := open(t, c)
	id := partitionOf("job", 0)
	o.make(t, s, id, 64<<10, None)
	name := filepath.Join(c.Dir, id.file(dataSuffix))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	h := header{id: id}
	first := b[h.size():]
	a := bytes.Clone(first[:c.SegmentSize]) // a full block and its head
	copy(first, first[c.SegmentSize:2*c.SegmentSize])
	copy(first[c.SegmentSize:], a)
	put(t, name, b)
	if _, err := read(t, s, id, Range{0, 0}); !lost(err, id) {
		t.Error(err)
	}
	if err := s.Verify(id, true); !lost(err, id) {
		t.Error(err)
	}
	if err := s.Verify(id, false); err != nil {
		t.Errorf("the frame is good: %v", err)
	}
	shut(t, s)
}

// Files that are whole, but of something else, are no partition.
//
// Fails if checkFiles does not compare the id, or if openData compares the identity
// neither in the header nor in the footer.
func TestFilesOfAnother(t *testing.T) {
	o := randomOutput(seeded(t), 2, 30, 50)
	for name, damage := range map[string]func(dir string, a, b PartitionID) error{
		"both files": func(dir string, a, b PartitionID) error {
			return errors.Join(rename(dir, a, b, dataSuffix), rename(dir, a, b, indexSuffix))
		},
		"data": func(dir string, a, b PartitionID) error { return rename(dir, a, b, dataSuffix) },
	} {
		c := small(t.TempDir())
		s := open(t, c)
		a, b := partitionOf("job", 0), partitionOf("job", 0)
		b.Epoch++ // the same work for another master
		o.make(t, s, a, 1<<10, None)
		o.make(t, s, b, 1<<10, None)
		if err := damage(c.Dir, a, b); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, s, b, Range{0, 1}); !lost(err, b) {
			t.Errorf("%s: %v", name, err)
		}
		shut(t, s)
		s, found, err := Open(c)
		if err != nil || found.Partitions != 0 || len(found.Damaged) == 0 {
			t.Errorf("%s: %+v %v", name, found, err)
		}
		checkEmpty(t, s)
		shut(t, s)
	}
}

func rename(dir string, a, b PartitionID, suffix string) error {
	return os.Rename(filepath.Join(dir, a.file(suffix)), filepath.Join(dir, b.file(suffix)))
}

func put(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Files that no store wrote stay, and are told.
func TestForeignFilesStay(t *testing.T) {
	c := small(t.TempDir())
	names := []string{"notes.txt", "job/3/readme", "job/3/x.data", "job/03/a~1~1.data", "job/x/a~1~1.index", "a/b/c/d~1~1.data"}
	for _, n := range names {
		put(t, filepath.Join(c.Dir, n), []byte(n))
	}
	s, a, err := Open(c)
	if err != nil || len(a.Foreign) != len(names) || a.Unfinished != 0 {
		t.Errorf("%+v %v", a, err)
	}
	shut(t, s)
	for _, n := range names {
		if b, err := os.ReadFile(filepath.Join(c.Dir, n)); err != nil || string(b) != n {
			t.Errorf("%s: %q %v", n, b, err)
		}
	}
}
