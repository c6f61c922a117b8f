package joblog

import "benchrun/runtime/failpoint"

// watched is a folder with a fault point before and after everything that
// changes it; the subject is the file, or "" for the folder itself. An error
// before means that nothing was done; one after, that it was and nobody knows.
// Every store works on one, so an operation cannot be without its points.
type watched struct{ Folder }

// passage is the two points of a kind of operation.
type passage struct{ before, after *failpoint.Point }

var (
	creating   = passage{failpoint.New("joblog/create"), failpoint.New("joblog/created")}
	appending  = passage{failpoint.New("joblog/append"), failpoint.New("joblog/appended")}
	flushing   = passage{failpoint.New("joblog/flush"), failpoint.New("joblog/flushed")}
	syncing    = passage{failpoint.New("joblog/sync"), failpoint.New("joblog/synced")}
	closing    = passage{failpoint.New("joblog/close"), failpoint.New("joblog/closed")}
	truncating = passage{failpoint.New("joblog/truncate"), failpoint.New("joblog/truncated")}
	renaming   = passage{failpoint.New("joblog/rename"), failpoint.New("joblog/renamed")}
	deleting   = passage{failpoint.New("joblog/delete"), failpoint.New("joblog/deleted")}
)

func (p passage) pass(name string, do func() error) error {
	if err := p.before.Hit(name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return p.after.Hit(name)
}

// Create implements Folder.
func (d watched) Create(name string) (file File, err error) {
	err = creating.pass(name, func() (err error) {
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
	return truncating.pass(name, func() error { return d.Folder.Truncate(name, size) })
}

// Publish implements Folder.
func (d watched) Publish(temp, name string) error {
	return renaming.pass(name, func() error { return d.Folder.Publish(temp, name) })
}

// Remove implements Folder.
func (d watched) Remove(name string) error {
	return deleting.pass(name, func() error { return d.Folder.Remove(name) })
}

// Sync implements Folder.
func (d watched) Sync() error { return syncing.pass("", d.Folder.Sync) }

type watchedFile struct {
	File
	name string
}

// Write implements File.
func (f watchedFile) Write(p []byte) (n int, err error) {
	err = appending.pass(f.name, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// Flush implements File.
func (f watchedFile) Flush() error { return flushing.pass(f.name, f.File.Flush) }

// Sync implements File.
func (f watchedFile) Sync() error { return syncing.pass(f.name, f.File.Sync) }

// Close implements File. The file is closed in any case.
func (f watchedFile) Close() error {
	before := closing.before.Hit(f.name)
	if err := f.File.Close(); before == nil {
		before = err
	}
	if before != nil {
		return before
	}
	return closing.after.Hit(f.name)
}
