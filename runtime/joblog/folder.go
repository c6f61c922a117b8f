package joblog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"benchrun/runtime/storage"
)

// Folder is the directory of one log. Unlike storage.Store it appends: a log
// must be readable up to its last word when its writer dies.
type Folder interface {
	// Names lists the files, sorted. A folder that is not there is empty.
	Names() ([]string, error)
	ReadFile(name string) ([]byte, error)
	// Create makes a new file; a name that is taken is fs.ErrExist.
	Create(name string) (File, error)
	// Truncate shortens a file and makes that durable.
	Truncate(name string, size int64) error
	// Publish gives a file its final name in one step; a name that is taken is
	// fs.ErrExist.
	Publish(temp, name string) error
	// Remove deletes a file; one that is not there is no error.
	Remove(name string) error
	// Sync makes the entries durable.
	Sync() error
	// String names the folder in errors.
	String() string
}

// File is a file that is being appended to.
type File interface {
	Write(p []byte) (int, error)
	// Flush hands what was written to the other side: it survives the process.
	Flush() error
	// Sync makes it survive the machine.
	Sync() error
	Close() error
}

// Dir is a folder of the local file system.
type Dir struct{ path string }

// OpenDir opens a folder for a log and makes it if it is missing.
func OpenDir(path string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		err = os.MkdirAll(abs, 0o700) // what is in it is trusted by the next master
	}
	if err != nil {
		return nil, fmt.Errorf("job log folder %s: %w", path, err)
	}
	d := &Dir{abs}
	// The entries of the folder and of those above it that are new must not be
	// lost with what they hold.
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if err := storage.SyncFolder(dir); err != nil {
			if !syncable(err) {
				break
			}
			return nil, fmt.Errorf("job log folder %s: %w", abs, err)
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return d, nil
}

// syncable tells whether a folder that is not ours could be made durable, as an
// error says: some systems do so without being asked, and refuse to be.
func syncable(err error) bool {
	return !slices.ContainsFunc([]error{fs.ErrPermission, errors.ErrUnsupported, syscall.EINVAL, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}

func (d *Dir) String() string { return d.path }

// Names implements Folder.
func (d *Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("job log: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, nil
}

// ReadFile implements Folder. What is no file has no end that could be torn, and may
// have none at all: it is damage.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	path := filepath.Join(d.path, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &DamagedError{File: name, Err: fmt.Errorf("%s is no regular file (%s)", path, info.Mode())}
	}
	return os.ReadFile(path)
}

// Create implements Folder.
func (d *Dir) Create(name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// osFile has nothing between itself and the system that would need a flush.
type osFile struct{ *os.File }

func (osFile) Flush() error { return nil }

// Truncate implements Folder.
func (d *Dir) Truncate(name string, size int64) error {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Publish implements Folder. A rename would replace what a newer master wrote;
// a hard link does not.
func (d *Dir) Publish(temp, name string) error {
	if err := os.Link(filepath.Join(d.path, temp), filepath.Join(d.path, name)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(d.path, temp)) // a leftover is removed when the log is opened
	return nil
}

// Remove implements Folder.
func (d *Dir) Remove(name string) error {
	if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sync implements Folder.
func (d *Dir) Sync() error { return storage.SyncFolder(d.path) }
