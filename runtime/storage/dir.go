package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Dir is a store in a directory of the local file system. What is in it holds the
// state of jobs, and only its owner may read it.
type Dir struct {
	root string
}

var _ Store = (*Dir)(nil)

// OpenDir opens a directory as a store and makes it, durably, if it is
// missing.
func OpenDir(root string) (*Dir, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("storage directory %s: %w", root, err)
	}
	if err := MakeFolders(abs); err != nil {
		return nil, fmt.Errorf("storage directory %s: %w", abs, err)
	}
	return &Dir{root: abs}, nil
}

// MakeFolders is os.MkdirAll that also makes the entries of new folders durable.
func MakeFolders(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncFolder(parent)
}

// SyncFolder makes the entries of a folder of the local file system durable.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// WriteFile replaces a file of the local file system in one durable step: readers
// and crashes see the old bytes or the new ones. A crash may leave a file whose
// name is that of this one between a dot and a hyphen with a number.
func WriteFile(name string, b []byte) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	} else {
		err = SyncFolder(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// DropUnfinished removes what crashes in WriteFile of some files have left in their
// folder. Nobody may be writing one of them.
func DropUnfinished(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		hyphen := strings.LastIndexByte(name, '-')
		if !hidden || hyphen < 0 || !slices.Contains(names, name[:hyphen]) {
			continue
		}
		if _, err := strconv.ParseUint(name[hyphen+1:], 10, 64); err == nil {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// URL is file:// with the absolute path.
func (d *Dir) URL() string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(d.root)}
	return u.String()
}

func (d *Dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

var tempCounter atomic.Uint64

// temp opens a new file beside the one that it will become.
func (d *Dir) temp(name string) (*os.File, error) {
	dir := filepath.Dir(d.path(name))
	made := false
	for {
		base := tempPrefix + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(tempCounter.Add(1), 36)
		f, err := os.OpenFile(filepath.Join(dir, base), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, fs.ErrExist): // left behind by a process of the same id
		case errors.Is(err, fs.ErrNotExist) && !made:
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, err
			}
			made = true
		default:
			return nil, err
		}
	}
}

// Create implements Store.
func (d *Dir) Create(name string) (Writer, error) {
	if err := checkName("create", name); err != nil {
		return nil, err
	}
	if err := beforeCreate.Hit(name); err != nil {
		return nil, err
	}
	f, err := d.temp(name)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", d.path(name), err)
	}
	return &dirWriter{f: f, name: name, target: d.path(name)}, nil
}

type dirWriter struct {
	f      *os.File
	name   string
	target string
	err    error // the first failed write: a stream with a hole is never committed
	done   bool
}

func (w *dirWriter) Write(p []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("write %s: %w", w.target, fs.ErrClosed)
	}
	if err := beforeWrite.Hit(w.name); err != nil {
		w.err = err
		return 0, err
	}
	n, err := w.f.Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", w.target, err)
		w.err = err
	}
	return n, err
}

func (w *dirWriter) Commit() error {
	if w.done {
		return fmt.Errorf("commit %s: %w", w.target, fs.ErrClosed)
	}
	w.done = true
	temp := w.f.Name()
	err := w.err
	if err == nil {
		err = beforeCommit.Hit(w.name)
	}
	if err == nil {
		err = w.f.Sync()
	}
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp, w.target)
	}
	if err != nil {
		os.Remove(temp)
		return fmt.Errorf("commit %s: %w", w.target, err)
	}
	return afterCommit.Hit(w.name)
}

func (w *dirWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	err := w.f.Close()
	if rerr := os.Remove(w.f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) && err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("abort %s: %w", w.target, err)
	}
	return nil
}

// Open implements Store.
func (d *Dir) Open(name string) (Reader, error) {
	if err := checkName("open", name); err != nil {
		return nil, err
	}
	if err := beforeOpen.Hit(name); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: d.path(name), Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("storage: %w", err)
	}
	return &dirReader{File: f, name: name, size: info.Size()}, nil
}

type dirReader struct {
	*os.File
	name string
	size int64
}

func (r *dirReader) Size() int64  { return r.size }
func (r *dirReader) Name() string { return r.name }

// Put implements Store.
func (d *Dir) Put(name string, data []byte) error {
	return d.put(name, data, os.Rename)
}

// PutIfAbsent implements Store: a hard link fails when its name is taken,
// which a rename does not.
func (d *Dir) PutIfAbsent(name string, data []byte) error {
	return d.put(name, data, func(temp, target string) error {
		err := os.Link(temp, target)
		if rerr := os.Remove(temp); err == nil {
			err = rerr
		}
		return err
	})
}

func (d *Dir) put(name string, data []byte, publish func(temp, target string) error) error {
	if err := checkName("put", name); err != nil {
		return err
	}
	if err := beforePut.Hit(name); err != nil {
		return err
	}
	target := d.path(name)
	f, err := d.temp(name)
	if err != nil {
		return fmt.Errorf("put %s: %w", target, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = publish(f.Name(), target)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("put %s: %w", target, err)
	}
	if err := putVisible.Hit(name); err != nil {
		return err
	}
	if err := d.syncUp(filepath.Dir(target)); err != nil {
		return fmt.Errorf("put %s: %w", target, err)
	}
	return afterPut.Hit(name)
}

// List implements Store.
func (d *Dir) List(prefix string) ([]string, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	start := d.root
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = d.path(prefix[:i])
	}
	var names []string
	// WalkDir is lexical per folder; a sort would only differ where a folder
	// and a file share a stem, and callers rely on the order of whole names.
	err := filepath.WalkDir(start, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // removed while we walk
				return nil
			}
			return err
		}
		if p == d.root {
			return nil
		}
		rel, err := filepath.Rel(d.root, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if e.IsDir() {
			// Folders that cannot hold a match need no walk.
			if !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(e.Name(), tempPrefix) {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", start, err)
	}
	return sorted(names), nil
}

// Delete implements Store.
func (d *Dir) Delete(name string) error {
	if err := checkName("delete", name); err != nil {
		return err
	}
	if err := beforeDelete.Hit(name); err != nil {
		return err
	}
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

// DeleteAll implements Store.
func (d *Dir) DeleteAll(prefix string) error {
	if err := checkName("delete all", prefix); err != nil {
		return err
	}
	if err := beforeDelete.Hit(prefix); err != nil {
		return err
	}
	if err := os.RemoveAll(d.path(prefix)); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return nil
}

// SyncDir implements Store.
func (d *Dir) SyncDir(prefix string) error {
	if err := checkFolder("sync", prefix); err != nil {
		return err
	}
	if err := beforeSync.Hit(prefix); err != nil {
		return err
	}
	if err := d.syncUp(d.path(prefix)); err != nil {
		return fmt.Errorf("sync folder %q of %s: %w", prefix, d.root, err)
	}
	return nil
}

// syncUp syncs a folder and all above it up to the root.
func (d *Dir) syncUp(dir string) error {
	for {
		if err := SyncFolder(dir); err != nil {
			return err
		}
		if dir == d.root || len(dir) <= len(d.root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}
