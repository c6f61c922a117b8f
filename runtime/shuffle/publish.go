package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"benchrun/runtime/failpoint"
)

// A partition on its way into the store: created, sealed, published, or discarded.

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
		if err = s.root.MkdirAll(id.folder(), 0o700); err != nil {
			continue
		}
		f, err = s.root.OpenFile(id.temp(suffix), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, err
}

// seal gives a written file its name.
func (s *Store) seal(f *os.File, name string) error {
	if s.c.Sync {
		if err := writeError("sync", name, around(beforeSync, afterSync, name, f.Sync)); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return writeError("close", name, err)
	}
	return writeError("rename to", name, around(beforeRename, afterRename, name, func() error {
		dir, base := cutLast(name)
		return s.root.Rename(dir+"/"+tempPrefix+base, name)
	}))
}

// around does something between two fault points.
func around(before, after *failpoint.Point, subject string, do func() error) error {
	if err := before.Hit(subject); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return after.Hit(subject)
}

// writeError says what could not be done with a file that is being written. That
// the disk is full is the user's to mend, so it is said in words. nil stays nil.
func writeError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("shuffle: %s %s: the disk is full: %w", op, name, err)
	}
	return fmt.Errorf("shuffle: %s %s: %w", op, name, err)
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
			err := around(beforeSyncFolder, afterSyncFolder, d, func() error { return s.syncFolder(d) })
			if err := writeError("sync folder", d, err); err != nil {
				return err
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
