package joblog

import "benchrun/runtime/failpoint"

// watched is a folder with a fault point before and after everything that
// changes it; the subject is the file, or "" for the folder itself. An error
// before means that nothing was done; one after, that it was and nobody knows.
// Every store works on one, so an operation cannot be without its points.
type watched struct{ Folder }

var (
	creating   = failpoint.NewPassage("joblog/create", "joblog/created")
	appending  = failpoint.NewPassage("joblog/append", "joblog/appended")
	flushing   = failpoint.NewPassage("joblog/flush", "joblog/flushed")
	syncing    = failpoint.NewPassage("joblog/sync", "joblog/synced")
	closing    = failpoint.NewPassage("joblog/close", "joblog/closed")
	truncating = failpoint.NewPassage("joblog/truncate", "joblog/truncated")
	renaming   = failpoint.NewPassage("joblog/rename", "joblog/renamed")
	deleting   = failpoint.NewPassage("joblog/delete", "joblog/deleted")
)

// Create implements Folder.
func (d watched) Create(name string) (file File, err error) {
	err = creating.Pass(name, func() (err error) {
		file, err = d.Folder.Create(name)
		return err
	})
	if err != nil {
		if file != nil {
			_ = file.Close() // what counts is that it is not used
		}
		return nil, err
	}
	return watchedFile{file, name}, nil
}

// Truncate implements Folder.
func (d watched) Truncate(name string, size int64) error {
	return truncating.Pass(name, func() error { return d.Folder.Truncate(name, size) })
}

// Publish implements Folder.
func (d watched) Publish(temp, name string) error {
	return renaming.Pass(name, func() error { return d.Folder.Publish(temp, name) })
}

// Remove implements Folder.
func (d watched) Remove(name string) error {
	return deleting.Pass(name, func() error { return d.Folder.Remove(name) })
}

// Sync implements Folder.
func (d watched) Sync() error { return syncing.Pass("", d.Folder.Sync) }

type watchedFile struct {
	File
	name string
}

// Write implements File.
func (f watchedFile) Write(p []byte) (n int, err error) {
	err = appending.Pass(f.name, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// Flush implements File.
func (f watchedFile) Flush() error { return flushing.Pass(f.name, f.File.Flush) }

// Sync implements File.
func (f watchedFile) Sync() error { return syncing.Pass(f.name, f.File.Sync) }

// Close implements File. The file is closed in any case.
func (f watchedFile) Close() error {
	before := closing.Before.Hit(f.name)
	if err := f.File.Close(); before == nil {
		before = err
	}
	if before != nil {
		return before
	}
	return closing.After.Hit(f.name)
}
