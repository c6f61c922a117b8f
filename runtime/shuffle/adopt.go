package shuffle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/buffer"
)

// Adopted is what Open found in the folder.
type Adopted struct {
	Partitions int       // finished ones, which the store now has
	Unfinished int       // files of partitions that were being written or deleted: removed
	Damaged    []Damaged // removed, too
	Foreign    []string  // files that no store wrote: left alone
}

// Damaged is a finished partition that cannot be read.
type Damaged struct {
	ID  PartitionID
	Err error
}

// Open opens a folder as the store of a worker, adopts what is finished in it,
// and removes what is not. No other process may use the folder.
func Open(c Config) (s *Store, a Adopted, err error) {
	c = c.withDefaults()
	if c.SegmentSize <= 2*blockHead {
		return nil, a, fmt.Errorf("shuffle: segments of %d bytes are too small: %w", c.SegmentSize, fs.ErrInvalid)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, a, fmt.Errorf("shuffle: folder %s: %w", c.Dir, err)
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, a, fmt.Errorf("shuffle: folder %s: %w", c.Dir, err)
	}
	s = &Store{c: c, root: root, memory: buffer.NewGlobal(c.SegmentSize, c.ReadMemory/c.SegmentSize)}
	s.mu.parts = map[PartitionID]*partition{}
	s.mu.writing = map[PartitionID]*Writer{}
	s.mu.readers = map[*Reader]bool{}
	s.files = newFiles(root, c.MaxOpen)
	if a, err = s.adopt(); err != nil {
		root.Close()
		return nil, a, fmt.Errorf("shuffle: folder %s: %w", c.Dir, err)
	}
	s.pump = newPump(c.Threads, c.SegmentSize)
	return s, a, nil
}

// found are the files of one partition.
type found struct {
	id          PartitionID
	data, index bool
	at          time.Time
}

func (s *Store) adopt() (a Adopted, err error) {
	parts := map[PartitionID]*found{}
	err = fs.WalkDir(s.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		id, suffix, temp, ok := parseName(name)
		switch {
		case !ok || !e.Type().IsRegular():
			a.Foreign = append(a.Foreign, name)
		case temp:
			a.Unfinished++
			err = s.remove(name)
		default:
			f := parts[id]
			if f == nil {
				f = &found{id: id}
				parts[id] = f
			}
			if suffix == dataSuffix {
				f.data = true
				break
			}
			f.index = true
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				f.at = info.ModTime()
			}
		}
		return err
	})
	if err != nil {
		return a, err
	}
	list := make([]*found, 0, len(parts))
	for _, f := range parts {
		list = append(list, f)
	}
	slices.SortFunc(list, func(x, y *found) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.id.String(), y.id.String()))
	})
	for _, f := range list {
		if !f.index {
			a.Unfinished++
			if err := s.remove(f.id.file(dataSuffix)); err != nil {
				return a, err
			}
			s.prune(f.id)
			continue
		}
		if err := s.adoptOne(f.id); err != nil {
			if shortage(err) {
				return a, err
			}
			a.Damaged = append(a.Damaged, Damaged{f.id, err})
			if err := s.remove(f.id.file(indexSuffix), f.id.file(dataSuffix)); err != nil {
				return a, err
			}
			s.prune(f.id)
			continue
		}
		a.Partitions++
	}
	s.pruneAll()
	return a, nil
}

// parseName takes the path of a file below the store apart.
func parseName(name string) (id PartitionID, suffix string, temp, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return id, "", false, false
	}
	base, temp := strings.CutPrefix(parts[2], tempPrefix)
	suffix = dataSuffix
	stem, ok := strings.CutSuffix(base, suffix)
	if !ok {
		suffix = indexSuffix
		if stem, ok = strings.CutSuffix(base, suffix); !ok {
			return id, "", false, false
		}
	}
	id, ok = parseFile(parts[0], parts[1], stem)
	return id, suffix, temp, ok
}

func (s *Store) adoptOne(id PartitionID) error {
	x, bytes, records, err := s.checkFiles(id)
	if err != nil {
		return err
	}
	x.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(Finished{
		ID: id, Bytes: bytes, Records: records, Watermark: x.tail.watermark, Checksum: x.crc, Disk: x.size + x.tail.data,
	}, x.head, x.identity, x.tail.data)
	return nil
}

// checkFiles checks the whole index, and header, length and footer of the data.
// The caller closes the index.
func (s *Store) checkFiles(id PartitionID) (x *index, bytes, records []int64, err error) {
	f, err := s.root.Open(id.file(indexSuffix))
	if err != nil {
		return nil, nil, nil, err
	}
	if x, err = openIndex(f); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	if x.head.id != id {
		return x, nil, nil, fmt.Errorf("the index is that of %s", x.head.id)
	}
	if x.head.block > s.block() {
		return x, nil, nil, fmt.Errorf("blocks of %d bytes, segments here have room for %d", x.head.block, s.block())
	}
	if bytes, records, err = x.verify(); err != nil {
		return x, nil, nil, err
	}
	d, err := openData(s.root, id, x.identity, x.tail.data)
	if err != nil {
		return x, nil, nil, err
	}
	return x, bytes, records, d.Close()
}

// openData opens a data file and checks its frame.
func openData(root *os.Root, id PartitionID, identity uint32, length int64) (f *os.File, err error) {
	name := id.file(dataSuffix)
	if err := beforeOpen.Hit(name); err != nil {
		return nil, err
	}
	if f, err = root.Open(name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			f = nil
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return f, err
	case !info.Mode().IsRegular():
		return f, fmt.Errorf("%s is no regular file", name)
	case info.Size() != length || length < 0:
		return f, fmt.Errorf("%s has %d bytes, the index says %d", name, info.Size(), length)
	}
	b := make([]byte, min(length, fixedHead+maxNames+4))
	if _, err := f.ReadAt(b, 0); err != nil {
		return f, err
	}
	_, got, err := readHeader(b, dataMagic)
	if err != nil {
		return f, fmt.Errorf("%s: %w", name, err)
	}
	if got != identity {
		return f, fmt.Errorf("%s does not belong to its index", name)
	}
	if length < dataFooter {
		return f, errors.New("torn data file: no footer")
	}
	b = b[:dataFooter]
	if _, err := f.ReadAt(b, length-dataFooter); err != nil {
		return f, err
	}
	return f, checkDataFooter(b, length-dataFooter, identity)
}

// pruneAll removes folders that are empty.
func (s *Store) pruneAll() {
	for _, job := range s.folders(".") {
		for _, epoch := range s.folders(job) {
			s.root.Remove(job + "/" + epoch)
		}
		s.root.Remove(job)
	}
}

func (s *Store) folders(dir string) (names []string) {
	entries, _ := fs.ReadDir(s.root.FS(), dir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
