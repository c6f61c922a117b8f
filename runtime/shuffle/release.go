package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
)

// A partition on its way out of the store: released, or dropped as a failing disk
// would.

// remove deletes files in this order; a missing one is no error.
func (s *Store) remove(names ...string) error {
	var errs []error
	for _, n := range names {
		err := around(beforeDelete, afterDelete, n, func() error {
			if err := s.root.Remove(n); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
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

// Sweep deletes what is left of partitions of a job that Inventory leaves out.
func (s *Store) Sweep(job string) error {
	var broken []PartitionID
	for _, p := range s.broken(s.list(job)) {
		broken = append(broken, p.ID)
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
	if err := around(beforeDelete, afterDelete, name, func() error { return s.root.RemoveAll(name) }); err != nil {
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
