package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
)

// Config describes the store of one worker.
type Config struct {
	Dir         string // made if it is missing; belongs to the store
	SegmentSize int    // of the buffers that readers hand out; 0: 32 KiB
	ReadMemory  int    // bytes for all readers, at least a segment; 0: 64 MiB
	ReadAhead   int    // segments that a reader may hold; 0: 4, or what ReadMemory has
	MaxOpen     int    // data files open for reading; 0: 64
	Threads     int    // goroutines that read; 0: 2
	Sync        bool   // finished partitions survive the machine, too
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.SegmentSize, 32<<10)
	def(&c.ReadMemory, 64<<20)
	def(&c.ReadAhead, 4)
	def(&c.MaxOpen, 64)
	def(&c.Threads, 2)
	c.MaxOpen = max(c.MaxOpen, c.Threads)
	c.ReadMemory = max(c.ReadMemory, c.SegmentSize)
	c.ReadAhead = min(c.ReadAhead, c.ReadMemory/c.SegmentSize)
	return c
}

// Finished describes a finished partition. Its slices must not be changed.
type Finished struct {
	ID        PartitionID
	Bytes     []int64 // of records, uncompressed, by subpartition
	Records   []int64
	Watermark int64
	Checksum  uint32 // of the index, which has those of the data
	Disk      int64  // bytes of both files
}

// partition is a finished partition of a store.
type partition struct {
	Finished
	number   int    // order of finishing
	name     string // of the data file
	head     header
	identity uint32
	length   int64 // of the data file
	dropped  bool  // by DropOldest; under Store.mu
	gone     bool  // its file is not kept open; under files.mu
}

// Store is the folder of blocking partitions of one worker. All methods are safe
// for concurrent use.
type Store struct {
	c      Config
	root   *os.Root
	memory *buffer.Global
	files  *files
	pump   *pump

	mu struct {
		sync.Mutex
		parts   map[PartitionID]*partition
		writing map[PartitionID]*Writer // nil while it is being made
		readers map[*Reader]bool
		waiting []*Reader // for memory
		number  int
		closed  bool
	}
}

// block is the largest number of raw bytes in a block, so that one fits a
// segment together with its head.
func (s *Store) block() int { return s.c.SegmentSize - blockHead }

// Create starts a partition.
func (s *Store) Create(id PartitionID, c WriterConfig) (*Writer, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	if c.Subpartitions < 1 || c.Subpartitions > 1<<20 {
		return nil, fmt.Errorf("shuffle: partition %s: %d subpartitions, between 1 and 2^20 are possible: %w", id, c.Subpartitions, fs.ErrInvalid)
	}
	s.mu.Lock()
	_, writing := s.mu.writing[id]
	exists, closed := writing || s.mu.parts[id] != nil, s.mu.closed
	if !exists && !closed {
		s.mu.writing[id] = nil
	}
	s.mu.Unlock()
	switch {
	case closed:
		return nil, fmt.Errorf("shuffle: partition %s: %w", id, fs.ErrClosed)
	case exists:
		return nil, fmt.Errorf("shuffle: partition %s: %w", id, fs.ErrExist)
	}
	w, err := newWriter(s, id, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.mu.writing, id)
		return nil, err
	}
	if _, ok := s.mu.writing[id]; ok { // else it was released meanwhile
		s.mu.writing[id] = w
	}
	return w, nil
}

