package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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

// Inventory lists the finished partitions of a job, or of all with "", in the order
// in which they were finished. One whose files are gone or have another length
// is left out.
func (s *Store) Inventory(job string) []Finished {
	list := s.list(job)
	broken := map[*partition]bool{}
	for _, p := range s.broken(list) {
		broken[p] = true
	}
	return described(slices.DeleteFunc(list, func(p *partition) bool { return broken[p] }))
}

// List is Inventory without a look at the disk.
func (s *Store) List(job string) []Finished { return described(s.list(job)) }

func (s *Store) list(job string) (list []*partition) {
	s.mu.Lock()
	for id, p := range s.mu.parts {
		if job == "" || id.Job == job {
			list = append(list, p)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *partition) int { return a.number - b.number })
	return list
}

func described(list []*partition) []Finished {
	out := make([]Finished, len(list))
	for i, p := range list {
		out[i] = p.Finished
	}
	return out
}

// broken finds those of which a file is gone or has another length. Each folder
// is opened once: a look from the top at each file takes three times as long.
func (s *Store) broken(list []*partition) (out []*partition) {
	byFolder := map[string][]*partition{}
	for _, p := range list {
		dir := p.ID.folder()
		byFolder[dir] = append(byFolder[dir], p)
	}
	for dir, list := range byFolder {
		folder, err := s.root.OpenRoot(dir)
		switch {
		case err == nil:
			for _, p := range list {
				base := p.ID.base()
				if !hasLength(folder, base+dataSuffix, p.length) || !hasLength(folder, base+indexSuffix, p.Disk-p.length) {
					out = append(out, p)
				}
			}
			folder.Close()
		case !shortage(err): // else nothing is known, and who reads finds out
			out = append(out, list...)
		}
	}
	return out
}

func hasLength(folder *os.Root, name string, length int64) bool {
	info, err := folder.Stat(name)
	return err == nil && info.Size() == length || err != nil && shortage(err)
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
	// Holder connects to the worker that holds the partition, until the context is
	// over; nil is this one.
	Holder func(context.Context) (*exchange.Client, error)
}

// Connect makes channel i of a gate read input i, window of them at a time. The
// context is that of the consumer.
func (s *Store) Connect(ctx context.Context, g *exchange.Gate, inputs []Input, window int) error {
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
		c, err := in.Holder(ctx)
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