// createTemp opens a new file of a partition.
func (s *Store) createTemp(id PartitionID, suffix string) (f *os.File, err error) {
	for range 3 { // the release of a neighbour removes folders that became empty
		if err = s.root.MkdirAll(id.folder(), 0o777); err != nil {
			continue
		}
		f, err = s.root.OpenFile(id.temp(suffix), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, err
}

// seal gives a written file its name.
func (s *Store) seal(f *os.File, name string) error {
	if s.c.Sync {
		if err := beforeSync.Hit(name); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("shuffle: sync %s: %w", name, err)
		}
		if err := afterSync.Hit(name); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("shuffle: close %s: %w", name, err)
	}
	if err := beforeRename.Hit(name); err != nil {
		return err
	}
	dir, base := cutLast(name)
	if err := s.root.Rename(dir+"/"+tempPrefix+base, name); err != nil {
		return fmt.Errorf("shuffle: rename to %s: %w", name, err)
	}
	return afterRename.Hit(name)
}

func cutLast(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	return name[:i], name[i+1:]
}

// publish lists a partition whose files have their names.
func (s *Store) publish(p Finished, w *Writer) error {
	if s.c.Sync {
		dirs := []string{p.ID.folder(), escape(p.ID.Job), "."}
		for _, d := range dirs {
			if err := s.syncFolder(d); err != nil {
				return fmt.Errorf("shuffle: sync folder %s: %w", d, err)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x, ok := s.mu.writing[p.ID]; !ok || x != w {
		return fmt.Errorf("partition %s: %w", p.ID, ErrReleased)
	}
	delete(s.mu.writing, p.ID)
	s.addLocked(p, w.head, w.data.identity, p.Disk-w.index.size)
	return nil
}

func (s *Store) syncFolder(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// addLocked lists a partition. REQUIRES s.mu.
func (s *Store) addLocked(p Finished, h header, identity uint32, length int64) {
	s.mu.number++
	s.mu.parts[p.ID] = &partition{Finished: p, number: s.mu.number, name: p.ID.file(dataSuffix), head: h, identity: identity, length: length}
}

// discard removes what an unfinished partition has on disk.
func (s *Store) discard(id PartitionID) error {
	err := s.remove(id.file(indexSuffix), id.file(dataSuffix), id.temp(indexSuffix), id.temp(dataSuffix))
	s.prune(id)
	s.mu.Lock()
	delete(s.mu.writing, id)
	s.mu.Unlock()
	return err
}

// remove deletes files in this order; a missing one is no error.
func (s *Store) remove(names ...string) error {
	var errs []error
	for _, n := range names {
		err := beforeDelete.Hit(n)
		if err == nil {
			if err = s.root.Remove(n); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err == nil {
			err = afterDelete.Hit(n)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("shuffle: delete %s: %w", n, err))
		}
	}
	return errors.Join(errs...)
}

// prune removes the folders of a partition that became empty. One that is not
// refuses.
func (s *Store) prune(id PartitionID) {
	if s.root.Remove(id.folder()) == nil {
		s.root.Remove(escape(id.Job))
	}
}

// Inventory lists the finished partitions of a job, or of all with "", in the order
// in which they were finished. One whose files are gone or have another length
// is left out.
func (s *Store) Inventory(job string) []Finished {
	var list []*partition
	s.mu.Lock()
	for id, p := range s.mu.parts {
		if job == "" || id.Job == job {
			list = append(list, p)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *partition) int { return a.number - b.number })
	var out []Finished
	for _, p := range list {
		if s.whole(p) {
			out = append(out, p.Finished)
		}
	}
	return out
}

// whole looks whether a partition's files are there at their lengths.
func (s *Store) whole(p *partition) bool {
	data, err := s.root.Stat(p.ID.file(dataSuffix))
	if err != nil || data.Size() != p.length {
		return false
	}
	index, err := s.root.Stat(p.ID.file(indexSuffix))
	return err == nil && index.Size() == p.Disk-p.length
}

// Sweep deletes what is left of partitions of a job that Inventory leaves out.
func (s *Store) Sweep(job string) error {
	var broken []PartitionID
	s.mu.Lock()
	list := make([]*partition, 0, len(s.mu.parts))
	for id, p := range s.mu.parts {
		if id.Job == job {
			list = append(list, p)
		}
	}
	s.mu.Unlock()
	for _, p := range list {
		if !s.whole(p) {
			broken = append(broken, p.ID)
		}
	}
	return s.Release(broken...)
}

// Release deletes partitions, whether the store knows them or not. One that is being
// written stays with its writer. After an error the same call can be repeated.
func (s *Store) Release(ids ...PartitionID) error {
	var errs []error
	for _, id := range ids {
		if err := id.check(); err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		_, writing := s.mu.writing[id]
		p := s.mu.parts[id]
		delete(s.mu.parts, id)
		s.mu.Unlock()
		if writing {
			continue
		}
		if p != nil {
			s.files.forget(p)
		}
		if err := s.remove(id.file(indexSuffix), id.file(dataSuffix)); err != nil {
			errs = append(errs, err)
			continue
		}
		s.prune(id)
	}
	return errors.Join(errs...)
}

// ReleaseJob deletes everything of a job. Writers of it that are still at work
// fail in the end.
func (s *Store) ReleaseJob(job string) error {
	if err := (PartitionID{Job: job, Dataset: "-"}).check(); err != nil {
		return err
	}
	var gone []*partition
	s.mu.Lock()
	for id, p := range s.mu.parts {
		if id.Job == job {
			delete(s.mu.parts, id)
			gone = append(gone, p)
		}
	}
	for id := range s.mu.writing {
		if id.Job == job {
			delete(s.mu.writing, id)
		}
	}
	s.mu.Unlock()
	for _, p := range gone {
		s.files.forget(p)
	}
	name := escape(job)
	err := beforeDelete.Hit(name)
	if err == nil {
		err = s.root.RemoveAll(name)
	}
	if err == nil {
		err = afterDelete.Hit(name)
	}
	if err != nil {
		return fmt.Errorf("shuffle: delete job %s: %w", job, err)
	}
	return nil
}

// DropOldest deletes the data of the oldest partition of a job, or of all with "",
// as a failing disk would: the store goes on believing that it has it. False: there
// is none.
func (s *Store) DropOldest(job string) (id PartitionID, ok bool, err error) {
	var p *partition
	s.mu.Lock()
	for _, q := range s.mu.parts {
		if (job == "" || q.ID.Job == job) && !q.dropped && (p == nil || q.number < p.number) {
			p = q
		}
	}
	if p != nil {
		p.dropped = true
	}
	s.mu.Unlock()
	if p == nil {
		return id, false, nil
	}
	err = s.remove(p.ID.file(dataSuffix))
	s.files.forget(p)
	return p.ID, true, err
}

// Drop is DropOldest for one partition. One that the store does not have is no
// error: a disk asks nobody.
func (s *Store) Drop(id PartitionID) error {
	s.mu.Lock()
	p := s.mu.parts[id]
	if p != nil {
		p.dropped = true
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	err := s.remove(id.file(dataSuffix))
	s.files.forget(p)
	return err
}

// DiskBytes counts the bytes of all files of a job, or of all with "", unfinished
// ones and strangers included.
func (s *Store) DiskBytes(job string) (n int64, err error) {
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

// find gives a finished partition that has the range.
func (s *Store) find(id PartitionID, r Range) (*partition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.parts[id]
	if p == nil {
		why := errors.New("this worker does not hold it")
		if _, ok := s.mu.writing[id]; ok {
			why = errors.New("it is not finished")
		}
		for other := range s.mu.parts {
			e := other
			if e.Epoch = id.Epoch; e == id {
				why = fmt.Errorf("this worker holds it of epoch %d", other.Epoch)
			}
		}
		return nil, lostError(id, r, why)
	}
	if r.First < 0 || r.Last < r.First || r.Last >= len(p.Bytes) {
		return nil, fmt.Errorf("shuffle: partition %s has subpartitions 0 to %d, not %d to %d: %w", id, len(p.Bytes)-1, r.First, r.Last, fs.ErrInvalid)
	}
	return p, nil
}

// Source opens a partition for a remote consumer; see exchange.Server.Serve.
func (s *Store) Source(key string) (exchange.Source, error) {
	id, r, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	return s.Reader(id, r)
}

// Input is what one channel of a consuming subtask reads.
type Input struct {
	Partition PartitionID
	Range     Range
	// Holder connects to the worker that holds the partition; nil is this one.
	Holder func() (*exchange.Client, error)
}

// Connect makes channel i of a gate read input i, window of them at a time.
func (s *Store) Connect(g *exchange.Gate, inputs []Input, window int) error {
	if len(inputs) != g.Channels() {
		return fmt.Errorf("shuffle: %d inputs for a gate of %d channels: %w", len(inputs), g.Channels(), fs.ErrInvalid)
	}
	return g.ConnectInTurn(window, func(ch int) error {
		in := &inputs[ch]
		if in.Holder == nil {
			r, err := s.Reader(in.Partition, in.Range)
			if err != nil {
				return err
			}
			return g.AddSource(ch, r)
		}
		c, err := in.Holder()
		if err != nil {
			return err
		}
		return g.AddRemote(ch, c, in.Partition.Key(in.Range), 0)
	})
}

// Close ends all readers and closes all files; what is on disk stays. Writers
// must have ended.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil
	}
	s.mu.closed = true
	var readers []*Reader
	for r := range s.mu.readers {
		readers = append(readers, r)
	}
	s.mu.Unlock()
	for _, r := range readers {
		r.fail(fmt.Errorf("shuffle: the store of the worker: %w", fs.ErrClosed))
	}
	s.pump.close()
	s.files.close()
	return s.root.Close()
}
